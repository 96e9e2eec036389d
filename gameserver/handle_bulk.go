package gameserver

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handleBulk requests that many blocks of a chunk are changed, or refuses it at once (docs/adr/0110).
func (s *session) handleBulk(m sessionmsg.Bulk) {
	if s.edits.closed() {
		return // the client sends it again at its new node
	}
	runs, err := hex.DecodeString(m.Runs)
	if err != nil {
		return // it was checked when it was decoded
	}
	at, bulk := grid.ChunkPos{X: m.X, Z: m.Z}, nodemsg.Bulk(runs)
	refused := s.checkBulk(at, bulk)
	if refused == "" && m.Seq > firstSeq(s.g.wall().Add(seqAhead)) {
		refused = wire.RefusedStale
	}
	if refused != "" {
		s.refuseEdit(m.Seq, chunk.Air, refused)
		return
	}
	s.requestEdit(nodemsg.Intent{Seq: m.Seq, Pos: at.Origin(), Bulk: bulk}, m.Signature)
}

// checkBulk returns why the player may not make a bulk edit in a chunk. They need not be near. Whether the blocks are
// what they have seen, only the region knows: the edit may be applied already, and sent again.
func (s *session) checkBulk(at grid.ChunkPos, bulk nodemsg.Bulk) (refused string) {
	sub := s.subs[at]
	if sub == nil {
		return wire.RefusedNotLoaded
	}
	if !s.limits.client.Allow(admission.Edit) { // before all blocks are looked at
		return wire.RefusedRate
	}
	bodies := s.bodiesNear(at)
	for to := range bulk.All() {
		pos := to.At.Pos(at)
		if pos.Y >= s.g.World.Height() {
			return wire.RefusedOutOfWorld
		}
		there, loaded := sub.Block(pos)
		if !loaded {
			return wire.RefusedNotLoaded
		}
		refused = cmp.Or(checks.BlockChange(there, to.Block), s.permissions.RefuseEdit(pos))
		if refused == "" && slices.ContainsFunc(bodies, func(p motion.Pose) bool { return checks.BodyReaches(p, pos, to.Block) }) {
			refused = wire.RefusedInsidePlayer
		}
		if refused != "" {
			return refused
		}
	}
	return s.permissions.RefuseBulk(bulk.Blocks())
}

// bodiesNear returns where the bodies of players are that may reach into a chunk, as far as they are known here.
func (s *session) bodiesNear(at grid.ChunkPos) []motion.Pose {
	all := []motion.Pose{s.place.pose()}
	for x := at.X - 1; x <= at.X+1; x++ {
		for z := at.Z - 1; z <= at.Z+1; z++ {
			near := grid.ChunkPos{X: x, Z: z}
			if sub := s.subs[near]; sub != nil {
				sub.AnyOccupant(near, func(b *nodemsg.Body) bool {
					if b.Player != s.body.Player {
						all = append(all, b.Pose)
					}
					return false
				})
			}
		}
	}
	return all
}
