package p2p

import (
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// silentRounds is the number of rounds without an update of an avatar after which the region's state is used again;
	// gateways' clocks may differ by as much.
	silentRounds = 40
	// quietRounds is the number of rounds without an update of an avatar after which the region's state is used again
	// if it is newer by as many: the avatar has left the overlay's range. Regions are slower, but not by so much.
	quietRounds = 12
	// maxSpeedFactor bounds the apparent speed of other avatars, as a multiple of the fastest one of a player: updates
	// queue up on the way.
	maxSpeedFactor = 2
)

// remoteAvatars merges the movement of other gateways' avatars, as the overlay and as regions send it: for an avatar
// with recent updates over the overlay, the region's state is older, and is held back until the overlay is silent. The
// Driver's lock guards it.
type remoteAvatars struct {
	rules   player.Rules
	refused prometheus.Counter
	round   uint32 // the newest
	byID    map[overlay.ID]*remoteAvatar
}

// remoteAvatar is an avatar of another gateway that is or was in view of a session here.
type remoteAvatar struct {
	body         nodemsg.Body // as shown
	shown        bool         // it is in the mirror
	chunk        grid.ChunkPos
	overlayRound uint32       // the round of the newest update over the overlay
	fresh        bool         // overlayRound is recent: places sent by the region are older
	regionBody   nodemsg.Body // as sent by the region
	inRegion     bool         // the region has it
	regionRound  uint32       // the round of the region's newest update

	route  *[]overlay.Message // to its gateway, in the round routed
	routed uint32
}

// relocation is an avatar's way from one place of the mirror to another one; chunks may be the same. A nil chunk is
// nowhere.
type relocation struct {
	body     nodemsg.Body
	from, to *grid.ChunkPos
}

// applyUpdate applies an update of the overlay if it is newer than the last one and within the distance that a player
// can have covered.
func (r *remoteAvatars) applyUpdate(u overlay.Update, steps []relocation) []relocation {
	a := r.byID[u.Origin]
	off := int32(u.Round - r.round)
	if a == nil || !a.shown || u.GameData == 0 || off > silentRounds || off < -silentRounds || a.fresh && int32(u.Round-a.overlayRound) <= 0 {
		return steps
	}
	rounds := float64(min(r.round-a.regionRound, silentRounds)) // since its region's last update
	if a.fresh {
		rounds = float64(u.Round - a.overlayRound)
	}
	pose := poseOf(u)
	moved := math.Hypot(pose.X-a.body.Pose.X, pose.Z-a.body.Pose.Z)
	if moved > r.rules.Burst+maxSpeedFactor*r.rules.MaxSpeed*rounds*round.Seconds() || pose.Valid() != nil {
		r.refused.Inc()
		return steps
	}
	a.overlayRound, a.fresh = u.Round, true
	return append(steps, r.move(a, pose))
}

// move moves a known avatar to a pose.
func (r *remoteAvatars) move(a *remoteAvatar, pose motion.Pose) relocation {
	from, to := a.chunk, pose.Chunk()
	a.body.Pose, a.chunk = pose, to
	return relocation{body: a.body, from: &from, to: &to}
}

// restoreSilent returns avatars without recent updates of the overlay to where their region has them.
func (r *remoteAvatars) restoreSilent(steps []relocation) []relocation {
	for id, a := range r.byID {
		switch {
		case a.fresh && (int32(r.round-a.overlayRound) > silentRounds || a.inRegion && int32(a.regionRound-a.overlayRound) > quietRounds):
			a.fresh = false
			switch from := a.chunk; {
			case a.shown && a.inRegion:
				a.body = a.regionBody
				steps = append(steps, r.move(a, a.regionBody.Pose))
				steps[len(steps)-1].from = &from
			case a.shown:
				a.shown = false
				steps = append(steps, relocation{body: a.body, from: &from})
			}
		case !a.shown && !a.inRegion:
			delete(r.byID, id)
		}
	}
	return steps
}

