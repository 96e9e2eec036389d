package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Bounds on messages that the gate admits. Raft trusts every message: it panics on some forged ones, and takes others as
// committed. Honest members stay far below these bounds.
const (
	maxMessage        = MaxEntry + maxSizePerMsg // bytes
	maxMessageEntries = 16 << 10
	maxTermJump       = 1 << 20 // elections that a member may have missed
)

// campaignTransfer is the context of a vote request that the old leader asked for (raft's own constant is not exported).
const campaignTransfer = "CampaignTransfer"

// ErrImplausible marks messages that no honest member sends.
var ErrImplausible = errors.New("implausible raft message")

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
	m, err := decodeMessage(message)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrImplausible, err)
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

// decodeMessage decodes a message and checks everything that does not depend on a group's state.
func decodeMessage(b []byte) (*raftpb.Message, error) {
	if len(b) > maxMessage {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(b), maxMessage)
	}
	m, err := parseMessage(b)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(m); err != nil {
		return nil, err
	}
	return m, nil
}

// checkMessage checks a message on its own.
func checkMessage(m *raftpb.Message) error {
	for _, n := range [...]uint64{m.GetFrom(), m.GetTo(), m.GetTerm()} {
		if n == 0 || n > raftlog.MaxNumber {
			return fmt.Errorf("replica id or term %d", n) // raft treats term 0 as a message from itself
		}
	}
	for _, n := range [...]uint64{m.GetIndex(), m.GetCommit(), m.GetRejectHint()} {
		if n > raftlog.MaxNumber {
			return fmt.Errorf("index %d", n)
		}
	}
	if m.GetLogTerm() > m.GetTerm() {
		return fmt.Errorf("entry of term %d in term %d", m.GetLogTerm(), m.GetTerm())
	}
	if err := checkContext(m); err != nil {
		return err
	}
	if len(m.GetEntries()) > 0 && m.GetType() != raftpb.MsgApp {
		return fmt.Errorf("entries in %v", m.GetType())
	}
	switch m.GetType() {
	case raftpb.MsgApp:
		return checkEntries(m)
	case raftpb.MsgVote, raftpb.MsgPreVote:
		if m.GetLogTerm() == 0 || m.GetIndex() == 0 || m.GetLogTerm() >= m.GetTerm() {
			return fmt.Errorf("candidate for term %d with last entry %d of term %d", m.GetTerm(), m.GetIndex(), m.GetLogTerm())
		}
	case raftpb.MsgAppResp, raftpb.MsgVoteResp, raftpb.MsgPreVoteResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp,
		raftpb.MsgTimeoutNow:
	default: // raft's internal ones, proposals (only leaders accept them), reads, snapshots
		return fmt.Errorf("type %v", m.GetType())
	}
	return nil
}

// checkContext checks a message's context: votes carry one in a transfer, heartbeats when they confirm reads. Raft reads
// 8 bytes of the latter without a check.
func checkContext(m *raftpb.Message) error {
	c := m.GetContext()
	switch m.GetType() {
	case raftpb.MsgVote:
		if len(c) == 0 || string(c) == campaignTransfer {
			return nil
		}
	case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp:
		if len(c) == 0 || len(c) == readPosition {
			return nil
		}
	default:
		if len(c) == 0 {
			return nil
		}
	}
	return fmt.Errorf("context %.20q", c)
}

func checkEntries(m *raftpb.Message) error {
	if m.GetIndex() == 0 || m.GetLogTerm() == 0 {
		return errors.New("entries behind entry 0, which no group has")
	}
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, entry := range m.GetEntries() {
		if entry.GetIndex() != index+1 || entry.GetTerm() < term || entry.GetTerm() > m.GetTerm() {
			return fmt.Errorf("entry %d of term %d behind entry %d of term %d", entry.GetIndex(), entry.GetTerm(), index, term)
		}
		wrong := entry.GetType() != raftpb.EntryNormal
		if entry.GetType() == raftpb.EntryConfChange {
			_, err := raftlog.DecodeChange(entry.GetData())
			wrong = err != nil
		}
		if wrong || len(entry.GetData()) > MaxEntry {
			return fmt.Errorf("entry %d of type %v and %d bytes", entry.GetIndex(), entry.GetType(), len(entry.GetData()))
		}
		index, term = entry.GetIndex(), entry.GetTerm()
	}
	return nil
}

// admit checks a decoded message against the group's state, before it is passed to raft.
func (r *replica) admit(m *raftpb.Message) error {
	// Between two Readies raft's state may be newer than r's: query it.
	status := r.node.BasicStatus()
	term := status.GetTerm()
	refuse := func(why string) error {
		return fmt.Errorf("%w: %v of replica %d, term %d, index %d, commit %d: %s",
			ErrImplausible, m.GetType(), m.GetFrom(), m.GetTerm(), m.GetIndex(), m.GetCommit(), why)
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
