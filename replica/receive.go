package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// snapshot is a decoded snapshot that is to be written into the tables.
type snapshot struct {
	from, to, term   uint64 // replica ids; the sender's term
	index, entryTerm uint64
	conf             *raftlog.Configuration // as it is to be stored here
	rows             []kv.Write             // ascending by table and key
	stale            []kv.Write             // deletions of the owner's rows that are not in the snapshot
	reply            func(error)
	budget           func(n int) error // called before n bytes are allocated
}

// ReceiveSnapshot reads a snapshot that the authenticated peer sends for a group, and blocks until it is installed
// durably: the owner's rows, raft's state, the configuration and the applied index in one commit. The owner gets
// Restored. ReceiveSnapshot also returns nil if the group had no use for the snapshot. A snapshot is refused without any
// effect if it is not from a member of the group, is malformed or too large, or contains rows of other owners: with
// ErrNotOpen, ErrNotMember, ErrImplausible, ErrReplaced, ErrSnapshotSize or ErrOverloaded. The caller bounds the time
// that reading takes. When the context ends, the snapshot may still be installed.
func (h *Host) ReceiveSnapshot(ctx context.Context, peer string, group uint64, r io.Reader) error {
	if err := h.receiveSnapshot(ctx, peer, group, r); err != nil {
		h.metrics.rejected.Inc()
		return fmt.Errorf("receive snapshot of %q for group %d: %w", peer, group, err)
	}
	return nil
}

