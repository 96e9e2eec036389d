package replica

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/kv"
)

// log is raft's view of a group's storage: exactly what is durable. It implements raft.Storage. It holds the terms of all
// entries (as runs), and the newest entries themselves; older ones it reads from the tables. Owned by Host.Run.
type log struct {
	storage Storage
	group   uint64
	hard    *raftpb.HardState // for InitialState: as of the last (re)start of the raft node
	conf    *configuration

	start, startTerm uint64 // the entry before the first one
	last             uint64 // index of the last entry; start when there is none
	runs             []run  // terms of the entries (start, last], ascending; the first may begin before them
	tail             []*raftpb.Entry
	tailBytes        int

	// stale ≥ last is the highest index that may be found in the table: entries in (last, stale] come from a commit
	// that failed and may still have been written. They are deleted with the next write.
	stale uint64

	// changes are the configuration changes in the log that are not in force yet, ascending. An honest log has at most
	// one.
	changes []logged
	changed bool // changes were added or removed

	// snapshot returns the head of a snapshot for a member that is too far behind. Nil: there are none.
	snapshot func() (*raftpb.Snapshot, error)
}

// logged is a configuration change in the log.
type logged struct {
	index uint64
	change
}

// run: the entries from index from to the next run's have this term.
type run struct{ from, term uint64 }

// maxTailBytes bounds the newest entries kept in memory for slower members; a group of one keeps none.
const maxTailBytes = 64 << 10

var _ raft.Storage = (*log)(nil)

// loadLog reads the terms of a stored log and checks that it has no gaps.
func loadLog(storage Storage, group uint64, s state, conf *configuration) (*log, error) {
	l := &log{storage: storage, group: group, conf: conf, start: s.start, startTerm: s.startTerm, last: s.start}
	lastTerm := s.startTerm
	err := storage.Scan(tableLog, groupPrefix(group), func(key, value []byte) error {
		index, term, kind, err := decodeEntryHead(key, value)
		if err != nil {
			return err
		}
		if index != l.last+1 || term < lastTerm || term > s.term {
			return fmt.Errorf("%w: entry %d of term %d after entry %d of term %d", kv.ErrDamaged, index, term, l.last, lastTerm)
		}
		if kind != raftpb.EntryNormal && index > s.applied {
			c, err := decodeChange(value[entryHead:])
			if err != nil {
				return fmt.Errorf("%w: entry %d: %w", kv.ErrDamaged, index, err)
			}
			l.changes = append(l.changes, logged{index: index, change: c})
		}
		l.extend(index, term)
		lastTerm = term
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load log: %w", err)
	}
	if s.commit > l.last {
		return nil, fmt.Errorf("load log: %w: %d entries are committed, the last is %d", kv.ErrDamaged, s.commit, l.last)
	}
	l.stale = l.last
	return l, nil
}

func (l *log) extend(index, term uint64) {
	if n := len(l.runs); n == 0 || l.runs[n-1].term != term {
		l.runs = append(l.runs, run{from: index, term: term})
	}
	l.last = index
}

// InitialState implements raft.Storage.
func (l *log) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	return l.hard, l.conf.confState(), nil
}

// FirstIndex implements raft.Storage.
func (l *log) FirstIndex() (uint64, error) { return l.start + 1, nil }

// LastIndex implements raft.Storage.
func (l *log) LastIndex() (uint64, error) { return l.last, nil }

// Snapshot implements raft.Storage. It returns the head only; the rows go from the tables to a stream.
func (l *log) Snapshot() (*raftpb.Snapshot, error) {
	if l.snapshot == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return l.snapshot()
}

// Term implements raft.Storage.
func (l *log) Term(i uint64) (uint64, error) {
	switch {
	case i < l.start:
		return 0, raft.ErrCompacted
	case i > l.last:
		return 0, raft.ErrUnavailable
	case i == l.start:
		return l.startTerm, nil
	}
	for n := len(l.runs) - 1; n >= 0; n-- {
		if l.runs[n].from <= i {
			return l.runs[n].term, nil
		}
	}
	return 0, raft.ErrUnavailable
}

