package world

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file keeps the history of a region's chunks (docs/adr/0050). Only batches that have a time are recorded.

// maxChunkHistory bounds the history of a chunk, in bytes; the oldest is dropped first. It is some 180,000 changes, and
// what fits into one message when members repair a part.
const maxChunkHistory = 1 << 20

// segmentAt identifies a segment of a chunk's history.
type segmentAt struct {
	chunk  grid.ChunkPos
	number uint32
}

func (s segmentAt) compare(t segmentAt) int {
	return cmp.Or(s.chunk.Compare(t.chunk), cmp.Compare(s.number, t.number))
}

// setBlock sets a block of a pinned chunk for a player, and records who did it. It returns what was there, if had is set:
// else the block was never edited.
func (l *Land) setBlock(index uint64, g *pinnedChunk, to Change, by player.ID, guest string, now int64, out *Outcome) (before chunk.Block, had bool) {
	before, had = g.edits.Get(to.At)
	written := g.signs[to.At] != to.Text
	l.changeBlock(index, g, to, out)
	if had && before == to.Block && !written || to.Block == history.Natural { // the last is no block: the leader lies
		return before, had
	}
	old := before
	if !had {
		old = history.Natural
	}
	l.record(index, g, to.Chunk, history.Record{Time: now, Player: by, Guest: guest, At: to.At, Old: old, New: to.Block})
	return before, had
}

// changeBlock changes a block, and the text of a sign.
func (l *Land) changeBlock(index uint64, g *pinnedChunk, to Change, out *Outcome) {
	l.tracked.edited(index, to)
	g.edits.Set(to.At, to.Block)
	g.write(to.At, to.Text)
	out.Changes = append(out.Changes, to)
	l.dirtyRows.edits[place{to.Chunk, to.At}] = struct{}{}
}

// record adds a record to the history of a chunk.
func (l *Land) record(index uint64, g *pinnedChunk, pos grid.ChunkPos, r history.Record) {
	l.addToHistory(index, g, pos, func(h *history.Log) { h.Add(r) })
}

// addToHistory has one record added to the history of a chunk.
func (l *Land) addToHistory(index uint64, g *pinnedChunk, pos grid.ChunkPos, add func(*history.Log)) {
	number, data := g.history.Next()
	key := l.historyKey(pos, number)
	l.tracked.rowChanges(index, Part{Chunk: pos}, key, data, false)
	add(&g.history)
	l.tracked.rowChanges(index, Part{Chunk: pos}, key, g.history.Segment(number), true)
	l.dirtyRows.history[segmentAt{pos, number}] = struct{}{}
	for g.history.Size() > maxChunkHistory {
		l.dropOldest(index, pos, g)
	}
}

// dropOldest drops the oldest segment of a chunk's history.
func (l *Land) dropOldest(index uint64, pos grid.ChunkPos, g *pinnedChunk) {
	number, data, _ := g.history.Oldest()
	l.tracked.rowChanges(index, Part{Chunk: pos}, l.historyKey(pos, number), data, false)
	g.history.DropOldest()
	if g.history.Empty() {
		g.history = history.Log{}
	}
	l.dirtyRows.history[segmentAt{pos, number}] = struct{}{}
}

// History returns the segments of a chunk's history that end at a time (Unix milliseconds) or later. Any goroutine may
// decode them.
func (l *Land) History(pos grid.ChunkPos, since int64) [][]byte {
	if g := l.pinned[pos]; g != nil {
		return g.history.Segments(since)
	}
	return nil
}

// HistorySize returns the bytes of the region's history, and when its oldest segment ends (Unix milliseconds), if there
// is one.
func (l *Land) HistorySize() (bytes int, oldest int64) {
	oldest = math.MaxInt64
	for _, g := range l.pinned {
		if !g.history.Empty() {
			_, _, last := g.history.Oldest()
			bytes, oldest = bytes+g.history.Size(), min(oldest, last)
		}
	}
	return bytes, oldest
}

// Trim is a log entry that drops old history, whole segments at a time.
type Trim struct {
	Before int64 // segments that end before this time are dropped, in Unix milliseconds
	Bytes  int   // then the oldest ones, until no more than this is left
}

