package world

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Outcome is the result of applying a batch.
type Outcome struct {
	Results []nodemsg.EditResult // one for each edit of the batch, in order
	Changes []Change             // what changed, in order
	Time    int64                // Batch.Time
	Pins    []Pin                // those that took effect, in order
	Marks   bool                 // the entry had marks; the other fields are empty then
	// Of mods:
	Mods     bool       // what a mod may do may have changed
	Waiting  []Waiting  // the events that wait since, in order
	Answered []Answered // what became of each answer, in order
	Said     []Said     // to players
	Barrier  *Barrier   // set if the entry was a barrier; the other fields are empty then
	Step     Step       // what the entry did to the region's structure; the other fields are empty then
}

// Change is one block that an edit changed.
type Change struct {
	Chunk grid.ChunkPos
	nodemsg.BlockAt
	Text string // of a sign
}

// Apply applies the committed entry at the log index. Every replica gets the same outcome from the same log. An error
// means that the entry cannot be decoded and that nothing changed. Edits of a region that is split, frozen or
// given up have no result. Rows to be stored accumulate until Writes.
func (l *Land) Apply(index uint64, entry []byte) (Outcome, error) {
	apply := (*Land).applyEdits // which refuses unknown entries
	if len(entry) > 0 && entries[entry[0]] != nil {
		apply = entries[entry[0]]
	}
	out, err := apply(l, index, entry)
	if err != nil {
		err = fmt.Errorf("apply entry %d: %w", index, err)
	}
	return out, err
}

func (l *Land) applyBarrier(_ uint64, entry []byte) (Outcome, error) {
	barrier, err := DecodeBarrier(entry)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Barrier: &barrier}, nil
}

func (l *Land) applyEdits(index uint64, entry []byte) (Outcome, error) {
	batch, err := DecodeBatch(entry)
	if err != nil {
		return Outcome{}, err
	}
	return l.applyBatch(index, batch, false), nil
}

// ApplyProven is Apply for a member that has proposed the entry itself: it passes the batch that it has encoded, and
// Proofs.Proven has reported of each edit that its proof is right.
func (l *Land) ApplyProven(index uint64, batch Batch) Outcome {
	return l.applyBatch(index, batch, true)
}

func (l *Land) applyBatch(index uint64, batch Batch, proven bool) Outcome {
	if l.structure.RefusesEdits() {
		return Outcome{} // the edits are not answered: their gateways send them to another region
	}
	out := Outcome{
		Time:    batch.Time,
		Results: make([]nodemsg.EditResult, 0, len(batch.Edits)),
		Changes: make([]Change, 0, len(batch.Edits)),
	}
	l.begin(index, batch.Pins, &out)
	var touched map[player.ID]*recent // by this entry; only used by a digest
	if l.tracked != nil {
		touched = make(map[player.ID]*recent)
	}
	refused := make([]string, len(batch.Edits))
	if !proven {
		l.refuseUnproven(batch, refused)
	}
	for i := range batch.Edits {
		e := &batch.Edits[i]
		result := nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Refused: refused[i]}
		if result.Refused == "" {
			result.Block, result.Refused = l.edit(index, e, batch.Time, touched, &out)
		}
		out.Results = append(out.Results, result)
	}
	for _, id := range slices.SortedFunc(maps.Keys(touched), player.ID.Compare) {
		l.tracked.addSequences(index, id, touched[id])
	}
	l.evictPlayers(index)
	return out
}

// begin applies what entries that change blocks begin with.
func (l *Land) begin(index uint64, pins []Pin, out *Outcome) {
	if !l.structure.Edited {
		before := l.structure
		l.structure.Edited, l.dirtyRows.structure = true, true
		l.tracked.restructured(index, before, l.structure)
	}
	for _, p := range pins {
		l.pin(index, p, out)
	}
}

// refuseUnproven sets for each edit of a batch that must not be applied the reason.
func (l *Land) refuseUnproven(b Batch, refused []string) {
	for i, ok := range l.Proofs.Proven(b.Edits) {
		if !ok {
			refused[i] = wire.RefusedUnsigned
		}
	}
}

// pin sets the base of a chunk to the first one in the log; later ones are ignored.
func (l *Land) pin(index uint64, p Pin, out *Outcome) {
	if !l.cell.Contains(p.Chunk) || l.Pinned(p.Chunk) {
		return
	}
	l.tracked.pinned(index, p)
	l.pinTo(p.Chunk, p.Base)
	out.Pins = append(out.Pins, p)
	l.dirtyRows.pins[p.Chunk] = struct{}{}
}

