package raftgroup

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

// ReadAnswer is the answer to a ReadIndex.
type ReadAnswer struct {
	Index uint64
	Err   error
}

// reads are the pending reads of one group. Owned by Host.Run.
type reads struct {
	last      uint64                         // the newest context passed to raft; none is used twice
	waiting   map[uint64][]chan<- ReadAnswer // by context: a majority was asked
	confirmed []confirmedRead                // reads whose entries have not all been delivered yet

	// The highest position that this node asked members to confirm, in the term in which it leads.
	position, term uint64
}

type confirmedRead struct {
	index   uint64
	waiting []chan<- ReadAnswer
}

// confirms reports whether a heartbeat's answer confirms what this node asked for in this term.
func (rs *reads) confirms(m *raftpb.Message) bool {
	c := m.GetContext()
	return len(c) == 0 || rs.term == m.GetTerm() && binary.LittleEndian.Uint64(c) <= rs.position
}

// recordSent records what an outgoing heartbeat asks for.
func (rs *reads) recordSent(m *raftpb.Message) {
	if c := m.GetContext(); m.GetType() == raftpb.MsgHeartbeat && len(c) == raftframe.ReadContext {
		if rs.term != m.GetTerm() {
			rs.term, rs.position = m.GetTerm(), 0
		}
		rs.position = max(rs.position, binary.LittleEndian.Uint64(c))
	}
}

// ask begins a round of raft for new reads.
func (rs *reads) ask(raw *raft.RawNode, waiting []chan<- ReadAnswer) {
	if len(waiting) == 0 {
		return
	}
	rs.last++
	if rs.waiting == nil {
		rs.waiting = make(map[uint64][]chan<- ReadAnswer)
	}
	rs.waiting[rs.last] = waiting
	raw.ReadIndex(binary.BigEndian.AppendUint64(nil, rs.last))
}

// confirm processes raft's confirmations.
func (rs *reads) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 {
			continue
		}
		context := binary.BigEndian.Uint64(s.RequestCtx)
		if waiting := rs.waiting[context]; waiting != nil {
			delete(rs.waiting, context)
			rs.confirmed = append(rs.confirmed, confirmedRead{index: s.Index, waiting: waiting})
		}
	}
}

// answer answers the confirmed reads whose entries have been delivered, with the index of the last Committed.
func (rs *reads) answer(p positions) {
	rest := rs.confirmed[:0]
	for _, c := range rs.confirmed {
		if c.index > p.mailed {
			rest = append(rest, c)
			continue
		}
		for _, answer := range c.waiting {
			answer <- ReadAnswer{Index: p.visible}
		}
	}
	rs.confirmed = rest
}

// refuse answers all pending reads with an error.
func (rs *reads) refuse(err error) {
	for _, waiting := range rs.waiting {
		answerAll(waiting, err)
	}
	for _, c := range rs.confirmed {
		answerAll(c.waiting, err)
	}
	rs.waiting, rs.confirmed = nil, nil
}

func answerAll(waiting []chan<- ReadAnswer, err error) {
	for _, answer := range waiting {
		answer <- ReadAnswer{Err: err}
	}
}
