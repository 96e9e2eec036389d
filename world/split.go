package world

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

// This file splits a region between the two halves of its cell (docs/adr/0031). The split is an entry in the region's
// log: the parent of both children. Its members make the children's groups with the rows of Children when they apply
// it, and then call Split.

// EncodeSplit returns the log entry that splits a region. It takes effect unless the region is split, or a single
// chunk.
func EncodeSplit() []byte { return []byte{tagSplit} }

func (l *Land) applySplit(_ uint64, entry []byte) (Step, error) {
	if len(entry) != 1 {
		return NoStep, errBatch
	}
	if l.structure.RefusesEdits() || l.cell.Label.Len() == grid.MaxLabel {
		return NoStep, nil
	}
	return Splits, nil
}

// Child is one of the two regions that a split makes.
type Child struct {
	ID   uint64
	Cell grid.Cell
	Rows []kv.Write // its land
}

// Children returns both halves of the land for a split by the entry at the index: the pins and the edits of each half's
// chunks, and every player's sequences in both, because a player may have edited in both.
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
		child.structure = Structure{Parent: l.id, ParentSplit: index, Edited: l.structure.Edited}
		child.mods = l.mods // only read
		child.rolledBack, child.marked = l.rolledBack, l.marked
		children[half] = Child{ID: child.id, Cell: cell, Rows: child.rows()}
	}
	return children
}

// Split removes everything from the land, which its children have, and records the split. Writes must have been called
// before, so that no row is outstanding. It returns the writes that do the same to the table.
func (l *Land) Split(index uint64) []kv.Write {
	writes := l.rows()
	for i := range writes {
		writes[i].Value = nil
	}
	after := NewLand(l.id, l.cell, l.height)
	after.structure, after.Proofs = l.structure, l.Proofs
	after.structure.Split = index
	*l = *after
	return append(writes, l.structureRow())
}
