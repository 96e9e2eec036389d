package world

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file merges the children of a split region (docs/adr/0031). First an entry in each child's log freezes it: no
// later edit has a result. Then an entry in the parent's log has the land of both. Who began it may die in between: so
// each attempt has a number, which the parent gives out. A merge takes effect only in the attempt that is under way;
// when the parent has abandoned that, a frozen child may be thawed.

// Step is what an entry did to a region's structure.
type Step int

// The steps. With Splits, the region still has everything until Split is called; the others have taken effect.
const (
	NoStep Step = iota
	Splits
	Froze
	Thawed
	Merged
	Abandoned
	Vacated
)

// The second byte of the entries of this file. The attempt follows (uvarint).
const (
	kindFreeze = iota
	kindThaw
	kindMerge // with the rows of both children, each with its length (uvarint)
	kindAbandon
)

func encodeMerging(kind byte, attempt uint64) []byte {
	return binary.AppendUvarint([]byte{tagMerge, kind}, attempt)
}

// EncodeFreeze returns the log entry that freezes a child for an attempt.
func EncodeFreeze(attempt uint64) []byte { return encodeMerging(kindFreeze, attempt) }

// EncodeThaw returns the log entry that ends a child's freeze by an attempt.
func EncodeThaw(attempt uint64) []byte { return encodeMerging(kindThaw, attempt) }

// EncodeAbandon returns the log entry that ends an attempt of the parent, and all before it. (A parent from a backup
// may be behind its children, which were frozen later.)
func EncodeAbandon(attempt uint64) []byte { return encodeMerging(kindAbandon, attempt) }

// EncodeMerge returns the log entry that merges the children into the parent: rows are those of the frozen lower and
// upper child, as PackedRows returns them.
func EncodeMerge(attempt uint64, rows [2][]byte) []byte {
	entry := encodeMerging(kindMerge, attempt)
	for _, some := range rows {
		entry = append(binary.AppendUvarint(entry, uint64(len(some))), some...)
	}
	return entry
}

var errMerging = errors.New("malformed entry of a merge")

// applyMerging applies an entry of this file. One that does not fit the structure changes nothing.
func (l *Land) applyMerging(index uint64, entry []byte) (Step, error) {
	if len(entry) < 2 {
		return NoStep, errMerging
	}
	r := reader{data: entry[2:]}
	attempt := r.uvarint()
	var rows [2][]byte
	if entry[1] == kindMerge {
		for half := range rows {
			rows[half] = r.bytes(r.count(1))
		}
	}
	if r.bad || len(r.data) != 0 || entry[1] > kindAbandon {
		return NoStep, errMerging
	}
	s := &l.structure
	switch kind := entry[1]; {
	case kind == kindFreeze && s.Parent != 0 && s.Split == 0 && attempt+1 >= s.Frozen:
		s.Frozen = attempt + 1
		l.dirtyRows.structure = true
		return Froze, nil
	case kind == kindThaw && s.Frozen == attempt+1:
		s.Frozen = 0
		l.dirtyRows.structure = true
		return Thawed, nil
	case kind == kindAbandon && s.Split != 0 && attempt >= s.Attempt && attempt < math.MaxUint64:
		s.Attempt = attempt + 1
		l.dirtyRows.structure = true
		return Abandoned, nil
	case kind == kindMerge && s.Split != 0 && attempt == s.Attempt:
		if err := l.merge(index, rows); err != nil {
			return NoStep, err
		}
		return Merged, nil
	}
	return NoStep, nil
}

