package interest

import (
	"slices"

	"github.com/voxelpopuli/voxeld/motion"
)

// View is a session's view of the avatars. The zero value has seen nothing. The goroutine that uses the Index owns it.
type View struct {
	observer *observer // nil before the first frame
	removed  bool
}

// Frame is the motion of a tick for one viewer. It is valid until the index changes.
type Frame struct {
	Alone bool // nobody else is in sight, and nobody sees the viewer's avatar well

	ix            *Index
	last, current *observer // where the viewer looked from in the previous frame, nil for none, and where now
}

// BeginTick begins a tick, the given number of ticks after the previous one, and encodes the motion of all avatars.
func (ix *Index) BeginTick(ticks uint64) {
	ix.tick += ticks
	ix.frames++
	ix.dropDeparted()
	var bytes [tiers]int
	ix.awake = slices.DeleteFunc(ix.awake, func(bkt *bucket) bool {
		if bkt.awake = bkt.avatars > 0 && bkt.encode(frameTime{ix.tick, ix.frames}); bkt.awake && bkt.costObservers > 0 {
			bkt.count(&bytes)
		}
		return !bkt.awake
	})
	ix.costs.measure(&bytes)
	for point, obs := range ix.observers {
		if obs.users == 0 {
			delete(ix.observers, point)
			ix.release(obs)
			continue
		}
		ix.compose(obs)
	}
	for _, bkt := range ix.awake {
		clear(bkt.crossed)
		bkt.crossed = bkt.crossed[:0]
	}
}

// EndTick ends a tick, after all frames.
func (ix *Index) EndTick() { ix.costs.smooth() }

// SetBudget changes Options.Budget, from the next frame on.
func (ix *Index) SetBudget(budget float64) { ix.costs.budget = budget }

// compose assembles the tick's motion for viewers that have the previous one.
func (ix *Index) compose(obs *observer) {
	obs.motion = obs.motion[:0]
	pieces, avatars := 0, 0
	w := chunkWriter{dst: obs.motion, tick: ix.tick}
	for i := range obs.views {
		bv := &obs.views[i]
		avatars += bv.bucket.avatars
		if bv.bucket.encodedTick != ix.tick {
			continue
		}
		for left := bv.bucket.withPieces; left != 0; {
			c := left.next()
			piece := bv.bucket.cells[c].piece(bv.tiers[c])
			pieces += len(piece)
			w.add(bv.bucket.at, piece)
		}
		w.cross(bv)
	}
	obs.motion, obs.extra = w.dst, len(w.dst)-pieces
	obs.alone = avatars <= 1 && obs.point.view >= AloneView
	switch age := ix.tick - obs.assignedTick; {
	case age < urgentTicks, age < keepTicks && !obs.stale:
	case obs.stale, obs.overFinest, !ix.costs.fitsFinest(avatars):
		ix.assignTiers(obs)
		obs.motion = shift(obs.motion, obs.formerViews, obs.views, ix.tick)
	default: // the same chunks are in view, and tiers depend on distance alone
		obs.assignedTick = ix.tick
	}
}

// Frame returns the frame of the tick for a viewer at a pose, with a view distance in chunks. It reports false for a
// viewer that was removed.
func (ix *Index) Frame(v *View, pose motion.Pose, view int) (frame Frame, ok bool) {
	if v.removed {
		return Frame{}, false
	}
	last := v.observer
	if last == nil || !last.point.holds(pose, view) {
		v.observer = ix.observer(observerPointOf(pose, view), last)
		v.observer.users++
		if last != nil {
			last.users--
		}
	}
	return Frame{Alone: v.observer.alone, ix: ix, last: last, current: v.observer}, true
}

// Append appends the frame's motion: for a viewer that has missed earlier motion, the full state.
func (f *Frame) Append(dst []byte, missed bool) []byte {
	switch {
	case missed || f.last == nil:
		return append(dst, f.current.fullState(f.ix.tick)...)
	case f.current != f.last:
		dst = append(dst, f.last.motion...)
		steady := len(dst)
		dst = shift(dst, f.last.views, f.current.views, f.ix.tick)
		if f.last.profile == f.current.profile { // otherwise it is the one-time cost of changing the profile
			f.ix.costs.measureExtra(f.current.profile, f.last.extra+len(dst)-steady)
		}
		return dst
	default:
		f.ix.costs.measureExtra(f.current.profile, f.current.extra)
		return append(dst, f.current.motion...)
	}
}

// observer returns the observer at a point. A new observer starts with the LOD profile of the one that its first viewer
// comes from: a change of profile costs updates. It switches to a coarser profile if this one is over the budget, and
// to a finer one only if that is well within it.
func (ix *Index) observer(point observerPoint, from *observer) *observer {
	obs := ix.observers[point]
	if obs == nil {
		obs = &observer{point: point}
		if from != nil {
			obs.profile = from.profile
		}
		ix.observers[point] = obs
		ix.assignTiers(obs)
	}
	return obs
}

// Remove removes a viewer.
func (ix *Index) Remove(v *View) {
	if v.observer != nil {
		v.observer.users--
	}
	*v = View{removed: true}
}
