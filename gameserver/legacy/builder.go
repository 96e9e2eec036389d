package legacy

import (
	"context"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// reachLeeway is added to the reach of players of original clients, in blocks: their client measures differently, and
// their moves arrive over another connection than their edits.
const reachLeeway = 1

// checkBuilder returns the player who places a block, of those whose connection this may be, or else why none of them
// may. A player who has not moved yet may edit the chunk that they are registered in. After a reset the released client
// connects again and does not register before the next border: while nobody of the party is registered here, a
// connection may edit its chunk.
func (r *registration) checkBuilder(ctx context.Context, pos grid.Pos, block chunk.Block) (by *guest, refused string) {
	rules := r.party.of.Rules
	rules.Reach += reachLeeway
	refused = wire.RefusedOutOfReach
	registered, own := r.party.registered(), r.who.Load()
	if len(registered) == 0 {
		switch who := r.party.anybody(ctx, r); {
		case who == nil:
			return nil, wire.RefusedRate
		case r.party.of.occupied(pos, block, who.id):
			return nil, wire.RefusedInsidePlayer
		default:
			return who, ""
		}
	}
	for _, on := range registered {
		who := on.who.Load()
		pose, moved := on.lastMove()
		switch {
		case own != nil && own != who && own.isRegistered(),
			!moved && on.at != pos.Chunk(),
			moved && !rules.InReach(pose.X, pose.Y+player.EyeHeight, pose.Z, pos):
			continue
		case moved && checks.BodyReaches(pose, pos, block) || r.party.of.occupied(pos, block, who.id):
			refused = wire.RefusedInsidePlayer
			continue
		}
		return who, ""
	}
	return by, refused
}

// occupied reports whether the body of another player reaches into what the block would fill, as far as known here.
func (ps *parties) occupied(pos grid.Pos, block chunk.Block, self player.ID) bool {
	for _, at := range checks.ChunksAround(pos) {
		if sub := ps.Mirror.At(at); sub != nil && checks.Occupied(sub, at, pos, block, self) {
			return true
		}
	}
	return false
}
