package raftgroup

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxTermJump is how many elections a member may have missed.
const maxTermJump = 1 << 20

// Receive puts a message of a peer into the inbox; see Host.Receive.
func (g *Group) Receive(peer string, message []byte) error {
	roster := g.roster.Load()
	if peer == g.node.Self || !roster.includes(peer) {
		return raftlog.ErrNotMember
	}
	m, err := raftframe.Decode(message)
	if err != nil {
		return fmt.Errorf("%w: %w", raftframe.ErrImplausible, err)
	}
	if err := roster.check(peer, m.GetFrom(), m.GetTo()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.messageSize+len(message) > g.node.Limits.Messages {
		return fmt.Errorf("%w: %d bytes of messages wait", ErrOverloaded, g.mu.messageSize)
	}
	g.mu.messageSize += len(message) + raftlog.EntryOverhead
	g.mu.inbox.messages = append(g.mu.inbox.messages, m)
	g.enqueue()
	return nil
}

// admit checks a decoded message against the group's state, before it is passed to raft.
func (r *Replica) admit(m *raftpb.Message) error {
	// Between two Readies raft's state may be newer than r's: query it.
	status := r.raw.BasicStatus()
	term := status.GetTerm()
	refuse := func(why string) error {
		return fmt.Errorf("%w: %v of replica %d, term %d, index %d, commit %d: %s",
			raftframe.ErrImplausible, m.GetType(), m.GetFrom(), m.GetTerm(), m.GetIndex(), m.GetCommit(), why)
	}
	if m.GetTerm() > term+maxTermJump {
		return refuse("term is too far ahead")
	}
	fromLeader := m.GetType() == raftpb.MsgApp || m.GetType() == raftpb.MsgHeartbeat || m.GetType() == raftpb.MsgSnap
	if fromLeader && m.GetTerm() == term && status.Lead != 0 && status.Lead != m.GetFrom() {
		return refuse("the term has another leader")
	}
	switch m.GetType() {
	case raftpb.MsgHeartbeat:
		// A leader announces to a member only commits that the member has acknowledged, and therefore stored.
		if m.GetTerm() >= term && m.GetCommit() > r.floor {
			return refuse("commit is beyond the log")
		}
	case raftpb.MsgAppResp:
		if m.GetTerm() == term && !m.GetReject() && m.GetIndex() > r.floor {
			return refuse("it acknowledges entries beyond the log") // a leader sends what it has stored
		}
	case raftpb.MsgHeartbeatResp:
		if m.GetTerm() == term && !r.reads.confirms(m) {
			return refuse("it confirms reads that were not asked for")
		}
	case raftpb.MsgSnap:
		r.floor = min(r.floor, m.GetSnapshot().GetMetadata().GetIndex()) // raft may replace its log by just this
	case raftpb.MsgTimeoutNow:
		if m.GetTerm() != term || status.Lead != m.GetFrom() {
			return refuse("it is not from the leader")
		}
	default: // votes, appends, refusals: raft validates their contents
	}
	if m.GetType() == raftpb.MsgApp {
		r.floor = min(r.floor, m.GetIndex()+uint64(len(m.GetEntries()))) // raft may cut its log to just this
	}
	return nil
}
