package gameserver

import (
	"math"
	"math/bits"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/grid"
)

// This file decides when an avatar's motion has to be sent, and encodes it: one piece for each cell, tier and tick, shared by all
// recipients. Nothing here locks: the index does.
//
// Clients extrapolate an avatar from its last velocity. An update is needed only when the extrapolation is too far off; a tier
// defines how far.

// lodTier is an LOD tier: how exactly a cell is sent. Each tier's pieces are for its own recipients: those of a coarser tier may
// contain updates that those of a finer one lack.
type lodTier uint8

const (
	exact   lodTier = iota // the nearest, in a small crowd: every move
	tight                  // the next, in a crowd
	near                   // within 24 blocks, however many avatars there are
	fair                   // instead, where near would exceed the budget
	loose                  // likewise, in a larger crowd
	far                    // likewise, in a still larger crowd; and in any case up to 64 blocks
	distant                // checked once a second
	tiers
	unseen lodTier = math.MaxUint8
)

// tierRules are the tiers' bounds. When checked, an avatar is where clients predict it to be, within error along each axis;
// between two checks it may move on.
var tierRules = [tiers]struct {
	error int32  // in 1/128 block
	turn  uint8  // of the yaw, in 1/256 turn; the same of the pitch, in half that
	every uint64 // ticks between two checks
}{
	exact:   {2, 2, 1},
	tight:   {14, 8, 1},
	near:    {28, 24, 1},
	fair:    {32, 32, 1},
	loose:   {50, 40, 1},
	far:     {100, 48, 1},
	distant: {128, 64, 20},
}

// Moves arrive at the clients' rate and over a network, and regions receive them in batches: a tick may see none of a walker's
// moves, and another one two. The walker has not stopped and started again, and no update must be sent.
const (
	// silentTicks is for how long an avatar without updates is assumed to go on as before.
	silentTicks = 3
	// slipTicks is for how many checks an avatar may be a tick early or late before clients are updated.
	slipTicks = 4
	// slipMost is the maximum distance of an early or late avatar from its prediction: what a walker covers in a tick. slipError
	// is the maximum distance from the predicted path then. In 1/128 block.
	slipMost, slipError = 32, 4
)

// tierSet is a set of tiers.
type tierSet uint8

const allTiers tierSet = 1<<tiers - 1

func only(tier lodTier) tierSet         { return 1 << tier }
func (s tierSet) has(tier lodTier) bool { return s&only(tier) != 0 }

// next removes the finest tier from a set that is not empty, and returns it.
func (s *tierSet) next() lodTier {
	tier := lodTier(bits.TrailingZeros8(uint8(*s)))
	*s &= *s - 1
	return tier
}

// dueIn returns the tiers that are checked in a turn.
func dueIn(turn uint64) tierSet {
	due := eachTurn
	for left := allTiers &^ eachTurn; left != 0; {
		if tier := left.next(); turn%tierRules[tier].every == 0 {
			due |= only(tier)
		}
	}
	return due
}

// eachTurn are the tiers that are checked in each turn.
var eachTurn = func() (each tierSet) {
	for g, rule := range tierRules {
		if rule.every == 1 {
			each |= only(lodTier(g))
		}
	}
	return each
}()

// stepError is the maximum error while an avatar goes up or down a block, in 1/128 block: the way of two ticks. Its landing can
// be predicted when it is sent after that; otherwise every tick of a step would cost a record.
const stepError = 52

// toleratesSteps reports whether stepError applies in the tier.
func (tier lodTier) toleratesSteps() bool { return tier >= fair }

// fine is the number of units of a prediction in one of a place, and steep the number in one of a climb.
const (
	fine  = sessionmsg.TickVelocityUnit / sessionmsg.PlaceUnit
	steep = sessionmsg.TickVelocityUnit / sessionmsg.ClimbUnit
)

// prediction is the prediction that clients of one tier have of an avatar.
type prediction struct {
	x, z                 int32 // in 1/128 block, from the chunk's corner, at the tick
	y                    int32 // in 1/128 block, at the tick tall
	velocityX, velocityZ int8
	climb                int8
	yaw                  uint8
	pitch                int8
	tick, tall           uint64
}

func predictionOf(p sessionmsg.Place, tick uint64) prediction {
	return prediction{x: int32(p.X) * fine, z: int32(p.Z) * fine, y: int32(p.Y) * fine, yaw: p.Yaw, pitch: p.Pitch, tick: tick, tall: tick}
}

