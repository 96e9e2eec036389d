package gameserver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file handles the client's messages. It runs in the session's reader.

// listen handles messages until the client leaves or sends something invalid.
func (s *session) listen() error {
	s.heard = s.g.now()
	s.acted = s.heard
	for {
		data, err := s.conn.read()
		if err != nil {
			return err
		}
		now := s.receives(data)
		if !s.moving(data) {
			s.acted = now
		}
		if err := s.take(data); err != nil {
			return err
		}
		if s.moving(data) && !s.nears && now-s.acted >= cmp.Or(s.g.actedFor, actedFor) {
			s.stroll()
		}
	}
}

// receives counts a message, and returns the time.
func (s *session) receives(data []byte) time.Duration {
	s.g.metrics.received(len(data))
	now := s.g.now()
	if now-s.heard > silence/64 { // resetting a timer costs more than comparing times
		s.heard = now
		s.silent.Reset(silence)
	}
	return now
}

// take handles one message. Most of them are moves.
func (s *session) take(data []byte) error {
	if s.moving(data) {
		pose, err := wire.DecodeMove(data)
		if err != nil {
			return err
		}
		return s.move(pose)
	}
	msg, err := s.decode(data)
	if err != nil {
		return err
	}
	return s.hear(msg)
}

func (s *session) hear(msg wire.FromClient) error {
	switch m := msg.(type) {
	case wire.Move:
		return s.move(m.Pose)
	case wire.Edit:
		s.edit(m)
	case wire.Chat:
		s.say(m.Text)
	case wire.Hit:
		s.act(m.Player, wire.Deed{Kind: wire.DeedHit}, s.blows)
	case wire.Gift:
		s.act(m.Player, wire.Deed{Kind: wire.DeedGift, Block: chunk.Block(m.Block), Count: m.Count}, s.gifts)
	case wire.View:
		if !s.views.Allow() {
			return &wire.Error{Code: wire.FailRate, Message: "you change the view distance too often"}
		}
		s.view.Store(int32(min(m.View, s.g.MaxView)))
		s.look()
	case wire.Ping:
		if !s.pings.Allow() {
			return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d pings a second", pingsPerSecond)}
		}
		s.out.send(wire.Pong{Nonce: m.Nonce, TimeOfDay: s.g.timeOfDay()})
	case wire.Join, wire.Prove:
		return &wire.Error{Code: wire.FailUnexpected, Message: "you have joined already"}
	}
	return nil
}

// move applies a move if the rules allow it, else corrects the client.
func (s *session) move(pose wire.Pose) error {
	if !s.moves.Allow() {
		return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d moves a second", movesPerSecond)}
	}
	last := s.where()
	before := *s.motion
	ok, reason := s.motion.Check(s.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, pose.Pitch)
	if ok && s.walled(last, pose) {
		ok, reason = false, insideBlock
		*s.motion = before // a refused move costs nothing
	}
	if !ok {
		s.g.metrics.corrections.WithLabelValues(reason).Inc()
		s.out.send(wire.Correction{Pose: last, Reason: reason})
		s.here.halt(s.body.Player, s)
		return nil
	}
	was := world.ChunkOf(last)
	if !s.place(pose) {
		return nil // the player goes on from here at another gateway
	}
	at := world.ChunkOf(pose)
	if !s.here.cell.Contains(at) {
		s.here.leave(s.body.Player, s)
		body := s.body
		body.Pose, body.Said = pose, s.voice.owner.Done()
		body.Gateway = s.g.swarm.home()
		s.here = s.g.enter(body, s)
		s.home.Store(s.here)
	} else if at != was || !s.g.swarm.tells(s) {
		if s.here.move(s.body.Player, pose, s, at == was && s.alone.Load()) {
			s.tell(s.here)
		}
	}
	if at != was {
		s.look()
	}
	s.foresee(last, pose)
	return nil
}

// look watches the chunks around the player, nearest first, and unwatches those more than one chunk beyond the view distance, so
// that a walk to and fro costs nothing.
func (s *session) look() {
	at, view := world.ChunkOf(s.where()), int(s.view.Load())
	for pos, f := range s.feeds {
		if apart(pos, at) > int64(view)+1 {
			f.unwatch(pos, s)
			delete(s.feeds, pos)
			s.out.send(wire.ChunkGone{Chunk: pos})
		}
	}
	var missing []grid.ChunkPos
	for x := -view; x <= view; x++ {
		for z := -view; z <= view; z++ {
			pos := grid.ChunkPos{X: at.X + int32(x), Z: at.Z + int32(z)}
			if s.feeds[pos] == nil && pos.Valid() {
				missing = append(missing, pos)
			}
		}
	}
	slices.SortFunc(missing, func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(distance(a, at), distance(b, at)), a.Compare(b))
	})
	for _, pos := range missing {
		s.feeds[pos] = s.g.watch(pos, s)
	}
}

