package region

import (
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is how the loop brings edits into the log: which wait, which are under way, and when an entry is proposed.
// Everything here runs in the loop's goroutine.

const (
	// maxBatch bounds the edits of one log entry; what is more waits for the next one.
	maxBatch = 4096
	// maxFlying is how many entries of a region are under way at once. What comes meanwhile shares the next
	// one: a busy region pays for few entries, and an edit in a quiet one waits for none. With two of them, those
	// who edit fell apart into halves that took turns.
	maxFlying = 1
	// gatherTime is how long an edit waits at most for those who were answered with the entry before, or waited
	// then: whoever edited a moment ago is about to do so again. One who edits alone does not wait.
	gatherTime = time.Millisecond
	// maxWaiting bounds the edits that wait to be proposed; beyond it they are refused.
	maxWaiting = 4 * maxBatch
)

// edit names one edit for ever.
type edit struct {
	player player.ID
	seq    uint64
}

// asking is an edit that is not answered yet.
type asking struct {
	intent wire.Intent
	whom   *seat // nil if nobody is left to tell
}

// queued is an edit that waits to be proposed.
type queued struct {
	wire.Intent
	doubt bool // it was proposed in an earlier term and may be committed yet: it cannot be refused
}

// queueAgain makes what was proposed in an earlier term wait again, before what came later: it is in
// doubt. Proposing it again is safe, for the land applies each edit once.
func (l *loop) queueAgain() {
	again := make([]queued, 0, len(l.proposed)+len(l.waiting))
	for _, e := range l.proposed {
		again = append(again, queued{Intent: e, doubt: true})
	}
	l.waiting, l.proposed, l.flying = append(again, l.waiting...), nil, 0
}

// refuse answers an edit that was never proposed.
func (l *loop) refuse(e wire.Intent, why string) {
	l.answer(edit{e.Player, e.Seq}, refusal(e, why))
}

func refusal(e wire.Intent, why string) wire.EditResult {
	return wire.EditResult{Player: e.Player, Seq: e.Seq, Block: chunk.Air, Refused: why}
}

// answer gives the result to whoever waits for it.
func (l *loop) answer(key edit, result wire.EditResult) {
	if s := l.pending[key].whom; s != nil {
		s.results = append(s.results, result)
	}
	delete(l.pending, key)
}

// proposeTogether proposes, or lets the edits wait a moment for those who were answered just now.
func (l *loop) proposeTogether() {
	if len(l.waiting) >= l.together {
		l.propose()
	} else if len(l.waiting) > 0 && l.flying < maxFlying && !l.gathers {
		l.gathers = true
		l.gather.Reset(gatherTime)
	}
}

// propose hands the waiting edits whose chunks have a known base to the group, as one entry: at once if few
// entries are under way, else when one of them is committed, with all that has gathered by then (docs/adr/0012).
// One player's edits keep their order.
func (l *loop) propose() {
	if !l.leading || len(l.waiting) == 0 || l.flying >= maxFlying {
		return
	}
	var batch world.Batch
	var rest []queued
	pinned := make(map[grid.ChunkPos]bool) // by this batch
	held := make(map[player.ID]bool)       // an earlier edit of theirs is in rest
	for _, q := range l.waiting {
		pos := q.Pos.Chunk()
		ready := l.land.Pinned(pos) || pinned[pos]
		if !ready && l.base(pos) != nil {
			batch.Pins = append(batch.Pins, world.Pin{Chunk: pos, Base: *l.base(pos)})
			pinned[pos], ready = true, true
		}
		if !ready || held[q.Player] || len(batch.Edits) == maxBatch {
			held[q.Player] = true
			rest = append(rest, q)
			continue
		}
		batch.Edits = append(batch.Edits, q.Intent)
	}
	if len(batch.Edits) == 0 {
		return
	}
	if err := l.group.Propose(batch.Encode()); err != nil {
		l.logger.Debug("edits wait: proposal not taken", "region", l.info.ID, "error", err)
		return
	}
	l.flying++
	if l.gathers {
		l.gathers = false
		l.gather.Stop()
	}
	l.waiting = rest
	l.proposed = append(l.proposed, batch.Edits...)
}

// base gives the terrain hash of a chunk that is not yet pinned. While it is not known it is asked for,
// once, and nil comes back.
func (l *loop) base(pos grid.ChunkPos) *[32]byte {
	hash, asked := l.bases[pos]
	if !asked {
		l.bases[pos] = nil
		l.hash(l, pos)
	}
	return hash
}

// based takes in the answer to hash.
func (l *loop) based(pos grid.ChunkPos, base [32]byte) {
	if !l.land.Pinned(pos) {
		l.bases[pos] = &base
	}
}
