package gameserver

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file decides when an avatar's motion has to be told, and makes the pieces that tell it: one for each
// cell, grade and tick, whoever gets them. Nothing here locks: the stage does.
//
// Clients let an avatar go on by its pace. So nothing has to be told while that is true enough, and how true it has
// to be is what a grade says.

// grade is how exactly viewers are told of a cell. A finer grade's pieces hold all that a coarser one's do.
type grade uint8

const (
	exact   grade = iota // the nearest, in a small crowd: every move
	tight                // the next in a crowd
	near                 // within 24 blocks, however many there are
	fair                 // instead, where there are more than the budget allows
	loose                // the same of a greater crowd
	far                  // the same of one greater still; and in any case up to 64 blocks
	distant              // looked at once a second
	grades
	unseen grade = math.MaxUint8
)

// gradeRules are the grades' bounds. At a look, an avatar is where a client takes it to be, but for error along each
// axis; between two looks it may move on.
var gradeRules = [grades]struct {
	error int32  // in 1/128 block
	turn  uint8  // of the yaw, in 1/256 turn; the same of the pitch, in half that
	every uint64 // ticks between two looks
}{
	exact:   {2, 2, 1},
	tight:   {14, 8, 1},
	near:    {28, 24, 1},
	fair:    {48, 32, 1},
	loose:   {72, 40, 1},
	far:     {100, 48, 1},
	distant: {128, 64, 20},
}

// Moves come at the clients' beat and over a network, and regions are told of them in clumps: a tick may see none of a
// walker's moves, and another one two. He has not stopped and started again, and nobody is to be told so.
const (
	// unheardTicks is for how long an avatar of which nothing is heard is taken to go on as before.
	unheardTicks = 3
	// slipTicks is for how many looks an avatar may be a tick early or late on its way before clients are told.
	slipTicks = 4
	// slipMost is how far away an early or late avatar may be from where clients take it to be: what a walker goes in a
	// tick. SlipError is how exactly it has to be on its way then. In 1/128 block.
	slipMost, slipError = 32, 4
)

// fine is how many units of a track are in one of a place, and steep how many in one of a climb.
const (
	fine  = wire.PaceUnit / wire.PlaceUnit
	steep = wire.PaceUnit / wire.ClimbUnit
)

// track is what clients of one grade take an avatar to do.
type track struct {
	x, z         int32 // in 1/128 block, from the chunk's corner, at the tick
	y            int32 // in 1/128 block, at the tick tall
	paceX, paceZ int8
	climb        int8
	yaw          uint8
	pitch        int8
	tick, tall   uint64
}

func trackOf(p wire.Place, tick uint64) track {
	return track{x: int32(p.X) * fine, z: int32(p.Z) * fine, y: int32(p.Y) * fine, yaw: p.Yaw, pitch: p.Pitch, tick: tick, tall: tick}
}

// wrong tells whether what clients of the grade take the avatar to do is not true enough any more. With slack, an avatar
// that is on its way, but a tick early or late, is where it is taken to be.
func (t *track) wrong(p *wire.Place, tick uint64, g grade, slack bool) bool {
	rule := &gradeRules[g]
	if t.turned(p, rule.turn) {
		return true
	}
	astray := t.astray(p, tick)
	if astray <= rule.error {
		return false
	}
	return !slack || astray > slipMost || min(t.astray(p, tick-1), t.astray(p, tick+1)) > max(rule.error, slipError)
}

// astray is how far the avatar is from where it is taken to be, along any axis.
func (t *track) astray(p *wire.Place, tick uint64) int32 {
	return max(t.across(p, tick), t.above(p, tick))
}

func (t *track) across(p *wire.Place, tick uint64) int32 {
	gone := passed(t.tick, tick)
	return max(off(t.x+int32(t.paceX)*gone, int32(p.X)*fine), off(t.z+int32(t.paceZ)*gone, int32(p.Z)*fine))
}

func (t *track) above(p *wire.Place, tick uint64) int32 { return off(t.height(tick), int32(p.Y)*fine) }

// height is that which the avatar is taken to be at.
func (t *track) height(tick uint64) int32 { return t.y + steep*int32(t.climb)*passed(t.tall, tick) }

// passed is for how many ticks an avatar has gone on since it was told of; -1 at the tick before.
func passed(since, tick uint64) int32 { return int32(min(int64(tick-since), wire.PaceTicks)) }

func off(a, b int32) int32 { return max(a-b, b-a) }

// turned tells whether the avatar looks elsewhere, by at least so much.
func (t *track) turned(p *wire.Place, least uint8) bool {
	yaw := int8(p.Yaw - t.yaw)
	return off(int32(yaw), 0) >= int32(least) || off(int32(p.Pitch), int32(t.pitch)) >= int32(least)
}

// actor is an avatar that somebody here sees.
type actor struct {
	index  uint32
	name   string
	met    uint64 // the number of the last line that he had said when he came into sight: nobody waits for those
	chunks int    // in view that the region says it is in; while it walks over a border two
	plot   *plot  // of the newest of them; nil when that is no longer in view
	place  wire.Place
	spot   spot // the same, not yet rounded as much
	cell   uint8
	past   [5]spot // where it was at the tick seen, and at those before
	seen   uint64
	heard  uint64 // the look that its newest move came before
	slips  uint8  // looks in which it was early or late, without one in which it was not
	tracks [grades]track
}

