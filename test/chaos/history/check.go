package history

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Reading is the land as one gateway showed it to a new session while the cluster was healthy.
type Reading struct {
	Node     int
	From, To time.Duration // the land was like that at some time between
	Final    bool          // all writers have stopped
	Block    func(grid.Pos) (chunk.Block, bool)
}

// Verdict is the result of Check.
type Verdict struct {
	Blocks       int // blocks with at least one edit
	Asked        int
	Acknowledged int
	Refused      int
	Unknown      int
	Sights       int

	Lost      int // acknowledged edits that are missing at the end without explanation
	Illegal   int // blocks whose history is not linearizable
	Undecided int // blocks whose history could not be decided in time
	Phantom   int // changes that were seen although no edit asked for them, or only one that was finally refused
	Skipped   int // acknowledged edits that an observer with an unbroken view never received
	Reversed  int // pairs of changes that an observer received in the wrong order
	Disagree  int // blocks that gateways show differently at the end

	Joins  int           // sessions that joined during the run to read the land
	Warned int           // those that were told that what they were shown next may be old; it was not judged
	Stale  int           // those that were shown a block without an edit that was acknowledged before they began
	Oldest time.Duration // at most for so long a missing edit had been acknowledged

	Findings []Finding
}

// Finding is one violation.
type Finding struct {
	Kind string
	Pos  grid.Pos
	Text string
	File string // a drawing of the block's history; empty if there is none
}

// Bad reports whether any violation was found.
func (v *Verdict) Bad() bool {
	return v.Lost+v.Illegal+v.Phantom+v.Skipped+v.Reversed+v.Disagree+v.Stale > 0
}

// history is everything recorded about one block.
type history struct {
	pos    grid.Pos
	edits  []*Edit
	sights []Sight
	reads  []read
	marks  map[int][]identifiedSight // by stream: which edits were seen, in order
}

type read struct {
	node     int
	from, to time.Duration
	block    chunk.Block
	final    bool
}

// identifiedSight is a sight whose edit has been identified.
type identifiedSight struct {
	Sight
	edit *Edit
}

// decideLimit bounds the search for a linearization of one block.
const decideLimit = 20 * time.Second

// drawn is the maximum number of histories that are drawn and reported.
const drawn = 20

