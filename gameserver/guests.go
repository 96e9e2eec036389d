package gameserver

import (
	"context"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file looks players up over all connections to this gateway.

// reachLeeway is added to the reach of players of original clients, in blocks: their client measures differently, and their moves
// arrive over another connection than their edits.
const reachLeeway = 1

// registration is where a player is registered on a connection of an original client.
type registration struct {
	pose  motion.Pose
	at    grid.ChunkPos // of the connection
	moved bool          // the player has moved since they registered
}

func (lc *legacyConn) stance() registration {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	return registration{pose: lc.mu.pose, at: lc.at, moved: lc.mu.motion != nil}
}

// present returns where a player is who plays here, or is being saved at the moment, and reports whether there is one.
func (g *Gateway) present(id player.ID) (pose motion.Pose, here bool) {
	g.mu.Lock()
	s, who := g.mu.sessions[id], g.mu.guests[id]
	g.mu.Unlock()
	switch {
	case s != nil && s.placed():
		return s.currentPose(), true
	case who != nil:
		return who.place()
	}
	return pose, false
}

// checkBuilder returns the player who places a block, of those whose connection this may be, or else why none of them may. A
// player who has not moved yet may edit the chunk that they are registered in. After a reset the released client connects again
// and does not register before the next border: while nobody of the party is registered here, a connection may edit its chunk.
func (lc *legacyConn) checkBuilder(ctx context.Context, pos grid.Pos, block chunk.Block) (by player.ID, refused string) {
	rules := lc.g.rules
	rules.Reach += reachLeeway
	refused = wire.RefusedOutOfReach
	registered, own := lc.party.registered(), lc.who.Load()
	if len(registered) == 0 {
		if who := lc.party.anybody(ctx, lc.at); !block.Solid() || !lc.g.occupied(pos, who.id) {
			return who.id, ""
		}
		return by, wire.RefusedInsidePlayer
	}
	for _, on := range registered {
		who, st := on.who.Load(), on.stance()
		switch {
		case own != nil && own != who && own.isRegistered(),
			!st.moved && st.at != pos.Chunk(),
			st.moved && !rules.InReach(st.pose.X, st.pose.Y+player.EyeHeight, st.pose.Z, pos):
			continue
		case block.Solid() && (st.moved && bodyReaches(st.pose, pos) || lc.g.occupied(pos, who.id)):
			refused = wire.RefusedInsidePlayer
			continue
		}
		return who.id, ""
	}
	return by, refused
}

// occupied reports whether the body of another player reaches into the block, as far as known here.
func (g *Gateway) occupied(pos grid.Pos, self player.ID) bool {
	for _, at := range chunksAround(pos) {
		if sub := g.mirror.At(at); sub != nil && occupied(sub, at, pos, self) {
			return true
		}
	}
	return false
}

// chunksAround returns the chunks in which a body that reaches into the block may stand, each once.
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

// playersHere returns what is saved of all players with a session here.
func (g *Gateway) playersHere() []players.Presence {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]players.Presence, 0, len(g.mu.sessions))
	for _, s := range g.mu.sessions {
		if s.joined() {
			all = append(all, s.savedState())
		}
	}
	for c := range g.mu.legacyConns {
		if p, registered := c.presence(); registered {
			all = append(all, p)
		}
	}
	return all
}
