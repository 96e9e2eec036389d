package gameserver

import (
	"math"
	"math/bits"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file decides when an avatar's motion has to be told, and makes the pieces that tell it: one for each
// cell, grade and tick, whoever gets them. Nothing here locks: the stage does.
//
// Clients let an avatar go on by its pace. So nothing has to be told while that is true enough, and how true it has
// to be is what a grade says.

// grade is how exactly viewers are told of a cell. Each grade's pieces tell what its own viewers need: a coarser one's may hold what
// a finer one's do not.
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
	fair:    {32, 32, 1},
	loose:   {50, 40, 1},
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

// gradeSet is a set of grades.
type gradeSet uint8

const allGrades gradeSet = 1<<grades - 1

func only(g grade) gradeSet         { return 1 << g }
func (s gradeSet) has(g grade) bool { return s&only(g) != 0 }

// next takes the finest grade out of a set that is not empty.
func (s *gradeSet) next() grade {
	g := grade(bits.TrailingZeros8(uint8(*s)))
	*s &= *s - 1
	return g
}

// dueIn gives the grades that are looked at in a turn.
func dueIn(turn uint64) gradeSet {
	due := eachTurn
	for left := allGrades &^ eachTurn; left != 0; {
		if g := left.next(); turn%gradeRules[g].every == 0 {
			due |= only(g)
		}
	}
	return due
}

// eachTurn are the grades that are looked at in each.
var eachTurn = func() (each gradeSet) {
	for g, rule := range gradeRules {
		if rule.every == 1 {
			each |= only(grade(g))
		}
	}
	return each
}()

// stepError is how wrong clients may be about who goes up or down a block, until he stands again, in 1/128 block: the
// way of two ticks. When he is told of then, where he will stand can be guessed; every tick of a step would cost a record
// otherwise.
const stepError = 52

// bears tells whether that holds in the grade.
func (g grade) bears() bool { return g >= fair }

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

// wrong tells whether what clients of the grade take the avatar to do is not true enough any more. Who takes a step may be
// farther off in the meantime; who slips, which is to be on his way but a tick early or late, for some looks.
func (a *actor) wrong(g grade, tick uint64, steps bool) (wrong, slips bool) {
	t, p, most := &a.tracks[g], &a.place, gradeRules[g].error
	if steps && g.bears() {
		most = max(most, stepError)
	}
	astray := t.astray(p, tick)
	slips = g != exact && astray > most && astray <= slipMost && a.slips[g] < slipTicks &&
		min(t.astray(p, tick-1), t.astray(p, tick+1)) <= max(most, slipError)
	return astray > most && !slips || t.turned(p, gradeRules[g].turn) || t.stops(g, tick) || t.levels(g, tick), slips
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

// stops tells whether clients will let the avatar go on no more before the next look, and levels the same of its climb. They are told
// then even if it has stopped just there: who has been told of it later, when a cell's grade changed, would let it go on for longer.
func (t *track) stops(g grade, tick uint64) bool {
	return t.tick+wire.PaceTicks < tick+gradeRules[g].every && t.pace() != (spot{})
}

func (t *track) levels(g grade, tick uint64) bool {
	return t.tall+wire.PaceTicks < tick+gradeRules[g].every && t.climb != 0
}

func (t *track) pace() spot { return spot{x: int32(t.paceX), z: int32(t.paceZ)} }

func off(a, b int32) int32 { return max(a-b, b-a) }

func within(v, most int32) int32 { return max(-most, min(most, v)) }

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
	heard  uint64        // the look that its newest move came before
	stood  int32         // the height at which it was when it last neither rose nor fell, as in spot
	slips  [grades]uint8 // looks in which clients took it to be a tick early or late, without one in which they did not
	kept   gradeSet      // whose tracks are those of their clients; of the others there are none
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
	if now.y == a.past[1].y {
		a.stood = now.y
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
	a.stood, a.seen, a.kept = a.spot.y, tick, allGrades
}

// pace guesses how the avatar goes on across, in 1/128 block a tick. Moves come at the clients' beat and not at ours, so
// that a tick may see none of them or two: where its last steps are not alike the way of several ticks tells more, and
// what clients take it to do already, if that agrees, is as good. A step in another direction is neither: it is a turn.
func (a *actor) pace(told *track) (x, z int8) {
	now, before := a.past[0], a.past[1]
	step, last, way := now.minus(before), before.minus(a.past[2]), now.minus(a.past[4])
	mean, twice := spot{}.plus(way, 1, 4), spot{}.plus(way, 1, 2)
	beat := step == spot{} || steady(step, told.pace()) || steady(step, twice) // none, one or two moves of the same walk
	switch {
	case alike(step, last) && alike(step, a.past[2].minus(a.past[3])):
		step = spot{}.plus(now.minus(a.past[3]), 1, 3)
	case alike(step, last):
		step = spot{}.plus(now.minus(a.past[2]), 1, 2)
	case beat && mean.minus(told.pace()).across() <= told.pace().across()/4+1:
		return told.paceX, told.paceZ
	case steady(step, mean), steady(step, twice), step == spot{} && last != spot{}:
		step = mean
	}
	return clampPace(step.x), clampPace(step.z)
}

// alike tells whether two steps differ by no more than rounding makes them.
func alike(step, last spot) bool { return step.minus(last).across() <= little }

// steady tells whether a step is what is expected, by half of it and a little.
func steady(step, mean spot) bool { return step.minus(mean).across() <= mean.across()/2+little }

// little is what rounding, and a move of a beat that is not quite ours, add to a step, in 1/128 block.
const little = 4

// steps tells whether the avatar rises or falls, and not yet by more than a block.
func (a *actor) steps() bool {
	return a.past[0].y != a.past[1].y && off(a.past[0].y, a.stood) <= block
}

// landing guesses where the step ends that the avatar is taking: at the next whole height, in so many ticks. Who rises or falls
// by more than a block is not guessed to end anywhere.
func (a *actor) landing() (y, ticks int32, lands bool) {
	if !a.steps() || a.climb(1) == 0 {
		return 0, 0, false
	}
	now, step := a.past[0].y, a.past[0].y-a.past[1].y
	y = now / block * block
	if step > 0 {
		y = (now + block - 1) / block * block
	}
	return y, (y - now + step/2) / step, true
}

const block = wire.PaceUnit

// climb guesses how the avatar goes on up or down, in 1/64 block a tick. Who has gone up within one tick has stepped on
// something, and stays there; who has in two climbs, or who does and stays where he is across. Who has not climbed for as
// long as it takes until the next look, in ticks, is guessed to have arrived by then: a jump lasts less than a second.
func (a *actor) climb(every uint64) int8 {
	step, before := a.past[0].minus(a.past[1]), a.past[1].y-a.past[2].y
	switch {
	case off(a.past[0].y, a.stood) < off(step.y, 0)*int32(every):
		return 0
	case step.y > 0 && before > 0, step.y < 0 && before < 0:
		return clampPace((step.y + before) / 2 / steep)
	case step.across() == 0:
		return clampPace(step.y / steep)
	}
	return 0
}

func clampPace(v int32) int8 { return int8(max(-math.MaxInt8, min(math.MaxInt8, v))) }

// late tells whether an avatar that walks has not been heard of: it is taken to go on.
func (a *actor) late(look uint64) bool {
	return a.heard != look && look-a.heard <= unheardTicks && a.past[0] != a.past[1]
}

// tell adds the avatar to the pieces of those grades, of the wanted ones that are due, whose clients take it to do what is not true
// enough, and tells whether there are any.
func (a *actor) tell(c *cell, writers *[grades]wire.MotionWriter, wanted, due gradeSet, tick uint64) (told bool) {
	a.kept &= wanted
	steps := a.steps()
	for left := wanted & due; left != 0; {
		g := left.next()
		if !a.kept.has(g) {
			a.renew(g) // nobody has been told yet: whoever will be is told all of it
			continue
		}
		wrong, slips := a.wrong(g, tick, steps)
		if slips {
			a.slips[g]++
		} else {
			a.slips[g] = 0
		}
		if !wrong {
			continue
		}
		t := &a.tracks[g]
		if m := a.guess(g, tick); m.HasAcross || m.HasHeight || m.HasFacing {
			if c.pieces == nil {
				c.pieces = new([grades][]byte)
			}
			c.pieces[g] = writers[g].Append(c.pieces[g], &m)
			t.learn(&m, tick)
			told = true
		}
	}
	return told
}

// renew begins the grade's track anew, of which no client knows: where the avatar was when it was last looked at, and how it goes on.
func (a *actor) renew(g grade) {
	t := trackOf(a.place, a.seen)
	t.paceX, t.paceZ = a.pace(&t)
	t.climb = a.climb(gradeRules[g].every)
	a.tracks[g], a.slips[g], a.kept = t, 0, a.kept|only(g)
}

// shift prepares the avatar for clients who have known it in one grade, or not at all, and know it in another one from now on. It
// tells whether they have to be told where that grade's clients take it to be. If there were none until now, what those know who have been
// told of it more exactly is good enough; not so where a look is far away, until which it may not go on as it does.
func (a *actor) shift(from, to grade) (tell bool) {
	switch {
	case a.kept.has(to):
		return !a.kept.has(from) || a.tracks[from] != a.tracks[to]
	case from < to && a.kept.has(from) && gradeRules[to].every == 1:
		a.tracks[to], a.slips[to], a.kept = a.tracks[from], a.slips[from], a.kept|only(to)
		return false
	}
	a.renew(to)
	return true
}

// guess is what clients of a grade are told: where the avatar is, or will be when it has taken the step that it is taking, and
// how it goes on. It has only what they do not take it to do already.
func (a *actor) guess(g grade, tick uint64) wire.Motion {
	t, rule := &a.tracks[g], &gradeRules[g]
	m := wire.Motion{Index: a.index, Place: a.place, Climb: a.climb(rule.every)}
	m.PaceX, m.PaceZ = a.pace(t)
	most := max(rule.error, stepError)
	if y, ticks, lands := a.landing(); lands && g.bears() && off(y, a.spot.y) <= most {
		m.Y, m.Climb = uint16(y/fine), 0
		if a.past[0].minus(a.past[1]).across() == 0 { // it will go on as it came
			m.PaceX, m.PaceZ = t.paceX, t.paceZ
			m.X = inCell(a.cell%cellRow, int32(m.X)*fine-within(int32(m.PaceX)*ticks, most))
			m.Z = inCell(a.cell/cellRow, int32(m.Z)*fine-within(int32(m.PaceZ)*ticks, most))
		}
	}
	newPace := max(off(int32(m.PaceX), int32(t.paceX)), off(int32(m.PaceZ), int32(t.paceZ)))
	m.HasFacing = t.turned(&m.Place, max(1, rule.turn/2))
	m.HasAcross = t.across(&m.Place, tick) > rule.error/2 || t.across(&a.place, tick) > most || t.stops(g, tick) ||
		m.HasFacing && newPace > newWay // it has turned, and would soon be astray
	m.HasHeight = t.above(&m.Place, tick) > rule.error || t.above(&a.place, tick) > most || t.levels(g, tick) ||
		(m.HasAcross || m.HasFacing) && off(int32(m.Climb), int32(t.climb)) > sameClimb // it climbs, or has climbed
	m.HasPace = m.HasAcross && newPace > samePace
	return m
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
