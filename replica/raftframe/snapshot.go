package raftframe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/voxelpopuli/voxeld/internal/kv"
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
	SnapshotHead    = 1 + 5*8
	maxConfig       = 64 << 10 // bytes of an encoded configuration
	maxKey          = 32 << 10
	maxValue        = 32 << 20
	rowOverhead     = 96 // bytes that a row costs in memory beside its own
)

// ErrSnapshotSize marks a state that is too large for a snapshot.
var ErrSnapshotSize = errors.New("snapshot is too large")

// OutgoingSnapshot is a snapshot that a replica sends of its stored state.
type OutgoingSnapshot struct {
	Group, From, To, Term uint64                // the group's number, the replica ids, the sender's term
	Tables                []raftlog.TablePrefix // of the owner
	Limit                 int                   // bytes of the rows
}

// Write collects the snapshot in memory, so that the view is open only for a short time, and then writes it. If its
// tables may be sent in pieces, it collects one piece after the other.
func (s OutgoingSnapshot) Write(storage raftlog.Storage, w io.Writer) error {
	var b bytes.Buffer
	pieces := raftlog.InPieces(s.Tables)
	err := raftlog.ReadView(storage, func(r raftlog.Reader) error {
		if err := s.collectHead(&b, r); err != nil || pieces {
			return err
		}
		return s.collectRows(&b, r)
	})
	if err != nil {
		return fmt.Errorf("make snapshot of group %d: %w", s.Group, err)
	}
	if pieces {
		return s.writePieces(storage, &b, w)
	}
	return s.send(&b, w)
}

// send writes what has been collected.
func (s OutgoingSnapshot) send(b *bytes.Buffer, w io.Writer) error {
	for b.Len() > 0 {
		if _, err := w.Write(b.Next(256 << 10)); err != nil {
			return fmt.Errorf("send snapshot of group %d: %w", s.Group, err)
		}
	}
	return nil
}

// sentPiece is how many bytes of rows are collected at a time.
const sentPiece = 1 << 20

// writePieces writes the rows in pieces, after what has been collected.
func (s OutgoingSnapshot) writePieces(storage raftlog.Storage, b *bytes.Buffer, w io.Writer) error {
	rows := uint64(0)
	full := errors.New("full")
	for i, t := range s.Tables {
		from := t.Prefix
		for {
			err := kv.ScanFrom(storage, t.Table, t.Prefix, from, func(key, value []byte) error {
				if b.Len() >= sentPiece {
					from = bytes.Clone(key)
					return full
				}
				appendRow(b, i, key[len(t.Prefix):], value)
				rows++
				return nil
			})
			if err != nil && !errors.Is(err, full) {
				return fmt.Errorf("make snapshot of group %d: %w", s.Group, err)
			}
			if failed := s.send(b, w); failed != nil {
				return failed
			}
			if err == nil {
				break
			}
		}
	}
	appendEnd(b, rows)
	return s.send(b, w)
}

// appendRow appends a row of the table with the number i.
func appendRow(b *bytes.Buffer, i int, key, value []byte) {
	b.WriteByte(byte(i + 1))
	appendStr32(b, key)
	appendStr32(b, value)
}

func appendStr32(b *bytes.Buffer, v []byte) {
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(v))))
	b.Write(v)
}

// appendEnd appends the end of the rows.
func appendEnd(b *bytes.Buffer, rows uint64) {
	b.WriteByte(0)
	b.Write(binary.BigEndian.AppendUint64(nil, rows))
}

func (s OutgoingSnapshot) collectHead(b *bytes.Buffer, r raftlog.Reader) error {
	value, err := r.Get(raftlog.TableState, raftlog.StateKey(s.Group, raftlog.KindState))
	if err != nil {
		return err
	}
	st, err := raftlog.DecodeState(value)
	if err != nil {
		return err
	}
	term := st.StartTerm
	if st.Applied > st.Start {
		key := raftlog.LogKey(s.Group, st.Applied)
		if value, err = r.Get(raftlog.TableLog, key); err != nil {
			return err
		}
		if _, term, _, err = raftlog.DecodeEntryHead(key, value); err != nil {
			return err
		}
	}
	conf, err := r.Get(raftlog.TableState, raftlog.StateKey(s.Group, raftlog.KindConfig))
	if err != nil {
		return err
	}
	b.WriteByte(snapshotVersion)
	for _, v := range [...]uint64{s.From, s.To, s.Term, st.Applied, term} {
		b.Write(binary.BigEndian.AppendUint64(nil, v))
	}
	appendStr32(b, conf)
	b.WriteByte(byte(len(s.Tables)))
	for _, t := range s.Tables {
		b.WriteByte(byte(len(t.Table)))
		b.WriteString(t.Table)
		b.WriteByte(byte(len(t.Prefix)))
		b.Write(t.Prefix)
	}
	return nil
}

