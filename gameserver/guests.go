package gameserver

import (
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file knows the players who are here, over all connections of theirs.

// reachLeeway is how much farther than others a player of an original client may reach, in blocks: their
// client measures in its own way, and their moves come over another connection than their edits.
const reachLeeway = 1

// stance is where a player is registered on a connection of an original client.
type stance struct {
	pose  wire.Pose
	at    grid.ChunkPos // of the connection
	moved bool          // they have said where they are since they registered
}

func (s *classic) stance() stance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stance{pose: s.mu.pose, at: s.at, moved: s.mu.motion != nil}
}

// present returns where a player is who plays here, or is being saved at this moment, and reports whether they are.
func (g *Gateway) present(id player.ID) (pose wire.Pose, here bool) {
	g.mu.Lock()
	s, who := g.mu.sessions[id], g.mu.guests[id]
	g.mu.Unlock()
	switch {
	case s != nil && s.placed():
		return s.where(), true
	case who != nil:
		return who.place()
	}
	return pose, false
}

// judgeBuilder returns who puts a block there, of the players whose connection this may be, or else why none of them may.
// One who has not said where they are may edit the chunk that they are registered in.
func (s *classic) judgeBuilder(pos grid.Pos, block chunk.Block) (by player.ID, refused string) {
	rules := s.g.rules
	rules.Reach += reachLeeway
	refused = wire.RefusedOutOfReach
	for _, on := range s.party.registered() {
		who, st := on.who.Load(), on.stance()
		switch {
		case s.who.Load() != nil && s.who.Load() != who,
			!st.moved && st.at != pos.Chunk(),
			st.moved && !rules.InReach(st.pose.X, st.pose.Y+player.EyeHeight, st.pose.Z, pos):
			continue
		case block.Solid() && (st.moved && bodyReaches(st.pose, pos) || s.g.occupied(pos, who.id)):
			refused = wire.RefusedInsidePlayer
			continue
		}
		return who.id, ""
	}
	return by, refused
}

// occupied tells whether a body of another player reaches into the block, as far as is known here.
func (g *Gateway) occupied(pos grid.Pos, self player.ID) bool {
	for _, at := range chunksAround(pos) {
		g.mu.Lock()
		f := g.mu.feeds[grid.CellAt(at, grid.FoundingLabel)]
		g.mu.Unlock()
		if f != nil && f.occupied(at, pos, self) {
			return true
		}
	}
	return false
}

// chunksAround gives the chunks in which a body may stand that reaches into the block, each once.
func chunksAround(pos grid.Pos) []grid.ChunkPos {
	var all []grid.ChunkPos
	for _, corner := range [...]grid.Pos{{X: -1, Z: -1}, {X: -1, Z: 1}, {X: 1, Z: -1}, {X: 1, Z: 1}} {
		at := grid.Pos{X: pos.X + corner.X, Z: pos.Z + corner.Z}.Chunk()
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// poses gives where everybody who has a session here is.
func (g *Gateway) poses() []presence {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]presence, 0, len(g.mu.sessions))
	for _, s := range g.mu.sessions {
		if s.joined() {
			all = append(all, s.presence())
		}
	}
	for c := range g.mu.classics {
		if p, registered := c.presence(); registered {
			all = append(all, p)
		}
	}
	return all
}
