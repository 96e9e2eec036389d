package gameserver

import (
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// interestIndex is the index of all avatars in view of CBOR sessions here: each has a number, and is in a cell of a chunk.
// Subscriptions apply their regions' updates to it, and the frame loop encodes the motion from it once a tick.
type interestIndex struct {
	budget  int       // maximum bytes a second of a session's motion, as far as LOD profiles can keep it
	found   []*bucket // scratch, guarded as mu is: buckets in view, in order
	nearest []uint64  // likewise: cells in view, the nearest first, as blocks<<32 | line<<viewShift | cell

	mu struct {
		sync.Mutex
		tick          uint64 // of the newest frame, by the clock
		frames        uint64 // frames
		actors        map[player.ID]*actor
		departed      map[player.ID]departed // players who went out of sight recently
		lost          []player.ID            // they left the chunk where they were, and are still in view in another one
		unused        []uint32               // indices below next that are free
		next          uint32
		buckets       map[grid.ChunkPos]*bucket // those with avatars
		awake         []*bucket                 // those that need checking, and some that have no avatars any more
		inCostBuckets int                       // avatars in buckets with weighers
		observers     map[observerPoint]*observer
		cost          [tiers]float64 // bytes a tick of an avatar in each tier, smoothed; of buckets with weighers
		extra         [len(lodProfiles)]extraCost
	}
}

// extraCost is the cost of updates besides the pieces of cells, for sessions with one profile: of avatars whose tier changes.
type extraCost struct {
	each            float64 // bytes a tick, smoothed; decays slowly to usualSurplus while no session has the profile
	bytes, sessions int     // in this tick
}

const usualSurplus = 40

func (s *extraCost) smooth() {
	if s.sessions > 0 {
		s.each += (float64(s.bytes)/float64(s.sessions) - s.each) / costTicks
	} else {
		s.each += (usualSurplus - s.each) / (20 * costTicks)
	}
	s.bytes, s.sessions = 0, 0
}

func newInterestIndex(budget int) *interestIndex {
	ix := &interestIndex{budget: budget}
	ix.mu.actors = make(map[player.ID]*actor)
	ix.mu.departed = make(map[player.ID]departed)
	ix.mu.buckets = make(map[grid.ChunkPos]*bucket)
	ix.mu.cost = [tiers]float64{exact: 2.4, tight: 1, near: .8, fair: .6, loose: .55, far: .5, distant: .2} // initial values
	for k := range ix.mu.extra {
		ix.mu.extra[k].each = usualSurplus
	}
	ix.mu.observers = make(map[observerPoint]*observer)
	return ix
}

// apply applies the delta of a chunk, and returns it as CBOR sessions get it, without motion and chat; nil if nothing is left.
// Moved are those of Moves who are in the chunk. The subscription's lock is held too.
func (ix *interestIndex) apply(delta *chunkDelta, moved []*occupant) *sessionmsg.TickDelta {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	n := &delta.ChunkDelta
	for _, o := range moved {
		if a := o.actor; a != nil && a.bucket != nil && a.bucket.at == n.Chunk {
			ix.move(a, o.Pose)
		}
	}
	if len(n.Enter)+len(n.Leave)+len(n.Blocks) == 0 {
		return nil
	}
	td := &sessionmsg.TickDelta{Chunk: n.Chunk, Blocks: n.Blocks}
	for i := range delta.entered {
		a := ix.actor(delta.entered[i].Player)
		if a.chunks == 0 {
			a.firstAwaited = ix.firstAwaited(&delta.entered[i])
		}
		a.chunks++
		if o := delta.chunk.bodies.of(delta.entered[i].Player); o != nil { // otherwise they entered and left in one frame
			o.actor = a
		}
	}
	for i := range n.Enter {
		td.Enter = append(td.Enter, ix.enter(n.Chunk, &n.Enter[i]))
	}
	for i := range delta.left {
		if a := ix.mu.actors[delta.left[i].Player]; a != nil {
			td.Leave = append(td.Leave, a.index)
			ix.leave(n.Chunk, delta.left[i].Player, a)
		}
	}
	return td
}

// present returns those of a chunk's bodies that are still there, as far as any region has sent. Others have entered another
// chunk, whose region sent that first: a client that was sent them here would remove them when they leave here.
func (ix *interestIndex) present(at grid.ChunkPos, bodies []nodemsg.Body) []nodemsg.Body {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return slices.DeleteFunc(bodies, func(b nodemsg.Body) bool {
		a := ix.mu.actors[b.Player]
		return a != nil && a.movedOn(at)
	})
}

// allPresent returns all bodies that are present in a chunk.
func (ix *interestIndex) allPresent(at grid.ChunkPos, bodies occupants) *sessionmsg.TickDelta {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	td := &sessionmsg.TickDelta{Chunk: at, Enter: make([]sessionmsg.TickAvatar, 0, len(bodies))}
	for i := range bodies {
		if o := &bodies[i]; o.actor != nil && !o.actor.movedOn(at) {
			td.Enter = append(td.Enter, tickAvatar(o.actor.index, &o.Body, sessionmsg.PlaceOf(at, o.Pose)))
		}
	}
	return td
}

// clear removes all bodies of a chunk that is no longer in view.
func (ix *interestIndex) clear(at grid.ChunkPos, bodies occupants) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range bodies {
		if o := &bodies[i]; o.actor != nil {
			ix.leave(at, o.Player, o.actor)
		}
	}
}

