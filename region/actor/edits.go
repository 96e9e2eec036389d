package actor

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// maxBatch bounds the edits of one log entry; further edits wait for the next one.
	maxBatch = 4096
	// maxTexts bounds the edits with a text of one log entry, which have five times the bytes of others.
	maxTexts = 256
	// maxInFlight is how many entries of a region may be uncommitted at once. Edits that arrive meanwhile share the
	// next entry: a busy region needs few entries, and an edit in a quiet one does not wait. With two entries in
	// flight, the active players split into two halves that took turns.
	maxInFlight = 1
	// gatherTime bounds how long an edit waits for the players who were answered with the previous entry, or waited
	// then: a player who has just edited is likely to edit again. A player who edits alone does not wait.
	gatherTime = time.Millisecond
	// maxBulk bounds the bulk edits that wait to be proposed, and with them their bytes.
	maxBulk = 64
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

// queued is an edit that waits to be proposed. Its proof is right.
type queued struct {
	nodemsg.Intent
	inDoubt bool // it was proposed in an earlier term and may still be committed: it cannot be refused
}

// proposal is an entry that was proposed here. When it is committed, it need not be decoded, nor its proofs be checked
// again.
type proposal struct {
	entry []byte
	batch world.Batch
}

// is reports whether a committed entry is the one proposed here. Only the bytes tell: another leader's entry may have
// been committed in its place.
func (p *proposal) is(entry []byte) bool { return len(entry) > 0 && bytes.Equal(p.entry, entry) }

// editQueue proposes edits: it holds which edits wait, which are pending, and decides when an entry is proposed.
type editQueue struct {
	contents *contents
	cell     grid.Cell
	group    Group
	// hash requests the hash of a chunk's terrain, which arrives as setTerrainHash. rejected is called if the group
	// accepts no entry.
	hash     func(grid.ChunkPos)
	rejected func(error)
	now      func() time.Time
	ordered  func() bool // reports whether all orders have arrived; if not, they are on their way, and edits come after them

	waiting     []queued                    // edits to be proposed, in order
	proposed    []nodemsg.Intent            // edits proposed and not yet committed, in order
	newest      proposal                    // the last one; zero if it is committed, or the edits were cleared
	pending     map[edit]pendingEdit        // an entry for each edit in waiting or proposed
	bases       map[grid.ChunkPos]*[32]byte // terrain hashes requested (nil) and known, of chunks not yet pinned
	leading     bool
	frozen      bool        // the region is being merged, or was given up: edits wait
	term        uint64      // the last term in which this node led
	inFlight    int         // entries proposed in this term and not yet committed
	expected    int         // edits expected in the next entry: of the players answered with the last one, and of those who waited then
	gatherTimer *time.Timer // runs while edits wait for others
	gathering   bool        // it runs
	// bulkDue means that a bulk edit may be proposed: one a tick, so that bulk edits leave most of each tick, and all
	// entries, to other edits.
	bulkDue bool
}

func newEditQueue(c *contents, cell grid.Cell, g Group, now func() time.Time, hash func(grid.ChunkPos), ordered func() bool, rejected func(error)) *editQueue {
	q := &editQueue{
		contents: c, cell: cell, group: g, now: now, hash: hash, ordered: ordered, rejected: rejected, pending: make(map[edit]pendingEdit), bases: make(map[grid.ChunkPos]*[32]byte),
		gatherTimer: time.NewTimer(time.Hour), bulkDue: true,
	}
	q.gatherTimer.Stop()
	return q
}

// empty reports whether no edit waits for anything.
func (q *editQueue) empty() bool { return len(q.waiting) == 0 && len(q.pending) == 0 }

// clear forgets all edits: the gateways send them again to another leader.
func (q *editQueue) clear() {
	q.waiting, q.proposed, q.inFlight, q.newest = nil, nil, 0, proposal{}
	clear(q.pending)
}

// forget keeps a subscriber's edits, which are still to be committed, without anyone to answer.
func (q *editQueue) forget(s *subscriber) {
	for key, a := range q.pending {
		if a.subscriber == s {
			a.subscriber = nil
			q.pending[key] = a
		}
	}
}

// seqAhead is how far ahead of this node's clock an edit's sequence may be, which counts microseconds since 1970
// (docs/adr/0006). Later ones would shut the player out until the clock reaches them. Gateways allow ten minutes, and
// their clocks agree with this one (docs/adr/0092).
const seqAhead = 12 * time.Minute

