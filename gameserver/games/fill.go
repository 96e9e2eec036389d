package games

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file lets players whose role may do so change many blocks at once, with /fill and /undo, by bulk edits
// (docs/adr/0110).

// maxUnderWay is how many bulk edits may wait for their answers: half of those that a region lets wait. More are sent when
// the client sends something, which may take seconds if the player stands still.
const maxUnderWay = 32

// usageFill is what players may type.
const usageFill = "/fill X Y Z X Y Z BLOCK fills what is between two corners, and /undo takes that back."

// bulkEdit is a bulk edit of a chunk, and the last block that it makes: when that arrives, all have.
type bulkEdit struct {
	at   grid.ChunkPos
	runs nodemsg.Bulk
	last nodemsg.BlockAt
}

// fill is what a player changes by bulk edits, in a session.
type fill struct {
	looks    *rate.Limiter // at the land
	mu       sync.Mutex
	atOnce   int // blocks that they may change; 0: none
	waiting  []bulkEdit
	underWay map[uint64]bulkEdit // by number
	arrived  map[uint64]bool     // of those, whose blocks have arrived
	awaited  []bulkEdit          // that are committed, and whose blocks have not arrived
	undoing  bool                // the last operation is an /undo
	done     []bulkEdit          // what is committed of the last operation
	last     []bulkEdit          // what /undo takes back: done, unless that is nothing or an /undo in part
	refused  int                 // blocks of it
	why      string              // the last refusal
}

// fillCommand plans the operation of a command, or returns why it does not, and reports whether the command is one of these.
func (c *Conn) fillCommand(text string) (answer string, mine bool) {
	words := strings.Fields(strings.ToLower(text))
	f := &c.fill
	f.mu.Lock()
	defer f.mu.Unlock()
	busy := len(f.waiting)+len(f.underWay) > 0
	undoing := slices.Equal(words, []string{"undo"}) && f.atOnce > 0 && (busy || len(f.last) > 0) // or else a rollback
	switch {
	case slices.Equal(words, []string{"help", "fill"}) && f.atOnce > 0:
		return usageFill, true
	case !undoing && (len(words) == 0 || words[0] != "fill"):
		return "", false
	case f.atOnce == 0:
		return "Your role may not change many blocks at once.", true
	case busy:
		return "The last one is not done yet.", true
	case !f.looks.Allow():
		return "Wait a moment.", true
	}
	var changes []blockChange
	c.Look(func(at Blocks, edits *Edits) {
		at = edits.Predict(f.over(at)) // what was asked for before is done before
		if undoing {
			changes = at.undo(f.last)
		} else {
			changes, answer = at.fill(words[1:], f.atOnce)
		}
	})
	if answer == "" && len(changes) == 0 {
		answer = "There is nothing to change."
	}
	if answer == "" {
		f.waiting, f.undoing, f.done, f.refused = bulkEditsOf(changes), undoing, nil, 0
	}
	return answer, true
}

// nextBulk returns the bulk edit that is to be sent, if there is one.
func (c *Conn) nextBulk() (m sessionmsg.Bulk, is bool) {
	f := &c.fill
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 || len(f.underWay) >= maxUnderWay {
		return m, false
	}
	e := f.waiting[0]
	f.waiting = f.waiting[1:]
	m = sessionmsg.Bulk{X: e.at.X, Z: e.at.Z, Runs: hex.EncodeToString([]byte(e.runs))}
	c.Look(func(_ Blocks, edits *Edits) { m.Seq = edits.take(time.Now()) })
	if c.key != nil && c.welcome.Signed {
		m.Signature = c.sign(player.BulkText(c.world, m.Seq, e.at, string(e.runs)))
	}
	if f.underWay == nil {
		f.underWay, f.arrived = make(map[uint64]bulkEdit), make(map[uint64]bool)
	}
	f.underWay[m.Seq] = e
	return m, true
}

