package motion

import (
	"math"
	"time"
)

// This file implements dead reckoning between nodes (IEEE 1278.1, docs/adr/0019). A region receives a player's place
// and velocity, and everything that shows the player extrapolates from these (Velocity.Coast). While the error stays
// within maxError, the region receives an update only once a second.

const (
	// maxError is the maximum distance, in blocks, of a player from their predicted place before the region is updated.
	// aloneError is the same for players who are alone: at most players far away see them, in the coarsest LOD tier.
	maxError, aloneError = 1. / 8, 1.
	// maxSlip is how early or late a player may be relative to the prediction. Moves arrive over a network, and a
	// region's ticks and a gateway's frames shift updates by as much.
	maxSlip = TickEvery
	// maxTurn is the maximum error of the viewing direction, in radians: half of what the finest tier resolves.
	maxTurn = 2 * math.Pi / 256
	// refreshEvery is the interval of updates for a player who follows the prediction; it ends before
	// ExtrapolationTicks are over.
	refreshEvery = time.Second
	// silentAfter is how long a predicted player may send nothing before they count as stopped. Of a player who is read
	// in rounds, a tick apart (package park), two moves may arrive at once, and then none for two ticks.
	silentAfter = 3 * TickEvery
	// walkJolt is the maximum difference, in blocks, between two steps of an even walk.
	walkJolt = 1. / 32
	// walkLeap is the maximum length, in blocks, of a move that says something about velocity: after a delay, a client
	// reports a longer way in one move.
	walkLeap = 1. / 2
)

// Predictor compares the prediction that a region has of a player with the player's actual moves. It has no clock of
// its own: times are those of one monotonic clock.
type Predictor struct {
	lastSent     Pose          // the place last sent to the region
	sentVelocity Velocity      // and the velocity
	sentAt       time.Duration // and the time

	last       Pose          // the newest move
	lastMoveAt time.Duration // and when it arrived

	// The current walk, since the player last turned, stopped, or was found to have diverged.
	from    Pose
	since   time.Duration
	moves   int  // during the walk
	fresh   int  // of these, since the last update of the region
	perTick bool // moves came once a tick before the walk, so one of them gives the velocity
}

// NewPredictor returns the predictor of a player who stands still, with the region updated to that now.
func NewPredictor(pose Pose, now time.Duration) Predictor {
	return Predictor{lastSent: pose, sentAt: now, last: pose, lastMoveAt: now, from: pose, since: now}
}

// Observe adds a move; alone means that nobody sees the player. It reports whether the region must be updated.
func (p *Predictor) Observe(pose Pose, now time.Duration, alone bool) (needsUpdate bool) {
	most := maxError
	if alone {
		most = aloneError
	}
	switch {
	case p.Silent(now): // the player stood
		if _, p.perTick = p.velocity(); p.perTick {
			p.beginWalk(p.last, now-TickEvery, 0)
		} else {
			p.beginWalk(pose, now, -1)
		}
	case !p.even(pose):
		_, p.perTick = p.velocity()
		p.beginWalk(p.last, p.lastMoveAt, 0)
	}
	rests := p.sentVelocity.Moving() && samePlace(pose, p.last)
	p.last, p.lastMoveAt = pose, now
	p.moves++
	p.fresh++
	diverged := p.deviation() > most
	if diverged && p.sentVelocity.Moving() && p.since < p.sentAt {
		p.beginWalk(p.lastSent, p.sentAt, p.fresh) // the velocity changed
	}
	return diverged || rests || p.sentVelocity.Moving() && now-p.sentAt >= refreshEvery || pose.Chunk() != p.lastSent.Chunk() ||
		!alone && looksElsewhere(pose, p.lastSent)
}

// CommitRest ends the prediction where the player is, and records that the region is sent that.
func (p *Predictor) CommitRest(now time.Duration) {
	_, steady := p.velocity()
	*p = NewPredictor(p.last, now)
	p.perTick = steady
}

// LastSent returns the pose that the region was sent last.
func (p *Predictor) LastSent() Pose { return p.lastSent }

// Predicts reports whether the region extrapolates the player from that.
func (p *Predictor) Predicts() bool { return p.sentVelocity.Moving() }

