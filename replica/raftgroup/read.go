package raftgroup

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

// maxReads bounds the pending reads of one group.
const maxReads = 4096

// ReadIndex asks a majority whether this node still leads, and returns an index. An owner that has applied every
// Committed up to it has seen everything that was committed anywhere when ReadIndex was called, and may answer a
// linearizable read. It blocks for a round of heartbeats, without disk access. The error is ErrNotLeader (also if
// leadership is lost meanwhile), ErrOverloaded, one of Propose's, or the context's.
func (g *Group) ReadIndex(ctx context.Context) (uint64, error) {
	answer, err := g.RequestReadIndex()
	if err == nil {
		select {
		case r := <-answer:
			if r.Err == nil {
				return r.Index, nil
			}
			err = r.Err
		case <-g.node.Stopped:
			err = ErrStopped
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return 0, fmt.Errorf("read index: %w", err)
}

// RequestReadIndex is ReadIndex without waiting: the answer is sent to the channel.
func (g *Group) RequestReadIndex() (<-chan ReadAnswer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.mu.refusal != nil:
		return nil, g.mu.refusal
	case !g.mu.leading:
		return nil, ErrNotLeader
	case len(g.mu.inbox.reads) >= maxReads:
		return nil, fmt.Errorf("%w: %d reads wait", ErrOverloaded, len(g.mu.inbox.reads))
	}
	answer := make(chan ReadAnswer, 1)
	g.mu.inbox.reads = append(g.mu.inbox.reads, answer)
	g.enqueue()
	return answer, nil
}

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

// askRaft begins a round for new reads.
func (r *Replica) askRaft(waiting []chan<- ReadAnswer) {
	if len(waiting) == 0 {
		return
	}
	rs := &r.reads
	rs.last++
	if rs.waiting == nil {
		rs.waiting = make(map[uint64][]chan<- ReadAnswer)
	}
	rs.waiting[rs.last] = waiting
	r.raw.ReadIndex(binary.BigEndian.AppendUint64(nil, rs.last))
}

// confirmReads processes raft's confirmations of reads.
func (r *Replica) confirmReads(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 {
			continue
		}
		context := binary.BigEndian.Uint64(s.RequestCtx)
		if waiting := r.reads.waiting[context]; waiting != nil {
			delete(r.reads.waiting, context)
			r.reads.confirmed = append(r.reads.confirmed, confirmedRead{index: s.Index, waiting: waiting})
		}
	}
	r.answerReads()
}

// answerReads answers the reads whose entries have been delivered.
func (r *Replica) answerReads() {
	rest := r.reads.confirmed[:0]
	for _, c := range r.reads.confirmed {
		if c.index > r.mailed {
			rest = append(rest, c)
			continue
		}
		for _, answer := range c.waiting {
			answer <- ReadAnswer{Index: r.visible}
		}
	}
	r.reads.confirmed = rest
}

// refuseReads answers all pending reads with an error.
func (r *Replica) refuseReads(err error) {
	for _, waiting := range r.reads.waiting {
		answerAll(waiting, err)
	}
	for _, c := range r.reads.confirmed {
		answerAll(c.waiting, err)
	}
	r.reads.waiting, r.reads.confirmed = nil, nil
}

func answerAll(waiting []chan<- ReadAnswer, err error) {
	for _, answer := range waiting {
		answer <- ReadAnswer{Err: err}
	}
}
