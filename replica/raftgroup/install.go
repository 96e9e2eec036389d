package raftgroup

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// IncomingSnapshot is a received snapshot that is to be written into the tables.
type IncomingSnapshot struct {
	raftframe.Snapshot
	stale []kv.Write // deletions of the owner's rows that are not in the snapshot
	Reply func(error)
}

// message returns the message that passes the snapshot's head to raft.
func (s *IncomingSnapshot) message() *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &s.From, To: &s.To, Term: &s.Term,
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: &s.Index, Term: &s.EntryTerm, ConfState: s.Conf.ConfState(),
		}},
	}
}

// prepare finds the owner's rows that are not in the snapshot.
func (s *IncomingSnapshot) prepare(storage raftlog.Storage, tables []raftlog.TablePrefix) error {
	if s.Stored {
		return nil // there were none
	}
	kept := make(map[string]bool, len(s.Rows))
	for _, row := range s.Rows {
		kept[row.Table+"\x00"+string(row.Key)] = true
	}
	for _, t := range tables {
		err := storage.Scan(t.Table, t.Prefix, func(key, _ []byte) error {
			if !kept[t.Table+"\x00"+string(key)] {
				s.stale = append(s.stale, kv.Write{Table: t.Table, Key: bytes.Clone(key)})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("install snapshot: %w", err)
		}
	}
	return nil
}

// appendWrites adds the writes that install the snapshot, except the state record.
func (s *IncomingSnapshot) appendWrites(writes []kv.Write, log *raftlog.Log, group uint64) []kv.Write {
	writes = log.ResetWrites(writes)
	writes = append(writes, s.stale...)
	writes = append(writes, s.Rows...)
	return append(writes, raftlog.ConfigurationWrite(group, s.Conf))
}

// incoming is the received snapshot that was passed to raft and is not installed yet, if there is one.
type incoming struct{ snapshot *IncomingSnapshot }

// match checks that a Ready installs this snapshot or none, and reports which. A Ready without one means that raft
// could use its own log: the snapshot is not needed any more.
func (in *incoming) match(rd raft.Ready) (install bool, err error) {
	if raft.IsEmptySnap(rd.Snapshot) {
		in.drop(nil)
		return false, nil
	}
	if in.snapshot == nil || rd.Snapshot.GetMetadata().GetIndex() != in.snapshot.Index {
		return false, errors.New("raft returned another snapshot than the received one")
	}
	return true, nil
}

// drop replies to the sender, and forgets the snapshot.
func (in *incoming) drop(err error) {
	if in.snapshot != nil {
		in.snapshot.Reply(err)
		in.snapshot = nil
	}
}