// Encode returns the bytes of the entry: tag; Before and Bytes as uvarints.
func (t Trim) Encode() []byte {
	b := binary.AppendUvarint([]byte{tagTrim}, uint64(max(t.Before, 0)))
	return binary.AppendUvarint(b, uint64(max(t.Bytes, 0)))
}

func decodeTrim(entry []byte) (t Trim, err error) {
	r := reader{data: entry[1:]}
	before, size := r.uvarint(), r.uvarint()
	if r.bad || len(r.data) != 0 || before > math.MaxInt64 || size > math.MaxInt64 {
		return t, fmt.Errorf("%w: history to be dropped", errBatch)
	}
	return Trim{Before: int64(before), Bytes: int(size)}, nil
}

// trim applies a Trim.
func (l *Land) trim(index uint64, t Trim) {
	type segment struct {
		segmentAt
		last  int64
		bytes int
	}
	var all []segment
	size := 0
	for pos, g := range l.pinned {
		g.history.All(func(number uint32, data []byte, last int64) {
			all = append(all, segment{segmentAt{pos, number}, last, len(data)})
			size += len(data)
		})
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.last, b.last), a.segmentAt.compare(b.segmentAt))
	})
	for _, s := range all {
		if s.last >= t.Before && size <= t.Bytes {
			return
		}
		l.dropOldest(index, s.chunk, l.pinned[s.chunk])
		size -= s.bytes
	}
}

// MaxMarks bounds the marks of one entry.
const MaxMarks = 512

// EncodeMarks returns the log entry in which orders arrive at the region, by their numbers: at most MaxMarks. Each
// member marks the chunks in the box that have a history since the time. A mark that the region has had is not made
// again. The tag is followed by their count as a uvarint, and of each the number and the time, as uvarints, and the
// corners of the box, as varints.
func EncodeMarks(marks []history.Mark) []byte {
	b := binary.AppendUvarint([]byte{tagMarks}, uint64(len(marks)))
	for _, m := range marks {
		b = binary.AppendUvarint(b, uint64(max(m.Number, 0)))
		b = binary.AppendUvarint(b, uint64(max(m.Since, 0)))
		b = appendBox(b, m.Box)
	}
	return b
}

func decodeMarks(entry []byte) (marks []history.Mark, err error) {
	r := reader{data: entry[1:]}
	for range r.count(8) {
		m := history.Mark{Number: r.int64(), Since: r.int64(), Box: r.box()}
		if r.bad || len(marks) > 0 && m.Number <= marks[len(marks)-1].Number {
			r.fail()
			break
		}
		marks = append(marks, m)
	}
	if r.bad || len(r.data) != 0 || len(marks) > MaxMarks {
		return nil, fmt.Errorf("%w: marks", errBatch)
	}
	return marks, nil
}

// Marked returns the number of the last order that has arrived at the region.
func (l *Land) Marked() int64 { return l.marked }

// mark applies an entry with marks.
func (l *Land) mark(index uint64, marks []history.Mark) {
	for _, m := range marks {
		if m.Number <= l.marked {
			continue
		}
		first, last := m.Box.Min.Chunk(), m.Box.Max.Chunk()
		for pos, g := range l.pinned { // each chunk by itself: the order is nothing that members could differ in
			in := pos.X >= first.X && pos.X <= last.X && pos.Z >= first.Z && pos.Z <= last.Z
			if in && !g.history.Empty() && g.history.Last() >= m.Since {
				l.addToHistory(index, g, pos, func(h *history.Log) { h.Mark(m.Number) })
			}
		}
		l.orders(index, func() { l.marked = m.Number })
	}
}

// orders changes which orders have arrived at the region, or are over.
func (l *Land) orders(index uint64, change func()) {
	l.tracked.rowChanges(index, Part{Sequences: true}, l.ordersKey(), l.ordersRow(), false)
	change()
	l.tracked.rowChanges(index, Part{Sequences: true}, l.ordersKey(), l.ordersRow(), true)
	l.dirtyRows.orders = true
}

// MaxRollback bounds the blocks that one entry of a rollback changes.
const MaxRollback = 1024

