package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// The stream format of a snapshot. Integers are big-endian; str8 and str32 are a length (u8, u32) and as many bytes.
//
//	version u8 = 1
//	sender's replica id u64 ‖ receiver's replica id u64 ‖ sender's term u64
//	applied index u64 ‖ term of that entry u64
//	configuration at that index: str32, CBOR as in storage
//	number of tables u8, each: name str8 ‖ prefix str8
//	rows, each: number of its table from 1 u8 ‖ key without the prefix str32 ‖ value str32
//	0 u8 ‖ number of rows u64
const (
	snapshotVersion = 1
	snapshotHead    = 1 + 5*8
	maxConfig       = 64 << 10 // bytes of an encoded configuration
	maxKey          = 32 << 10
	maxValue        = 32 << 20
	rowOverhead     = 96 // bytes that a row costs in memory beside its own
	maxSending      = 2  // snapshots being sent by a node at a time
)

// ErrSnapshotSize marks a state that is too large for a snapshot.
var ErrSnapshotSize = errors.New("snapshot is too large")

// sending tracks the snapshots that a replica is sending.
type sending map[uint64]uint64 // replica id of the receiver → the index below which the log must be kept meanwhile

// snapshotHead returns the head of a snapshot, for raft. The snapshot sent later may be newer: raft relies on the
// position that the receiver reports.
func (r *replica) snapshotHead() (*raftpb.Snapshot, error) {
	h := r.host
	if h.sendSnapshot == nil || r.tables == nil || h.sending >= maxSending ||
		len(r.members.unstored) > 0 || r.stored.Applied == 0 { // the configuration must include the receiver
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := r.log.Term(r.stored.Applied)
	if err != nil {
		return nil, err
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: new(r.stored.Applied), Term: &term, ConfState: r.conf.ConfState(),
	}}, nil
}

// sendSnapshot makes the carrier open a stream, and reports the result to raft.
func (r *replica) sendSnapshot(peer string, m *raftpb.Message) {
	h, to := r.host, m.GetTo()
	h.sending++
	if r.sending == nil {
		r.sending = make(sending)
	}
	r.sending[to] = m.GetSnapshot().GetMetadata().GetIndex()
	out := snapshotOut{
		group: r.group, from: r.id, to: to, term: m.GetTerm(), tables: r.tables, limit: h.limits.snapshot,
	}
	var once sync.Once
	done := func(err error) {
		once.Do(func() { h.post(func() { h.snapshotSent(r, to, err) }) })
	}
	write := func(w io.Writer) error { return out.write(h.storage, w) }
	r.logger.Info("sending a snapshot", "peer", peer, "index", r.sending[to])
	h.sendSnapshot(peer, r.group, write, done)
}

func (h *Host) snapshotSent(r *replica, to uint64, err error) {
	h.sending--
	delete(r.sending, to)
	status := raft.SnapshotFinish
	if err != nil {
		r.logger.Warn("snapshot not sent", "replica", to, "error", err)
		status = raft.SnapshotFailure
	}
	if r.ended || r.node == nil {
		return
	}
	if err := r.guard("report snapshot", func() error { r.node.ReportSnapshot(to, status); return nil }); err != nil {
		h.fail(r, err)
		return
	}
	h.markDirty(r)
}

// keep returns the index up to which the log may be cut. The entries that follow a snapshot in progress stay, down to
// least, because the snapshot is useless without them.
func (s sending) keep(cut, least uint64) uint64 {
	for _, index := range s {
		cut = min(cut, index)
	}
	return max(cut, least)
}

// snapshotOut writes a snapshot.
type snapshotOut struct {
	group, from, to, term uint64
	tables                []TablePrefix
	limit                 int
}

// write collects the snapshot in memory, so that the view is open only for a short time, and then writes it.
func (s snapshotOut) write(storage Storage, w io.Writer) error {
	var b bytes.Buffer
	err := storage.View(func(get func(string, []byte) ([]byte, error),
		scan func(string, []byte, func(key, value []byte) error) error,
	) error {
		return s.collect(&b, get, scan)
	})
	if err != nil {
		return fmt.Errorf("make snapshot of group %d: %w", s.group, err)
	}
	for b.Len() > 0 {
		if _, err := w.Write(b.Next(256 << 10)); err != nil {
			return fmt.Errorf("send snapshot of group %d: %w", s.group, err)
		}
	}
	return nil
}

func (s snapshotOut) collect(b *bytes.Buffer, get func(string, []byte) ([]byte, error),
	scan func(string, []byte, func(key, value []byte) error) error,
) error {
	value, err := get(raftlog.TableState, raftlog.StateKey(s.group, raftlog.KindState))
	if err != nil {
		return err
	}
	st, err := raftlog.DecodeState(value)
	if err != nil {
		return err
	}
	term := st.StartTerm
	if st.Applied > st.Start {
		key := raftlog.LogKey(s.group, st.Applied)
		if value, err = get(raftlog.TableLog, key); err != nil {
			return err
		}
		if _, term, _, err = raftlog.DecodeEntryHead(key, value); err != nil {
			return err
		}
	}
	conf, err := get(raftlog.TableState, raftlog.StateKey(s.group, raftlog.KindConfig))
	if err != nil {
		return err
	}
	b.WriteByte(snapshotVersion)
	for _, v := range [...]uint64{s.from, s.to, s.term, st.Applied, term} {
		b.Write(binary.BigEndian.AppendUint64(nil, v))
	}
	str32 := func(v []byte) {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(v))))
		b.Write(v)
	}
	str32(conf)
	b.WriteByte(byte(len(s.tables)))
	for _, t := range s.tables {
		b.WriteByte(byte(len(t.Table)))
		b.WriteString(t.Table)
		b.WriteByte(byte(len(t.Prefix)))
		b.Write(t.Prefix)
	}
	rows, size := uint64(0), 0
	for i, t := range s.tables {
		err := scan(t.Table, t.Prefix, func(key, value []byte) error {
			if size += len(key) + len(value) + rowOverhead; size > s.limit {
				return fmt.Errorf("%w: more than %d bytes", ErrSnapshotSize, s.limit)
			}
			b.WriteByte(byte(i + 1))
			str32(key[len(t.Prefix):])
			str32(value)
			rows++
			return nil
		})
		if err != nil {
			return err
		}
	}
	b.WriteByte(0)
	b.Write(binary.BigEndian.AppendUint64(nil, rows))
	return nil
}
