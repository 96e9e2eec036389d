package region

import (
	"context"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file is the part of the loop that deals with the other members: who leads, who is a member, and what happens to gateways
// that come while the leader is unknown. Everything here runs in the loop's goroutine.

func (l *loop) lead(d replica.Leadership) {
	l.leader, l.info.Leader, l.info.Term = d.Leader, d.Leader, d.Term
	was := l.leading
	l.leading, l.stalled = d.Self, d.Cause
	switch {
	case d.Self:
		if d.Term != l.term {
			l.queueAgain()
		}
		l.term, l.reportedLeader = d.Term, d.Leader
		if !was {
			l.metrics.leaderships.Inc()
			l.changed(l.info)
		}
		l.confirmAll()
	case d.Cause != nil:
		l.showFor(pendingTime) // members with working disks will have elected a leader by then
		l.logger.Warn("storage refuses writes, edits are refused", "region", l.info.ID, "error", d.Cause)
		l.waiting = slices.DeleteFunc(l.waiting, func(q queued) bool {
			if !q.inDoubt {
				l.refuse(q.Intent, wire.RefusedUnavailable)
			}
			return !q.inDoubt
		})
		if l.isOnlyMember() {
			l.confirmAll() // the land can at least be seen
		}
	case l.ledElsewhere():
		if l.reportedLeader != l.leader {
			l.reportedLeader = l.leader
			l.changed(l.info)
		}
		// The gateways find the new leader and send their unanswered edits again.
		for s := range l.subscribers {
			l.dismiss(s, "the region moved")
		}
		l.waiting, l.proposed, l.inFlight = nil, nil, 0
		clear(l.pending)
	case was:
		l.leadershipLost = time.Now()
		for s := range l.subscribers {
			if s.pendingSince.IsZero() { // until the leader is known: then they are dismissed with its name
				s.pendingSince = l.leadershipLost
				l.pendingSubscribers++
			}
		}
	}
}

// handOverPause is how long a node that has lost leadership waits before it stands for election itself.
const handOverPause = time.Second

func (l *loop) ledElsewhere() bool { return l.leader != "" && l.leader != l.self }

// readOnlyTime is how long a gateway stays subscribed to a member whose disk refuses writes. Such a member takes no part in its
// group and is not informed of a new leader. Afterwards the gateway looks for the other members again.
const readOnlyTime = 10 * time.Second

// showFor limits the subscriptions of all gateways here to a read-only period, if there are other members who may lead.
func (l *loop) showFor(d time.Duration) {
	if l.isOnlyMember() {
		return
	}
	for s := range l.subscribers {
		if s.pendingSince.IsZero() {
			s.readOnlyUntil = time.Now().Add(d)
		}
	}
}

// endReading dismisses the gateways whose read-only period is over.
func (l *loop) endReading() {
	for s := range l.subscribers {
		switch {
		case s.readOnlyUntil.IsZero():
		case l.leading:
			s.readOnlyUntil = time.Time{}
		case time.Now().After(s.readOnlyUntil):
			l.dismiss(s, "this node's disk refuses writes; look whether another one leads the region")
		}
	}
}

// subscribe handles a gateway that wants to subscribe.
//
// On the leader it is accepted once a majority confirms the leadership, since the land of a deposed leader may be old. If another
// member leads, it is dismissed. If no leader is known, it stays pending and this node stands for election. A node whose disk
// refuses writes can neither lead nor find out who does; it accepts only gateways that have already tried all other members.
func (l *loop) subscribe(s *subscriber) {
	switch {
	case l.leading && !l.isOnlyMember() && l.raft != nil:
		s.pendingSince = time.Now()
		l.pendingSubscribers++
		l.confirmLeadership(l, s)
	case l.leading, l.stalled != nil && l.isOnlyMember():
		l.confirm(s)
	case l.ledElsewhere():
		l.dismiss(s, "the region is led elsewhere")
	case l.stalled != nil && s.reading:
		s.readOnlyUntil = time.Now().Add(readOnlyTime)
		l.confirm(s)
	case l.stalled != nil:
		l.dismiss(s, "this node's disk refuses writes, and the region has no leader")
	default:
		s.pendingSince = time.Now()
		l.pendingSubscribers++
		l.group.Campaign()
	}
}

// confirm accepts a gateway as a subscriber and notifies it.
func (l *loop) confirm(s *subscriber) {
	if !s.pendingSince.IsZero() {
		s.pendingSince = time.Time{}
		l.pendingSubscribers--
	}
	s.out.Put(nodemsg.FromRegion{Tick: l.tick})
}

// confirmAll accepts all pending subscribers. A new leader may not have applied everything yet that was committed before.
func (l *loop) confirmAll() {
	for s := range l.subscribers {
		switch {
		case l.pendingSubscribers == 0:
			return
		case s.pendingSince.IsZero():
		case l.leading && !l.isOnlyMember() && l.raft != nil:
			l.confirmLeadership(l, s)
		default:
			l.confirm(s)
		}
	}
}

// leadershipChecked handles the result of confirmLeadership. After a failure either the new leader becomes known and pending
// subscribers are dismissed with its name, or this node still leads and the check is repeated.
func (l *loop) leadershipChecked(s *subscriber, err error) {
	_, subscribed := l.subscribers[s]
	switch {
	case !subscribed || s.pendingSince.IsZero():
	case !l.leading:
	case err != nil:
		l.confirmLeadership(l, s)
	default:
		l.deliver() // what was committed before the check
		if l.leading {
			l.confirm(s)
		}
	}
}

// awaitLeader keeps this node standing for election while subscribers are pending, and dismisses those that were pending for too
// long.
func (l *loop) awaitLeader() {
	if l.pendingSubscribers == 0 {
		return
	}
	if !l.leading && time.Since(l.leadershipLost) > handOverPause {
		l.group.Campaign()
	}
	for s := range l.subscribers {
		if !s.pendingSince.IsZero() && time.Since(s.pendingSince) > pendingTime {
			l.dismiss(s, "nobody leads the region")
		}
	}
}

// configured applies a new configuration of the group.
func (l *loop) configured(c replica.Configured) {
	l.applyMembers(c)
	if !l.member(l.self) {
		return // Removed follows, and then nothing of the region may be stored any more
	}
	l.changed(l.info)
	for _, m := range c.Members {
		if _, known := l.roster[m.Peer]; !known {
			l.resolveMember(l, m.Peer)
		}
	}
}

// applyMembers records the group's members.
func (l *loop) applyMembers(c replica.Configured) {
	l.members = c.Members
	l.info.Epoch = epochOf(c)
	l.updateMembers()
}

// updateMembers copies the group's members to the region, as far as their addresses are known. Learners are included: a member
// must be known before it can lead.
func (l *loop) updateMembers() {
	for _, m := range l.info.Members {
		l.roster[m.Peer] = m
	}
	members := make([]nodemsg.Member, 0, len(l.members))
	for _, m := range l.members {
		if known, ok := l.roster[m.Peer]; ok {
			known.Replica, known.Learner = m.ID, m.Learner
			members = append(members, known)
		}
	}
	if len(members) > 0 {
		l.info.Members = members
	}
}

// addMember records the address of a node that is or becomes a member.
func (l *loop) addMember(m nodemsg.Member) {
	before := len(l.info.Members)
	l.roster[m.Peer] = m
	l.updateMembers()
	if len(l.info.Members) != before {
		l.changed(l.info)
	}
}

// ask returns the region as the loop has it. Any goroutine may call it.
func (l *loop) ask(ctx context.Context) (nodemsg.Region, error) {
	answer := make(chan nodemsg.Region, 1)
	if !l.inbox.Put(func() { l.deliver(); answer <- l.info }) {
		return nodemsg.Region{}, ErrNotHere
	}
	select {
	case info := <-answer:
		return info, nil
	case <-l.done:
		return nodemsg.Region{}, ErrNotHere
	case <-ctx.Done():
		return nodemsg.Region{}, ctx.Err()
	}
}

// restored replaces the land after a snapshot was installed.
func (l *loop) restored(r replica.Restored) {
	l.applied, l.reported = r.Index, r.Index // unreported rows of the old land must not overwrite the new rows
	land, err := l.reload(l.info)
	if err != nil {
		l.logger.Error("region failed", "region", l.info.ID, "cell", l.info.Cell, "error", err)
		l.fail(err)
		return
	}
	l.land, l.look = land, nil
	l.pinned(basesOf(land.Pins()))
	clear(l.bases)
	l.logger.Debug("region restored", "region", l.info.ID, "index", r.Index, "edits", land.Edits())
}

// voters is the number of members with a vote.
func (l *loop) voters() int {
	n := 0
	for _, m := range l.members {
		if !m.Learner {
			n++
		}
	}
	return n
}
