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
	// frameLate is the time after a frame when the next one starts unless it was requested earlier.
	frameLate = region.TickEvery + region.TickEvery/5
	// frameEarly is the minimum time between two frames. A request that comes earlier is served when that time is over: after a
	// late tick the next one comes soon, and skipping it would cost the sessions a frame.
	frameEarly = region.TickEvery / 2
	// p2pLate replaces frameLate where p2p requests frames. Its rounds follow the clock, so a late round is followed by a
	// punctual one: a frame in between would have nothing to send, and would delay that of the next round.
	p2pLate = 2 * region.TickEvery
	// frameIdle is the time between frames while no client is connected. A client that connects requests a frame. Frames that
	// follow the rounds of p2p come in any case.
	frameIdle = time.Second
)

// costTicks is the number of ticks over which the cost of motion is smoothed.
const costTicks = 60

// runFrameLoop runs the frame loop until ctx ends.
func (g *Gateway) runFrameLoop(ctx context.Context) {
	late, early := frameLate, frameEarly
	if g.p2p.Enabled() { // which requests one frame per round
		late, early = p2pLate, 0
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
		case <-g.frameRequested:
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
		if !g.runFrame(ticks) && !g.p2p.Enabled() {
			timer.Reset(frameIdle)
		}
		g.metrics.frameSeconds.Observe(time.Since(last).Seconds())
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

// requestFrame requests a frame now: the subscription has received the first update of a tick. Under an overlay other than relay
// this is left to p2p, which requests frames when packets arrive.
func (g *Gateway) requestFrame(sub *subscription) {
	if !g.p2p.Enabled() && g.frameLeader.Load() == sub {
		wakeUp(g.frameRequested)
	}
}

// wakeFrameLoop requests a frame because a client has connected: frames are rare while there is none.
func (g *Gateway) wakeFrameLoop() {
	if !g.p2p.Enabled() {
		wakeUp(g.frameRequested)
	}
}

// runFrame runs one frame, the given number of ticks after the previous one. It reports whether any client is connected.
func (g *Gateway) runFrame(ticks uint64) (clientsHere bool) {
	g.mu.Lock()
	clientsHere = len(g.mu.sessions)+len(g.mu.legacyConns) > 0
	g.frameSessions = g.frameSessions[:0]
	for _, s := range g.mu.sessions {
		if s.placed() && s.binary {
			g.frameSessions = append(g.frameSessions, s)
		}
	}
	for lc := range g.mu.legacyConns {
		if _, registered := lc.presence(); registered {
			g.frameCrowds[lc.sub]++
		}
	}
	g.frameSubs = slices.AppendSeq(g.frameSubs[:0], maps.Values(g.mu.subs))
	g.mu.Unlock()
	for _, sub := range g.frameSubs {
		sub.advance(ticks)
	}
	clear(g.frameSubs)
	if lost := g.interest.takeLost(); len(lost) > 0 {
		g.republish(lost)
	}
	g.metrics.skipped.Add(float64(g.interest.buildFrames(ticks, g.frameSessions)))
	for _, s := range g.frameSessions {
		g.frameWriter.deliver(s.out)
	}
	g.metrics.posted(&g.frameWriter)
	for _, s := range g.frameSessions {
		g.frameCrowds[s.bodySubShared.Load()]++
	}
	g.frameLeader.Store(largest(g.frameCrowds))
	clear(g.frameCrowds)
	clear(g.frameSessions)
	return clientsHere
}

// republish makes the subscriptions send players again of whom subscribers have lost sight.
func (g *Gateway) republish(lost []player.ID) {
	g.mu.Lock()
	subs := slices.Collect(maps.Values(g.mu.subs))
	g.mu.Unlock()
	for _, sub := range subs {
		sub.republish(lost)
	}
}

// buildFrames updates the index, the given number of ticks after the previous frame, and queues a frame for each of these
// sessions. It returns the number of sessions that could not take one.
func (ix *interestIndex) buildFrames(ticks uint64, sessions []*session) (skipped int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.beginTick(ticks)
	for _, sess := range sessions {
		if ix.buildFrame(sess) {
			skipped++
		}
	}
	for k := range ix.mu.extra {
		ix.mu.extra[k].smooth()
	}
	return skipped
}

func largest(playersIn map[*subscription]int) *subscription {
	var sub *subscription
	for candidate, n := range playersIn {
		if sub == nil || n > playersIn[sub] {
			sub = candidate
		}
	}
	return sub
}

// beginTick begins a tick, and encodes the pieces of all cells with updates. The lock is held.
func (ix *interestIndex) beginTick(ticks uint64) {
	ix.mu.tick += ticks
	ix.mu.frames++
	ix.dropDeparted()
	var bytes [tiers]int
	ix.mu.awake = slices.DeleteFunc(ix.mu.awake, func(bkt *bucket) bool {
		if bkt.awake = bkt.actors > 0 && bkt.encode(frameTime{ix.mu.tick, ix.mu.frames}); bkt.awake && bkt.costObservers > 0 {
			bkt.count(&bytes)
		}
		return !bkt.awake
	})
	if ix.mu.inCostBuckets > 0 {
		for g := range bytes {
			ix.mu.cost[g] += (float64(bytes[g])/float64(ix.mu.inCostBuckets) - ix.mu.cost[g]) / costTicks
		}
	}
	for point, obs := range ix.mu.observers {
		if obs.sessions == 0 {
			delete(ix.mu.observers, point)
			ix.release(obs)
			continue
		}
		ix.compose(obs)
	}
	for _, bkt := range ix.mu.awake {
		clear(bkt.crossed)
		bkt.crossed = bkt.crossed[:0]
	}
}

// buildFrame queues the frame of the tick for a session; skipped reports that the session could not take it. The lock is held.
func (ix *interestIndex) buildFrame(sess *session) (skipped bool) {
	if sess.removed {
		return false
	}
	pose, view := sess.currentPose(), int(sess.view.Load())
	old := sess.observer
	next := old
	if old == nil || !old.point.holds(pose, view) {
		next = ix.observer(observerPointOf(pose, view), old)
		sess.observer = next
		next.sessions++
		if old != nil {
			old.sessions--
		}
	}
	sess.alone.Store(next.alone)
	return sess.out.putMotion(ix.mu.tick, func(dst []byte, missed bool) []byte {
		switch {
		case missed || old == nil:
			return append(dst, ix.fullState(next)...)
		case next != old:
			dst = append(dst, old.motion...)
			steady := len(dst)
			dst = shift(dst, old.views, next.views, ix.mu.tick)
			if old.profile == next.profile { // otherwise it is the one-time cost of changing the profile
				ix.count(next, old.extra+len(dst)-steady)
			}
			return dst
		default:
			ix.count(next, next.extra)
			return append(dst, next.motion...)
		}
	})
}

func (ix *interestIndex) count(obs *observer, extra int) {
	e := &ix.mu.extra[obs.profile]
	e.bytes += extra
	e.sessions++
}

// observer returns the observer at a point. A new observer starts with the LOD profile of the one that its first session comes
// from: a change of profile costs updates. It switches to a coarser profile if this one is over the budget, and to a finer one
// only if that is well within it.
func (ix *interestIndex) observer(point observerPoint, from *observer) *observer {
	obs := ix.mu.observers[point]
	if obs == nil {
		obs = &observer{point: point}
		if from != nil {
			obs.profile = from.profile
		}
		ix.mu.observers[point] = obs
		ix.assignTiers(obs)
		obs.tick = ix.mu.tick
	}
	return obs
}

// remove removes a session from the index.
func (ix *interestIndex) remove(sess *session) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	sess.removed = true
	if sess.observer != nil {
		sess.observer.sessions--
		sess.observer = nil
	}
}
