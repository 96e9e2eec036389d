package interest

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// avatar is an avatar in view of a session here.
type avatar struct {
	index        uint32
	name         string
	firstAwaited uint64  // the number of its last chat event when it came into sight: earlier ones are not waited for
	chunks       int     // in view that regions say it is in; two while it crosses a border
	bucket       *bucket // of the newest of them; nil when that is no longer in view
	place        sessionmsg.Place
	fine         finePos // the same, rounded less
	cell         uint8
	history      [5]finePos // where it was at the tick seen, and at those before
	seen         uint64
	lastUpdate   uint64       // the frame before which its newest move arrived
	restHeight   int32        // the height when it last neither rose nor fell, as in fine
	slips        [tiers]uint8 // consecutive checks in which it was predicted a tick early or late
	valid        tierSet      // tiers with a valid prediction; no client uses the others
	predictions  [tiers]prediction
}

// movedOn reports whether the avatar has moved on to another chunk than at.
func (a *avatar) movedOn(at grid.ChunkPos) bool { return a.bucket != nil && a.bucket.at != at }

// remember records the place of the avatar at a tick. For skipped frames in between it is interpolated; after a longer
// rest the avatar stood where it was.
func (a *avatar) remember(tick uint64) {
	now, before, passed := a.fine, a.history[0], int32(min(tick-a.seen, 1<<16))
	if passed > int32(len(a.history)) {
		a.history = [5]finePos{before, before, before, before, before}
		passed = 1
	}
	for i := int32(1); i <= passed; i++ {
		copy(a.history[1:], a.history[:4])
		a.history[0] = before.plus(now.minus(before), i, passed)
	}
	if now.y == a.history[1].y {
		a.restHeight = now.y
	}
	a.seen = tick
}

// appear makes the avatar stand where the chunk's subscribers are sent, in a message, that it entered.
func (a *avatar) appear(tick uint64) {
	for g := range a.predictions {
		a.predictions[g] = predictionOf(a.place, tick)
	}
	for i := range a.history {
		a.history[i] = a.fine
	}
	a.restHeight, a.seen, a.valid = a.fine.y, tick, allTiers
}

// velocity estimates the avatar's horizontal velocity, in 1/128 block a tick. Moves arrive at the clients' rate, so a
// tick may see none of them or two: where the last steps differ, the way of several ticks is better, and if the
// clients' prediction agrees with that, it is as good. A step in another direction is a turn.
func (a *avatar) velocity(current *prediction) (x, z int8) {
	now, before := a.history[0], a.history[1]
	step, last, moved := now.minus(before), before.minus(a.history[2]), now.minus(a.history[4])
	mean, twice := finePos{}.plus(moved, 1, 4), finePos{}.plus(moved, 1, 2)
	// None, one or two moves of the same walk.
	sameWalk := step == finePos{} || steady(step, current.velocity()) || steady(step, twice)
	switch {
	case alike(step, last) && alike(step, a.history[2].minus(a.history[3])):
		step = finePos{}.plus(now.minus(a.history[3]), 1, 3)
	case alike(step, last):
		step = finePos{}.plus(now.minus(a.history[2]), 1, 2)
	case sameWalk && mean.minus(current.velocity()).across() <= current.velocity().across()/4+1:
		return current.VelocityX, current.VelocityZ
	case steady(step, mean), steady(step, twice), step == finePos{} && last != finePos{}:
		step = mean
	default:
		step = a.limitSpeed(step, last)
	}
	return clampVelocity(step.x), clampVelocity(step.z)
}

// limitSpeed returns the velocity of an avatar that did not go on as before. Who turns back, or moves after ticks
// without a move, is no faster than before: a longer step makes up for these ticks, or for a region that had
// extrapolated too far.
func (a *avatar) limitSpeed(step, last finePos) finePos {
	var before finePos // the longest of the earlier steps
	for i := 1; i < len(a.history)-1; i++ {
		if s := a.history[i].minus(a.history[i+1]); s.across() > before.across() {
			before = s
		}
	}
	speed, turnsBack := before.across(), step.x*before.x+step.z*before.z < 0
	if (turnsBack || last == finePos{}) && speed > stepTolerance && step.across() > speed+speed/2 {
		return finePos{}.plus(step, speed, step.across())
	}
	return step
}

// alike reports whether two steps differ by rounding only.
func alike(step, last finePos) bool { return step.minus(last).across() <= stepTolerance }

