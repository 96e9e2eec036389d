package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// feed moves committed entries into the mailbox, as many as fit. News are entries that raft has just returned; entries
// left over from earlier are read from the log.
func (r *replica) feed(news []*raftpb.Entry) error {
	for r.fed < r.advanced {
		var entry *raftpb.Entry
		if len(news) > 0 && news[0].GetIndex() <= r.fed+1 {
			entry, news = news[0], news[1:]
		} else {
			var err error
			if entry, err = r.log.entry(r.fed + 1); err != nil {
				return fmt.Errorf("deliver: %w", err)
			}
		}
		switch {
		case entry.GetType() != raftpb.EntryNormal:
			r.feedConfiguration(entry.GetIndex())
		case len(entry.GetData()) > 0:
			c := Committed{Index: entry.GetIndex(), Term: entry.GetTerm(), Entry: entry.GetData()}
			if !r.handle.pushEntry(c, r.host.limits.mailbox) {
				return nil // the next Take requests more
			}
			r.visible = c.Index
			r.host.metrics.delivered.Inc()
		}
		r.fed = entry.GetIndex()
		r.settleApplied()
		if r.leading && !r.told.Self && entry.GetTerm() == r.term {
			r.tell(Leadership{Leader: r.host.self, Self: true, Term: r.term})
		}
	}
	r.answerReads()
	return nil
}

// tellLeadership delivers a change of leader. feed delivers this node's own leadership, behind an entry of its own term.
func (r *replica) tellLeadership() {
	l := Leadership{Leader: r.peer(r.leader), Term: r.term}
	if r.leading {
		if r.told.Self && r.told.Term == r.term {
			return
		}
		l.Leader = ""
	}
	if l.Leader != r.told.Leader || r.told.Self {
		r.tell(l)
	}
}

func (r *replica) tell(l Leadership) {
	if l.Self != r.told.Self {
		r.host.countLeader(l.Self)
	}
	if !l.Self {
		r.waiting, r.members.change = nil, nil
		r.refuseReads(ErrNotLeader)
	}
	r.told = l
	if r.members.removed {
		return // nothing follows Removed
	}
	r.tellProgress()
	r.handle.pushLeadership(l)
}
