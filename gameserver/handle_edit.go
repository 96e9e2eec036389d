package gameserver

import (
	"encoding/hex"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handleEdit requests a block change, or refuses it at once.
func (s *session) handleEdit(e sessionmsg.Edit) {
	if s.edits.closed() {
		return // the client sends it again at its new node
	}
	pos := grid.Pos{X: e.X, Y: e.Y, Z: e.Z}
	there, refused := s.checkEdit(pos, chunk.Block(e.Block))
	if refused == "" && e.Text != "" {
		refused = s.permissions.RefuseText(e)
	}
	if refused == "" && e.Seq > firstSeq(s.g.wall().Add(seqAhead)) {
		refused = wire.RefusedStale
	}
	if refused != "" {
		s.refuseEdit(e.Seq, there, refused)
		return
	}
	if s.requestEdit(nodemsg.Intent{Seq: e.Seq, Pos: pos, Block: chunk.Block(e.Block), Text: e.Text}, e.Signature) {
		s.permissions.NoteEdit(chunk.Block(e.Block) == chunk.Air)
	}
}

// refuseEdit answers an edit that is not requested.
func (s *session) refuseEdit(seq uint64, there chunk.Block, why string) {
	if s.place.detached() {
		return // the client sends it again: the player's moves do not count here any more, nor does their reach
	}
	s.g.metrics.refusals.WithLabelValues(why).Inc()
	s.out.Send(sessionmsg.Ack{Seq: seq, Block: uint16(there), Error: why})
}

// requestEdit requests an edit of the player, which has the client's number, and reports whether it did: not if edits
// are held.
func (s *session) requestEdit(e nodemsg.Intent, signature string) bool {
	number := e.Seq
	if s.body.Guest {
		e.Seq = s.guestSeq(number, s.g.wall())
	}
	if !s.edits.add(e.Seq, number) {
		return false
	}
	e.Player, e.Proof = s.body.Player, s.proof
	hex.Decode(e.Signature[:], []byte(signature)) //nolint:errcheck // it was checked when it was decoded
	s.subs[e.Pos.Chunk()].Edit(e, s)
	return true
}

// checkEdit returns the block at the position, and why the player may not place the given one there.
func (s *session) checkEdit(pos grid.Pos, block chunk.Block) (there chunk.Block, refused string) {
	if pos.Y < 0 || pos.Y >= s.g.World.Height() || !pos.Chunk().Valid() {
		return chunk.Air, wire.RefusedOutOfWorld
	}
	sub := s.subs[pos.Chunk()]
	if sub == nil {
		return chunk.Air, wire.RefusedNotLoaded
	}
	there, loaded := sub.Block(pos)
	pose, forbidden, refused := s.place.pose(), s.permissions.RefuseEdit(pos), checks.BlockChange(there, block)
	switch {
	case !loaded:
		return there, wire.RefusedNotLoaded
	case forbidden != "":
		return there, forbidden
	case refused != "":
		return there, refused
	case !s.g.rules.InReach(pose.X, pose.Y+player.EyeHeight, pose.Z, pos):
		return there, wire.RefusedOutOfReach
	case s.subs.occupied(pos, block, pose, s.body.Player):
		return there, wire.RefusedInsidePlayer
	case !s.limits.edit.Allow() || !s.limits.client.Allow(admission.Edit):
		return there, wire.RefusedRate
	}
	return there, ""
}

// firstSeq is the first edit sequence of a session: the microseconds since 1970, so that a player's sequences grow from
// session to session without a stored counter (docs/adr/0006).
func firstSeq(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// seqAhead is how far an edit's sequence may be ahead of this gateway's clock. A player who reached the largest
// sequence could never edit again.
const seqAhead = 10 * time.Minute

// guestAhead is the same for guests. All of a name have one id, and a region remembers the 64 largest sequences of an
// id: with more time, the edits of one of them at their usual rate would make those of the others look too old.
const guestAhead = time.Second

// guestSeq returns the sequence of a guest's edit that the client has numbered: that number, unless it is ahead of the
// clock.
func (s *session) guestSeq(number uint64, now time.Time) uint64 {
	if number <= firstSeq(now.Add(guestAhead)) {
		return number
	}
	if seq, waits := s.edits.requested(number); waits {
		return seq
	}
	s.numbered = max(s.numbered+1, firstSeq(now))
	return s.numbered
}
