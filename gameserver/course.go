package gameserver

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file implements dead reckoning between nodes (IEEE 1278.1, docs/adr/0019). A region receives a player's place and
// velocity, and everything that shows the player extrapolates from these (occupants.go). While the error stays within
// courseError, the region receives an update only once a second.

const (
	// courseError is the maximum distance, in blocks, of a player from their predicted place before the region is updated.
	// aloneError is the same for players who are alone: at most players far away see them, in the tier distant (aloneView).
	courseError, aloneError = 1. / 8, 1.
	// courseSlip is how early or late a player may be relative to the prediction. Moves arrive over a network, and a region's
	// ticks and a gateway's frames shift updates by as much.
	courseSlip = region.TickEvery
	// courseTurn is the maximum error of the viewing direction, in radians: half of what the finest tier resolves.
	courseTurn = 2 * math.Pi / 256
	// courseRefresh is the interval of updates for a player who follows the prediction; it ends before wire.WayTicks are over.
	courseRefresh = time.Second
	// courseSilence is how long a predicted player may send nothing before they count as stopped. Of a player who is read in
	// rounds, a tick apart (pollCalm), two moves may arrive at once, and then none for two ticks.
	courseSilence = 3 * region.TickEvery
	// courseCrowd is the maximum number of players in a chunk for predictions to be sent. The region receives updates of a larger
	// crowd in each tick anyway, and players in a crowd must be shown exactly.
	courseCrowd = 16
	// courseJolt is the maximum difference, in blocks, between two steps of an even walk.
	courseJolt = 1. / 32
	// courseLeap is the maximum length, in blocks, of a move that says something about velocity: after a delay, a client reports
	// a longer way in one move.
	courseLeap = 1. / 2
)

// course compares the prediction that a region has of a player with the player's actual moves. It has no clock of its own: times
// are those of Gateway.now.
type course struct {
	told wire.Pose     // the place last sent to the region
	way  wire.Way      // and the velocity
	at   time.Duration // and the time

	last  wire.Pose     // the newest move
	heard time.Duration // and when it arrived

	// The current walk, since the player last turned, stopped, or was found to have diverged.
	from  wire.Pose
	since time.Duration
	moves int  // during the walk
	fresh int  // of these, since the last update of the region
	paced bool // moves came once a tick before the walk, so one of them gives the velocity
}

// newCourse returns the predictor of a player who stands still, with the region updated to that now.
func newCourse(pose wire.Pose, now time.Duration) course {
	return course{told: pose, at: now, last: pose, heard: now, from: pose, since: now}
}

// hear adds a move; alone means that nobody sees the player. It reports whether the region must be updated.
func (c *course) hear(pose wire.Pose, now time.Duration, alone bool) (tell bool) {
	most := courseError
	if alone {
		most = aloneError
	}
	switch {
	case c.silent(now): // the player stood
		if _, c.paced = c.pace(); c.paced {
			c.begin(c.last, now-region.TickEvery, 0)
		} else {
			c.begin(pose, now, -1)
		}
	case !c.even(pose):
		_, c.paced = c.pace()
		c.begin(c.last, c.heard, 0)
	}
	rests := c.way.Goes() && samePlace(pose, c.last)
	c.last, c.heard = pose, now
	c.moves++
	c.fresh++
	strays := c.astray() > most
	if strays && c.way.Goes() && c.since < c.at {
		c.begin(c.told, c.at, c.fresh) // the velocity changed
	}
	return strays || rests || c.way.Goes() && now-c.at >= courseRefresh || world.ChunkOf(pose) != world.ChunkOf(c.told) ||
		!alone && looksElsewhere(pose, c.told)
}

// stand ends the prediction where the player is, and records that the region is sent that.
func (c *course) stand(now time.Duration) {
	_, paced := c.pace()
	*c = newCourse(c.last, now)
	c.paced = paced
}

