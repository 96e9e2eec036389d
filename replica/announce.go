package replica

import "go.etcd.io/raft/v3/raftpb"

// A leader tells its followers of every commit at once, in a message of its own, which each of them answers: half of
// the messages of a busy group. There the next entries are on their way already and say the same, so those messages are
// withheld. If no entries follow after all, the next heartbeat says it, a tick later at most: it is what raft does on a
// network that loses messages. A group that is not busy, and one whose members are changing, announces at once.

// busyEntries is how many proposals, since the tick before the last, make a group busy.
const busyEntries = 4

// announcements knows what a leader need not say. Owned by Host.Run.
type announcements struct {
	entries, before int               // proposals that raft took, since the last tick and in the one before
	sent            map[uint64]uint64 // replica id → index of the last entry sent to it
	term            uint64            // in which that was
}

func (a *announcements) tick() { a.before, a.entries = a.entries, 0 }

// withhold tells whether a message that is about to be sent says nothing but how far the log is committed, to a member
// that has been sent all entries, in a busy group.
func (a *announcements) withhold(r *replica, m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgApp || m.GetTerm() < a.term {
		return false
	}
	if m.GetTerm() > a.term {
		a.term = m.GetTerm()
		clear(a.sent)
	}
	to := m.GetTo()
	if n := len(m.GetEntries()); n > 0 {
		if a.sent == nil {
			a.sent = make(map[uint64]uint64)
		}
		a.sent[to] = m.GetEntries()[n-1].GetIndex()
		return false
	}
	// An index that is not the last one sent is a question whether the member's log fits. A change of the members may
	// take this one out: nobody speaks to it afterwards.
	return a.entries+a.before >= busyEntries && a.sent[to] == m.GetIndex() &&
		(len(r.log.changes) == 0 || mutated("withhold-removals"))
}
