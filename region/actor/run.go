package actor

import (
	"context"
	"hash/crc32"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
)

// TickEvery is the length of a tick: 20 ticks a second (VoxelPopuli §3.2.3).
const TickEvery = motion.TickEvery

// Run runs ticks until no gateway watches the region any more, the group fails, or ctx ends.
func (l *Land) Run(ctx context.Context) Ended {
	ended := l.land.run(ctx, l.land.loop)
	ended.Hibernated = l.land.hibernated
	return ended
}

func (l *land) loop(ctx context.Context) {
	var every time.Duration
	var due time.Time // the next tick
	phase := phaseOf(l.Self.Peer)
	timer := time.NewTimer(restEvery)
	defer timer.Stop()
	defer l.edits.gatherTimer.Stop()
	for {
		if interval := l.tickInterval(); interval != every {
			every = interval
			due = nextTick(phase, time.Now(), every)
			timer.Reset(time.Until(due))
		}
		select {
		case <-ctx.Done():
			l.core.end("the node is stopping")
			return
		case <-l.group.Ready():
			// Answer waiting gateways now, not at the next tick.
			l.budget.run(l.handleCommits)
			if l.failure == nil && !l.removed {
				continue
			}
		case <-l.mailbox.Wake():
			if every == restEvery { // no gateway waits for a tick then
				l.step()
				break
			}
			l.budget.run(l.handleInbox)
			continue
		case <-l.edits.gatherTimer.C:
			l.edits.gathering = false
			l.edits.propose()
			continue
		case <-timer.C:
			start := time.Now()
			late := start.Sub(due)
			if every == TickEvery {
				l.Metrics.lateness.Observe(max(0, late.Seconds()))
			}
			if late > every {
				l.Metrics.lateTicks.Inc()
			}
			due = nextTick(phase, start, every)
			timer.Reset(due.Sub(start))
			l.Metrics.tickSeconds.Observe(l.runTick(start).Seconds())
		}
		if l.fault != nil {
			return // isolated: the host does the rest
		}
		if why := l.endNow(); why != "" {
			l.core.end(why)
			return
		}
	}
}

// handleCommits applies what the group has committed between two ticks, and publishes it.
func (l *land) handleCommits() {
	l.deliver()
	l.edits.proposeTogether()
	l.hub.publishEarly()
}

// handleInbox applies what others send between two ticks, and answers.
func (l *land) handleInbox() {
	l.handleInputs()
	l.edits.proposeTogether()
	l.hub.publishEarly()
}

// handleInputs runs the closures that the links and the host have queued.
func (l *land) handleInputs() {
	l.runInbox()
	if l.Probe != nil {
		l.Probe(Tx{l}, nil)
	}
}

// runTick runs a tick that is due, and returns how long it took. A region that is led here and exceeds its budget is
// isolated if another member can lead it. Otherwise it continues: slow land is better than none.
func (l *land) runTick(now time.Time) time.Duration {
	if !l.leading || l.tickInterval() != TickEvery {
		l.budget.rest()
		l.step()
		return time.Since(now)
	}
	took, blown := l.budget.tick(l.step, now)
	if blown == nil {
		return took
	}
	if l.isOnlyMember() || !l.hasSubstitute() {
		l.Logger.Warn("region is slow and no other member can lead it", "region", l.info.ID, "cell", l.info.Cell.String(), "error", blown)
		return took
	}
	l.fault = &Fault{Kind: Slow, Cause: blown}
	return took
}

// phaseOf returns how long before the multiples of restEvery the ticks of all regions of a node fall: together, so that
// it wakes once for them. Those of other nodes, which may be on the same machine, fall at another time.
func phaseOf(node string) time.Duration {
	return time.Duration(crc32.ChecksumIEEE([]byte(node))) % restEvery
}

// nextTick returns when the next tick is due, with the phase of the node.
func nextTick(phase time.Duration, now time.Time, every time.Duration) time.Time {
	shifted := now.Add(phase)
	wait := every - shifted.Sub(shifted.Truncate(every))
	if wait < time.Millisecond { // the clock differs a little from the timer's
		wait += every
	}
	return now.Add(wait)
}

// tickInterval returns the current length of the region's ticks.
func (l *land) tickInterval() time.Duration {
	if l.leading && (l.idle <= idleTicks || !l.unloadable()) || l.isOnlyMember() {
		return TickEvery
	}
	return restEvery
}

// endNow returns why the region must end now, or "".
func (l *land) endNow() string {
	l.hibernating = l.hibernating && l.hub.len() == 0
	why := l.endReason()
	switch {
	case why != "":
		return why
	case l.hibernating && l.mailbox.CloseIfEmpty():
		l.hibernated = true
		return "the region sleeps"
	case l.isOnlyMember() && l.idle > idleTicks && l.unloadable() && !l.StayAwake(l.info.ID) && l.mailbox.CloseIfEmpty():
		return "no gateway watches it"
	default:
		return ""
	}
}

// step is one tick.
func (l *land) step() {
	clock := l.Metrics.startTick()
	l.hub.nextTick()
	l.contents.crowd.Tick()
	l.handleInputs()
	clock.end(phaseInput)
	l.deliver()
	clock.end(phaseApply)
	l.inspection.continueReport(l.hub.len() > 0)
	if l.applied-l.reported < busyEntries || l.hub.tick%busyTicks == 0 {
		l.report()
	}
	clock.end(phaseStore)
	if structure := l.contents.land.Structure(); l.leading && structure.Edited && !structure.RefusesEdits() {
		l.marks.arrived(l)
		l.mods.grant()
	}
	l.mods.tick()
	l.edits.bulkDue = true
	l.edits.propose()
	clock.end(phasePropose)
	l.hub.publish()
	clock.end(phasePublish)
	l.awaitLeader()
	l.splitter.tick()
	l.leaveToOthers()
	l.hub.endReading(l.leading && !l.hung())
	l.idle++
	if l.hub.len() > 0 {
		l.idle = 0
	}
	if l.canHibernate() {
		l.Hibernate(l.handle)
	}
}

// hibernateEvery is the number of idle ticks between two attempts to hibernate.
const hibernateEvery = 20

// canHibernate reports whether the region, which this node leads, has been idle for long enough to hibernate.
func (l *land) canHibernate() bool {
	return l.leading && !l.isOnlyMember() && l.unloadable() && l.idle > idleTicks && (l.idle-idleTicks)%hibernateEvery == 1 && !l.StayAwake(l.info.ID)
}