// startAgain records that the clock was set back to a round by more than gateways' clocks may differ: all that is known
// is as old as it may be. Else nobody would take this gateway's updates, nor it theirs, until the clock has caught up.
func (r *remoteAvatars) startAgain(now uint32) {
	for _, a := range r.byID {
		a.overlayRound, a.regionRound, a.routed = now-silentRounds-1, now, 0
	}
}

// merge records a region's delta of a chunk, and removes from it what the overlay has newer. Holds reports whether a
// player is in the chunk of the mirror.
func (r *remoteAvatars) merge(n *nodemsg.ChunkDelta, holds func(player.ID) bool) {
	if n.State != nil {
		state := *n.State
		state.Bodies = r.noteEntered(n.Chunk, state.Bodies, true)
		for _, a := range r.byID { // avatars that the overlay moved here stay
			if holds(a.body.Player) && a.fresh && a.shown && a.chunk == n.Chunk && !slices.ContainsFunc(state.Bodies, func(b nodemsg.Body) bool { return b.Player == a.body.Player }) {
				state.Bodies = append(state.Bodies, a.body)
			}
		}
		n.State = &state
		return
	}
	n.Enter = r.noteEntered(n.Chunk, n.Enter, false)
	n.Leave = slices.Clone(n.Leave)
	n.Leave = slices.DeleteFunc(n.Leave, func(p player.ID) bool {
		a := r.byID[numberOf(p)]
		if a == nil || a.body.Player != p {
			return false
		}
		if a.regionBody.Pose.Chunk() == n.Chunk {
			a.inRegion = false
		}
		if a.chunk == n.Chunk && !a.fresh {
			a.shown = false
		}
		return a.chunk == n.Chunk && a.fresh
	})
	moves := make(nodemsg.Moves, 0, len(n.Moves))
	for _, m := range n.Moves {
		a := r.byID[numberOf(m.Player)]
		if a == nil || a.body.Player != m.Player {
			moves = append(moves, m)
			continue
		}
		a.regionBody.Pose, a.regionBody.Velocity, a.regionRound = m.Pose, m.Velocity, r.round
		if !a.fresh {
			a.body.Pose, a.body.Velocity = m.Pose, m.Velocity
			moves = append(moves, m)
		}
	}
	n.Moves = moves
}

// noteEntered records bodies that a region sends, and returns those to show there.
func (r *remoteAvatars) noteEntered(at grid.ChunkPos, bodies []nodemsg.Body, whole bool) []nodemsg.Body {
	shown := make([]nodemsg.Body, 0, len(bodies))
	for _, b := range bodies {
		id := numberOf(b.Player)
		a := r.byID[id]
		switch {
		case a == nil:
			a = &remoteAvatar{}
			r.byID[id] = a
		case a.body.Player != b.Player: // the same number: this player's movement goes through the region
			shown = append(shown, b)
			continue
		}
		a.regionBody, a.inRegion, a.regionRound = b, true, r.round
		switch {
		case !a.fresh || !a.shown:
			a.body, a.chunk, a.shown = b, at, true
			shown = append(shown, b)
		case a.chunk == at && (whole || a.body.Stance != b.Stance):
			pose := a.body.Pose
			a.body = b
			a.body.Pose = pose
			shown = append(shown, a.body)
		default:
			a.body.Stance = b.Stance // shown when the overlay has them enter another chunk
		}
	}
	return shown
}

// clear records that a chunk is no longer in the mirror.
func (r *remoteAvatars) clear(at grid.ChunkPos) {
	for _, a := range r.byID {
		if a.chunk == at {
			a.shown, a.fresh = false, false
		}
		if a.regionBody.Pose.Chunk() == at {
			a.inRegion = false
		}
	}
}

// deltasOf returns the moves of avatars as deltas of chunks, in an order in which no avatar is nowhere in between.
func deltasOf(steps []relocation) (deltas []*nodemsg.ChunkDelta) {
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
	return slices.AppendSeq(slices.Collect(maps.Values(came)), maps.Values(left))
}