// edit applies one edit, and returns the current block of its position or the reason for refusing it. It does not check
// that the block's id is known; the leader does before it proposes. Otherwise a replica of an older version would
// refuse an edit that a newer one applies.
func (l *Land) edit(index uint64, e *nodemsg.Intent, now int64, touched map[player.ID]*recent, out *Outcome) (chunk.Block, string) {
	pos := e.Pos.Chunk()
	if !l.cell.Contains(pos) || e.Pos.Y < 0 || e.Pos.Y >= l.height {
		return chunk.Air, wire.RefusedOutOfWorld
	}
	g := l.pinned[pos]
	if g == nil {
		return chunk.Air, wire.RefusedUnavailable
	}
	r, known := l.recents[e.Player]
	if !known {
		r = &recent{}
	}
	at, use := chunk.At(e.Pos), use{seq: e.Seq, edit: fingerprint(e)}
	switch r.classify(use) {
	case repeated:
		block, _ := g.edits.Get(at)
		return block, ""
	case stale:
		return chunk.Air, wire.RefusedStale
	case fresh:
		if e.Text != "" && g.signs[at] == "" && len(g.signs) >= wire.MaxSigns {
			return chunk.Air, wire.RefusedSigns
		}
		if why := l.refuseBulk(g, e.Bulk); why != "" {
			return chunk.Air, why
		}
		if a := authorOf(e); a.kind() == authorKey && !timely(e.Seq, out.Time) {
			return chunk.Air, wire.RefusedStale
		}
		if !known {
			l.recents[e.Player] = r
		}
	}
	if l.tracked != nil && touched[e.Player] == nil {
		l.tracked.removeSequences(index, e.Player, r)
		touched[e.Player] = r
	}
	r.add(use, index)
	l.dirtyRows.players[e.Player] = struct{}{}
	if e.Bulk != "" {
		for to := range e.Bulk.All() {
			l.setBlock(index, g, Change{Chunk: pos, BlockAt: to}, e.Player, e.Name, now, out)
		}
		return chunk.Air, ""
	}
	to := Change{Chunk: pos, BlockAt: nodemsg.BlockAt{At: at, Block: e.Block}, Text: e.Text}
	before, had := l.setBlock(index, g, to, e.Player, e.Name, now, out)
	if len(l.mods) > 0 {
		l.happenedBy(index, g, e, before, had, out)
	}
	return e.Block, ""
}

// refuseBulk returns why a bulk edit changes nothing: a block is not what the player has seen there, or the chunk would
// have too many edited blocks. Of what was never edited, the land does not know what it is: it is what the player has
// seen, who could have edited it without.
func (l *Land) refuseBulk(g *pinnedChunk, bulk nodemsg.Bulk) string {
	most := chunk.Index(l.height) * grid.ChunkSize * grid.ChunkSize
	added := 0
	for to, from := range bulk.All() {
		if to.At >= most {
			return wire.RefusedOutOfWorld
		}
		there, edited := g.edits.Get(to.At)
		if edited && there != from {
			return wire.RefusedChanged
		}
		if !edited {
			added++
		}
	}
	if added > 0 && g.edits.Len()+added > MaxEdits { // others may have been applied since the leader looked
		return wire.RefusedFull
	}
	return ""
}

// Confirms reports whether the edit was applied, as far as the player's sequences are still recorded, and returns the
// current block of its position.
func (l *Land) Confirms(e nodemsg.Intent) (chunk.Block, bool) {
	r, g := l.recents[e.Player], l.pinned[e.Pos.Chunk()]
	if r == nil || g == nil || r.classify(use{seq: e.Seq, edit: fingerprint(&e)}) != repeated {
		return chunk.Air, false
	}
	block, _ := g.edits.Get(chunk.At(e.Pos))
	return block, true
}

// fingerprint returns a value that distinguishes edits with the same sequence number.
func fingerprint(e *nodemsg.Intent) uint32 {
	var b [14]byte
	binary.BigEndian.PutUint32(b[0:], uint32(e.Pos.X))
	binary.BigEndian.PutUint32(b[4:], uint32(e.Pos.Y))
	binary.BigEndian.PutUint32(b[8:], uint32(e.Pos.Z))
	binary.BigEndian.PutUint16(b[12:], uint16(e.Block))
	return crc32.Update(crc32.ChecksumIEEE(b[:]), crc32.IEEETable, []byte(e.Text+string(e.Bulk))) // at most one is set
}