// Entries implements raft.Storage.
func (l *log) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if lo <= l.start {
		return nil, raft.ErrCompacted
	}
	if hi > l.last+1 {
		return nil, raft.ErrUnavailable
	}
	var entries []*raftpb.Entry
	size := uint64(0)
	for i := lo; i < hi; i++ {
		entry, err := l.entry(i)
		if err != nil {
			return nil, err
		}
		size += uint64(proto.Size(entry))
		if len(entries) > 0 && size > maxSize {
			break
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func (l *log) entry(i uint64) (*raftpb.Entry, error) {
	if first := l.last + 1 - uint64(len(l.tail)); i >= first {
		return l.tail[i-first], nil
	}
	key := logKey(l.group, i)
	value, err := l.storage.Get(tableLog, key)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", i, err)
	}
	if value == nil {
		return nil, fmt.Errorf("read entry %d: %w: it is missing", i, kv.ErrDamaged)
	}
	entry, err := decodeEntry(key, value)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", i, err)
	}
	return entry, nil
}

// appendWrites adds the writes that store entries and delete all others from the first of them on. Without entries it
// only deletes what a failed commit may have left behind.
func (l *log) appendWrites(writes []kv.Write, entries []*raftpb.Entry) []kv.Write {
	last := l.last
	for _, entry := range entries {
		last = entry.GetIndex()
		key := logKey(l.group, last)
		writes = append(writes, kv.Write{Table: tableLog, Key: key, Value: encodeEntry(entry)})
	}
	for i := last + 1; i <= l.stale; i++ {
		writes = append(writes, kv.Write{Table: tableLog, Key: logKey(l.group, i)})
	}
	return writes
}

// append adds entries that the writes of appendWrites have made durable.
func (l *log) append(entries []*raftpb.Entry) {
	if len(entries) > 0 {
		l.cut(entries[0].GetIndex())
		for _, entry := range entries {
			l.extend(entry.GetIndex(), entry.GetTerm())
			l.tail = append(l.tail, entry)
			l.tailBytes += len(entry.GetData()) + entryOverhead
			if entry.GetType() != raftpb.EntryNormal {
				if c, err := decodeChange(entry.GetData()); err == nil { // the gate admits no other
					l.changes, l.changed = append(l.changes, logged{index: entry.GetIndex(), change: c}), true
				}
			}
		}
	}
	l.stale = l.last
}

// resetWrites adds the writes that delete the whole log.
func (l *log) resetWrites(writes []kv.Write) []kv.Write {
	return l.compactWrites(writes, max(l.last, l.stale))
}

// reset discards the whole log: a snapshot of this index and term replaced it.
func (l *log) reset(index, term uint64) {
	*l = log{
		storage: l.storage, group: l.group, hard: l.hard, conf: l.conf, snapshot: l.snapshot,
		start: index, startTerm: term, last: index, stale: index, changed: true,
	}
}

// cut discards the entries from index on.
func (l *log) cut(index uint64) {
	if index > l.last {
		return
	}
	if first := l.last + 1 - uint64(len(l.tail)); index <= first {
		l.tail, l.tailBytes = nil, 0
	} else {
		for _, entry := range l.tail[index-first:] {
			l.tailBytes -= len(entry.GetData()) + entryOverhead
		}
		l.tail = slices.Clone(l.tail[:index-first])
	}
	for len(l.runs) > 0 && l.runs[len(l.runs)-1].from >= index {
		l.runs = l.runs[:len(l.runs)-1]
	}
	for n := len(l.changes); n > 0 && l.changes[n-1].index >= index; n-- {
		l.changes, l.changed = l.changes[:n-1], true
	}
	l.last = index - 1
}

// shorten bounds the entries kept in memory: those after keep, and of these no more than maxBytes.
func (l *log) shorten(keep uint64, maxBytes int) {
	n := 0
	first := l.last + 1 - uint64(len(l.tail))
	for n < len(l.tail) && (first+uint64(n) <= keep || l.tailBytes > maxBytes) {
		l.tailBytes -= len(l.tail[n].GetData()) + entryOverhead
		n++
	}
	clear(l.tail[:n])
	if l.tail = l.tail[n:]; len(l.tail) == 0 {
		l.tail = nil
	}
}

// compactWrites adds the writes that delete the entries up to index to.
func (l *log) compactWrites(writes []kv.Write, to uint64) []kv.Write {
	for i := l.start + 1; i <= to; i++ {
		writes = append(writes, kv.Write{Table: tableLog, Key: logKey(l.group, i)})
	}
	return writes
}

// compact discards the entries up to index to, after the writes of compactWrites have become durable.
func (l *log) compact(to uint64) {
	if to <= l.start {
		return
	}
	term, err := l.Term(to)
	if err != nil {
		panic(errors.Join(errors.New("compacting beyond the log"), err)) // to is below the applied index
	}
	l.shorten(to, maxTailBytes)
	for len(l.runs) > 1 && l.runs[1].from <= to+1 {
		l.runs = l.runs[1:]
	}
	l.start, l.startTerm = to, term
}