// beginWalk begins a walk.
func (p *Predictor) beginWalk(from Pose, since time.Duration, moves int) {
	p.from, p.since, p.moves = from, since, moves
}

// CommitMove records that the region is sent the newest move, and returns the velocity to send with it.
func (p *Predictor) CommitMove(straight bool) Velocity {
	p.lastSent, p.sentAt, p.fresh, p.sentVelocity = p.last, p.lastMoveAt, 0, Velocity{}
	if straight {
		p.sentVelocity, _ = p.velocity()
	}
	return p.sentVelocity
}

// HasStopped reports whether the player has stopped and the region lacks that, or their exact place.
func (p *Predictor) HasStopped(now time.Duration) bool {
	return p.Silent(now) && (p.sentVelocity.Moving() || p.lastSent != p.last)
}

// Silent reports whether the player has sent nothing for so long that they count as standing.
func (p *Predictor) Silent(now time.Duration) bool { return now-p.lastMoveAt > silentAfter }

// deviation returns the distance of the newest move from the prediction, in blocks, where it may be early or late by
// maxSlip.
func (p *Predictor) deviation() float64 {
	x, y, z := p.last.X-p.lastSent.X, p.last.Y-p.lastSent.Y, p.last.Z-p.lastSent.Z
	wx, wy, wz := p.sentVelocity.Displacement(1)
	ticks := float64(p.lastMoveAt-p.sentAt) / float64(TickEvery)
	if p.sentVelocity.Moving() {
		const slip = float64(maxSlip) / float64(TickEvery)
		nearest := (x*wx + y*wy + z*wz) / (wx*wx + wy*wy + wz*wz)
		ticks = max(ticks-slip, min(nearest, ticks+slip))
	}
	ticks = max(0, min(ticks, ExtrapolationTicks))
	return length(x-wx*ticks, y-wy*ticks, z-wz*ticks)
}

// even reports whether a move continues the walk: in about the same direction, and at most half as far again, since
// clients send a move whenever they have drawn a frame.
func (p *Predictor) even(pose Pose) bool {
	if p.moves < 1 {
		return true
	}
	n := float64(p.moves)
	mx, my, mz := (p.last.X-p.from.X)/n, (p.last.Y-p.from.Y)/n, (p.last.Z-p.from.Z)/n
	x, y, z := pose.X-p.last.X, pose.Y-p.last.Y, pose.Z-p.last.Z
	mean := length(mx, my, mz)
	if step := length(x, y, z); mean == 0 || step == 0 {
		return step == mean
	}
	along := (x*mx + y*my + z*mz) / mean
	aside := length(x-mx*along/mean, y-my*along/mean, z-mz*along/mean)
	return aside <= mean/4+walkJolt && math.Abs(along-mean) <= mean/2+walkJolt
}

// velocity returns the velocity of the walk. Paced reports whether moves arrive once a tick, as from voxeld's own
// clients; without that, or just after the player has set out, the velocity is not known.
func (p *Predictor) velocity() (v Velocity, steady bool) {
	took, ticks := p.lastMoveAt-p.since, time.Duration(p.moves)*TickEvery
	x, y, z := p.last.X-p.from.X, p.last.Y-p.from.Y, p.last.Z-p.from.Z
	switch {
	case p.moves < 2 && (!p.perTick || p.moves < 1 || length(x, y, z) > walkLeap):
		return Velocity{}, p.perTick
	case p.moves > 1 && (2*took > 3*ticks || 2*took < ticks):
		return Velocity{}, false
	}
	if (took - ticks).Abs() <= maxSlip { // the rest is network jitter
		took = ticks
	}
	each := float64(TickEvery) / float64(took)
	return VelocityOf(x*each, y*each, z*each), true
}

func samePlace(a, b Pose) bool { return a.X == b.X && a.Y == b.Y && a.Z == b.Z }

func looksElsewhere(a, b Pose) bool {
	turn := math.Remainder(float64(a.Yaw)-float64(b.Yaw), 2*math.Pi)
	return math.Abs(turn) > maxTurn || math.Abs(float64(a.Pitch)-float64(b.Pitch)) > maxTurn
}

func length(x, y, z float64) float64 { return math.Sqrt(x*x + y*y + z*z) }
