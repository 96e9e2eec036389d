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

// Rollback undoes the changes that its filter selects. Undoing a rollback is a rollback of the changes of its Author.
type Rollback struct {
	// Number identifies the rollback in its world. Later ones have higher numbers.
	Number int64
	Filter
}

// Author returns the id under which the changes of a rollback are recorded.
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

// Changes returns what a rollback has to do in a chunk with these segments, by position. It changes a block only if the last change of it is one
// that is to be undone: what others changed since is left alone. The block becomes what it was before the selected changes that
// nobody interrupted.
func (r *Rollback) Changes(pos grid.ChunkPos, segments [][]byte) ([]Change, error) {
	own := Author(r.Number)
	undo := make(map[chunk.Index]Change) // of blocks whose last change is selected
	for _, segment := range segments {
		err := Decode(segment, func(rec Record) {
			if rec.Player == own || !r.Matches(pos, rec) {
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
	// A sign is changed even if it stays the same block: its text is not in the history, and is taken away.
	maps.DeleteFunc(undo, func(_ chunk.Index, c Change) bool { return c.From == c.To && !c.From.IsSign() })
	return slices.SortedFunc(maps.Values(undo), func(a, b Change) int { return cmp.Compare(a.At, b.At) }), nil
}
