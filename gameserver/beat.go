package gameserver

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
)

// The frame loop runs once per tick. It encodes the motion of all avatars once, and lets every CBOR session write one frame: the
// changes of its chunks since the previous frame, and the motion. Frames follow the region that most of the gateway's players are
// in, so that its updates are sent without delay; without such a region they follow a timer. Under an overlay other than relay
// they follow the rounds of p2p.

const (
	// beatLate is the time after a frame when the next one starts unless it was requested earlier.
	beatLate = region.TickEvery + region.TickEvery/5
	// beatEarly is the minimum time between two frames. A request that comes earlier is served when that time is over: after a
	// late tick the next one comes soon, and skipping it would cost the sessions a frame.
	beatEarly = region.TickEvery / 2
	// swarmLate replaces beatLate where p2p requests frames. Its rounds follow the clock, so a late round is followed by a
	// punctual one: a frame in between would have nothing to send, and would delay that of the next round.
	swarmLate = 2 * region.TickEvery
	// beatIdle is the time between frames while no client is connected. A client that connects requests a frame. Frames that
	// follow the rounds of p2p come in any case.
	beatIdle = time.Second
)

// costTicks is the number of ticks over which the cost of motion is smoothed.
const costTicks = 60

// runBeat runs the frame loop until ctx ends.
func (g *Gateway) runBeat(ctx context.Context) {
	late, early := beatLate, beatEarly
	if g.swarm.on() { // which requests one frame per round
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

// tickClock counts ticks by the clock, even if frames are late or skipped: clients move avatars on at their last velocity
// meanwhile.
type tickClock struct{ ticks uint64 }

// count returns the number of ticks since the previous frame, by the clock; it is at least one. If the count is ahead of the
// clock, it returns the time to wait instead.
func (c *tickClock) count(since time.Duration) (ticks uint64, wait time.Duration) {
	now := uint64(since.Round(region.TickEvery) / region.TickEvery)
	if c.ticks > now {
		return 0, time.Duration(c.ticks)*region.TickEvery - region.TickEvery/2 - since
	}
	ticks = max(1, now-c.ticks)
	c.ticks += ticks
	return ticks, 0
}

// call requests a frame now: the subscription has received the first update of a tick. Under an overlay other than relay this is
// left to p2p, which requests frames when packets arrive.
func (g *Gateway) call(f *feed) {
	if !g.swarm.on() && g.leader.Load() == f {
		wakeUp(g.called)
	}
}

// peopled requests a frame because a client has connected: frames are rare while there is none.
func (g *Gateway) peopled() {
	if !g.swarm.on() {
		wakeUp(g.called)
	}
}

// beat runs one frame, the given number of ticks after the previous one. It reports whether any client is connected.
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

// show makes the subscriptions send players again of whom subscribers have lost sight.
func (g *Gateway) show(lost []player.ID) {
	g.mu.Lock()
	feeds := slices.Collect(maps.Values(g.mu.feeds))
	g.mu.Unlock()
	for _, f := range feeds {
		f.show(lost)
	}
}

// beat updates the index, the given number of ticks after the previous frame, and queues a frame for each of these sessions. It
// returns the number of sessions that could not take one.
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

// look begins a tick, and encodes the pieces of all cells with updates. The lock is held.
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

// show queues the frame of the tick for a session; skipped reports that the session could not take it. The lock is held.
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
			if old.coarser == next.coarser { // otherwise it is the one-time cost of changing the profile
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

// vantage returns the observer at a point. A new observer starts with the LOD profile of the one that its first session comes
// from: a change of profile costs updates. It switches to a coarser profile if this one is over the budget, and to a finer one
// only if that is well within it.
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

// quit removes a session from the index.
func (s *stage) quit(viewer *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	viewer.offstage = true
	if viewer.vantage != nil {
		viewer.vantage.sessions--
		viewer.vantage = nil
	}
}