// steady reports whether a step is as expected, within half of it and a little.
func steady(step, mean finePos) bool {
	return step.minus(mean).across() <= mean.across()/2+stepTolerance
}

// stepTolerance is what rounding, and a client rate slightly off the tick, add to a step, in 1/128 block.
const stepTolerance = 4

// steps reports whether the avatar rises or falls, and by at most a block so far.
func (a *avatar) steps() bool {
	return a.history[0].y != a.history[1].y && off(a.history[0].y, a.restHeight) <= block
}

// landing estimates where the avatar's step ends: at the next whole height, in that many ticks. No end is estimated for
// an avatar that rises or falls by more than a block.
func (a *avatar) landing() (y, ticks int32, lands bool) {
	if !a.steps() || a.climb(1) == 0 {
		return 0, 0, false
	}
	now, step := a.history[0].y, a.history[0].y-a.history[1].y
	y = now / block * block
	if step > 0 {
		y = (now + block - 1) / block * block
	}
	return y, (y - now + step/2) / step, true
}

const block = sessionmsg.TickVelocityUnit

// climb estimates the avatar's vertical velocity, in 1/64 block a tick. An avatar that rose within one tick has stepped
// on something, and stays there; one that rose in two ticks climbs, as does one that rises without moving horizontally.
// An avatar that has not climbed for as long as it takes until the next check, in ticks, is assumed to have arrived by
// then: a jump lasts less than a second.
func (a *avatar) climb(every uint64) int8 {
	step, before := a.history[0].minus(a.history[1]), a.history[1].y-a.history[2].y
	switch {
	case off(a.history[0].y, a.restHeight) < off(step.y, 0)*int32(every):
		return 0
	case step.y > 0 && before > 0, step.y < 0 && before < 0:
		return clampVelocity((step.y + before) / 2 / steep)
	case step.across() == 0:
		return clampVelocity(step.y / steep)
	}
	return 0
}

func clampVelocity(v int32) int8 { return int8(max(-math.MaxInt8, min(math.MaxInt8, v))) }

// late reports whether no update has arrived of an avatar that walks: it is assumed to go on.
func (a *avatar) late(frame uint64) bool {
	return a.lastUpdate != frame && frame-a.lastUpdate <= silentTicks && a.history[0] != a.history[1]
}

// diverged reports whether the prediction of the tier's clients is too far off. An avatar on a step may be farther off;
// one that slips, which is on its path but a tick early or late, may do so for some checks.
func (a *avatar) diverged(tier lodTier, tick uint64, steps bool) (wrong, slips bool) {
	pred, p, most := &a.predictions[tier], &a.place, tierRules[tier].error
	if steps && tier.toleratesSteps() {
		most = max(most, stepError)
	}
	deviation := pred.deviation(p, tick)
	slips = tier != exact && deviation > most && deviation <= slipMost && a.slips[tier] < slipTicks &&
		min(pred.deviation(p, tick-1), pred.deviation(p, tick+1)) <= max(most, slipError)
	return deviation > most && !slips || pred.turned(p, tierRules[tier].turn) || pred.stops(tier, tick) || pred.levels(tier, tick), slips
}

// encode adds the avatar to the pieces of those wanted and due tiers whose prediction is too far off, and reports
// whether there are any.
func (a *avatar) encode(c *cell, writers *[tiers]sessionmsg.MotionWriter, wanted, due tierSet, tick uint64) (encoded bool) {
	a.valid &= wanted
	steps := a.steps()
	for left := wanted & due; left != 0; {
		tier := left.next()
		if !a.valid.has(tier) {
			a.resetPrediction(tier) // no client has it yet: all will be sent everything
			continue
		}
		wrong, slips := a.diverged(tier, tick, steps)
		if slips {
			a.slips[tier]++
		} else {
			a.slips[tier] = 0
		}
		if !wrong {
			continue
		}
		pred := &a.predictions[tier]
		if m := a.estimate(tier, tick); m.HasAcross || m.HasHeight || m.HasFacing {
			if c.pieces == nil {
				c.pieces = new([tiers][]byte)
			}
			c.pieces[tier] = writers[tier].Append(c.pieces[tier], &m)
			pred.Apply(&m, tick)
			encoded = true
		}
	}
	return encoded
}