// diverged reports whether the prediction of the tier's clients is too far off. An avatar on a step may be farther off; one that
// slips, which is on its path but a tick early or late, may do so for some checks.
func (a *actor) diverged(tier lodTier, tick uint64, steps bool) (wrong, slips bool) {
	pred, p, most := &a.predictions[tier], &a.place, tierRules[tier].error
	if steps && tier.toleratesSteps() {
		most = max(most, stepError)
	}
	deviation := pred.deviation(p, tick)
	slips = tier != exact && deviation > most && deviation <= slipMost && a.slips[tier] < slipTicks &&
		min(pred.deviation(p, tick-1), pred.deviation(p, tick+1)) <= max(most, slipError)
	return deviation > most && !slips || pred.turned(p, tierRules[tier].turn) || pred.stops(tier, tick) || pred.levels(tier, tick), slips
}

// deviation returns the distance of the avatar from its prediction, along any axis.
func (pred *prediction) deviation(p *sessionmsg.Place, tick uint64) int32 {
	return max(pred.across(p, tick), pred.above(p, tick))
}

func (pred *prediction) across(p *sessionmsg.Place, tick uint64) int32 {
	gone := extrapolatedTicks(pred.tick, tick)
	return max(off(pred.x+int32(pred.velocityX)*gone, int32(p.X)*fine), off(pred.z+int32(pred.velocityZ)*gone, int32(p.Z)*fine))
}

func (pred *prediction) above(p *sessionmsg.Place, tick uint64) int32 {
	return off(pred.height(tick), int32(p.Y)*fine)
}

// height returns the predicted height.
func (pred *prediction) height(tick uint64) int32 {
	return pred.y + steep*int32(pred.climb)*extrapolatedTicks(pred.tall, tick)
}

// extrapolatedTicks returns for how many ticks an avatar was extrapolated since it was sent; -1 at the tick before.
func extrapolatedTicks(since, tick uint64) int32 {
	return int32(min(int64(tick-since), sessionmsg.TickExtrapolation))
}

// stops reports whether the prediction ends before the next check, and levels the same for its climb. An update is sent then even
// if the avatar has stopped just there: clients that received it later, when a cell's tier changed, would extrapolate for longer.
func (pred *prediction) stops(tier lodTier, tick uint64) bool {
	return pred.tick+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.velocity() != (finePos{})
}

func (pred *prediction) levels(tier lodTier, tick uint64) bool {
	return pred.tall+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.climb != 0
}

func (pred *prediction) velocity() finePos {
	return finePos{x: int32(pred.velocityX), z: int32(pred.velocityZ)}
}

func off(a, b int32) int32 { return max(a-b, b-a) }

func within(v, most int32) int32 { return max(-most, min(most, v)) }

// turned reports whether the viewing direction changed by at least that much.
func (pred *prediction) turned(p *sessionmsg.Place, least uint8) bool {
	yaw := int8(p.Yaw - pred.yaw)
	return off(int32(yaw), 0) >= int32(least) || off(int32(p.Pitch), int32(pred.pitch)) >= int32(least)
}

// actor is an avatar in view of a session here.
type actor struct {
	index        uint32
	name         string
	firstAwaited uint64  // the number of its last chat event when it came into sight: earlier ones are not waited for
	chunks       int     // in view that regions say it is in; two while it crosses a border
	bucket       *bucket // of the newest of them; nil when that is no longer in view
	place        sessionmsg.Place
	spot         finePos // the same, rounded less
	cell         uint8
	history      [5]finePos // where it was at the tick seen, and at those before
	seen         uint64
	lastUpdate   uint64       // the frame before which its newest move arrived
	restHeight   int32        // the height when it last neither rose nor fell, as in spot
	slips        [tiers]uint8 // consecutive checks in which it was predicted a tick early or late
	valid        tierSet      // tiers with a valid prediction; no client uses the others
	predictions  [tiers]prediction
}

// movedOn reports whether the avatar has moved on to another chunk than at.
func (a *actor) movedOn(at grid.ChunkPos) bool { return a.bucket != nil && a.bucket.at != at }