// elsewhere tells whether another chunk than at is the newest that the avatar has come into.
func (a *actor) elsewhere(at grid.ChunkPos) bool { return a.plot != nil && a.plot.at != at }

// remember notes where the avatar is at a tick. Where looks in between were left out it has gone evenly; after a longer
// rest it stood where it was.
func (a *actor) remember(tick uint64) {
	now, before, passed := a.spot, a.past[0], int32(min(tick-a.seen, 1<<16))
	if passed > int32(len(a.past)) {
		a.past = [5]spot{before, before, before, before, before}
		passed = 1
	}
	for i := int32(1); i <= passed; i++ {
		copy(a.past[1:], a.past[:4])
		a.past[0] = before.plus(now.minus(before), i, passed)
	}
	a.seen = tick
}

// spot is a place in 1/128 block: across from the chunk's corner, up from where heights are counted from.
type spot struct{ x, y, z int32 }

func spotOf(at grid.ChunkPos, p wire.Pose) spot {
	corner := at.Origin()
	unit := func(blocks float64) int32 { return int32(math.Round(blocks * wire.PaceUnit)) }
	return spot{unit(p.X - float64(corner.X)), unit(p.Y - wire.MinY), unit(p.Z - float64(corner.Z))}
}

func (s spot) minus(o spot) spot { return spot{s.x - o.x, s.y - o.y, s.z - o.z} }

// plus adds a part of a way.
func (s spot) plus(way spot, part, of int32) spot {
	return spot{s.x + way.x*part/of, s.y + way.y*part/of, s.z + way.z*part/of}
}

// across is the longer side of a way, heights apart.
func (s spot) across() int32 { return max(off(s.x, 0), off(s.z, 0)) }

// appear makes the avatar stand where all viewers of the chunk are told, in words, that it has come in.
func (a *actor) appear(tick uint64) {
	for g := range a.tracks {
		a.tracks[g] = trackOf(a.place, tick)
	}
	for i := range a.past {
		a.past[i] = a.spot
	}
	a.seen = tick
}

// pace guesses how the avatar goes on across, in 1/128 block a tick. Moves come at the clients' beat and not at ours, so
// that a tick may see none of them or two: then the way of several ticks tells more.
func (a *actor) pace() (x, z int8) {
	now, before := a.past[0], a.past[1]
	step, way := now.minus(before), now.minus(a.past[4])
	mean, twice := spot{}.plus(way, 1, 4), spot{}.plus(way, 1, 2)
	if steady(step, mean) || steady(step, twice) || step == (spot{}) && before != a.past[2] {
		step = mean
	}
	return clampPace(step.x), clampPace(step.z)
}

// steady tells whether a step is what is expected, by half of it and a little.
func steady(step, mean spot) bool {
	const little = 4
	return step.minus(mean).across() <= mean.across()/2+little
}

// climb guesses how the avatar goes on up or down, in 1/64 block a tick. Who has gone up within one tick has stepped on
// something, and stays there; who has in two climbs, or who does and stays where he is across.
func (a *actor) climb() int8 {
	step, before := a.past[0].minus(a.past[1]), a.past[1].y-a.past[2].y
	switch {
	case step.y > 0 && before > 0, step.y < 0 && before < 0:
		return clampPace((step.y + before) / 2 / steep)
	case step.across() == 0:
		return clampPace(step.y / steep)
	}
	return 0
}

func clampPace(v int32) int8 { return int8(max(-math.MaxInt8, min(math.MaxInt8, v))) }

// cell is a square of wire.CellSize blocks of a plot, with what is told of it in the present tick.
type cell struct {
	actors []*actor // by index
	pieces [grades][]byte
}

// moment is a look at the stage: the tick that it is, and how many looks there were. Ticks follow the clock, looks are
// the gateway's beats; after one that was left out a tick is two after the one before.
type moment struct{ tick, look uint64 }

// look makes the cell's pieces of a tick. Turn, which grows with each look, says which grades are looked at.
func (c *cell) look(number uint8, now moment, turn uint64) {
	for g := range c.pieces {
		c.pieces[g] = c.pieces[g][:0]
	}
	if len(c.actors) == 0 {
		return
	}
	var writers [grades]wire.MotionWriter
	lowest := c.lowest()
	for g := range writers {
		writers[g].Begin(number, lowest)
	}
	coarsest := distant
	for turn%gradeRules[coarsest].every != 0 {
		coarsest--
	}
	for _, a := range c.actors {
		if a.late(now.look) {
			continue
		}
		a.remember(now.tick)
		if g, told := a.due(now.tick, coarsest); told {
			a.tell(c, &writers, g, now.tick)
		}
	}
}

// late tells whether an avatar that walks has not been heard of: it is taken to go on.
func (a *actor) late(look uint64) bool {
	return a.heard != look && look-a.heard <= unheardTicks && a.past[0] != a.past[1]
}

