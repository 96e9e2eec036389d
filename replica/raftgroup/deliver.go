package raftgroup

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// deliverEntries moves committed entries into the mailbox, as many as fit. fresh are entries that raft has just
// returned; entries left over from earlier are read from the log.
func (r *Replica) deliverEntries(fresh []*raftpb.Entry) error {
	for r.mailed < r.advanced {
		var entry *raftpb.Entry
		if len(fresh) > 0 && fresh[0].GetIndex() <= r.mailed+1 {
			entry, fresh = fresh[0], fresh[1:]
		} else {
			var err error
			if entry, err = r.log.Entry(r.mailed + 1); err != nil {
				return fmt.Errorf("deliver: %w", err)
			}
		}
		switch {
		case entry.GetType() != raftpb.EntryNormal:
			r.deliverConfiguration(entry.GetIndex())
		case len(entry.GetData()) > 0:
			c := Committed{Index: entry.GetIndex(), Term: entry.GetTerm(), Entry: entry.GetData()}
			if !r.handle.pushEntry(c, r.node.Limits.Mailbox) {
				return nil // the next Dequeue requests more
			}
			r.visible = c.Index
			r.node.Delivered.Inc()
		}
		r.mailed = entry.GetIndex()
		r.raiseApplied()
		if r.leading && !r.lastLeadership.Self && entry.GetTerm() == r.term {
			r.pushLeadership(Leadership{Leader: r.node.Self, Self: true, Term: r.term})
		}
	}
	r.reads.answer(r.positions)
	return nil
}

// deliverLeadership delivers a change of leader. deliverEntries delivers this node's own leadership, behind an entry of
// its own term.
func (r *Replica) deliverLeadership() {
	l := Leadership{Leader: r.members.peer(r.leader), Term: r.term}
	if r.leading {
		if r.lastLeadership.Self && r.lastLeadership.Term == r.term {
			return
		}
		l.Leader = ""
	}
	if l.Leader != r.lastLeadership.Leader || r.lastLeadership.Self {
		r.pushLeadership(l)
	}
}

func (r *Replica) pushLeadership(l Leadership) {
	if !l.Self {
		r.proposals = proposals{}
		r.reads.refuse(ErrNotLeader)
	}
	r.lastLeadership = l
	if r.members.removed {
		return // nothing follows Removed
	}
	r.publishProgress()
	r.handle.pushLeadership(l)
}

// deliverConfiguration delivers the configuration that entry index made, if it made one.
func (r *Replica) deliverConfiguration(index uint64) {
	c := r.members.at(index)
	if c == nil {
		r.handle.pushConfigured(nil)
		return
	}
	r.handle.pushConfigured(new(NewConfigured(c)))
	if c.ID(r.node.Self) != r.id && !r.members.removed {
		r.members.removed = true
		r.effects.Clock = ClockStop
		r.handle.pushRemoved()
	}
}