func (h *Host) receiveSnapshot(ctx context.Context, peer string, group uint64, r io.Reader) error {
	answer := make(chan error, 1)
	taken, err := h.unpack(peer, group, r, func(err error) { answer <- err })
	defer h.reserve(-taken)
	if err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-h.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unpack reads a snapshot and makes Run install it, which then calls reply. Taken is the number of bytes of memory that
// it has claimed; they count until it is installed.
func (h *Host) unpack(peer string, group uint64, r io.Reader, reply func(error)) (taken int, err error) {
	h.mu.Lock()
	g := h.mu.open[group]
	h.mu.Unlock()
	if g == nil {
		return 0, ErrNotOpen
	}
	if peer == h.self || !g.roster.Load().includes(peer) {
		return 0, ErrNotMember
	}
	if g.tables == nil {
		return 0, errors.New("the group has no tables for snapshots")
	}
	s := &snapshot{budget: func(n int) error {
		taken += n
		h.reserve(n)
		if taken > h.limits.snapshot {
			return fmt.Errorf("%w: more than %d bytes", ErrSnapshotSize, h.limits.snapshot)
		}
		if h.receiving.Load() > 2*int64(h.limits.snapshot) {
			return fmt.Errorf("%w: other snapshots are being received", ErrOverloaded)
		}
		return nil
	}}
	admit := func() error { return g.roster.Load().check(peer, s.from, s.to) }
	err = s.decode(r, g.tables, admit)
	if err == nil && (s.conf.Peer(s.from) != peer || s.conf.Peer(s.to) != h.self) {
		err = fmt.Errorf("%w: %q and %q are not replicas %d and %d of %v", ErrImplausible, peer, h.self, s.from, s.to, s.conf.All())
	}
	if err != nil {
		return taken, err
	}
	s.reply = reply
	h.post(func() { h.install(g, s) })
	return taken, nil
}

func (h *Host) reserve(n int) { h.receiving.Add(int64(n)) }

// decode reads a snapshot. Its allocations are bounded by what was read, and by the budget. The head is checked, also by
// admit, before the rows are read.
func (s *snapshot) decode(r io.Reader, tables []TablePrefix, admit func() error) error {
	malformed := func(err error) error { return fmt.Errorf("%w: %w", ErrImplausible, err) }
	d := decoder{r: r, budget: s.budget}
	if version := d.u8(); d.err == nil && version != snapshotVersion {
		return malformed(fmt.Errorf("version %d", version))
	}
	for _, v := range [...]*uint64{&s.from, &s.to, &s.term, &s.index, &s.entryTerm} {
		*v = d.u64()
	}
	if d.err != nil {
		return d.failed()
	}
	if err := admit(); err != nil {
		return err
	}
	conf := d.bytes(int(d.u32()), maxConfig)
	n := int(d.u8())
	if d.err == nil && n != len(tables) {
		return malformed(fmt.Errorf("%d tables, expected %d", n, len(tables)))
	}
	for _, t := range tables {
		name, prefix := d.bytes(int(d.u8()), raftlog.MaxTableName), []byte(nil)
		prefix = d.bytes(int(d.u8()), raftlog.MaxTableName)
		if d.err == nil && (string(name) != t.Table || !bytes.Equal(prefix, t.Prefix)) {
			return malformed(fmt.Errorf("table %q with prefix %x, expected %q with %x", name, prefix, t.Table, t.Prefix))
		}
	}
	if d.err != nil {
		return d.failed()
	}
	if err := s.check(conf); err != nil {
		return malformed(err)
	}
	last := 0
	for {
		table := int(d.u8())
		if table == 0 || d.err != nil {
			break
		}
		if table > len(tables) || table < last {
			return malformed(fmt.Errorf("row of table %d after table %d", table, last))
		}
		t := tables[table-1]
		key := d.bytes(int(d.u32()), maxKey-len(t.Prefix))
		value := d.bytes(int(d.u32()), maxValue)
		if d.err == nil {
			d.err = s.budget(rowOverhead)
		}
		if value == nil {
			value = []byte{} // a nil value would delete
		}
		key = append(bytes.Clone(t.Prefix), key...)
		if d.err == nil && (len(key) == 0 || table == last && bytes.Compare(key, s.rows[len(s.rows)-1].Key) <= 0) {
			return malformed(errors.New("row without a key, or out of order"))
		}
		s.rows, last = append(s.rows, kv.Write{Table: t.Table, Key: key, Value: value}), table
	}
	if rows := d.u64(); d.err == nil && rows != uint64(len(s.rows)) {
		return malformed(fmt.Errorf("%d rows, announced %d", len(s.rows), rows))
	}
	return d.failed()
}

// check validates the head.
func (s *snapshot) check(conf []byte) error {
	if s.term == 0 || s.term > raftlog.MaxNumber || s.entryTerm == 0 || s.entryTerm > s.term || s.index == 0 || s.index > raftlog.MaxNumber {
		return fmt.Errorf("entry %d of term %d in term %d", s.index, s.entryTerm, s.term)
	}
	c, err := raftlog.DecodeConfiguration(conf)
	if err != nil {
		return err
	}
	if c.Index == 0 || c.Index > s.index {
		return fmt.Errorf("configuration %d at entry %d", c.Index, s.index)
	}
	c.Own = s.to
	s.conf = c
	return c.Check()
}

// decoder reads integers and byte strings; after an error it reads nothing more.
type decoder struct {
	r      io.Reader
	budget func(n int) error
	err    error
	word   [8]byte
}

func (d *decoder) fixed(n int) []byte {
	clear(d.word[:])
	if d.err == nil {
		_, d.err = io.ReadFull(d.r, d.word[8-n:])
	}
	if d.err != nil {
		clear(d.word[:])
	}
	return d.word[:]
}

func (d *decoder) u8() byte    { return d.fixed(1)[7] }
func (d *decoder) u32() uint32 { return uint32(binary.BigEndian.Uint64(d.fixed(4))) }
func (d *decoder) u64() uint64 { return binary.BigEndian.Uint64(d.fixed(8)) }

// bytes reads n bytes, at most limit. It allocates in steps, because the announced length may be false.
func (d *decoder) bytes(n, limit int) []byte {
	if d.err == nil && n > limit {
		d.err = fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrImplausible, n, limit)
	}
	var b []byte
	for d.err == nil && len(b) < n {
		step := min(n-len(b), max(64<<10, len(b)))
		if d.err = d.budget(step); d.err == nil {
			b = append(b, make([]byte, step)...)
			_, d.err = io.ReadFull(d.r, b[len(b)-step:])
		}
	}
	return b
}

