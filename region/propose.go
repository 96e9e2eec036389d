package region

import (
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is the part of the loop that proposes edits: which edits wait, which are pending, and when an entry is proposed.
// Everything here runs in the loop's goroutine.

const (
	// maxBatch bounds the edits of one log entry; further edits wait for the next one.
	maxBatch = 4096
	// maxInFlight is how many entries of a region may be uncommitted at once. Edits that arrive meanwhile share the next entry: a
	// busy region needs few entries, and an edit in a quiet one does not wait. With two entries in flight, the active players
	// split into two halves that took turns.
	maxInFlight = 1
	// gatherTime bounds how long an edit waits for the players who were answered with the previous entry, or waited then: a
	// player who has just edited is likely to edit again. A player who edits alone does not wait.
	gatherTime = time.Millisecond
	// maxWaiting bounds the edits that wait to be proposed; further edits are refused.
	maxWaiting = 4 * maxBatch
)

// edit identifies one edit permanently.
type edit struct {
	player player.ID
	seq    uint64
}

// pendingEdit is an edit that is not answered yet.
type pendingEdit struct {
	intent     nodemsg.Intent
	subscriber *subscriber // nil if there is no one left to answer
}

// queued is an edit that waits to be proposed.
type queued struct {
	nodemsg.Intent
	inDoubt bool // it was proposed in an earlier term and may still be committed: it cannot be refused
}

// queueAgain puts the edits proposed in an earlier term back at the front of the queue. They are in doubt. Proposing them again
// is safe, because the land applies each edit once.
func (l *loop) queueAgain() {
	again := make([]queued, 0, len(l.proposed)+len(l.waiting))
	for _, e := range l.proposed {
		again = append(again, queued{Intent: e, inDoubt: true})
	}
	l.waiting, l.proposed, l.inFlight = append(again, l.waiting...), nil, 0
}

// refuse answers an edit that was never proposed.
func (l *loop) refuse(e nodemsg.Intent, why string) {
	l.sendResult(edit{e.Player, e.Seq}, refusal(e, why))
}

func refusal(e nodemsg.Intent, why string) nodemsg.EditResult {
	return nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Block: chunk.Air, Refused: why}
}

// sendResult sends the result to the subscriber that waits for it.
func (l *loop) sendResult(key edit, result nodemsg.EditResult) {
	if s := l.pending[key].subscriber; s != nil {
		s.results = append(s.results, result)
	}
	delete(l.pending, key)
}

// proposeTogether proposes, or lets the edits wait a moment for edits of the players who were answered just now.
func (l *loop) proposeTogether() {
	if len(l.waiting) >= l.expected {
		l.propose()
	} else if len(l.waiting) > 0 && l.inFlight < maxInFlight && !l.gathering {
		l.gathering = true
		l.gatherTimer.Reset(gatherTime)
	}
}

// propose hands the waiting edits whose chunks have a known base to the group, as one entry. It does so at once if few entries
// are in flight, or else when one of them is committed, with all edits gathered by then (docs/adr/0012). The edits of one player
// keep their order.
func (l *loop) propose() {
	if !l.leading || len(l.waiting) == 0 || l.inFlight >= maxInFlight {
		return
	}
	var batch world.Batch
	var rest []queued
	pinned := make(map[grid.ChunkPos]bool) // by this batch
	held := make(map[player.ID]bool)       // players with an earlier edit in rest
	for _, q := range l.waiting {
		pos := q.Pos.Chunk()
		ready := l.land.Pinned(pos) || pinned[pos]
		if !ready && l.terrainHash(pos) != nil {
			batch.Pins = append(batch.Pins, world.Pin{Chunk: pos, Base: *l.terrainHash(pos)})
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
		l.logger.Debug("proposal not accepted; edits wait", "region", l.info.ID, "error", err)
		return
	}
	l.inFlight++
	if l.gathering {
		l.gathering = false
		l.gatherTimer.Stop()
	}
	l.waiting = rest
	l.proposed = append(l.proposed, batch.Edits...)
}

// terrainHash returns the terrain hash of a chunk that is not yet pinned. If the hash is not known, terrainHash requests it once
// and returns nil.
func (l *loop) terrainHash(pos grid.ChunkPos) *[32]byte {
	hash, asked := l.bases[pos]
	if !asked {
		l.bases[pos] = nil
		l.hash(l, pos)
	}
	return hash
}

// setTerrainHash applies the answer to hash.
func (l *loop) setTerrainHash(pos grid.ChunkPos, base [32]byte) {
	if !l.land.Pinned(pos) {
		l.bases[pos] = &base
	}
}
