package creature

import (
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

const (
	// climb is how much higher, in blocks, a step may end than it began, and descend how much lower: a creature turns at
	// higher edges. Into water it goes down by up to wade.
	climb, descend, wade = 1, 1, 3
	// afloat is how much of a creature that swims is under water.
	afloat = .6
	// gravity and fastest are in blocks a tick², and a tick.
	gravity, fastest = .04, 2
	// deepest is how far below a body, in blocks, the ground is looked for.
	deepest = 8
	hair    = 1. / 512
	// rise is how fast a creature comes up, in blocks a tick.
	rise = .2
	// refresh is after how many ticks an even walk is shown again: before motion.ExtrapolationTicks are over.
	refresh = 20
	// arrived is how near, in blocks, the place of a GoTo is reached.
	arrived = .5
)

// Ground returns the block at a position. It reports false where the blocks are not known.
type Ground func(pos grid.Pos) (b chunk.Block, known bool)

// Walker is a creature that moves.
type Walker struct {
	Creature
	Velocity motion.Velocity // as it was last shown

	left    int  // ticks until the next decision
	walks   bool // until then; otherwise it stands
	falling float64
	shown   motion.Pose
	since   int // ticks since it was shown
}

// NewWalker returns a creature that stands.
func NewWalker(c Creature) *Walker { return &Walker{Creature: c, shown: c.Pose} }

// Step moves the creature by a tick. Random returns random numbers. Ahead is where a step would lead whose ground is not
// known: the creature stands until it Turns, or is Moved there.
func (w *Walker) Step(ground Ground, random func() uint64) (ahead motion.Pose, unknown bool) {
	if w.left--; w.left <= 0 {
		w.decide(random)
	}
	w.fall(ground)
	if !w.walks || w.falling > 0 {
		return ahead, false
	}
	speed := kinds[w.kind()].speed
	next := w.Pose
	next.X -= speed * math.Sin(float64(next.Yaw))
	next.Z += speed * math.Cos(float64(next.Yaw))
	to, fits, known := w.Enters(ground, next)
	switch {
	case !known:
		return next, true
	case !fits:
		w.Turn(random)
	default:
		w.Pose = to
	}
	return ahead, false
}

// Enters returns the pose of the creature after a step to a pose, from that height, and reports whether it can go there.
func (w *Walker) Enters(ground Ground, at motion.Pose) (to motion.Pose, fits, known bool) {
	s, known := w.support(ground, at)
	at.Y = max(s.y, at.Y-descend)
	return at, known && !s.edge && !s.fence && at.Valid() == nil && w.free(ground, at), known
}

// kind returns the kind as which it moves: those of later versions, as the first one.
func (w *Walker) kind() Kind {
	if !w.Kind.Known() {
		return Sheep
	}
	return w.Kind
}

// decide begins to walk, or to stand.
func (w *Walker) decide(random func() uint64) {
	switch dx, dz := w.Goal.X-w.Pose.X, w.Goal.Z-w.Pose.Z; {
	case w.Goal.Do == GoTo && math.Hypot(dx, dz) > arrived:
		w.walks, w.left = true, 5
		w.Pose.Yaw = float32(math.Atan2(-dx, dz))
	case w.Goal.Do == GoTo || w.Goal.Do == Stay:
		w.Goal = Goal{Do: Stay}
		w.walks, w.left = false, 20
	case w.walks && random()%4 > 0: // it grazes
		w.walks, w.left = false, 10+int(random()%50)
	default:
		w.walks, w.left = true, 60+int(random()%180)
		w.Pose.Yaw = yaw(random)
	}
}

func yaw(random func() uint64) float32 {
	return float32(int64(random()%256)-128) / 256 * 2 * math.Pi //nolint:gosec // small
}

// Turn has the creature go another way for a while: the one ahead is blocked.
func (w *Walker) Turn(random func() uint64) {
	w.Pose.Yaw = yaw(random)
	w.walks, w.left = true, 20+int(random()%20)
}

// fall moves the creature down to what carries it, or up out of water and of what was built around it.
func (w *Walker) fall(ground Ground) {
	s, known := w.support(ground, w.Pose)
	switch up := w.Pose; {
	case !known:
		w.falling = 0
	case s.y >= w.Pose.Y:
		up.Y, w.falling = min(s.y, w.Pose.Y+rise), 0
		if w.free(ground, up) || !w.free(ground, w.Pose) { // not into a roof
			w.Pose = up
		}
	case w.falling == 0 && !w.free(ground, w.Pose):
		w.Pose.Y += rise
	default:
		w.falling = min(w.falling+gravity, fastest)
		if w.Pose.Y -= w.falling; w.Pose.Y <= s.y {
			w.Pose.Y, w.falling = s.y, 0
		}
	}
}

// support is what carries a body.
type support struct {
	y     float64 // the height on which it stands or swims
	fence bool    // that is a fence or a gate, on which nobody steps
	edge  bool    // the middle of the body is beyond an edge that is too high
}

// support returns what carries the creature at a pose. It needs to know the blocks below its middle only, so that it can
// come to the border of known land.
func (w *Walker) support(ground Ground, at motion.Pose) (s support, known bool) {
	low, high := w.columns(at)
	middle := at.Block()
	s.y = math.Inf(-1)
	for x := low.X; x <= high.X; x++ {
		for z := low.Z; z <= high.Z; z++ {
			inMiddle := x == middle.X && z == middle.Z
			top, water, fence, known := column(ground, x, z, at.Y)
			if !known && inMiddle {
				return support{}, false
			}
			if !known {
				continue
			}
			if inMiddle {
				s.edge = top < at.Y-descend-hair && !(water && top >= at.Y-wade)
			}
			s.y, s.fence = max(s.y, top), s.fence || fence
		}
	}
	return s, true
}

// columns returns the first and the last column into which the body reaches.
func (w *Walker) columns(at motion.Pose) (low, high grid.Pos) {
	half := kinds[w.kind()].width / 2
	return motion.Pose{X: at.X - half, Z: at.Z - half}.Block(), motion.Pose{X: at.X + half, Z: at.Z + half}.Block()
}

// column returns the height of what carries a body in a column of blocks, as seen from a height: the highest top that it
// can step on, or the height at which it swims. It reports whether that is a fence or a gate, on which nobody steps. A
// wall is seen by Walker.free.
func column(ground Ground, x, z int32, from float64) (top float64, water, fence, known bool) {
	first := int32(math.Floor(from+hair)) + climb
	for y := first; y > first-deepest && y >= 0; y-- {
		b, known := ground(grid.Pos{X: x, Y: y, Z: z})
		if !known {
			return 0, false, false, false
		}
		if b.Translucent() && !b.Solid() {
			surface := y + 1
			for ; surface < y+deepest; surface++ {
				if above, _ := ground(grid.Pos{X: x, Y: surface, Z: z}); !above.Translucent() || above.Solid() {
					break
				}
			}
			return float64(surface) - afloat, true, false, true
		}
		if !b.Solid() {
			continue
		}
		if top := float64(y) + float64(highest(b))/16; top <= from+climb+hair {
			return top, false, top > from+.5 && (b.Joinable() || b.Opens()), true
		}
	}
	return max(0, float64(first-deepest)), false, false, true
}

func highest(b chunk.Block) (top uint8) {
	for _, box := range b.Boxes() {
		top = max(top, box.High[1])
	}
	return top
}

// free reports whether no block is in the way of the body at a pose.
func (w *Walker) free(ground Ground, at motion.Pose) bool {
	low, high := w.columns(at)
	y, head := at.Y+hair, at.Y+kinds[w.kind()].height
	for by := int32(math.Floor(y)); float64(by) < head; by++ {
		for x := low.X; x <= high.X; x++ {
			for z := low.Z; z <= high.Z; z++ {
				b, _ := ground(grid.Pos{X: x, Y: by, Z: z})
				if !b.Solid() {
					continue
				}
				for _, box := range b.Boxes() {
					if float64(by)+float64(box.High[1])/16 > y && float64(by)+float64(box.Low[1])/16 < head {
						return false
					}
				}
			}
		}
	}
	return true
}

// Show reports whether the creature is elsewhere than those who watch it predict. Its Velocity is what they predict from
// now on.
func (w *Walker) Show() bool {
	w.since++
	velocity := motion.Velocity{}
	if speed := kinds[w.kind()].speed; w.walks && w.falling == 0 {
		velocity = motion.VelocityOf(-speed*math.Sin(float64(w.Pose.Yaw)), 0, speed*math.Cos(float64(w.Pose.Yaw)))
	} else if w.falling > 0 {
		velocity = motion.VelocityOf(0, -w.falling, 0)
	}
	x, y, z := w.Velocity.Displacement(float64(w.since))
	const most = 1. / 16
	off := max(math.Abs(w.shown.X+x-w.Pose.X), math.Abs(w.shown.Y+y-w.Pose.Y), math.Abs(w.shown.Z+z-w.Pose.Z))
	if off < most && w.shown.Yaw == w.Pose.Yaw && w.shown.Chunk() == w.Pose.Chunk() && (w.since < refresh || !w.Velocity.Moving()) &&
		(velocity == w.Velocity || w.falling > 0) {
		return false
	}
	w.shown, w.Velocity, w.since = w.Pose, velocity, 0
	return true
}

// Wait shows the creature standing: it goes no further for now.
func (w *Walker) Wait() { w.walks, w.left = false, 20 }
