package raftlog

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Log is raft's view of a group's storage: exactly what is durable. It implements raft.Storage. It holds the terms of
// all entries (as runs), and the newest entries themselves; older ones it reads from the tables. Owned by the goroutine
// of replica.Host.Run.
type Log struct {
	storage Reader
	group   uint64
	Hard    *raftpb.HardState // for InitialState: as of the last (re)start of the raft node
	Conf    *Configuration

	Start, StartTerm uint64 // the entry before the first one
	Last             uint64 // index of the last entry; Start when there is none
	runs             []run  // terms of the entries (Start, Last], ascending; the first may begin before them
	tail             []*raftpb.Entry
	tailBytes        int

	// Stale ≥ Last is the highest index that may be found in the table: entries in (Last, Stale] come from a commit
	// that failed and may still have been written. They are deleted with the next write.
	Stale uint64

	// Changes are the configuration changes in the log that are not in force yet, ascending. An honest log has at most
	// one.
	Changes []LoggedChange
	Changed bool // Changes were added or removed since this was last set to false

	// SnapshotHead returns the head of a snapshot for a member that is too far behind. Nil: there are none.
	SnapshotHead func() (*raftpb.Snapshot, error)
}

// LoggedChange is a configuration change in the log.
type LoggedChange struct {
	Index uint64
	Change
}

// run: the entries from index from to the next run's have this term.
type run struct{ from, term uint64 }

// MaxTailBytes bounds the newest entries kept in memory for slower members; a group of one keeps none.
const MaxTailBytes = 64 << 10

var _ raft.Storage = (*Log)(nil)

// LoadLog reads the terms of a stored log and checks that it has no gaps.
func LoadLog(storage Reader, group uint64, s State, conf *Configuration) (*Log, error) {
	l := &Log{storage: storage, group: group, Conf: conf, Start: s.Start, StartTerm: s.StartTerm, Last: s.Start}
	lastTerm := s.StartTerm
	err := storage.Scan(TableLog, GroupPrefix(group), func(key, value []byte) error {
		index, term, kind, err := DecodeEntryHead(key, value)
		if err != nil {
			return err
		}
		if index != l.Last+1 || term < lastTerm || term > s.Term {
			return fmt.Errorf("%w: entry %d of term %d after entry %d of term %d", kv.ErrDamaged, index, term, l.Last, lastTerm)
		}
		if kind != raftpb.EntryNormal && index > s.Applied {
			c, err := DecodeChange(value[entryHead:])
			if err != nil {
				return fmt.Errorf("%w: entry %d: %w", kv.ErrDamaged, index, err)
			}
			l.Changes = append(l.Changes, LoggedChange{Index: index, Change: c})
		}
		l.extend(index, term)
		lastTerm = term
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load log: %w", err)
	}
	if s.Commit > l.Last {
		return nil, fmt.Errorf("load log: %w: %d entries are committed, the last is %d", kv.ErrDamaged, s.Commit, l.Last)
	}
	l.Stale = l.Last
	return l, nil
}

func (l *Log) extend(index, term uint64) {
	if n := len(l.runs); n == 0 || l.runs[n-1].term != term {
		l.runs = append(l.runs, run{from: index, term: term})
	}
	l.Last = index
}

// InitialState implements raft.Storage.
func (l *Log) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	return l.Hard, l.Conf.ConfState(), nil
}

// FirstIndex implements raft.Storage.
func (l *Log) FirstIndex() (uint64, error) { return l.Start + 1, nil }

// LastIndex implements raft.Storage.
func (l *Log) LastIndex() (uint64, error) { return l.Last, nil }

// Snapshot implements raft.Storage. It returns the head only; the rows go from the tables to a stream.
func (l *Log) Snapshot() (*raftpb.Snapshot, error) {
	if l.SnapshotHead == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return l.SnapshotHead()
}

// Term implements raft.Storage.
func (l *Log) Term(i uint64) (uint64, error) {
	switch {
	case i < l.Start:
		return 0, raft.ErrCompacted
	case i > l.Last:
		return 0, raft.ErrUnavailable
	case i == l.Start:
		return l.StartTerm, nil
	}
	for n := len(l.runs) - 1; n >= 0; n-- {
		if l.runs[n].from <= i {
			return l.runs[n].term, nil
		}
	}
	return 0, raft.ErrUnavailable
}