// RollbackStep is a log entry that carries out a part of a rollback, in one chunk. What is to be done follows from the
// history of the chunk, and is the same on all members: at most MaxRollback blocks are changed, in the order of their
// positions.
type RollbackStep struct {
	history.Rollback
	Time  int64 // by the leader's clock, in Unix milliseconds
	Chunk grid.ChunkPos
	// Natural is what the terrain has at positions that the rollback makes natural again, in the order of the
	// positions. Positions that are not listed are left unchanged.
	Natural []nodemsg.BlockAt
	// Done means that the rollback is complete in this region. Nothing is changed then.
	Done bool
}

// Encode returns the bytes of the entry: tag; done as a byte; number, since, until and time as uvarints, and with
// tagRollbackMarked After; the player, 16 bytes, or with the later tags their count as a uvarint, and 16 bytes
// for each; the corners of the box, then the chunk, X and Z, as varints; the natural blocks: count, then the distance
// from the last position and the block as uvarints.
func (s RollbackStep) Encode() []byte {
	b := []byte{tagRollback, 0}
	numbers := []int64{s.Number, s.Since, s.Until, s.Time}
	switch {
	case s.Marked:
		b[0], numbers = tagRollbackMarked, append(numbers, s.After)
	case len(s.Players) > 1:
		b[0] = tagRollbackPlayers
	}
	if s.Done {
		b[1] = 1
	}
	for _, v := range numbers {
		b = binary.AppendUvarint(b, uint64(max(v, 0)))
	}
	if b[0] != tagRollback {
		b = binary.AppendUvarint(b, uint64(len(s.Players)))
	} else if len(s.Players) == 0 {
		b = append(b, make([]byte, len(player.ID{}))...)
	}
	for _, id := range s.Players {
		b = append(b, id[:]...)
	}
	b = appendBox(b, s.Box)
	b = binary.AppendVarint(b, int64(s.Chunk.X))
	b = binary.AppendVarint(b, int64(s.Chunk.Z))
	b = binary.AppendUvarint(b, uint64(len(s.Natural)))
	last := chunk.Index(0)
	for _, n := range s.Natural {
		b = binary.AppendUvarint(b, uint64(n.At-last))
		b = binary.AppendUvarint(b, uint64(n.Block))
		last = n.At
	}
	return b
}

// appendBox appends the corners of a box, each number as a varint.
func appendBox(b []byte, box grid.Box) []byte {
	for _, v := range [...]int32{box.Min.X, box.Min.Y, box.Min.Z, box.Max.X, box.Max.Y, box.Max.Z} {
		b = binary.AppendVarint(b, int64(v))
	}
	return b
}

func (r *reader) box() grid.Box {
	return grid.Box{Min: grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()}, Max: grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()}}
}

// int64 reads a uvarint that is no negative number.
func (r *reader) int64() int64 {
	u := r.uvarint()
	if u > math.MaxInt64 {
		r.fail()
	}
	return int64(u) //nolint:gosec // checked
}

// players reads those whose changes a RollbackStep undoes: none means everybody.
func (r *reader) players(tag byte) (all []player.ID) {
	count := 1
	if tag != tagRollback {
		count = r.count(len(player.ID{}))
		if count > wire.MaxHistoryPlayers || tag == tagRollbackPlayers && count < 2 {
			r.fail()
			return nil
		}
	}
	for range count {
		all = append(all, player.ID(r.bytes(len(player.ID{}))))
	}
	if tag == tagRollback && all[0] == (player.ID{}) {
		return nil
	}
	return all
}

func decodeRollback(entry []byte) (s RollbackStep, err error) {
	if len(entry) < 2 {
		return s, fmt.Errorf("%w: a rollback", errBatch)
	}
	r := reader{data: entry[2:]}
	s.Done = entry[1] == 1
	s.Number, s.Since, s.Until, s.Time = r.int64(), r.int64(), r.int64(), r.int64()
	if s.Marked = entry[0] == tagRollbackMarked; s.Marked {
		s.After = r.int64()
	}
	s.Players = r.players(entry[0])
	s.Box, s.Chunk = r.box(), grid.ChunkPos{X: r.int32(), Z: r.int32()}
	last := uint64(0)
	for range r.count(2) {
		last += r.uvarint()
		block := r.uvarint()
		if last >= wire.ColumnBlocks || block >= uint64(history.Natural) {
			r.fail()
			break
		}
		s.Natural = append(s.Natural, nodemsg.BlockAt{At: chunk.Index(last), Block: chunk.Block(block)})
	}
	if r.bad || len(r.data) != 0 || entry[1] > 1 {
		return RollbackStep{}, fmt.Errorf("%w: a rollback", errBatch)
	}
	return s, nil
}

