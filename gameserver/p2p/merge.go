package p2p

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/world"
)

// This file merges movement from the overlay and from regions: for an avatar with recent updates over the overlay, the region's
// state is older, and is held back until the overlay is silent.

// relocation is an avatar's way from one place of the mirror to another one; chunks may be the same. A nil chunk is nowhere.
type relocation struct {
	body     nodemsg.Body
	from, to *grid.ChunkPos
}

// applyUpdate applies an update of the overlay if it is newer than the last one and within the distance that a player can have
// covered. The lock is held.
func (d *Driver) applyUpdate(u overlay.Update, now uint32, steps []relocation) []relocation {
	a := d.mu.remotes[u.Origin]
	off := int32(u.Round - now)
	if a == nil || !a.shown || u.Body == 0 || off > silentRounds || off < -silentRounds || a.fresh && int32(u.Round-a.overlayRound) <= 0 {
		return steps
	}
	rounds := float64(min(now-a.regionRound, silentRounds)) // since its region's last update
	if a.fresh {
		rounds = float64(u.Round - a.overlayRound)
	}
	pose := poseOf(u)
	way := math.Hypot(pose.X-a.body.Pose.X, pose.Z-a.body.Pose.Z)
	if way > d.Rules.Burst+maxSpeedFactor*d.Rules.MaxSpeed*rounds*round.Seconds() || pose.Valid() != nil {
		d.metrics.refused.Inc()
		return steps
	}
	a.overlayRound, a.fresh = u.Round, true
	return append(steps, d.moveRemote(a, pose))
}

// moveRemote moves a known avatar to a pose. The lock is held.
func (d *Driver) moveRemote(a *remoteAvatar, pose motion.Pose) relocation {
	from, to := a.chunk, world.ChunkOf(pose)
	a.body.Pose, a.chunk = pose, to
	return relocation{body: a.body, from: &from, to: &to}
}

// restoreSilent returns avatars without recent updates of the overlay to where their region has them. The lock is held.
func (d *Driver) restoreSilent(now uint32, steps []relocation) []relocation {
	for id, a := range d.mu.remotes {
		switch {
		case a.fresh && (int32(now-a.overlayRound) > silentRounds || a.inRegion && int32(a.regionRound-a.overlayRound) > quietRounds):
			a.fresh = false
			switch from := a.chunk; {
			case a.shown && a.inRegion:
				a.body = a.regionBody
				steps = append(steps, d.moveRemote(a, a.regionBody.Pose))
				steps[len(steps)-1].from = &from
			case a.shown:
				a.shown = false
				steps = append(steps, relocation{body: a.body, from: &from})
			}
		case !a.shown && !a.inRegion:
			delete(d.mu.remotes, id)
		}
	}
	return steps
}

// Merge records a region's delta of a chunk, and removes from it what the overlay has newer. Holds reports whether a player is in
// the chunk of the mirror. The lock of the mirror is held.
func (d *Driver) Merge(n *nodemsg.ChunkDelta, holds func(player.ID) bool) {
	if !d.Enabled() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.State != nil {
		state := *n.State
		state.Bodies = d.noteEntered(n.Chunk, state.Bodies, true)
		for _, a := range d.mu.remotes { // avatars that the overlay moved here stay
			if holds(a.body.Player) && a.fresh && a.shown && a.chunk == n.Chunk && !slices.ContainsFunc(state.Bodies, func(b nodemsg.Body) bool { return b.Player == a.body.Player }) {
				state.Bodies = append(state.Bodies, a.body)
			}
		}
		n.State = &state
		return
	}
	n.Enter = d.noteEntered(n.Chunk, n.Enter, false)
	n.Leave = slices.Clone(n.Leave)
	n.Leave = slices.DeleteFunc(n.Leave, func(p player.ID) bool {
		a := d.mu.remotes[numberOf(p)]
		if a == nil || a.body.Player != p {
			return false
		}
		if world.ChunkOf(a.regionBody.Pose) == n.Chunk {
			a.inRegion = false
		}
		if a.chunk == n.Chunk && !a.fresh {
			a.shown = false
		}
		return a.chunk == n.Chunk && a.fresh
	})
	moves := make(nodemsg.Moves, 0, len(n.Moves))
	for _, m := range n.Moves {
		a := d.mu.remotes[numberOf(m.Player)]
		if a == nil || a.body.Player != m.Player {
			moves = append(moves, m)
			continue
		}
		a.regionBody.Pose, a.regionBody.Velocity, a.regionRound = m.Pose, m.Velocity, d.mu.round
		if !a.fresh {
			a.body.Pose, a.body.Velocity = m.Pose, m.Velocity
			moves = append(moves, m)
		}
	}
	n.Moves = moves
}

// noteEntered records bodies that a region sends, and returns those to show there. The lock is held.
func (d *Driver) noteEntered(at grid.ChunkPos, bodies []nodemsg.Body, whole bool) []nodemsg.Body {
	shown := make([]nodemsg.Body, 0, len(bodies))
	for _, b := range bodies {
		id := numberOf(b.Player)
		a := d.mu.remotes[id]
		switch {
		case a == nil:
			a = &remoteAvatar{}
			d.mu.remotes[id] = a
		case a.body.Player != b.Player: // the same number: this player's movement goes through the region
			shown = append(shown, b)
			continue
		}
		a.regionBody, a.inRegion, a.regionRound = b, true, d.mu.round
		switch {
		case !a.fresh || !a.shown:
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

// Clear records that a chunk is no longer in the mirror. The lock of the mirror is held.
func (d *Driver) Clear(at grid.ChunkPos) {
	if !d.Enabled() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.mu.remotes {
		if a.chunk == at {
			a.shown, a.fresh = false, false
		}
		if world.ChunkOf(a.regionBody.Pose) == at {
			a.inRegion = false
		}
	}
}

// relocate publishes the moves of avatars.
func (d *Driver) relocate(steps []relocation) {
	came, left := make(map[grid.ChunkPos]*nodemsg.ChunkDelta), make(map[grid.ChunkPos]*nodemsg.ChunkDelta)
	of := func(delta map[grid.ChunkPos]*nodemsg.ChunkDelta, at grid.ChunkPos) *nodemsg.ChunkDelta {
		n := delta[at]
		if n == nil {
			n = &nodemsg.ChunkDelta{Chunk: at}
			delta[at] = n
		}
		return n
	}
	for _, step := range steps {
		switch {
		case step.from != nil && step.to != nil && *step.from == *step.to:
			n := of(came, *step.to)
			n.Moves = append(n.Moves, nodemsg.BodyMove{Player: step.body.Player, Pose: step.body.Pose})
			continue
		case step.to != nil:
			n := of(came, *step.to)
			n.Enter = append(n.Enter, step.body)
		}
		if step.from != nil {
			n := of(left, *step.from)
			n.Leave = append(n.Leave, step.body.Player)
		}
	}
	for _, delta := range []map[grid.ChunkPos]*nodemsg.ChunkDelta{came, left} { // so that no avatar is nowhere in between
		for _, n := range delta {
			d.Publish(*n)
		}
	}
}
