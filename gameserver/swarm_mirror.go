package gameserver

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file merges movement from the overlay and from regions: for an avatar with recent updates over the overlay, the region's
// state is older, and is held back until the overlay is silent.

// displacement is an avatar's way from one place of the mirror to another one; chunks may be the same. A nil chunk is nowhere.
type displacement struct {
	body     wire.Body
	from, to *grid.ChunkPos
}

// learn applies an update of the overlay if it is newer than the last one and within the distance that a player can have covered.
// The lock is held.
func (w *swarm) learn(u overlay.Update, now uint32, steps []displacement) []displacement {
	a := w.mu.known[u.Origin]
	off := int32(u.Round - now)
	if a == nil || !a.shown || u.Body == 0 || off > silentRounds || off < -silentRounds || a.lively && int32(u.Round-a.heard) <= 0 {
		return steps
	}
	rounds := float64(min(now-a.said, silentRounds)) // since its region's last update
	if a.lively {
		rounds = float64(u.Round - a.heard)
	}
	pose := poseOf(u)
	way := math.Hypot(pose.X-a.body.Pose.X, pose.Z-a.body.Pose.Z)
	if way > w.g.rules.Burst+maxStrides*w.g.rules.MaxSpeed*rounds*round.Seconds() || pose.Valid() != nil {
		w.g.metrics.swarmRefused.Inc()
		return steps
	}
	a.heard, a.lively = u.Round, true
	return append(steps, w.put(a, pose))
}

// put moves a known avatar to a pose. The lock is held.
func (w *swarm) put(a *acquaintance, pose wire.Pose) displacement {
	from, to := a.chunk, world.ChunkOf(pose)
	a.body.Pose, a.chunk = pose, to
	return displacement{body: a.body, from: &from, to: &to}
}

// silence returns avatars without recent updates of the overlay to where their region has them. The lock is held.
func (w *swarm) silence(now uint32, steps []displacement) []displacement {
	for id, a := range w.mu.known {
		switch {
		case a.lively && (int32(now-a.heard) > silentRounds || a.there && int32(a.said-a.heard) > quietRounds):
			a.lively = false
			switch from := a.chunk; {
			case a.shown && a.there:
				a.body = a.truth
				steps = append(steps, w.put(a, a.truth.Pose))
				steps[len(steps)-1].from = &from
			case a.shown:
				a.shown = false
				steps = append(steps, displacement{body: a.body, from: &from})
			}
		case !a.shown && !a.there:
			delete(w.mu.known, id)
		}
	}
	return steps
}

// hear records a region's delta of a chunk, and removes from it what the overlay has newer. The subscription's lock is held.
func (w *swarm) hear(n *wire.ChunkNews, v *view) {
	if !w.on() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.State != nil {
		state := *n.State
		state.Bodies = w.comers(n.Chunk, state.Bodies, true)
		for _, a := range w.mu.known { // avatars that the overlay moved here stay
			if v.holds(a.body.Player) && a.lively && a.shown && a.chunk == n.Chunk && !slices.ContainsFunc(state.Bodies, func(b wire.Body) bool { return b.Player == a.body.Player }) {
				state.Bodies = append(state.Bodies, a.body)
			}
		}
		n.State = &state
		return
	}
	n.Enter = w.comers(n.Chunk, n.Enter, false)
	n.Leave = slices.Clone(n.Leave)
	n.Leave = slices.DeleteFunc(n.Leave, func(p player.ID) bool {
		a := w.mu.known[numberOf(p)]
		if a == nil || a.body.Player != p {
			return false
		}
		if world.ChunkOf(a.truth.Pose) == n.Chunk {
			a.there = false
		}
		if a.chunk == n.Chunk && !a.lively {
			a.shown = false
		}
		return a.chunk == n.Chunk && a.lively
	})
	moves := make(wire.Moves, 0, len(n.Moves))
	for _, m := range n.Moves {
		a := w.mu.known[numberOf(m.Player)]
		if a == nil || a.body.Player != m.Player {
			moves = append(moves, m)
			continue
		}
		a.truth.Pose, a.truth.Way, a.said = m.Pose, m.Way, w.mu.round
		if !a.lively {
			a.body.Pose, a.body.Way = m.Pose, m.Way
			moves = append(moves, m)
		}
	}
	n.Moves = moves
}

// comers records bodies that a region sends, and returns those to show there. The lock is held.
func (w *swarm) comers(at grid.ChunkPos, bodies []wire.Body, whole bool) []wire.Body {
	shown := make([]wire.Body, 0, len(bodies))
	for _, b := range bodies {
		id := numberOf(b.Player)
		a := w.mu.known[id]
		switch {
		case a == nil:
			a = &acquaintance{}
			w.mu.known[id] = a
		case a.body.Player != b.Player: // the same number: this player's movement goes through the region
			shown = append(shown, b)
			continue
		}
		a.truth, a.there, a.said = b, true, w.mu.round
		switch {
		case !a.lively || !a.shown:
			a.body, a.chunk, a.shown = b, at, true
			shown = append(shown, b)
		case a.chunk == at && whole:
			pose := a.body.Pose
			a.body = b
			a.body.Pose = pose
			shown = append(shown, a.body)
		}
	}
	return shown
}

// clear records that a chunk is no longer in the mirror. The subscription's lock is held.
func (w *swarm) clear(at grid.ChunkPos) {
	if !w.on() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.mu.known {
		if a.chunk == at {
			a.shown, a.lively = false, false
		}
		if world.ChunkOf(a.truth.Pose) == at {
			a.there = false
		}
	}
}

// displace publishes the moves of avatars.
func (g *Gateway) displace(steps []displacement) {
	came, left := make(map[grid.ChunkPos]*wire.ChunkNews), make(map[grid.ChunkPos]*wire.ChunkNews)
	of := func(news map[grid.ChunkPos]*wire.ChunkNews, at grid.ChunkPos) *wire.ChunkNews {
		n := news[at]
		if n == nil {
			n = &wire.ChunkNews{Chunk: at}
			news[at] = n
		}
		return n
	}
	for _, d := range steps {
		switch {
		case d.from != nil && d.to != nil && *d.from == *d.to:
			n := of(came, *d.to)
			n.Moves = append(n.Moves, wire.BodyMove{Player: d.body.Player, Pose: d.body.Pose})
			continue
		case d.to != nil:
			n := of(came, *d.to)
			n.Enter = append(n.Enter, d.body)
		}
		if d.from != nil {
			n := of(left, *d.from)
			n.Leave = append(n.Leave, d.body.Player)
		}
	}
	for _, news := range []map[grid.ChunkPos]*wire.ChunkNews{came, left} { // so that no avatar is nowhere in between
		for at, n := range news {
			g.mu.Lock()
			f := g.mu.feeds[grid.CellAt(at, grid.FoundingLabel)]
			g.mu.Unlock()
			if f != nil {
				f.displaced(*n)
			}
		}
	}
}

// displaced publishes what the overlay has sent of a chunk.
func (f *feed) displaced(n wire.ChunkNews) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.mu.views[n.Chunk]
	if v == nil {
		return
	}
	b := &bulletin{ChunkNews: n, tick: f.mu.tick, feed: f, view: v}
	var moved []*occupant
	b.came, b.left, moved = v.take(n)
	b.told = f.g.stage.take(b, moved)
	f.publish(v, b)
}

// holds reports whether a player is in a chunk of the mirror.
func (v *view) holds(id player.ID) bool { return v.bodies.of(id) != nil }
