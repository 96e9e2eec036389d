package raftgroup

import "go.etcd.io/raft/v3/raftpb"

// A leader announces every commit to its followers at once, in a separate message, which each of them answers: half of
// the messages of a busy group. In a busy group the next entries are about to be sent and carry the same commit index,
// so those messages are withheld. If no entries follow after all, the next heartbeat carries the index, at most a tick
// later; raft relies on that on any network that loses messages. A group that is not busy, and one whose members are
// changing, announces commits at once.

// busyEntries is the number of proposals, since the tick before last, from which a group counts as busy.
const busyEntries = 4

// announcements tracks what a leader may withhold. Owned by Host.Run.
type announcements struct {
	entries, before int               // proposals that raft accepted, since the last tick and in the one before
	sent            map[uint64]uint64 // replica id → index of the last entry sent to it
	term            uint64            // of the entries in sent
}

func (a *announcements) tick() { a.before, a.entries = a.entries, 0 }

// withhold reports whether an outgoing message carries nothing but a commit index, to a member that has been sent all
// entries, in a busy group. Changing is whether the log has a membership change that is not in force.
func (a *announcements) withhold(m *raftpb.Message, changing bool) bool {
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
	// An index other than the last one sent asks whether the member's log matches. A membership change may remove this
	// member, and nothing is sent to it afterwards.
	return a.entries+a.before >= busyEntries && a.sent[to] == m.GetIndex() && !changing
}