// apart returns the distance of two chunks along the longer axis, in chunks.
func apart(a, b grid.ChunkPos) int64 {
	return max(abs(int64(a.X)-int64(b.X)), abs(int64(a.Z)-int64(b.Z)))
}

func abs(v int64) int64 { return max(v, -v) }

// distance returns the squared distance of two chunks.
func distance(a, b grid.ChunkPos) int64 {
	dx, dz := int64(a.X)-int64(b.X), int64(a.Z)-int64(b.Z)
	return dx*dx + dz*dz
}

// seqAhead is how far an edit's sequence may be ahead of this gateway's clock. A player who reached the largest sequence could
// never edit again.
const seqAhead = 10 * time.Minute

// edit requests a block change, or refuses it at once.
func (s *session) edit(e wire.Edit) {
	if s.edits.held() {
		return // the client sends it again at its new node
	}
	pos := grid.Pos{X: e.X, Y: e.Y, Z: e.Z}
	there, refused := s.judge(pos, chunk.Block(e.Block))
	if refused == "" && e.Seq > firstSeq(time.Now().Add(seqAhead)) {
		refused = wire.RefusedStale
	}
	if refused != "" && s.parted() {
		return // likewise: the player's moves do not count here any more, nor does their reach
	}
	if refused != "" {
		s.g.metrics.refusals.WithLabelValues(refused).Inc()
		s.out.send(wire.Ack{Seq: e.Seq, Block: uint16(there), Error: refused})
		return
	}
	if !s.edits.add(e.Seq) {
		return // held since
	}
	s.feeds[pos.Chunk()].edit(wire.Intent{Player: s.body.Player, Seq: e.Seq, Pos: pos, Block: chunk.Block(e.Block)}, s)
}

// judge returns the block at the position, and why the player may not place the given one there.
func (s *session) judge(pos grid.Pos, block chunk.Block) (there chunk.Block, refused string) {
	if pos.Y < 0 || pos.Y >= s.g.World.Height() || !pos.Chunk().Valid() {
		return chunk.Air, wire.RefusedOutOfWorld
	}
	f := s.feeds[pos.Chunk()]
	if f == nil {
		return chunk.Air, wire.RefusedNotLoaded
	}
	there, loaded := f.block(pos)
	pose := s.where()
	switch {
	case !loaded:
		return there, wire.RefusedNotLoaded
	case judgeBlocks(there, block) != "":
		return there, judgeBlocks(there, block)
	case !s.g.rules.InReach(pose.X, pose.Y+player.EyeHeight, pose.Z, pos):
		return there, wire.RefusedOutOfReach
	case block.Solid() && s.occupied(pos, pose):
		return there, wire.RefusedInsidePlayer
	case !s.paces.Allow():
		return there, wire.RefusedRate
	}
	return there, ""
}

// occupied reports whether a body reaches into the block. The player's own body is at pose, not where the region saw it last:
// otherwise they could not jump and place a block beneath themselves.
func (s *session) occupied(pos grid.Pos, pose wire.Pose) bool {
	if bodyReaches(pose, pos) {
		return true
	}
	for _, at := range chunksAround(pos) {
		if f := s.feeds[at]; f != nil && f.occupied(at, pos, s.body.Player) {
			return true
		}
	}
	return false
}

// judgeBlocks returns why a block may not replace another; empty if it may. Air is placed by breaking.
func judgeBlocks(there, block chunk.Block) (refused string) {
	switch {
	case !block.Known():
		return wire.RefusedUnknownBlock
	case block != chunk.Air && !block.Placeable():
		return wire.RefusedNotPlaceable
	case there != chunk.Air && !there.Breakable():
		return wire.RefusedUnbreakable
	}
	return ""
}

// say sends a chat message to everybody who sees the player.
func (s *session) say(text string) {
	if !s.says.Allow() {
		s.remark("You talk too fast; that line was not sent.")
		return
	}
	if !s.utter(text, nil) {
		s.remark("The land here cannot be reached at the moment; that line was not sent.")
	}
}
