package gameserver

import (
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// stage is the index of all avatars in view of CBOR sessions here: each has a number, and is in a cell of a chunk. Subscriptions
// apply their regions' updates to it, and the frame loop encodes the motion from it once a tick.
type stage struct {
	budget  int      // maximum bytes a second of a session's motion, as far as LOD profiles can keep it
	found   []*plot  // scratch, guarded as mu is: buckets in view, in order
	nearest []uint64 // likewise: cells in view, the nearest first, as blocks<<32 | line<<lineShift | cell

	mu struct {
		sync.Mutex
		tick     uint64 // of the newest frame, by the clock
		looks    uint64 // frames
		actors   map[player.ID]*actor
		gone     map[player.ID]parting // players who went out of sight recently
		lost     []player.ID           // they left the chunk where they were, and are still in view in another one
		unused   []uint32              // indices below next that are free
		next     uint32
		plots    map[grid.ChunkPos]*plot // those with avatars
		awake    []*plot                 // those that need checking, and some that have no avatars any more
		weighed  int                     // avatars in buckets with weighers
		vantages map[vantagePoint]*vantage
		cost     [grades]float64 // bytes a tick of an avatar in each tier, smoothed; of buckets with weighers
		extra    [len(coarseness)]surplus
	}
}

// surplus is the cost of updates besides the pieces of cells, for sessions with one profile: of avatars whose tier changes.
type surplus struct {
	each            float64 // bytes a tick, smoothed; decays slowly to usualSurplus while no session has the profile
	bytes, sessions int     // in this tick
}

const usualSurplus = 40

func (s *surplus) learn() {
	if s.sessions > 0 {
		s.each += (float64(s.bytes)/float64(s.sessions) - s.each) / costTicks
	} else {
		s.each += (usualSurplus - s.each) / (20 * costTicks)
	}
	s.bytes, s.sessions = 0, 0
}

func newStage(budget int) *stage {
	s := &stage{budget: budget}
	s.mu.actors = make(map[player.ID]*actor)
	s.mu.gone = make(map[player.ID]parting)
	s.mu.plots = make(map[grid.ChunkPos]*plot)
	s.mu.cost = [grades]float64{exact: 2.4, tight: 1, near: .8, fair: .6, loose: .55, far: .5, distant: .2} // initial values
	for k := range s.mu.extra {
		s.mu.extra[k].each = usualSurplus
	}
	s.mu.vantages = make(map[vantagePoint]*vantage)
	return s
}

// take applies the delta of a chunk, and returns it as CBOR sessions get it, without motion and chat; nil if nothing is left.
// Moved are those of Moves who are in the chunk. The subscription's lock is held too.
func (s *stage) take(b *bulletin, moved []*occupant) *wire.TickNews {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &b.ChunkNews
	for _, o := range moved {
		if a := o.actor; a != nil && a.plot != nil && a.plot.at == n.Chunk {
			s.move(a, o.Pose)
		}
	}
	if len(n.Enter)+len(n.Leave)+len(n.Blocks) == 0 {
		return nil
	}
	news := &wire.TickNews{Chunk: n.Chunk, Blocks: n.Blocks}
	for i := range b.came {
		a := s.actor(b.came[i].Player)
		if a.chunks == 0 {
			a.met = s.meet(&b.came[i])
		}
		a.chunks++
		if o := b.view.bodies.of(b.came[i].Player); o != nil { // otherwise they entered and left in one frame
			o.actor = a
		}
	}
	for i := range n.Enter {
		news.Enter = append(news.Enter, s.enter(n.Chunk, &n.Enter[i]))
	}
	for i := range b.left {
		if a := s.mu.actors[b.left[i].Player]; a != nil {
			news.Leave = append(news.Leave, a.index)
			s.leave(n.Chunk, b.left[i].Player, a)
		}
	}
	return news
}

// present returns those of a chunk's bodies that are still there, as far as any region has sent. Others have entered another
// chunk, whose region sent that first: a client that was sent them here would remove them when they leave here.
func (s *stage) present(at grid.ChunkPos, bodies []wire.Body) []wire.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(bodies, func(b wire.Body) bool {
		a := s.mu.actors[b.Player]
		return a != nil && a.elsewhere(at)
	})
}

