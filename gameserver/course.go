package gameserver

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is dead reckoning between nodes (IEEE 1278.1, docs/adr/0019). A region is told where a player is and how he goes on, and
// whoever shows him lets him go on so (occupants.go). While he does, within courseError, the region hears no more of him than that
// once a second.

const (
	// courseError is how far, in blocks, a player may be from his course before his region is told, and aloneError the same of
	// who is alone: at most somebody far away sees him, in the grade distant (aloneView).
	courseError, aloneError = 1. / 8, 1.
	// courseSlip is by how much he may be early or late on his course. Moves come over a network, and a region's ticks and a
	// gateway's beats move what it tells by as much.
	courseSlip = region.TickEvery
	// courseTurn is by how much, in radians, he may look elsewhere: half of what the finest grade tells.
	courseTurn = 2 * math.Pi / 256
	// courseRefresh is after how long a region is told again of a player who keeps his course: before wire.WayTicks are over.
	courseRefresh = time.Second
	// courseSilence is for how long nothing may be heard of a player who is on a course. Then he has stopped. Of who is read in rounds,
	// a tick apart (pollCalm), two moves may be heard of at once, and then none for two ticks.
	courseSilence = 3 * region.TickEvery
	// courseCrowd is how many may be in a chunk so that courses are told there. The region hears of a larger crowd in each tick anyway,
	// and who is in it among others is to be seen exactly.
	courseCrowd = 16
	// courseJolt is by how much, in blocks, two steps of an even walk may differ.
	courseJolt = 1. / 32
	// courseLeap is how far, in blocks, one move goes at most that tells how the player goes on: a client that was held up tells of
	// more in one.
	courseLeap = 1. / 2
)

// course is what a region takes a player of this gateway to do, and what he does. It has no clock: times are the gateway's (now).
type course struct {
	told wire.Pose     // where the region was told last that he is
	way  wire.Way      // and how he goes on from there
	at   time.Duration // and when

	last  wire.Pose     // his newest move
	heard time.Duration // and when it came

	// The walk that he is on since he last turned, stopped, or was found to be elsewhere than on his course.
	from  wire.Pose
	since time.Duration
	moves int  // in it
	fresh int  // of these since the region was told
	paced bool // before it his moves came once a tick, so that one of them tells how fast he goes
}

// newCourse is that of somebody who stands, and of whom the region is told so now.
func newCourse(pose wire.Pose, now time.Duration) course {
	return course{told: pose, at: now, last: pose, heard: now, from: pose, since: now}
}

// hear takes in a move, of somebody whom nobody sees if he is alone. It tells whether the region has to be told of it.
func (c *course) hear(pose wire.Pose, now time.Duration, alone bool) (tell bool) {
	most := courseError
	if alone {
		most = aloneError
	}
	switch {
	case c.silent(now): // he stood
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
		c.begin(c.told, c.at, c.fresh) // his pace is another one
	}
	return strays || rests || c.way.Goes() && now-c.at >= courseRefresh || world.ChunkOf(pose) != world.ChunkOf(c.told) ||
		!alone && looksElsewhere(pose, c.told)
}

// stand ends the course where the player is, and notes that the region is told so.
func (c *course) stand(now time.Duration) {
	_, paced := c.pace()
	*c = newCourse(c.last, now)
	c.paced = paced
}

// begin begins a walk.
func (c *course) begin(from wire.Pose, since time.Duration, moves int) {
	c.from, c.since, c.moves = from, since, moves
}

// tell notes that the region is told of the newest move, and gives the way that goes with it.
func (c *course) tell(straight bool) wire.Way {
	c.told, c.at, c.fresh, c.way = c.last, c.heard, 0, wire.Way{}
	if straight {
		c.way, _ = c.pace()
	}
	return c.way
}

// stands tells whether the player has stopped, and the region does not know it, or not exactly where.
func (c *course) stands(now time.Duration) bool {
	return c.silent(now) && (c.way.Goes() || c.told != c.last)
}

// silent tells whether nothing has been heard of the player for so long that he does not walk any more.
func (c *course) silent(now time.Duration) bool { return now-c.heard > courseSilence }

// astray is how far the newest move is from the course, in blocks, if it may be early or late by courseSlip.
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

// even tells whether a move goes on as the walk did: about in the same direction, and not more than half as far again, for
// clients tell of their moves when they have drawn a picture.
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

// pace is how the walk goes on. Paced tells whether its moves come once a tick, as those of our clients do; of others, who are heard of
// more seldom, and of who has just set out, it is not known how they go on.
func (c *course) pace() (way wire.Way, paced bool) {
	took, ticks := c.heard-c.since, time.Duration(c.moves)*region.TickEvery
	x, y, z := c.last.X-c.from.X, c.last.Y-c.from.Y, c.last.Z-c.from.Z
	switch {
	case c.moves < 2 && (!c.paced || c.moves < 1 || length(x, y, z) > courseLeap):
		return wire.Way{}, c.paced
	case c.moves > 1 && (2*took > 3*ticks || 2*took < ticks):
		return wire.Way{}, false
	}
	if (took - ticks).Abs() <= courseSlip { // then the rest is the network's
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
