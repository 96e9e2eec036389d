// Package acts lists the commands that make a world's policy, in the catalog's log. It is a step machine, as package world is.
package acts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Table is the table of the catalog's acts: number as u64 big-endian → encoded act. The numbers begin with 1, or after those that were dropped: then
// the row of number 0 has how many these are, as u64 big-endian, and their digest.
const Table = "acts"

// dropsAtOnce bounds how many acts one entry drops.
const dropsAtOnce = 10_000

// Key returns the key of an act.
func Key(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// SnapshotKey returns the key of a part of a snapshot of the policy after the first acts, in a node's copy of the acts.
func SnapshotKey(of uint64, part uint16) []byte { return binary.BigEndian.AppendUint16(Key(of), part) }

// IsSnapshotRow reports whether a row of a node's copy of the acts is of a snapshot. What it has is not verified.
func IsSnapshotRow(row kv.Write) bool {
	return len(row.Key) == len(SnapshotKey(0, 0)) && len(row.Value) <= nodemsg.MaxPolicyPart
}

// Log is the part of the catalog that lists the commands which make the world's policy, in order. What they mean, package policy
// decides on every node. Applying an entry twice changes nothing.
type Log struct {
	stored   func(number uint64) []byte // the encoded act in a stored row; nil if there is none
	dropped  uint64                     // how many acts were dropped
	digests  []nodemsg.ActsDigest       // after those, after one more, and so on
	last     map[player.ID]listed       // the last act of each key, of those that are not dropped
	unstored []unstoredAct              // acts that may not be stored yet, in order
}

// listed is where an act of a key is listed.
type listed struct{ seq, number uint64 }

type unstoredAct struct {
	act   nodemsg.Act
	index uint64 // of the entry
}

// New returns the acts of a catalog, which reads stored ones when it needs them. Load must be called with all of them.
func New(stored func(number uint64) []byte) *Log {
	return &Log{stored: stored, digests: make([]nodemsg.ActsDigest, 1), last: make(map[player.ID]listed)}
}

// dropPrefix begins an entry that drops acts. It is not valid CBOR.
var dropPrefix = []byte("\xffdrop acts ")

// EncodeDrop returns the log entry that drops the first acts: the next one says what they have come to (policy.Compacts).
func EncodeDrop(first uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(dropPrefix), first)
}

// DropIn returns how many acts a log entry drops; false if it is another entry.
func DropIn(entry []byte) (first uint64, is bool) {
	number, is := bytes.CutPrefix(entry, dropPrefix)
	if !is || len(number) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(number), true
}

// EncodeEntry returns the log entry that lists an act.
func EncodeEntry(act nodemsg.Act) ([]byte, error) {
	return nodemsg.EncodeQuestion(nodemsg.Question{Act: &act})
}

// In returns the act of a log entry, nil if the entry has none.
func In(entry []byte) *nodemsg.Act {
	if q, err := nodemsg.DecodeQuestion(entry); err == nil {
		return q.Act
	}
	return nil
}

// Load adds a stored row. Rows come in the order of their keys.
func (a *Log) Load(key, value []byte) error {
	if len(key) == 8 && binary.BigEndian.Uint64(key) == 0 && a.Count() == 0 && len(value) == 8+len(nodemsg.ActsDigest{}) {
		a.dropped, a.digests[0] = binary.BigEndian.Uint64(value), nodemsg.ActsDigest(value[8:])
		return nil
	}
	act, err := nodemsg.DecodeAct(value)
	if err != nil || len(key) != 8 || binary.BigEndian.Uint64(key) != a.Count()+1 {
		return errors.Join(fmt.Errorf("load act %x: it does not follow act %d", key, a.Count()), err)
	}
	return a.note(act)
}

func (a *Log) note(act nodemsg.Act) error {
	before, _ := a.Digest(a.Count())
	digest, err := before.Next(act)
	if err == nil {
		a.digests = append(a.digests, digest)
		a.last[player.IDOf(act.Key)] = listed{act.Seq, a.Count()}
	}
	return err
}

// Count returns the number of acts, with those that were dropped.
func (a *Log) Count() uint64 { return a.dropped + uint64(len(a.digests)) - 1 }

// Dropped returns how many acts were dropped: the first ones.
func (a *Log) Dropped() uint64 { return a.dropped }

// Digest returns the digest of the first acts. It reports false if there are fewer, or more of them were dropped.
func (a *Log) Digest(of uint64) (nodemsg.ActsDigest, bool) {
	if of < a.dropped || of > a.Count() {
		return nodemsg.ActsDigest{}, false
	}
	return a.digests[of-a.dropped], true
}

// Has reports whether the act is the last one of its key that is listed.
func (a *Log) Has(act nodemsg.Act) bool { return act.Seq == a.last[player.IDOf(act.Key)].seq }

// Older reports whether a later act of the same key is listed.
func (a *Log) Older(act nodemsg.Act) bool { return act.Seq < a.last[player.IDOf(act.Key)].seq }

// Apply lists the act of a committed entry, unless it is listed or older.
func (a *Log) Apply(index uint64, act nodemsg.Act) ([]kv.Write, error) {
	if a.Has(act) || a.Older(act) {
		return nil, nil
	}
	value, err := nodemsg.EncodeAct(act)
	if err == nil {
		err = a.note(act)
	}
	if err != nil {
		return nil, fmt.Errorf("apply act in entry %d: %w", index, err)
	}
	if a.stored != nil {
		a.unstored = append(a.unstored, unstoredAct{act, index})
	}
	return []kv.Write{{Table: Table, Key: Key(a.Count()), Value: value}}, nil
}

// Drop drops the first acts, at most dropsAtOnce more than before, of which one is left in any case. What is left depends on the log only: of the
// sequence numbers, too, those of acts that are not dropped are left.
func (a *Log) Drop(first uint64) (writes []kv.Write) {
	first = min(first, a.dropped+dropsAtOnce)
	if first <= a.dropped || first >= a.Count() {
		return nil
	}
	for number := a.dropped + 1; number <= first; number++ {
		writes = append(writes, kv.Write{Table: Table, Key: Key(number)})
	}
	if inMemory := a.Count() - uint64(len(a.unstored)); first > inMemory {
		a.unstored = a.unstored[first-inMemory:]
	}
	a.digests = slices.Clone(a.digests[first-a.dropped:])
	a.dropped = first
	maps.DeleteFunc(a.last, func(_ player.ID, l listed) bool { return l.number <= first })
	value := append(binary.BigEndian.AppendUint64(nil, first), a.digests[0][:]...)
	return append(writes, kv.Write{Table: Table, Key: Key(0), Value: value})
}

// Stored drops from memory what entries up to the index have added, which is stored.
func (a *Log) Stored(index uint64) {
	for len(a.unstored) > 0 && a.unstored[0].index <= index {
		a.unstored = a.unstored[1:]
	}
}

// Unstored returns how many acts are in memory that may not be stored yet.
func (a *Log) Unstored() int { return len(a.unstored) }

// Page returns up to nodemsg.ActsPage of the acts after the first ones, of which those that were dropped are at most as many.
func (a *Log) Page(after uint64) (page []nodemsg.Act, err error) {
	inMemory := a.Count() - uint64(len(a.unstored))
	for number := after; number < a.Count() && len(page) < nodemsg.ActsPage; number++ {
		if number >= inMemory {
			page = append(page, a.unstored[number-inMemory].act)
			continue
		}
		act, err := nodemsg.DecodeAct(a.stored(number + 1))
		if err != nil {
			return nil, fmt.Errorf("read act %d: %w", number+1, err)
		}
		page = append(page, act)
	}
	return page, nil
}