// roll returns all bodies that are present in a chunk.
func (s *stage) roll(at grid.ChunkPos, bodies occupants) *wire.TickNews {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := &wire.TickNews{Chunk: at, Enter: make([]wire.TickAvatar, 0, len(bodies))}
	for i := range bodies {
		if o := &bodies[i]; o.actor != nil && !o.actor.elsewhere(at) {
			news.Enter = append(news.Enter, tickAvatar(o.actor.index, &o.Body, wire.PlaceOf(at, o.Pose)))
		}
	}
	return news
}

// clear removes all bodies of a chunk that is no longer in view.
func (s *stage) clear(at grid.ChunkPos, bodies occupants) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range bodies {
		if o := &bodies[i]; o.actor != nil {
			s.leave(at, o.Player, o.actor)
		}
	}
}

// actor returns a player's actor, and creates it if necessary. The lock is held, here and below.
func (s *stage) actor(id player.ID) *actor {
	a := s.mu.actors[id]
	if a == nil {
		a = &actor{}
		if n := len(s.mu.unused); n > 0 {
			a.index = s.mu.unused[n-1]
			s.mu.unused = s.mu.unused[:n-1]
		} else {
			a.index = s.mu.next
			s.mu.next++
		}
		s.mu.actors[id] = a
	}
	return a
}

func tickAvatar(index uint32, b *wire.Body, p wire.Place) wire.TickAvatar {
	return wire.TickAvatar{Index: index, Player: b.Player, Name: b.Name, Guest: b.Guest, Place: p}
}

func (s *stage) enter(at grid.ChunkPos, b *wire.Body) wire.TickAvatar {
	a := s.actor(b.Player)
	if a.plot == nil || a.plot.at != at {
		s.step(a, nil)
		p := s.mu.plots[at]
		if p == nil {
			p = &plot{at: at}
			s.mu.plots[at] = p
			s.unsettle(at)
		}
		a.place = wire.PlaceOf(at, b.Pose)
		s.step(a, p)
	}
	a.name = b.Name
	s.move(a, b.Pose)
	a.appear(s.mu.tick)
	return tickAvatar(a.index, b, a.place)
}

func (s *stage) leave(at grid.ChunkPos, id player.ID, a *actor) {
	if a.plot != nil && a.plot.at == at {
		s.step(a, nil)
	}
	switch a.chunks--; {
	case a.chunks <= 0:
		s.step(a, nil)
		delete(s.mu.actors, id)
		s.part(id, a.met)
		s.mu.unused = append(s.mu.unused, a.index)
	case a.plot == nil:
		s.mu.lost = append(s.mu.lost, id)
	}
}

// missing returns, once each, the players that subscriptions must send again: the chunk where they were has lost them, and
// another region, which has sent no update since, has them too.
func (s *stage) missing() []player.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.mu.lost
	s.mu.lost = nil
	return slices.DeleteFunc(lost, func(id player.ID) bool {
		a := s.mu.actors[id]
		return a == nil || a.plot != nil
	})
}

// move moves an avatar to a pose in its chunk.
func (s *stage) move(a *actor, pose wire.Pose) {
	p := a.plot
	a.place, a.spot, a.heard = wire.PlaceOf(p.at, pose), spotOf(p.at, pose), s.mu.looks+1
	if p.moved = true; !p.awake {
		p.awake = true
		s.mu.awake = append(s.mu.awake, p)
	}
	if c := a.place.Cell(); c != a.cell {
		p.crossed = append(p.crossed, crossing{a, a.cell, a.tracks, a.kept})
		p.remove(a)
		a.cell = c
		p.add(a)
	}
}

// step moves an avatar from its bucket to another one; nil is none.
func (s *stage) step(a *actor, to *plot) {
	if from := a.plot; from != nil {
		from.remove(a)
		if from.actors--; from.weighers > 0 {
			s.mu.weighed--
		}
		if from.actors == 0 {
			delete(s.mu.plots, from.at)
			s.unsettle(from.at)
		}
	}
	a.plot = to
	if to != nil {
		if to.actors++; to.weighers > 0 {
			s.mu.weighed++
		}
		a.cell = a.place.Cell()
		to.add(a)
	}
}

// weigh adds to the number of observers that need the bucket's cost in every tier.
func (s *stage) weigh(p *plot, more int) {
	before := p.weighers
	switch p.weighers += more; {
	case before == 0:
		s.mu.weighed += p.actors
	case p.weighers == 0:
		s.mu.weighed -= p.actors
	}
}
