package raftgroup

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// proposals are what the owner proposed and raft could not accept yet. They are proposed again at the next tick if this
// node still leads.
type proposals struct {
	change  *raftlog.Change
	entries [][]byte
}

func (p *proposals) empty() bool { return p.change == nil && len(p.entries) == 0 }

// pass passes the proposals to raft. It reports whether raft has accepted entries. Id is this node's replica id; raft
// retains the pointer.
func (p *proposals) pass(raw *raft.RawNode, id *uint64) bool {
	step := func(entries ...*raftpb.Entry) error {
		return raw.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: id, Entries: entries})
	}
	if p.change != nil {
		entry, err := p.change.Entry()
		if err == nil {
			err = step(entry)
		}
		if err == nil {
			p.change = nil
		}
	}
	if len(p.entries) == 0 {
		return false
	}
	entries := make([]*raftpb.Entry, len(p.entries))
	for i, data := range p.entries {
		entries[i] = &raftpb.Entry{Data: data}
	}
	if step(entries...) != nil {
		return false
	}
	p.entries = nil
	return true
}