// Entries implements raft.Storage.
func (l *Log) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if lo <= l.Start {
		return nil, raft.ErrCompacted
	}
	if hi > l.Last+1 {
		return nil, raft.ErrUnavailable
	}
	var entries []*raftpb.Entry
	size := uint64(0)
	for i := lo; i < hi; i++ {
		entry, err := l.Entry(i)
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

// Entry returns the entry at index i.
func (l *Log) Entry(i uint64) (*raftpb.Entry, error) {
	if first := l.Last + 1 - uint64(len(l.tail)); i >= first {
		return l.tail[i-first], nil
	}
	key := LogKey(l.group, i)
	value, err := l.storage.Get(TableLog, key)
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

// AppendWrites adds the writes that store entries and delete all others from the first of them on. Without entries it
// only deletes what a failed commit may have left behind.
func (l *Log) AppendWrites(writes []kv.Write, entries []*raftpb.Entry) []kv.Write {
	last := l.Last
	for _, entry := range entries {
		last = entry.GetIndex()
		key := LogKey(l.group, last)
		writes = append(writes, kv.Write{Table: TableLog, Key: key, Value: encodeEntry(entry)})
	}
	for i := last + 1; i <= l.Stale; i++ {
		writes = append(writes, kv.Write{Table: TableLog, Key: LogKey(l.group, i)})
	}
	return writes
}

// Append adds entries that the writes of AppendWrites have made durable.
func (l *Log) Append(entries []*raftpb.Entry) {
	if len(entries) > 0 {
		l.cut(entries[0].GetIndex())
		for _, entry := range entries {
			l.extend(entry.GetIndex(), entry.GetTerm())
			l.tail = append(l.tail, entry)
			l.tailBytes += len(entry.GetData()) + EntryOverhead
			if entry.GetType() != raftpb.EntryNormal {
				if c, err := DecodeChange(entry.GetData()); err == nil { // received messages have no other
					l.Changes, l.Changed = append(l.Changes, LoggedChange{Index: entry.GetIndex(), Change: c}), true
				}
			}
		}
	}
	l.Stale = l.Last
}

// ResetWrites adds the writes that delete the whole log.
func (l *Log) ResetWrites(writes []kv.Write) []kv.Write {
	return l.CompactWrites(writes, max(l.Last, l.Stale))
}

// Reset discards the whole log: a snapshot of this index and term replaced it.
func (l *Log) Reset(index, term uint64) {
	*l = Log{
		storage: l.storage, group: l.group, Hard: l.Hard, Conf: l.Conf, SnapshotHead: l.SnapshotHead,
		Start: index, StartTerm: term, Last: index, Stale: index, Changed: true,
	}
}

// cut discards the entries from index on.
func (l *Log) cut(index uint64) {
	if index > l.Last {
		return
	}
	if first := l.Last + 1 - uint64(len(l.tail)); index <= first {
		l.tail, l.tailBytes = nil, 0
	} else {
		for _, entry := range l.tail[index-first:] {
			l.tailBytes -= len(entry.GetData()) + EntryOverhead
		}
		l.tail = slices.Clone(l.tail[:index-first])
	}
	for len(l.runs) > 0 && l.runs[len(l.runs)-1].from >= index {
		l.runs = l.runs[:len(l.runs)-1]
	}
	for n := len(l.Changes); n > 0 && l.Changes[n-1].Index >= index; n-- {
		l.Changes, l.Changed = l.Changes[:n-1], true
	}
	l.Last = index - 1
}

// Shorten bounds the entries kept in memory: those after keep, and of these no more than maxBytes.
func (l *Log) Shorten(keep uint64, maxBytes int) {
	n := 0
	first := l.Last + 1 - uint64(len(l.tail))
	for n < len(l.tail) && (first+uint64(n) <= keep || l.tailBytes > maxBytes) {
		l.tailBytes -= len(l.tail[n].GetData()) + EntryOverhead
		n++
	}
	clear(l.tail[:n])
	if l.tail = l.tail[n:]; len(l.tail) == 0 {
		l.tail = nil
	}
}

// CompactWrites adds the writes that delete the entries up to index to.
func (l *Log) CompactWrites(writes []kv.Write, to uint64) []kv.Write {
	for i := l.Start + 1; i <= to; i++ {
		writes = append(writes, kv.Write{Table: TableLog, Key: LogKey(l.group, i)})
	}
	return writes
}

// Compact discards the entries up to index to, after the writes of CompactWrites have become durable.
func (l *Log) Compact(to uint64) {
	if to <= l.Start {
		return
	}
	term, err := l.Term(to)
	if err != nil {
		panic(errors.Join(errors.New("compacting beyond the log"), err)) // to is below the applied index
	}
	l.Shorten(to, MaxTailBytes)
	for len(l.runs) > 1 && l.runs[1].from <= to+1 {
		l.runs = l.runs[1:]
	}
	l.Start, l.StartTerm = to, term
}