// begin begins a walk.
func (c *course) begin(from wire.Pose, since time.Duration, moves int) {
	c.from, c.since, c.moves = from, since, moves
}

// tell records that the region is sent the newest move, and returns the velocity to send with it.
func (c *course) tell(straight bool) wire.Way {
	c.told, c.at, c.fresh, c.way = c.last, c.heard, 0, wire.Way{}
	if straight {
		c.way, _ = c.pace()
	}
	return c.way
}

// stands reports whether the player has stopped and the region lacks that, or their exact place.
func (c *course) stands(now time.Duration) bool {
	return c.silent(now) && (c.way.Goes() || c.told != c.last)
}

// silent reports whether the player has sent nothing for so long that they count as standing.
func (c *course) silent(now time.Duration) bool { return now-c.heard > courseSilence }

// astray returns the distance of the newest move from the prediction, in blocks, where it may be early or late by courseSlip.
func (c *course) astray() float64 {
	x, y, z := c.last.X-c.told.X, c.last.Y-c.told.Y, c.last.Z-c.told.Z
	wx, wy, wz := c.way.Blocks(1)
	ticks := float64(c.heard-c.at) / float64(region.TickEvery)
	if c.way.Goes() {
		const slip = float64(courseSlip) / float64(region.TickEvery)
		nearest := (x*wx + y*wy + z*wz) / (wx*wx + wy*wy + wz*wz)
		ticks = max(ticks-slip, min(nearest, ticks+slip))
	}
	ticks = max(0, min(ticks, wire.WayTicks))
	return length(x-wx*ticks, y-wy*ticks, z-wz*ticks)
}

// even reports whether a move continues the walk: in about the same direction, and at most half as far again, since clients send
// a move whenever they have drawn a frame.
func (c *course) even(pose wire.Pose) bool {
	if c.moves < 1 {
		return true
	}
	n := float64(c.moves)
	mx, my, mz := (c.last.X-c.from.X)/n, (c.last.Y-c.from.Y)/n, (c.last.Z-c.from.Z)/n
	x, y, z := pose.X-c.last.X, pose.Y-c.last.Y, pose.Z-c.last.Z
	mean := length(mx, my, mz)
	if step := length(x, y, z); mean == 0 || step == 0 {
		return step == mean
	}
	along := (x*mx + y*my + z*mz) / mean
	aside := length(x-mx*along/mean, y-my*along/mean, z-mz*along/mean)
	return aside <= mean/4+courseJolt && math.Abs(along-mean) <= mean/2+courseJolt
}

// pace returns the velocity of the walk. Paced reports whether moves arrive once a tick, as from voxeld's own clients; without
// that, or just after the player has set out, the velocity is not known.
func (c *course) pace() (way wire.Way, paced bool) {
	took, ticks := c.heard-c.since, time.Duration(c.moves)*region.TickEvery
	x, y, z := c.last.X-c.from.X, c.last.Y-c.from.Y, c.last.Z-c.from.Z
	switch {
	case c.moves < 2 && (!c.paced || c.moves < 1 || length(x, y, z) > courseLeap):
		return wire.Way{}, c.paced
	case c.moves > 1 && (2*took > 3*ticks || 2*took < ticks):
		return wire.Way{}, false
	}
	if (took - ticks).Abs() <= courseSlip { // the rest is network jitter
		took = ticks
	}
	each := float64(region.TickEvery) / float64(took)
	return wire.WayOf(x*each, y*each, z*each), true
}

func samePlace(a, b wire.Pose) bool { return a.X == b.X && a.Y == b.Y && a.Z == b.Z }

func looksElsewhere(a, b wire.Pose) bool {
	turn := math.Remainder(float64(a.Yaw)-float64(b.Yaw), 2*math.Pi)
	return math.Abs(turn) > courseTurn || math.Abs(float64(a.Pitch)-float64(b.Pitch)) > courseTurn
}

func length(x, y, z float64) float64 { return math.Sqrt(x*x + y*y + z*z) }
