package gameserver

import (
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file knows the players who are here, over all connections of theirs.

// reachLeeway is how much farther than others a player of an original client may reach, in blocks: his
// client measures in its own way, and his moves come over another connection than his edits.
const reachLeeway = 1

// stance is where a player is registered on a connection of an original client.
type stance struct {
	pose  wire.Pose
	at    grid.ChunkPos // of the connection
	moved bool          // he has told where he is since he registered
}

func (s *classic) stance() stance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stance{pose: s.mu.pose, at: s.at, moved: s.mu.motion != nil}
}

// stances gives where a player of original clients is registered here, the newest last.
func (g *Gateway) stances(id player.ID) []stance {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]stance, 0, len(g.mu.guests[id]))
	for _, c := range g.mu.guests[id] {
		all = append(all, c.stance())
	}
	return all
}

// present tells where a player is who plays here, or is being saved at this moment.
func (g *Gateway) present(id player.ID) (wire.Pose, bool) {
	g.mu.Lock()
	s := g.mu.sessions[id]
	g.mu.Unlock()
	if s != nil && s.placed() {
		return s.where(), true
	}
	var pose wire.Pose
	found := false
	for _, st := range g.stances(id) {
		if st.moved || !found { // a place of which he has told is better than one that was guessed
			pose, found = st.pose, true
		}
	}
	return pose, found
}

// judgePlayer tells why the player of original clients may not put a block there; empty if he may. One who
// has not told where he is may edit the chunk that he is registered in.
func (g *Gateway) judgePlayer(id player.ID, pos grid.Pos, block chunk.Block) (refused string) {
	rules := g.rules
	rules.Reach += reachLeeway
	refused = wire.RefusedOutOfReach
	for _, st := range g.stances(id) {
		switch {
		case !st.moved && st.at != pos.Chunk(),
			st.moved && !rules.InReach(st.pose.X, st.pose.Y+player.EyeHeight, st.pose.Z, pos):
			continue
		case st.moved && block.Solid() && bodyReaches(st.pose, pos):
			return wire.RefusedInsidePlayer
		}
		refused = ""
	}
	if refused == "" && block.Solid() && g.occupied(pos, id) {
		return wire.RefusedInsidePlayer
	}
	return refused
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