// Check checks the ledger and the final readings. Histories that are not legal are drawn into dir.
func Check(l *Ledger, readings []Reading, dir string) (*Verdict, error) {
	v := &Verdict{}
	v.judgeJoins(l)
	all := collect(v, l, readings)
	for _, h := range all {
		v.identifySights(h)
		v.checkStreams(h, l.streamEnd, l.struck)
		v.checkFinal(h)
		if err := v.checkLinearizable(h, dir); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v *Verdict) add(kind string, pos grid.Pos, file, format string, args ...any) {
	if len(v.Findings) < 5*drawn {
		v.Findings = append(v.Findings, Finding{Kind: kind, Pos: pos, Text: fmt.Sprintf(format, args...), File: file})
	}
}

func (v *Verdict) judgeJoins(l *Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.Joins, v.Warned = len(l.mu.joins), l.mu.warned
	for _, j := range l.mu.joins {
		if j.age == 0 {
			continue
		}
		v.Oldest = max(v.Oldest, j.age)
		if v.Stale++; v.Stale <= drawn {
			v.Findings = append(v.Findings, j.Finding)
		}
	}
}

func collect(v *Verdict, l *Ledger, readings []Reading) []*history {
	by := make(map[grid.Pos]*history)
	of := func(pos grid.Pos) *history {
		h := by[pos]
		if h == nil {
			h = &history{pos: pos, marks: make(map[int][]identifiedSight)}
			by[pos] = h
		}
		return h
	}
	for _, e := range l.Since(0) {
		h := of(e.Pos)
		h.edits = append(h.edits, &e)
		v.Asked++
		switch e.Outcome {
		case Acknowledged:
			v.Acknowledged++
		case Refused:
			v.Refused++
		case Unknown:
			v.Unknown++
		}
	}
	for _, s := range l.Sights() {
		h := of(s.Pos)
		h.sights = append(h.sights, s)
		v.Sights++
	}
	for _, r := range readings {
		for pos, h := range by {
			if b, ok := r.Block(pos); ok {
				h.reads = append(h.reads, read{r.Node, r.From, r.To, b, r.Final})
			} else if r.Final {
				v.Disagree++
				v.add("unread", pos, "", "node %d did not show the chunk at the end", r.Node)
			}
		}
	}
	v.Blocks = len(by)
	return slices.SortedFunc(maps.Values(by), func(a, b *history) int {
		return slices.Compare([]int32{a.pos.X, a.pos.Y, a.pos.Z}, []int32{b.pos.X, b.pos.Y, b.pos.Z})
	})
}

// identifySights identifies the edit of each sight. A sight bounds the time at which the edit took effect: so an
// unanswered edit that was seen is no longer unknown, and must not be lost.
func (v *Verdict) identifySights(h *history) {
	for _, s := range h.sights {
		var known, refused []*Edit
		for _, e := range h.edits {
			if e.Block != s.Block || e.Invoked > s.At {
				continue
			}
			if e.Outcome == Refused {
				refused = append(refused, e)
			} else {
				known = append(known, e)
			}
		}
		switch {
		case len(known) == 1:
			e := known[0]
			if e.Seen == 0 || s.At < e.Seen {
				e.Seen = s.At
			}
			h.marks[s.Stream] = append(h.marks[s.Stream], identifiedSight{s, e})
		case len(known) == 0 && len(refused) > 0:
			v.Phantom++
			v.add("refused but applied", h.pos, "", "%s was seen at %v; edit %d was refused (%s)", s.Block.Name(), s.At, refused[0].Number, refused[0].Code)
		case len(known) == 0:
			v.Phantom++
			v.add("phantom", h.pos, "", "%s was seen at %v, but no edit had asked for it", s.Block.Name(), s.At)
		}
	}
}

// gapTolerance is how long before its end a view may have gaps: a gateway that lost a region's leader and found another
// receives the state, and forwards deltas while it rebuilds the chunk that it will show next.
const gapTolerance = 5 * time.Second

// frameTolerance is how shortly before a fault a change may be acknowledged, and not be shown if others follow: its
// leader died before it had sent the change to any gateway, and the next one shows the land as it has become since.
const frameTolerance = 500 * time.Millisecond

// checkStreams checks each view of the block against the order in which edits took effect, as far as their times
// determine it. A view contains every change, except in its tail, and what was acknowledged when a fault began.
func (v *Verdict) checkStreams(h *history, end func(stream int) time.Duration, struck func(*Edit) bool) {
	for stream, marks := range h.marks {
		whole := end(stream) - gapTolerance
		seen := make(map[*Edit]bool)
		for _, m := range marks {
			seen[m.edit] = true
		}
		for i := 1; i < len(marks); i++ {
			a, b := marks[i-1].edit, marks[i].edit
			if a != b && b.Outcome == Acknowledged && b.Returned < a.Invoked {
				v.Reversed++
				v.add("reversed", h.pos, "", "edit %d arrived after edit %d, but was acknowledged before that one was asked for", b.Number, a.Number)
			}
			for _, w := range h.edits {
				if marks[i].At < whole && w.Outcome == Acknowledged && !seen[w] && w.Invoked > marks[i-1].At && w.Returned < b.Invoked && h.single(w) && !struck(w) {
					v.Skipped++
					v.add("skipped", h.pos, "", "edit %d was acknowledged between %d and %d, but an observer of both did not receive it", w.Number, a.Number, b.Number)
				}
			}
		}
	}
}

// single reports whether no other edit put the same block there, so that a sight of it can only be this edit's.
func (h *history) single(w *Edit) bool {
	for _, e := range h.edits {
		if e != w && e.Block == w.Block {
			return false
		}
	}
	return true
}

// checkFinal checks that an edit explains the final block, and that no acknowledged edit came after it.
func (v *Verdict) checkFinal(h *history) {
	var ends []read
	for _, r := range h.reads {
		if r.final {
			ends = append(ends, r)
		}
	}
	for _, r := range ends {
		if r.block != ends[0].block {
			v.Disagree++
			v.add("disagree", h.pos, "", "at the end node %d shows %s, node %d %s", ends[0].node, ends[0].block.Name(), r.node, r.block.Name())
			return
		}
	}
	if len(ends) == 0 {
		return
	}
	final := ends[0].block
	covered := func(until time.Duration) *Edit { // an acknowledged edit that began later
		for _, w := range h.edits {
			if w.Outcome == Acknowledged && w.Invoked > until {
				return w
			}
		}
		return nil
	}
	var missing *Edit
	if final == chunk.Air {
		if missing = covered(-1); missing == nil {
			return // unchanged
		}
	}
	for _, e := range h.edits {
		if e.Outcome == Refused || e.Block != final {
			continue
		}
		if missing = covered(e.end()); missing == nil {
			return
		}
	}
	if missing == nil {
		missing = covered(-1)
	}
	if missing == nil {
		return // no edit was acknowledged, so none is lost
	}
	v.Lost++
	v.add("lost", h.pos, "", "%s is there at the end; edit %d of %s by %s (sequence %d) was acknowledged at %v",
		final.Name(), missing.Number, missing.Block.Name(), missing.Player, missing.Seq, missing.Returned)
}

// end returns the latest time at which an edit took effect; far in the future if it still may.
func (e *Edit) end() time.Duration {
	end := time.Duration(math.MaxInt64)
	if e.Outcome == Acknowledged {
		end = e.Returned
	}
	if e.Seen > 0 {
		end = min(end, e.Seen)
	}
	return end
}

// blockModel is one block as porcupine's state machine. Its state is the last block put there.
var blockModel = porcupine.Model{
	Init: func() any { return chunk.Air },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(operation); in.put {
			return true, in.block
		}
		return output.(chunk.Block) == state.(chunk.Block), state
	},
	DescribeOperation: func(input, output any) string {
		if in := input.(operation); in.put {
			return fmt.Sprintf("%d: put %s (%s)", in.edit, in.block.Name(), in.outcome)
		}
		return "read " + output.(chunk.Block).Name()
	},
	DescribeState: func(state any) string { return state.(chunk.Block).Name() },
}

