package gameserver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handleView notes the view distance that the client wants; dispatch applies it.
func (s *session) handleView(m sessionmsg.View) { s.view.wanted = s.g.viewOf(m.View) }

// handleChunkRequest sends a chunk of which the client was sent the hash, and that it does not have.
func (s *session) handleChunkRequest(m sessionmsg.ChunkRequest) {
	if at := (grid.ChunkPos{X: m.X, Z: m.Z}); s.client.chunks.Request(at) {
		s.subs[at].Refresh(at, s)
	}
}

// updateView watches the chunks around the player, nearest first, and unwatches those more than one chunk beyond the
// view distance, so that a walk to and fro costs nothing. Those for which the player's address has no room are left
// out, or taken out.
func (s *session) updateView() {
	at, view := s.place.pose().Chunk(), int(s.view.chunks.Load())
	s.permissions.Surround(at, view)
	for pos := range s.subs {
		if pos.Distance(at) > int64(view)+1 {
			s.unwatch(pos)
		}
	}
	if s.limits.client.SeesTooMuch() {
		s.narrowView(at)
	}
	var missing []grid.ChunkPos
	for x := -view; x <= view; x++ {
		for z := -view; z <= view; z++ {
			pos := grid.ChunkPos{X: at.X + int32(x), Z: at.Z + int32(z)}
			if s.subs[pos] == nil && pos.Valid() {
				missing = append(missing, pos)
			}
		}
	}
	slices.SortFunc(missing, func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(squaredDistance(a, at), squaredDistance(b, at)), a.Compare(b))
	})
	short := false
	for _, pos := range missing {
		reach := admission.Near
		if pos.Distance(at) > admission.NearView {
			reach = admission.Far
		}
		if !s.limits.client.Hold(pos, reach) {
			short = true
			continue
		}
		s.subs[pos] = s.g.mirror.Watch(pos, s)
	}
	if short && !s.view.short {
		s.limits.client.NoteRefusedLand()
	}
	if s.view.short = short; short && !s.view.explained {
		s.view.explained = true
		s.out.Send(shortView)
	}
}

// unwatch takes a chunk out of view.
func (s *session) unwatch(pos grid.ChunkPos) {
	s.subs[pos].Unwatch(pos, s)
	s.limits.client.Release(pos, admission.Near)
	delete(s.subs, pos)
	s.client.chunks.Remove(pos)
	s.out.RemoveChunk(pos)
}

// narrowView takes the farthest chunks out of view that no other player of the address sees, until the address sees no
// more than it may.
func (s *session) narrowView(at grid.ChunkPos) {
	farthest := slices.SortedFunc(maps.Keys(s.subs), func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(squaredDistance(b, at), squaredDistance(a, at)), a.Compare(b))
	})
	for _, pos := range farthest {
		if !s.limits.client.SeesTooMuch() {
			return
		}
		if pos.Distance(at) > admission.NearView+1 && s.limits.client.SeesAlone(pos) {
			s.unwatch(pos)
		}
	}
}

// shortView is sent once to a player who sees less than they want.
var shortView = sessionmsg.Notice(notice.New("short_view_within", "Players from your address are far apart, so you may see only the "+
	"land within {blocks} blocks. Stay closer together to see farther.", admission.NearView*grid.ChunkSize))

// squaredDistance returns the squared distance of two chunks.
func squaredDistance(a, b grid.ChunkPos) int64 {
	dx, dz := int64(a.X)-int64(b.X), int64(a.Z)-int64(b.Z)
	return dx*dx + dz*dz
}
