package actor

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
)

// confirmTime bounds one leadership check with the other members; confirmPause is the pause after a failed check. Raft
// asks the members again at each heartbeat, so that asking anew would only lose an answer that waits for a slow disk.
const (
	confirmTime  = PendingTime
	confirmPause = 100 * time.Millisecond
)

func (l *land) lead(d replica.Leadership, was bool) {
	if l.hub.elsewhere, l.edits.leading = "", d.Self; l.ledElsewhere() {
		l.hub.elsewhere = d.Leader
	}
	if !d.Self {
		l.splitter.lostLeadership()
	}
	switch {
	case d.Self:
		if d.Term != l.edits.term {
			l.edits.queueAgain()
			l.mods.reset()
		}
		l.edits.term, l.reportedLeader = d.Term, d.Leader
		if !was {
			l.Metrics.leaderships.Inc()
			l.Changed(l.info)
		}
		l.confirmAll()
	case d.Cause != nil:
		l.unconfirmedSince = time.Now()
		if !l.isOnlyMember() {
			l.hub.showFor(PendingTime) // members with working disks will have elected a leader by then
		}
		l.Logger.Warn("storage refuses writes, edits are refused", "region", l.info.ID, "error", d.Cause)
		l.edits.refuseWaiting(wire.RefusedUnavailable)
		if l.isOnlyMember() {
			l.confirmAll() // the land can at least be seen
		}
	case l.ledElsewhere():
		if l.reportedLeader != l.leader {
			l.reportedLeader = l.leader
			l.Changed(l.info)
		}
		// The gateways find the new leader and send their unanswered edits again.
		l.hub.dismissAll("the region moved")
		l.edits.clear()
	case was:
		l.leadershipLost = time.Now()
		l.hub.waitAll() // until the leader is known: then they are dismissed with its name
	}
}

func (l *land) membersChanged() {}

// handOverPause is how long a node that has lost leadership waits before it stands for election itself.
const handOverPause = time.Second

// readOnlyTime is how long a gateway stays subscribed to a member whose disk refuses writes. Such a member takes no
// part in its group and is not informed of a new leader. Afterwards the gateway looks for the other members again.
const readOnlyTime = 10 * time.Second

// dismissAfter is for how long the disk has not answered when the gateways of a leader are dismissed. By then the
// others have noticed. Sooner, those of a disk that is only slow would leave, find no other leader, and wait until this
// one accepts them again. Gateways with unanswered edits ask for the leader by themselves.
const dismissAfter = 2 * replica.HungAfter

// hungReason is why gateways are dismissed while the disk does not answer.
const hungReason = "this node's disk does not answer"

// leaveToOthers dismisses the gateways after the disk has not answered for dismissAfter: the other members have elected
// a leader, and this node does not learn of it. Gateways that have found no other leader may read.
func (l *land) leaveToOthers() {
	hung := l.leading && l.hung()
	if hung && l.unconfirmedSince.IsZero() {
		l.unconfirmedSince = time.Now().Add(-replica.HungAfter)
	} else if !hung && l.stalled == nil {
		l.unconfirmedSince = time.Time{}
	}
	if hung && time.Since(l.unconfirmedSince) > dismissAfter {
		l.hub.dismissWriters(hungReason)
	}
}

// subscribe handles a gateway that wants to subscribe.
//
// On the leader it is accepted once a majority confirms the leadership, since the land of a deposed leader may be old.
// If another member leads, it is dismissed. If no leader is known, it stays pending and this node stands for election.
// A node whose disk refuses writes can neither lead nor find out who does; it accepts only gateways that have already
// tried all other members.
//
// If the region is split, every member sends it to the children. (A member that has not applied yet that they were
// merged again is found out when the children are not found.)
func (l *land) subscribe(s *subscriber) {
	switch {
	case l.hub.split != 0:
		l.hub.dismiss(s, splitReason)
	case l.contents.land.Structure().Vacated != 0:
		l.hub.dismiss(s, vacatedReason)
	case l.edits.frozen: // it may be over, and the land elsewhere; those who are subscribed already learn what comes of it
		l.hub.dismiss(s, "the region is being merged")
	case l.leading && l.hung() && s.reading:
		l.hub.confirmReadOnly(s, readOnlyTime)
	case l.leading && l.hung():
		l.hub.dismiss(s, hungReason)
	case l.leading && !l.isOnlyMember() && l.raft != nil:
		l.hub.wait(s)
		l.confirmLeadership(s, 0)
	case l.leading, l.stalled != nil && l.isOnlyMember():
		l.hub.confirm(s)
	case l.ledElsewhere():
		l.hub.elsewhere = l.leader
		l.hub.dismiss(s, "the region is led elsewhere")
	case l.stalled != nil && s.reading:
		l.hub.confirmReadOnly(s, readOnlyTime)
	case l.stalled != nil:
		l.hub.dismiss(s, "this node's disk refuses writes, and the region has no leader")
	default:
		l.hub.wait(s)
		l.group.Campaign()
	}
}

