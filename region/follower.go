package region

import (
	"context"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the loop's side that faces the other members: who leads, who is a member, and what happens
// to gateways that come while that is open. Everything here runs in the loop's goroutine.

func (l *loop) lead(d replica.Leadership) {
	l.leader, l.info.Leader, l.info.Term = d.Leader, d.Leader, d.Term
	was := l.leading
	l.leading, l.stalled = d.Self, d.Cause
	switch {
	case d.Self:
		if d.Term != l.term {
			l.queueAgain()
		}
		l.term, l.kept = d.Term, d.Leader
		if !was {
			l.metrics.leaderships.Inc()
			l.changed(l.info)
		}
		l.confirmAll()
	case d.Cause != nil:
		l.showFor(lobbyTime) // others who can will have elected one of them by then
		l.logger.Warn("storage refuses writes, edits are refused", "region", l.info.ID, "error", d.Cause)
		l.waiting = slices.DeleteFunc(l.waiting, func(q queued) bool {
			if !q.doubt {
				l.refuse(q.Intent, wire.RefusedUnavailable)
			}
			return !q.doubt
		})
		if l.alone() {
			l.confirmAll() // the land can be seen at least
		}
	case l.ledElsewhere():
		if l.kept != l.leader {
			l.kept = l.leader
			l.changed(l.info)
		}
		// The gateways find the new leader and send again what was not answered.
		for s := range l.seats {
			l.dismiss(s, "the region moved")
		}
		l.waiting, l.proposed, l.flying = nil, nil, 0
		clear(l.pending)
	case was:
		l.lost = time.Now()
		for s := range l.seats {
			if s.since.IsZero() { // until it is known who leads: then they are told
				s.since = l.lost
				l.lobby++
			}
		}
	}
}

// handOverPause is how long a node that has lost leadership leaves it to the others to stand for election.
const handOverPause = time.Second

func (l *loop) ledElsewhere() bool { return l.leader != "" && l.leader != l.self }

// readingTime is how long a gateway has a seat on a member whose disk refuses writes: such a member takes no part in
// its group, and does not hear of it when others lead it. Then the gateway looks for them again.
const readingTime = 10 * time.Second

// showFor lets the gateways that are here read for a while, if there are others who may lead.
func (l *loop) showFor(d time.Duration) {
	if l.alone() {
		return
	}
	for s := range l.seats {
		if s.since.IsZero() {
			s.until = time.Now().Add(d)
		}
	}
}

// endReading sends those away who have read for long enough.
func (l *loop) endReading() {
	for s := range l.seats {
		switch {
		case s.until.IsZero():
		case l.leading:
			s.until = time.Time{}
		case time.Now().After(s.until):
			l.dismiss(s, "this node's disk refuses writes; look whether another one leads the region")
		}
	}
}

// receive gives a seat to a gateway that comes: if this node leads, as soon as most members say so, too, for the land of
// one who was deposed and has not heard of it is old; and not at all if another one does. If nobody is known to lead it waits in the lobby, and this node stands for election. If this node's disk
// refuses writes it can neither lead nor hear who does; it shows the land only to those who have asked all others.
func (l *loop) receive(s *seat) {
	switch {
	case l.leading && !l.alone() && l.raft != nil:
		s.since = time.Now()
		l.lobby++
		l.sure(l, s)
	case l.leading, l.stalled != nil && l.alone():
		l.confirm(s)
	case l.ledElsewhere():
		l.dismiss(s, "the region is led elsewhere")
	case l.stalled != nil && s.reading:
		s.until = time.Now().Add(readingTime)
		l.confirm(s)
	case l.stalled != nil:
		l.dismiss(s, "this node's disk refuses writes, and nobody leads the region")
	default:
		s.since = time.Now()
		l.lobby++
		l.group.Campaign()
	}
}

// confirm tells a gateway that it has its seat.
func (l *loop) confirm(s *seat) {
	if !s.since.IsZero() {
		s.since = time.Time{}
		l.lobby--
	}
	s.out.put(wire.FromRegion{Tick: l.tick})
}

// confirmAll gives those in the lobby their seats. Who leads since just now has not applied all yet that was committed
// before.
func (l *loop) confirmAll() {
	for s := range l.seats {
		switch {
		case l.lobby == 0:
			return
		case s.since.IsZero():
		case l.leading && !l.alone() && l.raft != nil:
			l.sure(l, s)
		default:
			l.confirm(s)
		}
	}
}

// verified takes in the answer to sure. If it is not yes, this node either hears soon who leads, and tells those in the
// lobby, or leads on: then it is asked again.
func (l *loop) verified(s *seat, err error) {
	_, seated := l.seats[s]
	switch {
	case !seated || s.since.IsZero():
	case !l.leading:
	case err != nil:
		l.sure(l, s)
	default:
		l.deliver() // what was committed before the question
		if l.leading {
			l.confirm(s)
		}
	}
}

// wait goes on to stand for election while somebody is in the lobby, and sends away who was there too long.
func (l *loop) wait() {
	if l.lobby == 0 {
		return
	}
	if !l.leading && time.Since(l.lost) > handOverPause {
		l.group.Campaign()
	}
	for s := range l.seats {
		if !s.since.IsZero() && time.Since(s.since) > lobbyTime {
			l.dismiss(s, "nobody leads the region")
		}
	}
}

// configured takes in that the group has other members.
func (l *loop) configured(c replica.Configured) {
	l.enroll(c)
	if !l.member(l.self) {
		return // Removed follows, and then nothing may be kept of the region any more
	}
	l.changed(l.info)
	for _, m := range c.Members {
		if _, known := l.roster[m.Peer]; !known {
			l.acquaint(l, m.Peer)
		}
	}
}

// enroll takes in the group's members.
func (l *loop) enroll(c replica.Configured) {
	l.members = c.Members
	l.info.Epoch = epochOf(c)
	l.enlist()
}

// enlist brings the region's members up to date with the group's, as far as their addresses are known.
// Learners are among them: whoever may lead one day has to be known before.
func (l *loop) enlist() {
	for _, m := range l.info.Members {
		l.roster[m.Peer] = m
	}
	members := make([]wire.Member, 0, len(l.members))
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

// meet takes in the address of a node that is or becomes a member.
func (l *loop) meet(m wire.Member) {
	before := len(l.info.Members)
	l.roster[m.Peer] = m
	l.enlist()
	if len(l.info.Members) != before {
		l.changed(l.info)
	}
}

// ask gives the region as the loop knows it. Any goroutine may call it.
func (l *loop) ask(ctx context.Context) (wire.Region, error) {
	answer := make(chan wire.Region, 1)
	if !l.inbox.put(func() { l.deliver(); answer <- l.info }) {
		return wire.Region{}, ErrNotHere
	}
	select {
	case info := <-answer:
		return info, nil
	case <-l.done:
		return wire.Region{}, ErrNotHere
	case <-ctx.Done():
		return wire.Region{}, ctx.Err()
	}
}

// restored throws the land away that a snapshot has replaced.
func (l *loop) restored(r replica.Restored) {
	l.applied, l.reported = r.Index, r.Index // what the old land has not reported must not come over the new rows
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
