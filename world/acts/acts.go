// Package acts lists the commands that make a world's policy, in the catalog's log. It is a step machine, as package
// world is.
package acts

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Table is the table of the catalog's acts: number as u64 big-endian, from 1 on → encoded act.
const Table = "acts"

// Key returns the key of an act.
func Key(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// Log is the part of the catalog that lists the commands which make the world's policy, in order. What they mean,
// package policy decides on every node. Applying an entry twice changes nothing.
type Log struct {
	stored   func(number uint64) []byte // the encoded act in a stored row; nil if there is none
	digests  []nodemsg.ActsDigest       // after the first, the first two, and so on
	last     map[player.ID]uint64       // the last sequence number of each key
	unstored []unstoredAct              // acts that may not be stored yet, in order
}

type unstoredAct struct {
	act   nodemsg.Act
	index uint64 // of the entry
}

// New returns the acts of a catalog, which reads stored ones when it needs them. Load must be called with all of them.
func New(stored func(number uint64) []byte) *Log {
	return &Log{stored: stored, last: make(map[player.ID]uint64)}
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
		a.last[player.IDOf(act.Key)] = act.Seq
	}
	return err
}

// Count returns the number of acts.
func (a *Log) Count() uint64 { return uint64(len(a.digests)) }

// Digest returns the digest of the first acts. It reports false if there are fewer.
func (a *Log) Digest(of uint64) (nodemsg.ActsDigest, bool) {
	if of == 0 || of > a.Count() {
		return nodemsg.ActsDigest{}, of == 0
	}
	return a.digests[of-1], true
}

// Has reports whether the act is the last one of its key that is listed.
func (a *Log) Has(act nodemsg.Act) bool { return act.Seq == a.last[player.IDOf(act.Key)] }

// Older reports whether a later act of the same key is listed.
func (a *Log) Older(act nodemsg.Act) bool { return act.Seq < a.last[player.IDOf(act.Key)] }

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

// Stored drops from memory what entries up to the index have added, which is stored.
func (a *Log) Stored(index uint64) {
	for len(a.unstored) > 0 && a.unstored[0].index <= index {
		a.unstored = a.unstored[1:]
	}
}

// Unstored returns how many acts are in memory that may not be stored yet.
func (a *Log) Unstored() int { return len(a.unstored) }

// Page returns up to nodemsg.ActsPage of the acts after the first ones.
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
