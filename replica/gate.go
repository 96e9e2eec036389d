package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxTermJump is how many elections a member may have missed.
const maxTermJump = 1 << 20

// Receive accepts a message that the authenticated peer sent for a group. It never blocks and never panics, whatever the
// bytes, and it does not retain them. A message is refused without any effect if it is not from a member of the group, or
// if this member cannot have sent it. The errors are ErrNotOpen (if Has returns true, the owner may open the group and
// receive the message again), ErrNotMember (see TrustMembers), ErrReplaced, ErrImplausible and ErrOverloaded. Run later makes
// the checks that depend on the group's term and log.
//
// Members are those of the committed configuration, those added by a configuration change in this node's log that is not
// yet known to be committed, and those that the owner trusts.
func (h *Host) Receive(peer string, group uint64, message []byte) error {
	err := h.receive(peer, group, message)
	if err != nil {
		h.metrics.rejected.Inc()
		return fmt.Errorf("receive message of %q for group %d: %w", peer, group, err)
	}
	return nil
}

func (h *Host) receive(peer string, group uint64, message []byte) error {
	h.mu.Lock()
	g := h.mu.open[group]
	h.mu.Unlock()
	if g == nil {
		return ErrNotOpen
	}
	roster := g.roster.Load()
	if peer == h.self || !roster.includes(peer) {
		return ErrNotMember
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
	if g.mu.messageSize+len(message) > h.limits.messages {
		return fmt.Errorf("%w: %d bytes of messages wait", ErrOverloaded, g.mu.messageSize)
	}
	g.mu.messageSize += len(message) + raftlog.EntryOverhead
	g.mu.messages = append(g.mu.messages, m)
	g.enqueue()
	return nil
}

// admit checks a decoded message against the group's state, before it is passed to raft.
func (r *replica) admit(m *raftpb.Message) error {
	// Between two Readies raft's state may be newer than r's: query it.
	status := r.node.BasicStatus()
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