// confirmAll accepts all pending subscribers. A new leader may not have applied everything yet that was committed
// before.
func (l *land) confirmAll() {
	for _, s := range l.hub.pendingSubscribers() {
		if l.leading && !l.isOnlyMember() && l.raft != nil {
			l.confirmLeadership(s, 0)
		} else {
			l.hub.confirm(s)
		}
	}
}

// leadershipChecked handles the result of confirmLeadership. After a failure either the new leader becomes known and
// pending subscribers are dismissed with its name, or this node still leads and the check is repeated.
func (l *land) leadershipChecked(s *subscriber, err error) {
	switch {
	case !l.hub.attached(s) || !s.pending():
	case !l.leading:
	case err != nil:
		l.confirmLeadership(s, confirmPause)
	default:
		l.deliver()                 // what was committed before the check
		if l.leading && !l.paused { // while a split is being stored here, the children may serve elsewhere: then it is dismissed
			l.hub.confirm(s)
		}
	}
}

// awaitLeader keeps this node standing for election while subscribers are pending, and dismisses those that were
// pending for too long.
func (l *land) awaitLeader() {
	if len(l.hub.pendingSubscribers()) == 0 {
		return
	}
	if !l.leading && time.Since(l.leadershipLost) > handOverPause {
		l.group.Campaign()
	}
	l.hub.endPending(PendingTime, "nobody leads the region")
}

// confirm answers a gateway that asks whether the land that it is shown is the newest: a majority must confirm after
// the question that this node leads. While it does not, the region asks again, until the gateway is dismissed.
func (l *land) confirm(s *subscriber, question uint64) {
	switch {
	case l.isOnlyMember() || l.raft == nil:
		s.answer(question, time.Time{})
	case s.readOnly() && !l.unconfirmedSince.IsZero():
		s.answer(question, l.lastConfirmed())
	case s.Ask(question):
		l.askMajority(s, 0)
	}
}

// lastConfirmed returns the time of the world since which the disk does not work.
func (l *land) lastConfirmed() time.Time { return l.Now().Add(-time.Since(l.unconfirmedSince)) }

// askMajority answers the newest question of a subscriber once a majority has confirmed that this node leads.
func (l *land) askMajority(s *subscriber, pause time.Duration) {
	question := s.asked
	l.checkLeadership(pause, func(err error) {
		l.deliver() // what was committed before the check
		again, pause := false, time.Duration(0)
		switch {
		case !l.hub.attached(s):
		case s.readOnly() && !l.unconfirmedSince.IsZero():
			again = s.answer(question, l.lastConfirmed())
		case err != nil, !l.leading, l.paused: // while a split is being stored here, the children may serve elsewhere: then it is dismissed
			again, pause = true, confirmPause
		default:
			again = s.answer(question, time.Time{})
		}
		if again {
			l.askMajority(s, pause)
		}
	})
}

// confirmLeadership asks the region's group whether this node still leads it, on behalf of a pending subscriber.
func (l *land) confirmLeadership(s *subscriber, pause time.Duration) {
	l.checkLeadership(pause, func(err error) { l.leadershipChecked(s, err) })
}

// checkLeadership asks the region's group, after a pause, whether this node still leads it, and then has checked called
// in the region's goroutine.
func (l *land) checkLeadership(pause time.Duration, checked func(error)) {
	handle := l.handle
	l.Start(func(ctx context.Context) {
		if pause > 0 {
			select {
			case <-ctx.Done():
				return
			case <-handle.done:
				return
			case <-time.After(pause):
			}
		}
		asking, cancel := context.WithTimeout(ctx, confirmTime)
		defer cancel()
		_, err := handle.raft.ReadIndex(asking)
		handle.enqueue(func(*land) { checked(err) })
	})
}
