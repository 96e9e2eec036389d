package world

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file splits a region between the two halves of its cell (docs/adr/0031). The split is an entry in the region's log: the
// parent of both children. Its members make the children's groups with the rows of Children when they apply it, and then call Split.

// splitVersion is the first byte of a split; batches and barriers have versions of their own there.
const splitVersion = 3

// EncodeSplit returns the log entry that splits a region. It takes effect unless the region is split, or a single chunk.
func EncodeSplit() []byte { return []byte{splitVersion} }

// IsSplit reports whether a log entry is a split.
func IsSplit(entry []byte) bool { return len(entry) > 0 && entry[0] == splitVersion }

func (l *Land) applySplit(index uint64, entry []byte) (Outcome, error) {
	if len(entry) != 1 {
		return Outcome{}, fmt.Errorf("apply entry %d: %w", index, errBatch)
	}
	return Outcome{Splits: l.split == 0 && l.cell.Label.Len() < grid.MaxLabel}, nil
}

// SplitIndex returns the log index of the entry that split the region; 0 if it is not split.
func (l *Land) SplitIndex() uint64 { return l.split }

// Child is one of the two regions that a split makes.
type Child struct {
	ID   uint64
	Cell grid.Cell
	Rows []kv.Write // its land
}

// Children returns both halves of the land for a split by the entry at the index: the pins and the edits of each half's chunks, and
// every player's sequences in both, because a player may have edited in both.
func (l *Land) Children(index uint64) [2]Child {
	var children [2]Child
	lower, upper := l.cell.Children()
	for half, cell := range [2]grid.Cell{lower, upper} {
		child := NewLand(ChildID(l.id, index, half), cell, l.height)
		for pos, g := range l.pinned {
			if cell.Contains(pos) {
				child.pinned[pos] = g // only read
			}
		}
		child.recents = l.recents
		children[half] = Child{ID: child.id, Cell: cell, Rows: child.rows()}
	}
	return children
}

// rows returns all rows, by the order of their keys.
func (l *Land) rows() []kv.Write {
	var writes []kv.Write
	put := func(key, value []byte) {
		writes = append(writes, kv.Write{Table: LandTable, Key: append([]byte(nil), key...), Value: append([]byte(nil), value...)})
	}
	for _, part := range l.Parts() {
		l.Rows(part, put)
	}
	return writes
}

// Split removes everything from the land, which its children have, and records the split. Writes must have been called before, so
// that no row is outstanding. It returns the writes that do the same to the table.
func (l *Land) Split(index uint64) []kv.Write {
	writes := l.rows()
	for i := range writes {
		writes[i].Value = nil
	}
	after := NewLand(l.id, l.cell, l.height)
	after.split = index
	*l = *after
	return append(writes, kv.Write{Table: LandTable, Key: l.splitKey(), Value: binary.BigEndian.AppendUint64(nil, index)})
}

// SplitIn reads the split of a region from its table; 0 if the region is not split, or not stored.
func SplitIn(get func(table string, key []byte) ([]byte, error), id uint64) (uint64, error) {
	row, err := get(LandTable, NewLand(id, grid.Cell{}, 0).splitKey())
	if err != nil || row == nil {
		return 0, err
	}
	if len(row) != 8 {
		return 0, fmt.Errorf("%w: split of region %d", errRow, id)
	}
	return binary.BigEndian.Uint64(row), nil
}

func (l *Land) splitKey() []byte { return append(l.Prefix(), keySplit) }

// ChildID returns the id of a child (half 0 or 1) of the region that is split by the entry at the index. Like childID, it is unique
// for ever, and the same on every replica.
func ChildID(parent, index uint64, half int) uint64 {
	b := binary.BigEndian.AppendUint64(nil, parent)
	b = binary.BigEndian.AppendUint64(b, index)
	sum := sha256.Sum256(append(b, byte(half)))
	return max(binary.BigEndian.Uint64(sum[:8]), CatalogID+1)
}

// ChildrenOf describes the children of a split region at the time of its split: with the members that the region has in info.
func ChildrenOf(info nodemsg.Region) [2]nodemsg.Region {
	var children [2]nodemsg.Region
	lower, upper := info.Cell.Children()
	for half, cell := range [2]grid.Cell{lower, upper} {
		child := info
		child.ID, child.Cell, child.Split = ChildID(info.ID, info.Split, half), cell, 0
		child.Epoch = info.SplitEpoch()
		children[half] = child
	}
	return children
}
