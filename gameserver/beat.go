package gameserver

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
)

// The beat is the gateway's tick: it makes the motion of all avatars once, and lets every session in CBOR write one
// frame: what has become of its chunks since the last one, and the motion. It follows the region that most of its players are in,
// so that what that region tells waits for nothing; without such a region it beats by itself. Under another overlay than relay it
// follows the swarm's rounds.

const (
	// beatLate is how long after a beat the next one comes by itself.
	beatLate = region.TickEvery + region.TickEvery/5
	// beatEarly is how long after a beat the next one comes at the earliest. A region that calls before gets its beat
	// then: after a tick that was late the next one is soon, and were it left out, its sessions would miss a frame.
	beatEarly = region.TickEvery / 2
	// swarmLate is how long after a beat the next one comes by itself where the swarm calls. Its rounds are by the clock, so that one that
	// is late is followed by one that is not: a beat in between would have nothing to tell, and would keep the swarm's back.
	swarmLate = 2 * region.TickEvery
	// beatIdle is how long after a beat the next one comes by itself while nobody is here, not even an original client. Whoever comes
	// calls for one. Beats that follow the swarm's rounds come whoever is here.
	beatIdle = time.Second
)

// costTicks is over how many ticks the cost of motion is smoothed.
const costTicks = 60

// runBeat beats until ctx ends.
func (g *Gateway) runBeat(ctx context.Context) {
	late, early := beatLate, beatEarly
	if g.swarm.on() { // which calls once a round
		late, early = swarmLate, 0
	}
	timer := time.NewTimer(late)
	defer timer.Stop()
	started := time.Now()
	last := started
	var clock tickClock
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.called:
			if wait := early - time.Since(last); wait > 0 {
				timer.Reset(wait)
				continue
			}
		}
		ticks, wait := clock.count(time.Since(started))
		if wait > 0 {
			timer.Reset(wait)
			continue
		}
		last = time.Now()
		timer.Reset(late)
		if !g.beat(ticks) && !g.swarm.on() {
			timer.Reset(beatIdle)
		}
		g.metrics.beatSeconds.Observe(time.Since(last).Seconds())
	}
}

// tickClock counts ticks by the clock, whatever beats are late or left out: avatars go on by their pace meanwhile.
type tickClock struct{ ticks uint64 }

// count gives how many ticks a beat is after the one before it: the clock's, and at least one. If ticks have run ahead of the
// clock it gives how long to wait instead.
func (c *tickClock) count(since time.Duration) (ticks uint64, wait time.Duration) {
	now := uint64(since.Round(region.TickEvery) / region.TickEvery)
	if c.ticks > now {
		return 0, time.Duration(c.ticks)*region.TickEvery - region.TickEvery/2 - since
	}
	ticks = max(1, now-c.ticks)
	c.ticks += ticks
	return ticks, 0
}

// call asks for a beat now: the feed has the first that its region tells of a tick. Where gateways tell one another of movement the
// swarm calls, with their packets.
func (g *Gateway) call(f *feed) {
	if !g.swarm.on() && g.leader.Load() == f {
		wakeUp(g.called)
	}
}

// peopled asks for a beat because somebody has come: while nobody is here there are few.
func (g *Gateway) peopled() {
	if !g.swarm.on() {
		wakeUp(g.called)
	}
}

// beat is one beat, so many ticks after the one before. It tells whether anybody is here.
func (g *Gateway) beat(ticks uint64) (peopled bool) {
	g.mu.Lock()
	peopled = len(g.mu.sessions)+len(g.mu.classics) > 0
	g.onBeat = g.onBeat[:0]
	for _, s := range g.mu.sessions {
		if s.placed() && s.binary {
			g.onBeat = append(g.onBeat, s)
		}
	}
	for s := range g.mu.classics {
		if _, registered := s.presence(); registered {
			g.crowds[s.feed]++
		}
	}
	g.feedsOnBeat = slices.AppendSeq(g.feedsOnBeat[:0], maps.Values(g.mu.feeds))
	g.mu.Unlock()
	for _, f := range g.feedsOnBeat {
		f.beat(ticks)
	}
	clear(g.feedsOnBeat)
	if lost := g.stage.missing(); len(lost) > 0 {
		g.show(lost)
	}
	g.metrics.skipped.Add(float64(g.stage.beat(ticks, g.onBeat)))
	for _, s := range g.onBeat {
		g.post.deliver(s.out)
	}
	g.metrics.posted(&g.post)
	for _, s := range g.onBeat {
		g.crowds[s.home.Load()]++
	}
	g.leader.Store(largest(g.crowds))
	clear(g.crowds)
	clear(g.onBeat)
	return peopled
}