// add queues an edit. Refused is why the region does not accept it, which must be set if its proof is wrong; empty if
// it does. If the edit is already pending because another link sent it, only the subscriber that gets the answer
// changes.
func (q *editQueue) add(s *subscriber, intent nodemsg.Intent, refused string) {
	key := edit{intent.Player, intent.Seq}
	before, isPending := q.pending[key]
	if isPending && before.intent != intent {
		s.addResult(refusal(intent, wire.RefusedStale))
		return
	}
	q.pending[key] = pendingEdit{intent: intent, subscriber: s}
	if isPending {
		return
	}
	if intent.Seq > uint64(q.now().Add(seqAhead).UnixMicro()) {
		refused = cmp.Or(refused, wire.RefusedStale)
	}
	pos, bulkRefused := intent.Pos.Chunk(), ""
	if intent.Bulk != "" && q.cell.Contains(pos) {
		bulkRefused = q.checkBulk(&intent)
	}
	switch {
	case !q.cell.Contains(pos):
		q.refuse(intent, wire.RefusedOutOfWorld)
	case bulkRefused != "":
		q.refuse(intent, bulkRefused)
	case !intent.Block.Known():
		q.refuse(intent, wire.RefusedUnknownBlock)
	case intent.Block != chunk.Air && !intent.Block.Placeable(): // gateways check it, too; they may lie
		q.refuse(intent, wire.RefusedNotPlaceable)
	case intent.Text != "" && (!intent.Block.IsSign() || wire.CheckSign(intent.Text) != nil): // gateways check that, too
		q.refuse(intent, wire.RefusedText)
	case intent.Pos.Y == 0 && intent.Bulk == "": // always bedrock
		q.refuse(intent, wire.RefusedUnbreakable)
	case q.contents.land.Full(intent.Pos):
		q.refuse(intent, wire.RefusedFull)
	case refused != "", len(q.waiting) >= maxWaiting, intent.Bulk != "" && q.bulks() >= maxBulk:
		// A retry, sent because the previous leader's answer was lost, may already be applied.
		if block, applied := q.contents.land.Confirms(intent); applied {
			q.sendResult(key, nodemsg.EditResult{Player: intent.Player, Seq: intent.Seq, Block: block})
		} else {
			q.refuse(intent, cmp.Or(refused, wire.RefusedUnavailable))
		}
	default:
		if !q.contents.land.Pinned(pos) {
			q.terrainHash(pos) // request the hash now: propose will need it
		}
		q.waiting = append(q.waiting, queued{Intent: intent})
	}
}

// checkBulk returns why a bulk edit is refused whatever is there.
func (q *editQueue) checkBulk(e *nodemsg.Intent) string {
	for r := range e.Bulk.Runs() {
		switch {
		case !r.To.Known():
			return wire.RefusedUnknownBlock
		case r.To != chunk.Air && !r.To.Placeable():
			return wire.RefusedNotPlaceable
		case r.At < chunk.IndexOf(0, 1, 0): // always bedrock
			return wire.RefusedUnbreakable
		}
	}
	if !q.contents.land.HasRoom(e.Pos.Chunk(), e.Bulk) {
		return wire.RefusedFull
	}
	return ""
}

// bulks returns how many bulk edits wait to be proposed.
func (q *editQueue) bulks() (n int) {
	for i := range q.waiting {
		if q.waiting[i].Bulk != "" {
			n++
		}
	}
	return n
}

// refuseWaiting refuses the edits that were never proposed.
func (q *editQueue) refuseWaiting(why string) {
	q.waiting = slices.DeleteFunc(q.waiting, func(e queued) bool {
		if !e.inDoubt {
			q.refuse(e.Intent, why)
		}
		return !e.inDoubt
	})
}

// committed answers the edits of an entry. Own is set if the entry was proposed here in this term.
func (q *editQueue) committed(outcome world.Outcome, own bool) {
	for _, change := range outcome.Changes {
		delete(q.bases, change.Chunk) // pinned now
	}
	for _, result := range outcome.Results {
		key := edit{result.Player, result.Seq}
		q.sendResult(key, result)
		// Usually the first one: entries are committed in the order in which they were proposed.
		i := slices.IndexFunc(q.proposed, func(e nodemsg.Intent) bool { return e.Seq == key.seq && e.Player == key.player })
		switch {
		case i == 0:
			q.proposed = q.proposed[1:]
		case i > 0:
			q.proposed = slices.Delete(q.proposed, i, i+1)
		}
	}
	if own {
		q.expected = len(outcome.Results) + len(q.waiting)
	}
}