// resetPrediction starts the tier's prediction anew, which no client has: from the avatar's place at the last check,
// and its velocity.
func (a *avatar) resetPrediction(tier lodTier) {
	pred := predictionOf(a.place, a.seen)
	pred.VelocityX, pred.VelocityZ = a.velocity(&pred)
	pred.Climb = a.climb(tierRules[tier].every)
	a.predictions[tier], a.slips[tier], a.valid = pred, 0, a.valid|only(tier)
}

// shift prepares the avatar for clients that had it in one tier, or not at all, and have it in another one from now on.
// It reports whether they must be sent that tier's prediction. If the tier had no clients, the prediction of a finer
// tier is good enough, unless the next check is far off.
func (a *avatar) shift(from, to lodTier) (needsUpdate bool) {
	switch {
	case a.valid.has(to):
		return !a.valid.has(from) || a.predictions[from] != a.predictions[to]
	case from < to && a.valid.has(from) && tierRules[to].every == 1:
		a.predictions[to], a.slips[to], a.valid = a.predictions[from], a.slips[from], a.valid|only(to)
		return false
	}
	a.resetPrediction(to)
	return true
}

// estimate returns the update for clients of a tier: where the avatar is, or where its step will end, and its velocity.
// It contains only what differs from their prediction.
func (a *avatar) estimate(tier lodTier, tick uint64) sessionmsg.Motion {
	pred, rule := &a.predictions[tier], &tierRules[tier]
	m := sessionmsg.Motion{Index: a.index, Place: a.place, Climb: a.climb(rule.every)}
	m.VelocityX, m.VelocityZ = a.velocity(pred)
	most := max(rule.error, stepError)
	if y, ticks, lands := a.landing(); lands && tier.toleratesSteps() && off(y, a.fine.y) <= most {
		m.Y, m.Climb = uint16(y/fine), 0
		if a.history[0].minus(a.history[1]).across() == 0 { // it goes on as it came
			m.VelocityX, m.VelocityZ = pred.VelocityX, pred.VelocityZ
			m.X = inCell(a.cell%cellRow, int32(m.X)*fine-within(int32(m.VelocityX)*ticks, most))
			m.Z = inCell(a.cell/cellRow, int32(m.Z)*fine-within(int32(m.VelocityZ)*ticks, most))
		}
	}
	accelerated := max(off(int32(m.VelocityX), int32(pred.VelocityX)), off(int32(m.VelocityZ), int32(pred.VelocityZ)))
	m.HasFacing = pred.turned(&m.Place, max(1, rule.turn/2))
	m.HasAcross = pred.across(&m.Place, tick) > rule.error/2 || pred.across(&a.place, tick) > most || pred.stops(tier, tick) ||
		m.HasFacing && accelerated > newDirection // it has turned, and would soon diverge
	m.HasHeight = pred.above(&m.Place, tick) > rule.error || pred.above(&a.place, tick) > most || pred.levels(tier, tick) ||
		(m.HasAcross || m.HasFacing) && off(int32(m.Climb), int32(pred.Climb)) > sameClimb // it climbs, or has climbed
	m.HasVelocity = m.HasAcross && accelerated > sameVelocity
	return m
}

// sameVelocity is the difference of velocities that needs no update, in 1/128 block a tick.
const sameVelocity = 1

// sameClimb is the same of climbs, in 1/64 block a tick.
const sameClimb = 2

// newDirection is the difference of velocities from which an avatar counts as going another way, in the same unit.
const newDirection = 6

// motion returns the full prediction that clients have of the avatar. In a frame an avatar is in its cell: a prediction
// beyond the cell is put at the edge.
func (a *avatar) motion(pred *prediction, tick uint64) sessionmsg.Motion {
	place := a.place
	x, z := pred.Across(tick)
	place.X = inCell(a.cell%cellRow, x)
	place.Z = inCell(a.cell/cellRow, z)
	place.Y = uint16(max(0, min(math.MaxUint16, (pred.Height(tick)+fine/2)/fine)))
	return sessionmsg.Motion{
		Index: a.index, Place: place, VelocityX: pred.VelocityX, VelocityZ: pred.VelocityZ, Climb: pred.Climb,
		HasAcross: true, HasHeight: true, HasVelocity: true, HasFacing: true,
	}
}

// inCell rounds a coordinate, in 1/128 block, to one within the cell of that number.
func inCell(number uint8, v int32) uint16 {
	const width = sessionmsg.CellSize * sessionmsg.PlaceUnit
	low := int32(number) * width
	return uint16(max(low, min(low+width-1, (v+fine/2)/fine)))
}