// actor returns a player's actor, and creates it if necessary. The lock is held, here and below.
func (ix *interestIndex) actor(id player.ID) *actor {
	a := ix.mu.actors[id]
	if a == nil {
		a = &actor{}
		if n := len(ix.mu.unused); n > 0 {
			a.index = ix.mu.unused[n-1]
			ix.mu.unused = ix.mu.unused[:n-1]
		} else {
			a.index = ix.mu.next
			ix.mu.next++
		}
		ix.mu.actors[id] = a
	}
	return a
}

func tickAvatar(index uint32, b *nodemsg.Body, p sessionmsg.Place) sessionmsg.TickAvatar {
	return sessionmsg.TickAvatar{Index: index, Player: b.Player, Name: b.Name, Guest: b.Guest, Place: p}
}

func (ix *interestIndex) enter(at grid.ChunkPos, b *nodemsg.Body) sessionmsg.TickAvatar {
	a := ix.actor(b.Player)
	if a.bucket == nil || a.bucket.at != at {
		ix.changeBucket(a, nil)
		bkt := ix.mu.buckets[at]
		if bkt == nil {
			bkt = &bucket{at: at}
			ix.mu.buckets[at] = bkt
			ix.reassign(at)
		}
		a.place = sessionmsg.PlaceOf(at, b.Pose)
		ix.changeBucket(a, bkt)
	}
	a.name = b.Name
	ix.move(a, b.Pose)
	a.appear(ix.mu.tick)
	return tickAvatar(a.index, b, a.place)
}

func (ix *interestIndex) leave(at grid.ChunkPos, id player.ID, a *actor) {
	if a.bucket != nil && a.bucket.at == at {
		ix.changeBucket(a, nil)
	}
	switch a.chunks--; {
	case a.chunks <= 0:
		ix.changeBucket(a, nil)
		delete(ix.mu.actors, id)
		ix.noteDeparted(id, a.firstAwaited)
		ix.mu.unused = append(ix.mu.unused, a.index)
	case a.bucket == nil:
		ix.mu.lost = append(ix.mu.lost, id)
	}
}

// takeLost returns, once each, the players that subscriptions must send again: the chunk where they were has lost them, and
// another region, which has sent no update since, has them too.
func (ix *interestIndex) takeLost() []player.ID {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	lost := ix.mu.lost
	ix.mu.lost = nil
	return slices.DeleteFunc(lost, func(id player.ID) bool {
		a := ix.mu.actors[id]
		return a == nil || a.bucket != nil
	})
}

// move moves an avatar to a pose in its chunk.
func (ix *interestIndex) move(a *actor, pose motion.Pose) {
	bkt := a.bucket
	a.place, a.spot, a.lastUpdate = sessionmsg.PlaceOf(bkt.at, pose), finePosOf(bkt.at, pose), ix.mu.frames+1
	if bkt.moved = true; !bkt.awake {
		bkt.awake = true
		ix.mu.awake = append(ix.mu.awake, bkt)
	}
	if c := a.place.Cell(); c != a.cell {
		bkt.crossed = append(bkt.crossed, crossing{a, a.cell, a.predictions, a.valid})
		bkt.remove(a)
		a.cell = c
		bkt.add(a)
	}
}

// changeBucket moves an avatar from its bucket to another one; nil is none.
func (ix *interestIndex) changeBucket(a *actor, to *bucket) {
	if from := a.bucket; from != nil {
		from.remove(a)
		if from.actors--; from.costObservers > 0 {
			ix.mu.inCostBuckets--
		}
		if from.actors == 0 {
			delete(ix.mu.buckets, from.at)
			ix.reassign(from.at)
		}
	}
	a.bucket = to
	if to != nil {
		if to.actors++; to.costObservers > 0 {
			ix.mu.inCostBuckets++
		}
		a.cell = a.place.Cell()
		to.add(a)
	}
}

// addCostObservers adds to the number of observers that need the bucket's cost in every tier.
func (ix *interestIndex) addCostObservers(bkt *bucket, more int) {
	before := bkt.costObservers
	switch bkt.costObservers += more; {
	case before == 0:
		ix.mu.inCostBuckets += bkt.actors
	case bkt.costObservers == 0:
		ix.mu.inCostBuckets -= bkt.actors
	}
}