func (s OutgoingSnapshot) collectRows(b *bytes.Buffer, r raftlog.Reader) error {
	rows, size := uint64(0), 0
	for i, t := range s.Tables {
		err := r.Scan(t.Table, t.Prefix, func(key, value []byte) error {
			if size += len(key) + len(value) + rowOverhead; size > s.Limit {
				return fmt.Errorf("%w: more than %d bytes", ErrSnapshotSize, s.Limit)
			}
			appendRow(b, i, key[len(t.Prefix):], value)
			rows++
			return nil
		})
		if err != nil {
			return err
		}
	}
	appendEnd(b, rows)
	return nil
}

// Snapshot is a received snapshot.
type Snapshot struct {
	From, To, Term   uint64                 // replica ids; the sender's term
	Index, EntryTerm uint64                 // the applied index, and the term of that entry
	Conf             *raftlog.Configuration // as the receiver stores it
	Rows             []kv.Write             // ascending by table and key; without those that Store has stored
	// Store, if not nil, stores rows of tables in pieces, whenever Rows has so many bytes as Piece. They are deleted
	// from Rows then.
	Store func(rows []kv.Write) error
	Piece int
	// Stored reports whether all rows were stored by Store.
	Stored bool
}

// Decode reads a snapshot of these tables. Budget is called before n bytes are allocated, and what is allocated is
// bounded by what was read, too. The head is checked, also by admit, before the rows are read.
func (s *Snapshot) Decode(r io.Reader, tables []raftlog.TablePrefix, admit func() error, budget func(n int) error) error {
	malformed := func(err error) error { return fmt.Errorf("%w: %w", ErrImplausible, err) }
	held := 0 // bytes of the rows
	d := decoder{r: r, budget: func(n int) error {
		held += n
		return budget(n)
	}}
	if version := d.u8(); d.err == nil && version != snapshotVersion {
		return malformed(fmt.Errorf("version %d", version))
	}
	for _, v := range [...]*uint64{&s.From, &s.To, &s.Term, &s.Index, &s.EntryTerm} {
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
	last, rows := 0, uint64(0)
	var before []byte // key of the last row
	held = 0
	store := func() error {
		err := s.Store(s.Rows)
		s.Rows, s.Stored = nil, true
		return errors.Join(err, budget(-held))
	}
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
			d.err = d.budget(rowOverhead)
		}
		if value == nil {
			value = []byte{} // a nil value would delete
		}
		key = append(bytes.Clone(t.Prefix), key...)
		if d.err == nil && (len(key) == 0 || table == last && bytes.Compare(key, before) <= 0) {
			return malformed(errors.New("row without a key, or out of order"))
		}
		s.Rows, last, before = append(s.Rows, kv.Write{Table: t.Table, Key: key, Value: value}), table, key
		if rows++; d.err == nil && s.Store != nil && held >= s.Piece {
			d.err = store()
			held = 0
		}
	}
	if announced := d.u64(); d.err == nil && announced != rows {
		return malformed(fmt.Errorf("%d rows, announced %d", rows, announced))
	}
	if d.err == nil && s.Stored {
		return store()
	}
	return d.failed()
}

// check validates the head.
func (s *Snapshot) check(conf []byte) error {
	if s.Term == 0 || s.Term > raftlog.MaxNumber || s.EntryTerm == 0 || s.EntryTerm > s.Term || s.Index == 0 || s.Index > raftlog.MaxNumber {
		return fmt.Errorf("entry %d of term %d in term %d", s.Index, s.EntryTerm, s.Term)
	}
	c, err := raftlog.DecodeConfiguration(conf)
	if err != nil {
		return err
	}
	if c.Index == 0 || c.Index > s.Index {
		return fmt.Errorf("configuration %d at entry %d", c.Index, s.Index)
	}
	c.Own = s.To
	s.Conf = c
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