// over returns the land as it will be when the blocks of all that is committed have arrived.
func (f *fill) over(at Blocks) Blocks {
	made := make(map[grid.Pos]chunk.Block)
	for _, e := range f.awaited {
		for to := range e.runs.All() {
			made[to.At.Pos(e.at)] = to.Block
		}
	}
	return func(pos grid.Pos) (chunk.Block, bool) {
		if b, is := made[pos]; is {
			return b, true
		}
		return at(pos)
	}
}

// awaits reports whether blocks of bulk edits are to arrive.
func (f *fill) awaits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.underWay)+len(f.awaited) > 0
}

// arrive notes that blocks of a chunk have arrived: those of bulk edits come in the order of the region, before or after
// the answer. None stands for all of the chunk, which was sent whole or is no longer in view.
func (f *fill) arrive(at grid.ChunkPos, blocks []nodemsg.BlockAt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	among := func(e bulkEdit) bool { return e.at == at && (blocks == nil || slices.Contains(blocks, e.last)) }
	f.awaited = slices.DeleteFunc(f.awaited, among)
	for number, e := range f.underWay {
		if among(e) {
			f.arrived[number] = true
		}
	}
}

// answered notes what a bulk edit has come to, and reports whether the answer is that of one. If it was the last of its
// operation, the text says what that has done.
func (f *fill) answered(m sessionmsg.Ack) (text string, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, mine := f.underWay[m.Seq]
	if !mine {
		return "", false
	}
	if m.Error != "" {
		f.refused, f.why = f.refused+e.runs.Blocks(), m.Error
	} else {
		f.done = append(f.done, e)
		if !f.arrived[m.Seq] {
			f.awaited = append(f.awaited, e)
		}
	}
	delete(f.underWay, m.Seq)
	delete(f.arrived, m.Seq)
	if len(f.waiting)+len(f.underWay) > 0 {
		return "", true
	}
	changed := 0
	for _, e := range f.done {
		changed += e.runs.Blocks()
	}
	if changed > 0 && (!f.undoing || f.refused == 0) { // another /undo takes back what is left
		f.last = f.done
	}
	text = fmt.Sprintf("%d blocks were changed.", changed)
	if f.refused > 0 {
		why := refusals[f.why]
		switch {
		case f.why == wire.RefusedRate:
			why = "You have changed as many blocks as you may for now: try again later."
		case why == "":
			why = "Something is in the way, or has just changed: try again."
		}
		text += fmt.Sprintf(" %d were not: %s", f.refused, why)
	}
	return text, true
}

// allow notes how many blocks the player may change at once, and returns what they are told the first time.
func (f *fill) allow(atOnce int) (told string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.atOnce == 0 && atOnce > 0 {
		told = usageFill
	}
	f.atOnce = atOnce
	return told
}

// end drops what a session before has left.
func (f *fill) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atOnce, f.waiting, f.underWay, f.arrived, f.awaited, f.done, f.last = 0, nil, nil, nil, nil, nil, nil
}

// blockChange is a block that becomes another one.
type blockChange struct {
	pos      grid.Pos
	from, to chunk.Block
}

