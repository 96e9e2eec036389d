package policy

import (
	"cmp"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
)

// Numbered returns the number of the last rollback or claim.
func (b *Builders) Numbered() int64 { return b.numbered }

// Marks returns the marks after a number that the history of a cell must have, by number: of rollbacks that are not
// over there, as those up to another number are, and of claims, also one that is no more but bounds a rollback. What
// undoes a rollback needs none: it selects what that has changed.
func (b *Builders) Marks(cell grid.Cell, after, over int64) (marks []history.Mark) {
	area := cell.Area()
	b.claims.since(area, after, func(c *Claim) { marks = append(marks, history.Mark{Number: c.Number, Box: c.Box}) })
	for i := range slices.Backward(b.rollbacks) {
		r := &b.rollbacks[i]
		if r.Number <= max(after, over) {
			break
		}
		if !r.Marked || r.Aborted || !area.Overlaps(r.Box.Area()) {
			continue
		}
		marks = append(marks, history.Mark{Number: r.Number, Box: r.Box, Since: r.Since})
		if r.After > after {
			marks = append(marks, history.Mark{Number: r.After, Box: r.Box})
		}
	}
	slices.SortStableFunc(marks, func(a, b history.Mark) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(marks, func(a, b history.Mark) bool { return a.Number == b.Number }) // the first is that of the whole claim
}

// since visits the claims with a number after another one that have a chunk of an area, once each.
func (c *Claims) since(area grid.Area, after int64, visit func(*Claim)) {
	if c.count == 0 {
		return
	}
	seen := make(map[*Claim]bool)
	for x := area.MinX; x < area.MaxX; x++ {
		for z := area.MinZ; z < area.MaxZ; z++ {
			for _, it := range c.in(grid.ChunkPos{X: x, Z: z}) {
				if it.Number > after && !seen[it] {
					seen[it] = true
					visit(it)
				}
			}
		}
	}
}