// Entries that concern the history change nothing if the region is split or frozen.

func (l *Land) applyMarks(index uint64, entry []byte) (Outcome, error) {
	marks, err := decodeMarks(entry)
	if err == nil && !l.structure.RefusesEdits() {
		l.mark(index, marks)
	}
	return Outcome{Marks: err == nil}, err
}

func (l *Land) applyTrim(index uint64, entry []byte) (Outcome, error) {
	t, err := decodeTrim(entry)
	if err == nil && !l.structure.RefusesEdits() {
		l.trim(index, t)
	}
	return Outcome{}, err
}

func (l *Land) applyRollback(index uint64, entry []byte) (Outcome, error) {
	s, err := decodeRollback(entry)
	if err != nil || l.structure.RefusesEdits() {
		return Outcome{}, err
	}
	return l.rollBack(index, s)
}

// RolledBack returns the number of the last rollback that is complete in this region.
func (l *Land) RolledBack() int64 { return l.rolledBack }

// rollBack applies a RollbackStep. It changes nothing if the rollback, or a later one, is complete, so a repeated step
// does no harm.
func (l *Land) rollBack(index uint64, s RollbackStep) (out Outcome, err error) {
	g := l.pinned[s.Chunk]
	switch {
	case s.Number <= l.rolledBack, !l.structure.Edited, !s.Done && s.Time <= 0: // without edits there is no history
		return out, nil
	case s.Done:
		l.orders(index, func() { l.rolledBack = s.Number })
		return out, nil
	case g == nil:
		return out, nil
	}
	changes, err := s.Changes(s.Chunk, g.history.Segments(s.Since))
	if err != nil {
		return out, fmt.Errorf("roll back %v: %w", s.Chunk, err) // not possible: segments are checked when they are loaded
	}
	for _, c := range changes[:min(len(changes), MaxRollback)] {
		if c.To == history.Natural {
			i, known := slices.BinarySearchFunc(s.Natural, c.At, func(n nodemsg.BlockAt, at chunk.Index) int { return cmp.Compare(n.At, at) })
			if !known {
				continue
			}
			c.To = s.Natural[i].Block
		}
		// A block that is what it becomes is recorded, too: then it is done with.
		l.record(index, g, s.Chunk, history.Record{Time: s.Time, Player: history.Author(s.Number), At: c.At, Old: c.From, New: c.To})
		if c.To != c.From || g.signs[c.At] != "" { // texts are not in the history: the sign becomes blank
			l.changeBlock(index, g, Change{Chunk: s.Chunk, BlockAt: nodemsg.BlockAt{At: c.At, Block: c.To}}, &out)
		}
	}
	return out, nil
}

// ordersRow returns the value of the row, nil if there is none.
func (l *Land) ordersRow() []byte {
	switch {
	case l.marked != 0:
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(l.rolledBack)), uint64(l.marked)) //nolint:gosec // not negative
	case l.rolledBack != 0:
		return binary.BigEndian.AppendUint64(nil, uint64(l.rolledBack)) //nolint:gosec // not negative
	}
	return nil
}

// decodeOrders reads what ordersRow returns. It reports false if the row is malformed.
func decodeOrders(row []byte) (rolledBack, marked int64, ok bool) {
	var numbers [2]uint64
	for i := range numbers[:min(len(row)/8, 2)] {
		numbers[i] = binary.BigEndian.Uint64(row[8*i:])
	}
	ok = len(row) == 8 || len(row) == 16 && numbers[1] != 0
	return int64(numbers[0]), int64(numbers[1]), ok && max(numbers[0], numbers[1]) <= math.MaxInt64 //nolint:gosec // checked
}

// RolledBackIn reads RolledBack of a region from its table.
func RolledBackIn(get func(table string, key []byte) ([]byte, error), id uint64) (int64, error) {
	row, err := get(LandTable, landKeys{id}.ordersKey())
	if err != nil || row == nil {
		return 0, err
	}
	rolledBack, _, ok := decodeOrders(row)
	if !ok {
		return 0, fmt.Errorf("%w: rollbacks of region %d", errRow, id)
	}
	return rolledBack, nil
}
