package history

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Filter selects records.
type Filter struct {
	Box   grid.Box
	Since int64 // Unix milliseconds
	Until int64 // the same; 0 means no limit
	// Players are those whose changes are selected; none: everybody's.
	Players []player.ID
}

// Matches reports whether a record of a chunk is selected.
func (f *Filter) Matches(pos grid.ChunkPos, r Record) bool {
	return r.Time >= f.Since && (f.Until == 0 || r.Time <= f.Until) && (len(f.Players) == 0 || slices.Contains(f.Players, r.Player)) &&
		f.Box.Contains(r.At.Pos(pos))
}

// Mark is a moment in the history of the chunks in a box: that in which an order of the policy arrives at their region.
// It is a record between others, not a time, as clocks differ. A chunk of which nothing is recorded since a time needs
// none.
type Mark struct {
	// Number identifies the order in its world. Later ones have higher numbers.
	Number int64
	Box    grid.Box
	Since  int64 // Unix milliseconds
}

// Rollback undoes the changes that its filter selects. Undoing a rollback is a rollback of the changes of its Author.
type Rollback struct {
	// Number identifies the rollback in its world. Later ones have higher numbers.
	Number int64
	Filter
	// Marked means that only changes before the mark of Number are undone: those that were made when it arrived.
	Marked bool
	// After is the number of another mark, before which nothing is undone; 0: there is none.
	After int64
}

// Author returns the id under which the changes of a rollback, and the mark of a number, are recorded.
func Author(number int64) player.ID {
	sum := sha256.Sum256(strconv.AppendInt([]byte("rollback\x00"), number, 10))
	return player.ID(sum[:])
}

// Change is what a rollback does to a block.
type Change struct {
	At   chunk.Index
	From chunk.Block
	To   chunk.Block // or Natural
}

// Changes returns what a rollback has to do in a chunk with these segments, by position. It changes a block only if the
// last change of it is one that is to be undone: what others changed since, or anybody since the mark, is left alone.
// The block becomes what it was before the selected changes that nobody interrupted. Segments that hold the rollback's
// mark must not be left out.
func (r *Rollback) Changes(pos grid.ChunkPos, segments [][]byte) ([]Change, error) {
	own := Author(r.Number)
	undo := make(map[chunk.Index]Change)                          // of blocks whose last change is selected
	arrived, older, after := false, r.After != 0, Author(r.After) // older: the mark of After may follow
	for _, segment := range segments {
		err := new(coder).decode(segment, func(rec Record) {
			switch {
			case rec.isMark():
				if older && rec.Player == after {
					older = false
					clear(undo)
				}
				arrived = arrived || rec.Player == own
				return
			case r.Marked && arrived, rec.Player == own, !r.Matches(pos, rec):
				delete(undo, rec.At)
				return
			}
			c, ok := undo[rec.At]
			if !ok {
				c = Change{At: rec.At, To: rec.Old}
			}
			c.From = rec.New
			undo[rec.At] = c
		})
		if err != nil {
			return nil, err
		}
	}
	if r.Marked && !arrived {
		return nil, nil // what was recorded before the mark is dropped, or nothing was
	}
	// A sign is changed even if it stays the same block: its text is not in the history, and is taken away.
	maps.DeleteFunc(undo, func(_ chunk.Index, c Change) bool { return c.From == c.To && !c.From.IsSign() })
	return slices.SortedFunc(maps.Values(undo), func(a, b Change) int { return cmp.Compare(a.At, b.At) }), nil
}