// countCommitted records that an entry of the term is committed. It reports whether it was proposed here in this term.
func (q *editQueue) countCommitted(term uint64) (own bool) {
	if own = term == q.term && q.inFlight > 0; own {
		q.inFlight--
	}
	return own
}

// queueAgain puts the edits proposed in an earlier term back at the front of the queue. They are in doubt. Proposing
// them again is safe, because the land applies each edit once.
func (q *editQueue) queueAgain() {
	again := make([]queued, 0, len(q.proposed)+len(q.waiting))
	for _, e := range q.proposed {
		again = append(again, queued{Intent: e, inDoubt: true})
	}
	q.waiting, q.proposed, q.inFlight = append(again, q.waiting...), nil, 0
}

// refuse answers an edit that was never proposed.
func (q *editQueue) refuse(e nodemsg.Intent, why string) {
	q.sendResult(edit{e.Player, e.Seq}, refusal(e, why))
}

func refusal(e nodemsg.Intent, why string) nodemsg.EditResult {
	return nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Block: chunk.Air, Refused: why}
}

// sendResult sends the result to the subscriber that waits for it.
func (q *editQueue) sendResult(key edit, result nodemsg.EditResult) {
	if s := q.pending[key].subscriber; s != nil {
		s.addResult(result)
	}
	delete(q.pending, key)
}

// proposeTogether proposes, or lets the edits wait a moment for edits of the players who were answered just now.
func (q *editQueue) proposeTogether() {
	if len(q.waiting) >= q.expected {
		q.propose()
	} else if len(q.waiting) > 0 && q.inFlight < maxInFlight && !q.gathering {
		q.gathering = true
		q.gatherTimer.Reset(gatherTime)
	}
}

// propose hands the waiting edits whose chunks have a known base to the group, as one entry. It does so at once if few
// entries are in flight, or else when one of them is committed, with all edits gathered by then (docs/adr/0012). The
// edits of one player keep their order.
func (q *editQueue) propose() {
	if !q.leading || q.frozen || len(q.waiting) == 0 || q.inFlight >= maxInFlight || !q.ordered() {
		return
	}
	// Other members decode what this one applies as it is: a time before 1970 is none.
	batch := world.Batch{Time: max(1, q.now().UnixMilli()), Edits: make([]nodemsg.Intent, 0, min(len(q.waiting), 512))}
	var rest []queued
	texts := 0
	pinned := make(map[grid.ChunkPos]bool) // by this batch
	held := make(map[player.ID]bool)       // players with an earlier edit in rest
	for _, e := range q.waiting {
		pos := e.Pos.Chunk()
		ready := q.contents.land.Pinned(pos) || pinned[pos]
		if !ready && q.terrainHash(pos) != nil {
			batch.Pins = append(batch.Pins, world.Pin{Chunk: pos, Base: *q.terrainHash(pos)})
			pinned[pos], ready = true, true
		}
		full := len(batch.Edits) == maxBatch || e.Text != "" && texts == maxTexts || e.Bulk != "" && !q.bulkDue
		if !ready || held[e.Player] || full {
			held[e.Player] = true
			rest = append(rest, e)
			continue
		}
		if e.Text != "" {
			texts++
		}
		q.bulkDue = q.bulkDue && e.Bulk == ""
		batch.Edits = append(batch.Edits, e.Intent)
	}
	if len(batch.Edits) == 0 {
		return
	}
	entry := batch.Encode()
	if err := q.group.Propose(entry); err != nil {
		q.rejected(err)
		return
	}
	q.newest = proposal{entry, batch}
	q.inFlight++
	if q.gathering {
		q.gathering = false
		q.gatherTimer.Stop()
	}
	q.waiting = rest
	q.proposed = append(q.proposed, batch.Edits...)
}

// terrainHash returns the terrain hash of a chunk that is not yet pinned. If the hash is not known, terrainHash
// requests it once and returns nil.
func (q *editQueue) terrainHash(pos grid.ChunkPos) *[32]byte {
	hash, asked := q.bases[pos]
	if !asked {
		q.bases[pos] = nil
		q.hash(pos)
	}
	return hash
}

// setTerrainHash applies the answer to hash.
func (q *editQueue) setTerrainHash(pos grid.ChunkPos, base [32]byte) {
	if !q.contents.land.Pinned(pos) {
		q.bases[pos] = &base
	}
}
