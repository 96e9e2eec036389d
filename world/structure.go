package world

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// CatalogID is the region id of the catalog. No other region ever has it.
const CatalogID = 1

// Structure is how a region relates to others. The zero value is that of a region that was founded and never split.
type Structure struct {
	Split   uint64 // log index of the entry that split the region; 0 if it is not split
	Merged  uint64 // log index of the last entry that merged it again; 0 if there was none
	Attempt uint64 // of merging its children, that is under way or comes next
	// Parent and ParentSplit are the region whose split made this one, and the index of that; 0 if the catalog founded
	// it.
	Parent, ParentSplit uint64
	Frozen              uint64 // 1 more than the attempt of its parent that has frozen it; 0 if it is not frozen
	Edited              bool   // a batch was applied: there is a history
	Vacated             uint64 // log index of the entry that gave up the region, for good; 0 if it was not given up
}

// RefusesEdits reports whether the region has no land, or must not change it: its edits then have no result.
func (s Structure) RefusesEdits() bool { return s.Split != 0 || s.Frozen != 0 || s.Vacated != 0 }

// encode returns the row of the structure: its fields in order, each u64 big-endian. Edited is 1 or 0. The last two are
// left out if they are 0.
func (s Structure) encode() []byte {
	b := make([]byte, 0, 64)
	for _, field := range [...]uint64{s.Split, s.Merged, s.Attempt, s.Parent, s.ParentSplit, s.Frozen} {
		b = binary.BigEndian.AppendUint64(b, field)
	}
	edited := uint64(0)
	if s.Edited {
		edited = 1
	}
	if s.Edited || s.Vacated != 0 {
		b = binary.BigEndian.AppendUint64(b, edited)
	}
	if s.Vacated != 0 {
		b = binary.BigEndian.AppendUint64(b, s.Vacated)
	}
	return b
}

func decodeStructure(row []byte) (s Structure, ok bool) {
	var edited uint64
	switch len(row) {
	case 48:
	case 56:
		edited, ok = binary.BigEndian.Uint64(row[48:]), true
	case 64:
		edited, s.Vacated = binary.BigEndian.Uint64(row[48:]), binary.BigEndian.Uint64(row[56:])
	default:
		return s, false
	}
	if s.Edited = edited == 1; edited > 1 || ok && !s.Edited || len(row) == 64 && s.Vacated == 0 {
		return s, false
	}
	for i, field := range [...]*uint64{&s.Split, &s.Merged, &s.Attempt, &s.Parent, &s.ParentSplit, &s.Frozen} {
		*field = binary.BigEndian.Uint64(row[8*i:])
	}
	return s, true
}

// ChildID returns the id of a child (half 0 or 1) of the region that is split by the entry at the index. Like childID,
// it is unique for ever, and the same on every replica.
func ChildID(parent, index uint64, half int) uint64 {
	b := binary.BigEndian.AppendUint64(nil, parent)
	b = binary.BigEndian.AppendUint64(b, index)
	sum := sha256.Sum256(append(b, byte(half)))
	return max(binary.BigEndian.Uint64(sum[:8]), CatalogID+1)
}

// ChildrenOf describes the children of a split region at the time of its split: with the members that the region has in
// info.
func ChildrenOf(info nodemsg.Region) [2]nodemsg.Region {
	var children [2]nodemsg.Region
	lower, upper := info.Cell.Children()
	for half, cell := range [2]grid.Cell{lower, upper} {
		child := info
		child.ID, child.Cell, child.Split, child.Merged = ChildID(info.ID, info.Split, half), cell, 0, 0
		child.Epoch = info.SplitEpoch()
		children[half] = child
	}
	return children
}