// fill returns what fills the space between two corners with a block, chunk by chunk in the order of chunk.Index, or
// why it cannot be filled.
func (at Blocks) fill(words []string, atOnce int) (changes []blockChange, why string) {
	var corners [6]int32
	if len(words) != len(corners)+1 {
		return nil, usageFill
	}
	for i := range corners {
		v, err := strconv.ParseInt(words[i], 10, 32)
		if err != nil {
			return nil, usageFill
		}
		corners[i] = int32(v)
	}
	block, known := blocktable.Named(words[6])
	if !known || block != chunk.Air && !block.Placeable() {
		return nil, fmt.Sprintf("There is no block %s.", words[6])
	}
	low, high, volume := grid.Pos{}, grid.Pos{}, 1.
	for i, to := range [][2]*int32{{&low.X, &high.X}, {&low.Y, &high.Y}, {&low.Z, &high.Z}} {
		*to[0], *to[1] = min(corners[i], corners[i+3]), max(corners[i], corners[i+3])
		volume *= float64(*to[1]) - float64(*to[0]) + 1
	}
	if volume > float64(atOnce) {
		return nil, fmt.Sprintf("That has %.0f blocks. You may change %d at once.", volume, atOnce)
	}
	first, last := low.Chunk(), high.Chunk()
	for x := first.X; x <= last.X; x++ {
		for z := first.Z; z <= last.Z; z++ {
			from := grid.ChunkPos{X: x, Z: z}.Origin()
			for pos := range between(
				grid.Pos{X: max(low.X, from.X), Y: low.Y, Z: max(low.Z, from.Z)},
				grid.Pos{X: min(high.X, from.X+grid.ChunkSize-1), Y: high.Y, Z: min(high.Z, from.Z+grid.ChunkSize-1)},
			) {
				there, seen := at(pos)
				switch {
				case !seen:
					return nil, fmt.Sprintf("%v is not in view.", pos)
				case there != block && (there == chunk.Air || there.Breakable()):
					changes = append(changes, blockChange{pos, there, block})
				}
			}
		}
	}
	return changes, ""
}

// between calls yield with the positions between two corners: X first, then Z, then Y.
func between(low, high grid.Pos) func(yield func(grid.Pos) bool) {
	return func(yield func(grid.Pos) bool) {
		for y := low.Y; y <= high.Y; y++ {
			for z := low.Z; z <= high.Z; z++ {
				for x := low.X; x <= high.X; x++ {
					if !yield(grid.Pos{X: x, Y: y, Z: z}) {
						return
					}
				}
			}
		}
	}
}

// undo returns what takes bulk edits back, chunk by chunk in the order of chunk.Index, but for the blocks that others have
// changed since, or that are not in view.
func (at Blocks) undo(done []bulkEdit) (changes []blockChange) {
	for _, e := range done {
		for became, was := range e.runs.All() {
			pos := became.At.Pos(e.at)
			if there, seen := at(pos); seen && there == became.Block {
				changes = append(changes, blockChange{pos, there, was})
			}
		}
	}
	slices.SortFunc(changes, func(a, b blockChange) int { // they are in the order of the answers
		return cmp.Or(a.pos.Chunk().Compare(b.pos.Chunk()), cmp.Compare(chunk.At(a.pos), chunk.At(b.pos)))
	})
	return changes
}

// bulkEditsOf divides changes, chunk by chunk in the order of chunk.Index, into bulk edits.
func bulkEditsOf(changes []blockChange) (all []bulkEdit) {
	const longestRun = 16 // bytes, at most
	for len(changes) > 0 {
		at := changes[0].pos.Chunk()
		var runs []byte
		end, n := chunk.Index(0), 0
		for n < len(changes) && n < nodemsg.MaxBulkBlocks && len(runs) <= nodemsg.MaxBulkBytes-longestRun && changes[n].pos.Chunk() == at {
			first := changes[n]
			r := nodemsg.BulkRun{At: chunk.At(first.pos), From: first.from, To: first.to}
			for ; n < len(changes) && n < nodemsg.MaxBulkBlocks; n++ {
				c := changes[n]
				if c.pos.Chunk() != at || chunk.At(c.pos) != r.At+chunk.Index(r.Count) || c.from != r.From || c.to != r.To { //nolint:gosec // a count of a chunk
					break
				}
				r.Count++
			}
			runs = nodemsg.AppendRun(runs, end, r)
			end = r.At + chunk.Index(r.Count) //nolint:gosec // a count of a chunk
		}
		last := changes[n-1]
		all = append(all, bulkEdit{at, nodemsg.Bulk(runs), nodemsg.BlockAt{At: chunk.At(last.pos), Block: last.to}})
		changes = changes[n:]
	}
	return all
}
