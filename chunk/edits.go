package chunk

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Edits are the blocks of one column that players have changed from its terrain. The zero Edits is empty and ready to
// use.
type Edits struct {
	list []edit // by index, each once
}

type edit struct {
	at    Index
	block Block
}

func (e *Edits) find(at Index) (int, bool) {
	return slices.BinarySearchFunc(e.list, at, func(x edit, at Index) int { return cmp.Compare(x.at, at) })
}

// Set records that the block at the index was changed to b. Setting in the order of Index is cheapest.
func (e *Edits) Set(at Index, b Block) {
	if n := len(e.list); n == 0 || e.list[n-1].at < at {
		e.list = append(e.list, edit{at, b})
		return
	}
	i, found := e.find(at)
	if found {
		e.list[i].block = b
		return
	}
	e.list = slices.Insert(e.list, i, edit{at, b})
}

// Get returns what the block at the index was changed to, and whether it was.
func (e *Edits) Get(at Index) (Block, bool) {
	i, found := e.find(at)
	if !found {
		return Air, false
	}
	return e.list[i].block, true
}

// Len returns the number of changed blocks.
func (e *Edits) Len() int { return len(e.list) }

// All yields the changed blocks in the order of Index. The edits must not change meanwhile.
func (e *Edits) All() iter.Seq2[Index, Block] {
	return func(yield func(Index, Block) bool) {
		for _, x := range e.list {
			if !yield(x.at, x.block) {
				return
			}
		}
	}
}

// Apply makes the changes in the column. If one lies above its top, it returns an error and makes none.
func (e *Edits) Apply(c *Chunk) error {
	if n := len(e.list); n > 0 && int(e.list[n-1].at) >= c.Height()*layer {
		_, y, _ := e.list[n-1].at.XYZ()
		return fmt.Errorf("apply edits: height %d in a column of %d", y, c.Height())
	}
	for _, x := range e.list {
		c.Set(x.at, x.block)
	}
	return nil
}