// due gives the coarsest grade that has to be told of the avatar, of those that are looked at.
func (a *actor) due(tick uint64, coarsest grade) (grade, bool) {
	slack := a.slips < slipTicks
	for g := coarsest; ; g-- {
		if a.tracks[g].wrong(&a.place, tick, g, slack && g != exact) {
			a.slips = 0
			return g, true
		}
		if g == exact {
			break
		}
	}
	if a.tracks[exact].astray(&a.place, tick) > gradeRules[exact].error {
		a.slips++
	} else {
		a.slips = 0
	}
	return 0, false
}

// tell adds the avatar to the pieces of all grades up to the coarsest one.
func (a *actor) tell(c *cell, writers *[grades]wire.MotionWriter, coarsest grade, tick uint64) {
	paceX, paceZ := a.pace()
	climb := a.climb()
	for g := exact; g <= coarsest; g++ {
		t, rule := &a.tracks[g], &gradeRules[g]
		m := wire.Motion{
			Index: a.index, Place: a.place, PaceX: paceX, PaceZ: paceZ, Climb: climb,
			HasAcross: t.across(&a.place, tick) > rule.error/2,
			HasHeight: t.above(&a.place, tick) > rule.error,
			HasFacing: t.turned(&a.place, max(1, rule.turn/2)),
		}
		if m.HasFacing && (off(int32(paceX), int32(t.paceX)) > newWay || off(int32(paceZ), int32(t.paceZ)) > newWay) {
			m.HasAcross = true // it has turned, and would soon be astray
		}
		if (m.HasAcross || m.HasFacing) && off(int32(climb), int32(t.climb)) > sameClimb {
			m.HasHeight = true // it climbs, or has climbed
		}
		m.HasPace = m.HasAcross && (off(int32(paceX), int32(t.paceX)) > samePace || off(int32(paceZ), int32(t.paceZ)) > samePace)
		if !m.HasAcross && !m.HasHeight && !m.HasFacing {
			continue
		}
		c.pieces[g] = writers[g].Append(c.pieces[g], &m)
		t.learn(&m, tick)
	}
}

// learn is what a client does with the motion.
func (t *track) learn(m *wire.Motion, tick uint64) {
	if m.HasAcross {
		t.x, t.z, t.tick = int32(m.X)*fine, int32(m.Z)*fine, tick
	}
	if m.HasHeight {
		t.y, t.climb, t.tall = int32(m.Y)*fine, m.Climb, tick
	}
	if m.HasPace {
		t.paceX, t.paceZ = m.PaceX, m.PaceZ
	}
	if m.HasFacing {
		t.yaw, t.pitch = m.Yaw, m.Pitch
	}
}

// samePace is by how much paces may differ and need not be told anew, in 1/128 block a tick.
const samePace = 1

// sameClimb is the same of climbs, in 1/64 block a tick.
const sameClimb = 2

// newWay is by how much a pace differs of an avatar that goes another way, in the same unit.
const newWay = 6

// lowest is the height of the lowest avatar of a cell that has any.
func (c *cell) lowest() uint16 {
	lowest := uint16(math.MaxUint16)
	for _, a := range c.actors {
		lowest = min(lowest, a.place.Y)
	}
	return lowest
}

// shift adds what viewers need to know who have had the cell in one grade, or not at all, and get it in another from
// now on: of everybody whom the two grades' clients do not take to do the same.
func (c *cell) shift(dst []byte, number uint8, from, to grade, tick uint64) []byte {
	if len(c.actors) == 0 {
		return dst
	}
	var w wire.MotionWriter
	w.Begin(number, c.lowest())
	for _, a := range c.actors {
		t := &a.tracks[to]
		if from != unseen && a.tracks[from] == *t {
			continue
		}
		m := a.motion(t, tick)
		dst = w.Append(dst, &m)
	}
	return dst
}

// motion is where clients of the track take the avatar to be, in full, and how they let it go on. In a frame an avatar
// stands in its cell: where they take it to be beyond, it is put at the edge.
func (a *actor) motion(t *track, tick uint64) wire.Motion {
	place, gone := a.place, passed(t.tick, tick)
	place.X = inCell(a.cell%cellRow, t.x+int32(t.paceX)*gone)
	place.Z = inCell(a.cell/cellRow, t.z+int32(t.paceZ)*gone)
	place.Y = uint16(max(0, min(math.MaxUint16, (t.height(tick)+fine/2)/fine)))
	return wire.Motion{
		Index: a.index, Place: place, PaceX: t.paceX, PaceZ: t.paceZ, Climb: t.climb,
		HasAcross: true, HasHeight: true, HasPace: true, HasFacing: true,
	}
}

// inCell rounds a place along one axis, in 1/128 block, to one within the cell of that number.
func inCell(number uint8, v int32) uint16 {
	const width = wire.CellSize * wire.PlaceUnit
	low := int32(number) * width
	return uint16(max(low, min(low+width-1, (v+fine/2)/fine)))
}
