package raftframe

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Bounds on messages that are accepted. Raft trusts every message: it panics on some forged ones, and takes others as
// committed. Honest members stay far below these bounds.
const (
	MaxEntry    = 1 << 20              // bytes of an entry
	MaxAppend   = 256 << 10            // bytes of entries in one append message; a single entry may be larger
	MaxMessage  = MaxEntry + MaxAppend // bytes
	MaxEntries  = 16 << 10             // in one message
	ReadContext = 8                    // bytes of the context with which heartbeats confirm reads: raft's own count of them, little-endian
)

// CampaignTransfer is the context of a vote request that the old leader asked for (raft's own constant is not
// exported).
const CampaignTransfer = "CampaignTransfer"

// ErrImplausible marks messages that no honest member sends.
var ErrImplausible = errors.New("implausible raft message")

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

// checkContext checks a message's context: votes carry one in a transfer, heartbeats when they confirm reads. Raft
// reads 8 bytes of the latter without a check.
func checkContext(m *raftpb.Message) error {
	c := m.GetContext()
	switch m.GetType() {
	case raftpb.MsgVote:
		if len(c) == 0 || string(c) == CampaignTransfer {
			return nil
		}
	case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp:
		if len(c) == 0 || len(c) == ReadContext {
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