// merge takes over the land of both children. After an error nothing has changed.
func (l *Land) merge(index uint64, packed [2][]byte) error {
	lower, upper := l.cell.Children()
	merged := NewLand(l.id, l.cell, l.height)
	merged.structure, merged.Proofs = l.structure, l.Proofs
	for half, cell := range [2]grid.Cell{lower, upper} {
		child := NewLand(ChildID(l.id, l.structure.Split, half), cell, l.height)
		data, err := nodemsg.UnpackPart(packed[half])
		if err != nil {
			return fmt.Errorf("merge %v: %w", cell, err)
		}
		rows, err := DecodeRows(data)
		for _, row := range rows {
			if err == nil {
				err = child.Load(row.Key, row.Value)
			}
		}
		if err != nil {
			return fmt.Errorf("merge %v: %w", cell, err)
		}
		merged.structure.Edited = merged.structure.Edited || child.structure.Edited
		for pos, g := range child.pinned {
			merged.pinned[pos] = g
			merged.dirtyRows.pins[pos] = struct{}{}
			for at := range g.edits.All() {
				merged.dirtyRows.edits[place{pos, at}] = struct{}{}
			}
			for id := range g.inbox.all() {
				merged.dirtyRows.events[EventAt{pos, id}] = struct{}{}
			}
			g.history.All(func(number uint32, _ []byte, _ int64) { merged.dirtyRows.history[segmentAt{pos, number}] = struct{}{} })
		}
		for _, name := range slices.Sorted(maps.Keys(child.mods)) {
			before := merged.mods[name]
			if before == nil && len(merged.mods) >= mod.MaxKnownMods {
				continue // a leader has made up the others
			}
			merged.mods[name] = mergeMod(before, child.mods[name])
			merged.dirtyRows.mods[name] = struct{}{}
		}
		for id, r := range child.recents {
			merged.recents[id] = mergeRecent(merged.recents[id], r)
			merged.dirtyRows.players[id] = struct{}{}
		}
		// Who proposes the merge sees to it that they are the same. Otherwise what is complete in one half only would
		// begin again there, and an order that has arrived in one half only would arrive there again, after what was
		// built since.
		if half == 0 || child.rolledBack < merged.rolledBack {
			merged.rolledBack = child.rolledBack
		}
		if half == 0 || child.marked < merged.marked {
			merged.marked = child.marked
		}
	}
	merged.structure.Split, merged.structure.Merged = 0, index
	merged.structure.Attempt++
	merged.dirtyRows.structure, merged.dirtyRows.orders = true, merged.ordersRow() != nil
	merged.countMods()
	merged.dropEvents(index) // of a mod that one half has still known to act
	merged.evictPlayers(index)
	for _, r := range merged.recents {
		r.last = min(r.last, index) // the children's logs may be ahead of this one
	}
	*l = *merged
	return nil
}

// mergeRecent returns what two regions have recorded of a player's edits: the newest sequences of both. A may be nil.
func mergeRecent(a, b *recent) *recent {
	if a == nil {
		a = &recent{}
	}
	uses := slices.SortedFunc(slices.Values(slices.Concat(a.uses, b.uses)), func(a, b use) int { return cmp.Compare(a.seq, b.seq) })
	uses = slices.CompactFunc(uses, func(a, b use) bool { return a.seq == b.seq }) // from before the split
	return &recent{uses: uses[max(0, len(uses)-recentWindow):], last: max(a.last, b.last)}
}

// PackedRows returns the land for EncodeMerge. Passed is the number of the last rollback that is complete here, or does
// not concern the region, and arrived that of the last order that has arrived, or does not concern it: such ones are
// not recorded.
func (l *Land) PackedRows(passed, arrived int64) ([]byte, error) {
	packed := *l
	packed.rolledBack, packed.marked = max(l.rolledBack, passed), max(l.marked, arrived)
	return nodemsg.PackPart(EncodeRows(packed.rows()))
}

// OrdersOf returns of packed rows which rollbacks are complete, and which orders have arrived: the same bytes if they
// are the same.
func OrdersOf(packed []byte) ([]byte, error) {
	data, err := nodemsg.UnpackPart(packed)
	if err != nil {
		return nil, err
	}
	rows, err := DecodeRows(data)
	for _, row := range rows {
		if len(row.Key) == 9 && row.Key[8] == keyOrders {
			return row.Value, err
		}
	}
	return nil, err
}
