package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Join is the land that a gateway shows to one session that joins, judged while it arrives: no block may be older than
// the last edit that was acknowledged before the session began to join. It belongs to one goroutine.
type Join struct {
	ledger *Ledger
	node   int
	from   time.Duration
	edited map[grid.ChunkPos][]grid.Pos
	warned bool // the session was told that what it is shown may be old
	worst  staleJoin
}

// judged is how far back blocks are judged that joins show. Older edits show at the end of the run.
const judged = 3 * time.Minute

// BeginJoin is called before a session dials.
func (l *Ledger) BeginJoin(node int) *Join {
	l.mu.Lock()
	j := &Join{ledger: l, node: node, from: l.Now(), edited: make(map[grid.ChunkPos][]grid.Pos)}
	first, _ := slices.BinarySearchFunc(l.mu.edits, j.from-judged, func(e *Edit, t time.Duration) int { return int(e.Invoked - t) })
	recent := l.mu.edits[first:len(l.mu.edits):len(l.mu.edits)]
	l.mu.Unlock()
	known := make(map[grid.Pos]bool)
	for _, e := range recent {
		if !known[e.Pos] {
			known[e.Pos] = true
			j.edited[e.Pos.Chunk()] = append(j.edited[e.Pos.Chunk()], e.Pos)
		}
	}
	return j
}

// Unconfirmed records that the session got the notice that what it is shown from now on may be old. It is not judged.
func (j *Join) Unconfirmed() { j.warned = true }

// Show judges a chunk as the session has just received it, whole.
func (j *Join) Show(at grid.ChunkPos, c *chunk.Chunk) {
	if j.warned {
		return
	}
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	for _, pos := range j.edited[at] {
		shown := c.Get(chunk.At(pos))
		lacking := stale(j.ledger.mu.at[pos], shown, j.from)
		if lacking == nil || j.from-lacking.Returned < j.worst.age {
			continue
		}
		j.worst = staleJoin{j.from - lacking.Returned, Finding{Kind: "stale", Pos: pos, Text: fmt.Sprintf(
			"node %d showed %s to a session that began to join at %v; edit %d of %s was acknowledged by node %d at %v",
			j.node, shown.Name(), j.from, lacking.Number, lacking.Block.Name(), lacking.Via, lacking.Returned)}}
	}
}

// End enters the join into the ledger.
func (j *Join) End() {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	j.ledger.mu.joins = append(j.ledger.mu.joins, j.worst)
	if j.warned {
		j.ledger.mu.warned++
	}
}

// staleJoin is the oldest block that a join showed.
type staleJoin struct {
	age time.Duration // for how long the first missing edit had been acknowledged when the session began to join; 0 if none was missing
	Finding
}

// stale returns the first edit of a block that is missing where it is shown to a session that began to join at from,
// although the edit had been acknowledged by then; nil if none is. Whatever was asked for, and not refused, may be
// shown, unless such an edit was asked for only after it had taken effect.
func stale(edits []*Edit, shown chunk.Block, from time.Duration) (missing *Edit) {
	first := func(after time.Duration) (w *Edit) {
		for _, e := range edits {
			if e.Outcome == Acknowledged && e.Returned < from && e.Invoked > after && (w == nil || e.Returned < w.Returned) {
				w = e
			}
		}
		return w
	}
	if missing = first(-1); missing == nil {
		return nil
	}
	for _, e := range edits {
		if e.Outcome == Refused || e.Block != shown {
			continue
		}
		w := first(e.end())
		if w == nil {
			return nil
		}
		if w.Returned > missing.Returned {
			missing = w // if it shows e, it is less old
		}
	}
	return missing
}