// show has the feeds tell anew of players whom viewers have lost sight of.
func (g *Gateway) show(lost []player.ID) {
	g.mu.Lock()
	feeds := slices.Collect(maps.Values(g.mu.feeds))
	g.mu.Unlock()
	for _, f := range feeds {
		f.show(lost)
	}
}

// beat is a look at the stage, so many ticks after the one before, for these sessions. It tells how many of them could
// not take it.
func (s *stage) beat(ticks uint64, sessions []*session) (skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(ticks)
	for _, viewer := range sessions {
		if s.show(viewer) {
			skipped++
		}
	}
	for k := range s.mu.extra {
		s.mu.extra[k].learn()
	}
	return skipped
}

func largest(crowds map[*feed]int) *feed {
	var f *feed
	for candidate, n := range crowds {
		if f == nil || n > crowds[f] {
			f = candidate
		}
	}
	return f
}

// look begins a tick, and makes the pieces of all cells in which something may have to be told. The lock is held.
func (s *stage) look(ticks uint64) {
	s.mu.tick += ticks
	s.mu.looks++
	s.forget()
	var bytes [grades]int
	s.mu.awake = slices.DeleteFunc(s.mu.awake, func(p *plot) bool {
		if p.awake = p.actors > 0 && p.look(moment{s.mu.tick, s.mu.looks}); p.awake && p.weighers > 0 {
			p.count(&bytes)
		}
		return !p.awake
	})
	if s.mu.weighed > 0 {
		for g := range bytes {
			s.mu.cost[g] += (float64(bytes[g])/float64(s.mu.weighed) - s.mu.cost[g]) / costTicks
		}
	}
	for point, v := range s.mu.vantages {
		if v.sessions == 0 {
			delete(s.mu.vantages, point)
			s.release(v)
			continue
		}
		s.compose(v)
	}
	for _, p := range s.mu.awake {
		clear(p.crossed)
		p.crossed = p.crossed[:0]
	}
}

// show hands a session its frame of the tick; skipped says that it could not take it. The lock is held.
func (s *stage) show(viewer *session) (skipped bool) {
	if viewer.offstage {
		return false
	}
	pose, view := viewer.where(), int(viewer.view.Load())
	old := viewer.vantage
	next := old
	if old == nil || !old.point.holds(pose, view) {
		next = s.vantage(vantagePointOf(pose, view), old)
		viewer.vantage = next
		next.sessions++
		if old != nil {
			old.sessions--
		}
	}
	viewer.alone.Store(next.alone)
	return viewer.out.beat(s.mu.tick, func(dst []byte, missed bool) []byte {
		switch {
		case missed || old == nil:
			return append(dst, s.all(next)...)
		case next != old:
			dst = append(dst, old.motion...)
			steady := len(dst)
			dst = shift(dst, old.lines, next.lines, s.mu.tick)
			if old.coarser == next.coarser { // else it is the price of a choice, paid once
				s.count(next, old.extra+len(dst)-steady)
			}
			return dst
		default:
			s.count(next, next.extra)
			return append(dst, next.motion...)
		}
	})
}

func (s *stage) count(v *vantage, extra int) {
	e := &s.mu.extra[v.coarser]
	e.bytes += extra
	e.sessions++
}

// vantage gives the vantage of a point. A new one begins with the rings of the one that its first session comes from: others would
// have to be told of. It gets coarser ones if those cost too much, and finer ones only if they are well within the budget.
func (s *stage) vantage(point vantagePoint, from *vantage) *vantage {
	v := s.mu.vantages[point]
	if v == nil {
		v = &vantage{point: point}
		if from != nil {
			v.coarser = from.coarser
		}
		s.mu.vantages[point] = v
		s.draw(v)
		v.tick = s.mu.tick
	}
	return v
}

// quit takes a session off the stage.
func (s *stage) quit(viewer *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	viewer.offstage = true
	if viewer.vantage != nil {
		viewer.vantage.sessions--
		viewer.vantage = nil
	}
}