// remember records the place of the avatar at a tick. For skipped frames in between it is interpolated; after a longer rest the
// avatar stood where it was.
func (a *actor) remember(tick uint64) {
	now, before, passed := a.spot, a.history[0], int32(min(tick-a.seen, 1<<16))
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

// finePos is a place in 1/128 block: horizontally from the chunk's corner, vertically from the zero of heights.
type finePos struct{ x, y, z int32 }

func finePosOf(at grid.ChunkPos, p motion.Pose) finePos {
	corner := at.Origin()
	unit := func(blocks float64) int32 { return int32(math.Round(blocks * sessionmsg.TickVelocityUnit)) }
	return finePos{unit(p.X - float64(corner.X)), unit(p.Y - motion.MinY), unit(p.Z - float64(corner.Z))}
}

func (s finePos) minus(o finePos) finePos { return finePos{s.x - o.x, s.y - o.y, s.z - o.z} }

// plus adds a fraction of a way.
func (s finePos) plus(way finePos, part, of int32) finePos {
	return finePos{s.x + way.x*part/of, s.y + way.y*part/of, s.z + way.z*part/of}
}

// across returns the longer horizontal side of a way.
func (s finePos) across() int32 { return max(off(s.x, 0), off(s.z, 0)) }

// appear makes the avatar stand where the chunk's subscribers are sent, in a message, that it entered.
func (a *actor) appear(tick uint64) {
	for g := range a.predictions {
		a.predictions[g] = predictionOf(a.place, tick)
	}
	for i := range a.history {
		a.history[i] = a.spot
	}
	a.restHeight, a.seen, a.valid = a.spot.y, tick, allTiers
}

// velocity estimates the avatar's horizontal velocity, in 1/128 block a tick. Moves arrive at the clients' rate, so a tick may
// see none of them or two: where the last steps differ, the way of several ticks is better, and if the clients' prediction agrees
// with that, it is as good. A step in another direction is a turn.
func (a *actor) velocity(current *prediction) (x, z int8) {
	now, before := a.history[0], a.history[1]
	step, last, way := now.minus(before), before.minus(a.history[2]), now.minus(a.history[4])
	mean, twice := finePos{}.plus(way, 1, 4), finePos{}.plus(way, 1, 2)
	// None, one or two moves of the same walk.
	sameWalk := step == finePos{} || steady(step, current.velocity()) || steady(step, twice)
	switch {
	case alike(step, last) && alike(step, a.history[2].minus(a.history[3])):
		step = finePos{}.plus(now.minus(a.history[3]), 1, 3)
	case alike(step, last):
		step = finePos{}.plus(now.minus(a.history[2]), 1, 2)
	case sameWalk && mean.minus(current.velocity()).across() <= current.velocity().across()/4+1:
		return current.velocityX, current.velocityZ
	case steady(step, mean), steady(step, twice), step == finePos{} && last != finePos{}:
		step = mean
	}
	return clampVelocity(step.x), clampVelocity(step.z)
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
func (a *actor) steps() bool {
	return a.history[0].y != a.history[1].y && off(a.history[0].y, a.restHeight) <= block
}

// landing estimates where the avatar's step ends: at the next whole height, in that many ticks. No end is estimated for an avatar
// that rises or falls by more than a block.
func (a *actor) landing() (y, ticks int32, lands bool) {
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

// climb estimates the avatar's vertical velocity, in 1/64 block a tick. An avatar that rose within one tick has stepped on
// something, and stays there; one that rose in two ticks climbs, as does one that rises without moving horizontally. An avatar
// that has not climbed for as long as it takes until the next check, in ticks, is assumed to have arrived by then: a jump lasts
// less than a second.
func (a *actor) climb(every uint64) int8 {
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
func (a *actor) late(frame uint64) bool {
	return a.lastUpdate != frame && frame-a.lastUpdate <= silentTicks && a.history[0] != a.history[1]
}

// encode adds the avatar to the pieces of those wanted and due tiers whose prediction is too far off, and reports whether there
// are any.
func (a *actor) encode(c *cell, writers *[tiers]sessionmsg.MotionWriter, wanted, due tierSet, tick uint64) (encoded bool) {
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
			pred.apply(&m, tick)
			encoded = true
		}
	}
	return encoded
}

// resetPrediction starts the tier's prediction anew, which no client has: from the avatar's place at the last check, and its
// velocity.
func (a *actor) resetPrediction(tier lodTier) {
	pred := predictionOf(a.place, a.seen)
	pred.velocityX, pred.velocityZ = a.velocity(&pred)
	pred.climb = a.climb(tierRules[tier].every)
	a.predictions[tier], a.slips[tier], a.valid = pred, 0, a.valid|only(tier)
}

// shift prepares the avatar for clients that had it in one tier, or not at all, and have it in another one from now on. It
// reports whether they must be sent that tier's prediction. If the tier had no clients, the prediction of a finer tier is good
// enough, unless the next check is far off.
func (a *actor) shift(from, to lodTier) (needsUpdate bool) {
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

// estimate returns the update for clients of a tier: where the avatar is, or where its step will end, and its velocity. It
// contains only what differs from their prediction.
func (a *actor) estimate(tier lodTier, tick uint64) sessionmsg.Motion {
	pred, rule := &a.predictions[tier], &tierRules[tier]
	m := sessionmsg.Motion{Index: a.index, Place: a.place, Climb: a.climb(rule.every)}
	m.VelocityX, m.VelocityZ = a.velocity(pred)
	most := max(rule.error, stepError)
	if y, ticks, lands := a.landing(); lands && tier.toleratesSteps() && off(y, a.spot.y) <= most {
		m.Y, m.Climb = uint16(y/fine), 0
		if a.history[0].minus(a.history[1]).across() == 0 { // it goes on as it came
			m.VelocityX, m.VelocityZ = pred.velocityX, pred.velocityZ
			m.X = inCell(a.cell%cellRow, int32(m.X)*fine-within(int32(m.VelocityX)*ticks, most))
			m.Z = inCell(a.cell/cellRow, int32(m.Z)*fine-within(int32(m.VelocityZ)*ticks, most))
		}
	}
	newPace := max(off(int32(m.VelocityX), int32(pred.velocityX)), off(int32(m.VelocityZ), int32(pred.velocityZ)))
	m.HasFacing = pred.turned(&m.Place, max(1, rule.turn/2))
	m.HasAcross = pred.across(&m.Place, tick) > rule.error/2 || pred.across(&a.place, tick) > most || pred.stops(tier, tick) ||
		m.HasFacing && newPace > newDirection // it has turned, and would soon diverge
	m.HasHeight = pred.above(&m.Place, tick) > rule.error || pred.above(&a.place, tick) > most || pred.levels(tier, tick) ||
		(m.HasAcross || m.HasFacing) && off(int32(m.Climb), int32(pred.climb)) > sameClimb // it climbs, or has climbed
	m.HasVelocity = m.HasAcross && newPace > sameVelocity
	return m
}

// apply applies an update to the prediction as a client does.
func (pred *prediction) apply(m *sessionmsg.Motion, tick uint64) {
	if m.HasAcross {
		pred.x, pred.z, pred.tick = int32(m.X)*fine, int32(m.Z)*fine, tick
	}
	if m.HasHeight {
		pred.y, pred.climb, pred.tall = int32(m.Y)*fine, m.Climb, tick
	}
	if m.HasVelocity {
		pred.velocityX, pred.velocityZ = m.VelocityX, m.VelocityZ
	}
	if m.HasFacing {
		pred.yaw, pred.pitch = m.Yaw, m.Pitch
	}
}

// sameVelocity is the difference of velocities that needs no update, in 1/128 block a tick.
const sameVelocity = 1

// sameClimb is the same of climbs, in 1/64 block a tick.
const sameClimb = 2

// newDirection is the difference of velocities from which an avatar counts as going another way, in the same unit.
const newDirection = 6

// motion returns the full prediction that clients have of the avatar. In a frame an avatar is in its cell: a prediction beyond
// the cell is put at the edge.
func (a *actor) motion(pred *prediction, tick uint64) sessionmsg.Motion {
	place, gone := a.place, extrapolatedTicks(pred.tick, tick)
	place.X = inCell(a.cell%cellRow, pred.x+int32(pred.velocityX)*gone)
	place.Z = inCell(a.cell/cellRow, pred.z+int32(pred.velocityZ)*gone)
	place.Y = uint16(max(0, min(math.MaxUint16, (pred.height(tick)+fine/2)/fine)))
	return sessionmsg.Motion{
		Index: a.index, Place: place, VelocityX: pred.velocityX, VelocityZ: pred.velocityZ, Climb: pred.climb,
		HasAcross: true, HasHeight: true, HasVelocity: true, HasFacing: true,
	}
}

// inCell rounds a coordinate, in 1/128 block, to one within the cell of that number.
func inCell(number uint8, v int32) uint16 {
	const width = sessionmsg.CellSize * sessionmsg.PlaceUnit
	low := int32(number) * width
	return uint16(max(low, min(low+width-1, (v+fine/2)/fine)))
}