type operation struct {
	put     bool
	block   chunk.Block
	edit    int
	outcome Outcome
}

// checkLinearizable lets porcupine search for an order of all edits and readings of the block that is consistent with
// all answers. Unknown edits that were not seen may take effect at any later time, or never.
func (v *Verdict) checkLinearizable(h *history, dir string) error {
	var ops []porcupine.Operation
	clients := make(map[string]int)
	client := func(name string) int {
		if _, ok := clients[name]; !ok {
			clients[name] = len(clients)
		}
		return clients[name]
	}
	for _, e := range h.edits {
		if e.Outcome == Refused {
			continue
		}
		ops = append(ops, porcupine.Operation{
			ClientId: client(e.Player), Input: operation{true, e.Block, e.Number, e.Outcome}, Call: int64(e.Invoked), Return: int64(e.end()),
		})
	}
	for _, r := range h.reads {
		ops = append(ops, porcupine.Operation{
			ClientId: client(fmt.Sprint("reader at node ", r.node)), Input: operation{}, Output: r.block, Call: int64(r.from), Return: int64(r.to),
		})
	}
	result, info := porcupine.CheckOperationsVerbose(blockModel, ops, decideLimit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		v.Undecided++
	case porcupine.Illegal:
		v.Illegal++
	}
	file := ""
	if v.Illegal+v.Undecided <= drawn {
		file = filepath.Join(dir, fmt.Sprintf("block_%d_%d_%d.html", h.pos.X, h.pos.Y, h.pos.Z))
		if err := porcupine.VisualizePath(blockModel, info, file); err != nil {
			return fmt.Errorf("draw history of block %v: %w", h.pos, err)
		}
	}
	v.add(string(result), h.pos, file, "no order of its %d edits and %d readings is consistent", len(h.edits), len(h.reads))
	return nil
}
