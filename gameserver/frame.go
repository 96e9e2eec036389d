package gameserver

import (
	"context"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/region"
)

// The frame loop runs once per tick. It encodes the motion of all avatars once, and lets every CBOR session write one
// frame: the changes of its chunks since the previous frame, and the motion. Frames follow the region that most of the
// gateway's players are in, so that its updates are sent without delay; without such a region they follow a timer.
// Under an overlay other than relay they follow the rounds of p2p.

const (
	// frameLate is the time after a frame when the next one starts unless it was requested earlier.
	frameLate = region.TickEvery + region.TickEvery/5
	// frameEarly is the minimum time between two frames. A request that comes earlier is served when that time is over:
	// after a late tick the next one comes soon, and skipping it would cost the sessions a frame.
	frameEarly = region.TickEvery / 2
	// p2pLate replaces frameLate where p2p requests frames. Its rounds follow the clock, so a late round is followed by
	// a punctual one: a frame in between would have nothing to send, and would delay that of the next round.
	p2pLate = 2 * region.TickEvery
	// frameIdle is the time between frames while no client is connected. A client that connects requests a frame.
	// Frames that follow the rounds of p2p come in any case.
	frameIdle = time.Second
)

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
		case <-g.frames.requested:
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

// tickClock counts ticks by the clock, even if frames are late or skipped: clients move avatars on at their last
// velocity meanwhile.
type tickClock struct{ ticks uint64 }

// count returns the number of ticks since the previous frame, by the clock; it is at least one. If the count is ahead
// of the clock, it returns the time to wait instead.
func (c *tickClock) count(since time.Duration) (ticks uint64, wait time.Duration) {
	now := uint64(since.Round(region.TickEvery) / region.TickEvery)
	if c.ticks > now {
		return 0, time.Duration(c.ticks)*region.TickEvery - region.TickEvery/2 - since
	}
	ticks = max(1, now-c.ticks)
	c.ticks += ticks
	return ticks, 0
}

// runFrame runs one frame, the given number of ticks after the previous one. It reports whether any client is
// connected.
func (g *Gateway) runFrame(ticks uint64) (clientsHere bool) {
	clientsHere = g.legacy.CountPlayers(g.frames.crowds)
	g.frames.sessions = g.sessions.Append(g.frames.sessions[:0])
	clientsHere = clientsHere || len(g.frames.sessions) > 0
	g.frames.sessions = slices.DeleteFunc(g.frames.sessions, func(s *session) bool { return !s.place.taken() || !s.codec.HasTickFrames() })
	g.mirror.Advance(ticks)
	if lost := g.interest.takeLost(); len(lost) > 0 {
		g.mirror.Republish(lost)
	}
	g.metrics.skipped.Add(float64(g.buildFrames(ticks, g.frames.sessions)))
	for _, s := range g.frames.sessions {
		g.frames.writer.Deliver(s.out)
	}
	g.metrics.posted(&g.frames.writer)
	for _, s := range g.frames.sessions {
		g.frames.crowds[s.bodySubShared.Load()]++
	}
	g.frames.leader.Store(largest(g.frames.crowds))
	clear(g.frames.crowds)
	clear(g.frames.sessions)
	return clientsHere
}

func largest(playersIn map[*mirror.Subscription]int) *mirror.Subscription {
	var sub *mirror.Subscription
	for candidate, n := range playersIn {
		if sub == nil || n > playersIn[sub] {
			sub = candidate
		}
	}
	return sub
}

// buildFrames begins a tick, the given number of ticks after the previous one, and queues a frame for each of these
// sessions. It returns the number of sessions that could not take one.
func (g *Gateway) buildFrames(ticks uint64, sessions []*session) (skipped int) {
	index := g.interest
	index.mu.Lock()
	defer index.mu.Unlock()
	index.ix.BeginTick(ticks)
	for _, s := range sessions {
		frame, ok := index.ix.Frame(&s.interestView, s.place.pose(), int(s.view.chunks.Load()))
		if !ok {
			continue
		}
		s.alone.Store(frame.Alone)
		if s.out.PutMotion(index.ix.Tick(), frame.Append) {
			skipped++
		}
	}
	index.ix.EndTick()
	return skipped
}