func (d *decoder) failed() error {
	if errors.Is(d.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return d.err
}

// install passes a snapshot to raft, which decides whether the group needs it; collectReadies continues from there.
func (h *Host) install(g *Group, s *snapshot) {
	r := h.replicas[g.id]
	switch {
	case r == nil || r.handle != g:
		s.reply(ErrNotOpen)
		return
	case r.node == nil:
		s.reply(h.stall)
		return
	case r.incoming != nil:
		s.reply(fmt.Errorf("%w: another snapshot is being installed", ErrOverloaded))
		return
	}
	m := &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &s.from, To: &s.to, Term: &s.term,
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: &s.index, Term: &s.entryTerm, ConfState: s.conf.ConfState(),
		}},
	}
	err := r.members.roster.check(r.members.roster.peer(s.from), s.from, s.to)
	if err == nil {
		err = r.admit(m)
	}
	if err != nil {
		s.reply(err)
		return
	}
	before, after := uint64(0), uint64(0)
	err = r.guard("step", func() error {
		before = r.node.BasicStatus().GetCommit()
		err := r.node.Step(m)
		after = r.node.BasicStatus().GetCommit()
		return err
	})
	switch {
	case err != nil:
		s.reply(err)
		h.fail(r, err)
		return
	case before >= s.index:
		s.reply(nil) // raft reports this node's position to the leader
	case after < s.index:
		s.reply(fmt.Errorf("%w: raft refused it", ErrImplausible))
	default:
		r.incoming = s
	}
	h.markDirty(r)
}

// prepareInstall prepares the writes of a Ready with a snapshot. A Ready without one means that raft could use its own log.
func (r *replica) prepareInstall(rd raft.Ready) error {
	s := r.incoming
	if raft.IsEmptySnap(rd.Snapshot) {
		if s != nil {
			r.dropIncoming(nil)
		}
		return nil
	}
	if s == nil || rd.Snapshot.GetMetadata().GetIndex() != s.index {
		return errors.New("raft returned another snapshot than the received one")
	}
	kept := make(map[string]bool, len(s.rows))
	for _, row := range s.rows {
		kept[row.Table+"\x00"+string(row.Key)] = true
	}
	for _, t := range r.tables {
		err := r.host.storage.Scan(t.Table, t.Prefix, func(key, _ []byte) error {
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

// installing returns the snapshot in the commit in progress, or nil.
func (r *replica) installing() *snapshot {
	if r.inBatch && !raft.IsEmptySnap(r.ready.Snapshot) {
		return r.incoming
	}
	return nil
}

func (r *replica) dropIncoming(err error) {
	if r.incoming != nil {
		r.incoming.reply(err)
		r.incoming = nil
	}
}

// snapshotWrites adds the writes that install a snapshot, except the state record.
func (r *replica) snapshotWrites(writes []kv.Write, s *snapshot) []kv.Write {
	writes = r.log.ResetWrites(writes)
	writes = append(writes, s.stale...)
	writes = append(writes, s.rows...)
	return append(writes, raftlog.ConfigurationWrite(r.group, s.conf))
}

// installed updates the replica after a snapshot has become durable.
func (r *replica) installed(s *snapshot) {
	r.log.Reset(s.index, s.entryTerm)
	r.conf, r.log.Conf, r.log.Changed = s.conf, s.conf, false
	r.members.unstored = nil
	if v := r.members.trusted; v != nil && v.Index <= s.conf.Index {
		r.members.trusted = nil
	}
	r.applied, r.mailed, r.visible, r.reported, r.advanced = s.index, s.index, s.index, s.index, s.index
	r.host.countLag(r, 0)
	r.publishRoster()
	r.handle.pushRestored(configured(s.conf), s.index)
	r.host.ticking.start(r)
	r.logger.Info("snapshot installed", "index", s.index, "rows", len(s.rows))
	r.dropIncoming(nil)
}
