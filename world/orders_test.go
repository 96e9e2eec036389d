package world

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// The model of rollbacks is what operations.md says of them, read naively: a list of changes for each block, each with
// its place in one order of all that happens. It knows no logs, entries, segments nor marks.

// modelChange is a change of a block.
type modelChange struct {
	when     int   // its place among all that happens
	time     int64 // by the clock of a leader, which may be wrong
	by       player.ID
	old, new chunk.Block
}

// modelOrder is an order of the policy: a rollback, the undoing of one, or a claim.
type modelOrder struct {
	history.Rollback
	claim           bool
	undoes          bool
	paused, aborted bool
	arrived         map[grid.ChunkPos]int // when it came to the chunk's region
}

// ordersModel has the blocks of two chunks, which are in one region or in one each.
type ordersModel struct {
	when   int
	blocks map[grid.Pos][]modelChange
	last   map[grid.ChunkPos]int64 // the time of the last change: leaders' times never decrease in a chunk
	orders []*modelOrder
}

func (m *ordersModel) set(pos grid.Pos, by player.ID, block chunk.Block, now int64) {
	c := modelChange{when: m.when, time: max(now, m.last[pos.Chunk()]), by: by, old: history.Natural, new: block}
	if all := m.blocks[pos]; len(all) > 0 {
		if c.old = all[len(all)-1].new; c.old == block && !m.ordered(by) {
			return
		}
	}
	m.last[pos.Chunk()] = c.time
	m.blocks[pos] = append(m.blocks[pos], c)
}

// ordered reports whether an id is that of a rollback.
func (m *ordersModel) ordered(by player.ID) bool {
	return slices.ContainsFunc(m.orders, func(o *modelOrder) bool { return history.Author(o.Number) == by })
}

func (m *ordersModel) order(number int64) *modelOrder {
	for _, o := range m.orders {
		if o.Number == number {
			return o
		}
	}
	return nil
}

// to returns what a rollback makes of a block, if it changes it.
func (m *ordersModel) to(o *modelOrder, pos grid.Pos) (to chunk.Block, changes bool) {
	all := m.blocks[pos]
	if !o.Box.Contains(pos) || len(all) == 0 {
		return 0, false
	}
	from, until := -1, m.when+1
	if !o.undoes {
		until = o.arrived[pos.Chunk()]
		if o.After != 0 {
			from = m.order(o.After).arrived[pos.Chunk()]
		}
	}
	now := all[len(all)-1].new
	to = now
	for _, c := range slices.Backward(all) {
		chosen := c.when < until && c.when > from && c.time >= o.Since && c.by != history.Author(o.Number)
		if !chosen || len(o.Players) > 0 && !slices.Contains(o.Players, c.by) {
			break
		}
		to, changes = c.old, true
	}
	return to, changes && to != now
}

// ordersRegion is a region of the test, and what its leader knows.
type ordersRegion struct {
	land  *Land
	index uint64
	known int // of the orders
	// applied are entries that may be repeated, delayed are those that were proposed and are committed later, if at
	// all.
	applied [][]byte
	delayed []RollbackStep
}

// ordersRun runs the state machine and its model side by side.
type ordersRun struct {
	*rapid.T
	model   *ordersModel
	parent  *Land
	at      uint64 // the index of the parent's log
	regions []*ordersRegion
	chunks  [2]grid.ChunkPos
	now     int64
	seq     uint64
}

func (r *ordersRun) apply(g *ordersRegion, entry []byte) Outcome {
	g.index++
	out, err := g.land.Apply(g.index, entry)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// missing returns the orders that the region's leader knows, and that have not arrived there.
func (r *ordersRun) missing(g *ordersRegion) (missing []*modelOrder) {
	for _, o := range r.model.orders[:g.known] {
		over := !o.claim && (o.undoes || o.aborted || o.Number <= g.land.RolledBack())
		if !over && o.Number > g.land.Marked() && g.land.cell.Area().Overlaps(o.Box.Area()) {
			missing = append(missing, o)
		}
	}
	return missing
}

// arrive has the orders that the region's leader knows arrive.
func (r *ordersRun) arrive(g *ordersRegion) {
	var missing []history.Mark
	for _, o := range r.missing(g) {
		missing = append(missing, history.Mark{Number: o.Number, Box: o.Box, Since: o.Since})
		for _, pos := range r.chunks {
			if g.land.cell.Contains(pos) {
				o.arrived[pos] = r.model.when
			}
		}
	}
	if len(missing) > 0 {
		entry := EncodeMarks(missing)
		r.apply(g, entry)
		g.applied = append(g.applied, entry)
	}
	r.model.when++
}

// next returns the rollback that the region's leader has to carry out; nil if there is none.
func (r *ordersRun) next(g *ordersRegion) *modelOrder {
	for _, o := range r.model.orders[:g.known] {
		if !o.claim && !o.aborted && o.Number > g.land.RolledBack() && g.land.cell.Area().Overlaps(o.Box.Area()) {
			return o
		}
	}
	return nil
}

// step carries out a part of the next rollback, as the leader does. It reports whether it did something.
func (r *ordersRun) step(g *ordersRegion, delay bool) bool {
	o := r.next(g)
	if o == nil || o.paused {
		return false
	}
	if o.undoes && g.land.RolledBack() < o.Number-1 {
		r.apply(g, RollbackStep{Rollback: history.Rollback{Number: o.Number - 1}, Done: true}.Encode())
		return true
	}
	if o.Marked && g.land.Marked() < o.Number {
		r.arrive(g)
		return true
	}
	for _, pos := range r.chunks {
		if !g.land.cell.Contains(pos) {
			continue
		}
		changes, err := o.Changes(pos, g.land.History(pos, o.Since))
		if err != nil {
			r.Fatal(err)
		}
		if len(changes) == 0 {
			for at := range r.model.blocks {
				if to, left := r.model.to(o, at); left && at.Chunk() == pos {
					r.Fatalf("rollback %+v does not make %v %v: %+v", o, at, to, r.model.blocks[at])
				}
			}
			continue
		}
		s := RollbackStep{Rollback: o.Rollback, Time: r.now, Chunk: pos}
		for _, c := range changes {
			if to, does := r.model.to(o, c.At.Pos(pos)); !does || to != c.To {
				r.Fatalf("rollback %+v makes %v %v, want %v, %v", o, c.At.Pos(pos), c.To, to, does)
			}
			if c.To == history.Natural {
				s.Natural = append(s.Natural, nodemsg.BlockAt{At: c.At, Block: chunk.Stone})
			}
		}
		if delay {
			g.delayed = append(g.delayed, s)
			return true
		}
		r.commit(g, o, s)
		return true
	}
	r.apply(g, RollbackStep{Rollback: o.Rollback, Done: true}.Encode())
	return true
}

// commit applies a step of a rollback.
func (r *ordersRun) commit(g *ordersRegion, o *modelOrder, s RollbackStep) {
	if o.Number > g.land.RolledBack() {
		for y := range int32(4) {
			at := s.Chunk.Origin()
			at.Y = y
			to, does := r.model.to(o, at)
			listed := slices.ContainsFunc(s.Natural, func(n nodemsg.BlockAt) bool { return n.At == chunk.At(at) })
			if to == history.Natural {
				to, does = chunk.Stone, does && listed
			}
			if does {
				r.model.set(at, history.Author(o.Number), to, r.now)
			}
		}
	}
	s.Time = r.now
	r.apply(g, s.Encode())
	g.applied = append(g.applied, s.Encode())
	r.model.when++
}

// late commits the steps that were delayed, whatever has become of their rollbacks.
func (r *ordersRun) late(g *ordersRegion) {
	for _, s := range g.delayed {
		r.commit(g, r.model.order(s.Number), s)
	}
	g.delayed = nil
}

// edit has a player change a block, after all orders that the leader knows of.
func (r *ordersRun) edit(pos grid.Pos, name string, block chunk.Block) {
	g := r.regionOf(pos.Chunk())
	r.arrive(g)
	r.seq++
	r.apply(g, Batch{Time: r.now, Pins: []Pin{{Chunk: pos.Chunk()}}, Edits: []nodemsg.Intent{{
		Player: player.GuestID(name), Seq: r.seq, Pos: pos, Block: block, Proof: nodemsg.Proof{Name: name},
	}}}.Encode())
	r.model.set(pos, player.GuestID(name), block, r.now)
	r.model.when++
}

func (r *ordersRun) regionOf(pos grid.ChunkPos) *ordersRegion {
	for _, g := range r.regions {
		if g.land.cell.Contains(pos) {
			return g
		}
	}
	return nil
}

// restart loads a region as it is stored.
func (r *ordersRun) restart(g *ordersRegion) {
	fresh := NewLand(g.land.id, g.land.cell, testHeight)
	for _, row := range g.land.rows() {
		if err := fresh.Load(row.Key, row.Value); err != nil {
			r.Fatal(err)
		}
	}
	g.land = fresh
}

func (r *ordersRun) split() {
	g := r.regions[0]
	g.index++
	if out, err := g.land.Apply(g.index, EncodeSplit()); err != nil || out.Step != Splits {
		r.Fatal(out, err)
	}
	r.parent, r.regions = g.land, nil
	for _, c := range g.land.Children(g.index) {
		child := &ordersRegion{land: NewLand(c.ID, c.Cell, testHeight), index: g.index, known: g.known}
		for _, row := range c.Rows {
			if err := child.land.Load(row.Key, row.Value); err != nil {
				r.Fatal(err)
			}
		}
		r.regions = append(r.regions, child)
	}
	r.parent.Writes()
	r.parent.Split(g.index)
	r.at = g.index
}

// merge merges the halves if nothing is left to do in them, and the same orders have arrived.
func (r *ordersRun) merge() {
	var last, passed int64
	for _, g := range r.regions {
		if r.next(g) != nil || g.known != r.regions[0].known || len(r.missing(g)) > 0 {
			return
		}
		for _, o := range r.model.orders[:g.known] {
			if last = o.Number; !o.claim {
				passed = o.Number
			}
		}
	}
	attempt := r.parent.Structure().Attempt
	var rows [2][]byte
	for half, g := range r.regions {
		r.apply(g, EncodeFreeze(attempt))
		var err error
		if rows[half], err = g.land.PackedRows(passed, last); err != nil {
			r.Fatal(err)
		}
	}
	r.at++
	g := &ordersRegion{land: r.parent, index: r.at, known: r.regions[0].known}
	if out := r.apply(g, EncodeMerge(attempt, rows)); out.Step != Merged {
		r.Fatal("not merged")
	}
	r.regions = []*ordersRegion{g}
}

// compare compares all blocks.
func (r *ordersRun) compare(after string) {
	got, want := make(map[grid.Pos]chunk.Block), make(map[grid.Pos]chunk.Block)
	for pos, all := range r.model.blocks {
		want[pos] = all[len(all)-1].new
	}
	for _, g := range r.regions {
		maps.Copy(got, (&editor{land: g.land}).blocks())
	}
	if !maps.Equal(got, want) {
		r.Fatalf("after %s the land has %v, want %v", after, got, want)
	}
}

var orderers = []string{"ada", "bob", "eve"}

// drawOrder returns an order to undo what is known at some time in some box.
func (r *ordersRun) drawOrder() *modelOrder {
	o := &modelOrder{arrived: make(map[grid.ChunkPos]int)}
	if n := len(r.model.orders); n > 0 {
		o.Number = r.model.orders[n-1].Number
	}
	o.Number += 1 + rapid.Int64Range(0, 3).Draw(r.T, "apart")
	boxes := []grid.Box{columnsAt(r.chunks[0], r.chunks[0]), columnsAt(r.chunks[1], r.chunks[1]), columnsAt(r.chunks[0], r.chunks[1])}
	o.Box = rapid.SampledFrom(boxes).Draw(r.T, "box")
	return o
}

func columnsAt(a, b grid.ChunkPos) grid.Box {
	low, high := a.Origin(), b.Origin()
	return grid.BoxOf(low, grid.Pos{X: high.X + 31, Y: testHeight - 1, Z: high.Z + 31})
}

// TestRollbacksAgreeWithModel has players build, orders be given, paused, resumed, aborted and undone, arrive late, and
// be carried out step by step, while leaders change, clocks jump, entries are repeated, and the region is split and
// merged. A longer run: go test ./world -run RollbacksAgree -rapid.checks=100000.
func TestRollbacksAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := corners()
		r := &ordersRun{T: t, chunks: [2]grid.ChunkPos{a.Chunk(), b.Chunk()}, now: 1_000_000}
		r.model = &ordersModel{blocks: make(map[grid.Pos][]modelChange), last: make(map[grid.ChunkPos]int64)}
		r.regions = []*ordersRegion{{land: newTestLand()}}
		r.apply(r.regions[0], Batch{Time: r.now, Pins: []Pin{{Chunk: r.chunks[0]}, {Chunk: r.chunks[1]}}}.Encode()) // it has a history from now on
		order := func() *modelOrder {
			var all []*modelOrder
			for _, o := range r.model.orders {
				if !o.claim {
					all = append(all, o)
				}
			}
			if len(all) == 0 {
				return nil
			}
			return rapid.SampledFrom(all).Draw(t, "order")
		}
		region := func() *ordersRegion { return rapid.SampledFrom(r.regions).Draw(t, "region") }
		actions := map[string]func(){
			"edit": func() {
				pos := rapid.SampledFrom([]grid.Pos{a, b}).Draw(t, "chunk")
				pos.Y = rapid.Int32Range(1, 3).Draw(t, "height")
				r.edit(pos, rapid.SampledFrom(orderers).Draw(t, "name"), chunk.Block(rapid.Uint16Range(0, 3).Draw(t, "block")))
			},
			"clock": func() { r.now = max(0, r.now+history.Resolution*rapid.Int64Range(-2000, 2000).Draw(t, "clock")) },
			"order": func() {
				o := r.drawOrder()
				o.Marked = true
				for _, name := range orderers[:rapid.IntRange(0, 2).Draw(t, "players")] {
					o.Players = append(o.Players, player.GuestID(name))
				}
				if rapid.Bool().Draw(t, "since") {
					o.Since = max(0, r.now-history.Resolution*rapid.Int64Range(0, 2000).Draw(t, "ago"))
				}
				for _, c := range r.model.orders {
					if c.claim && c.Box == o.Box && rapid.Bool().Draw(t, "claimed") {
						o.After = c.Number
					}
				}
				r.model.orders = append(r.model.orders, o)
			},
			"claim": func() {
				o := r.drawOrder()
				o.claim = true
				r.model.orders = append(r.model.orders, o)
			},
			"undo": func() {
				if of := order(); of != nil {
					o := r.drawOrder()
					o.undoes, o.Filter = true, history.Filter{Box: of.Box, Players: []player.ID{history.Author(of.Number)}}
					r.model.orders = append(r.model.orders, o)
					of.aborted = of.aborted || of.paused
				}
			},
			"pause": func() {
				if o := order(); o != nil {
					o.paused = !o.paused
				}
			},
			"abort": func() {
				if o := order(); o != nil {
					o.aborted = true
				}
			},
			"learn": func() {
				g := region()
				g.known = rapid.IntRange(g.known, len(r.model.orders)).Draw(t, "known")
			},
			"arrive":  func() { r.arrive(region()) },
			"step":    func() { r.step(region(), rapid.IntRange(0, 3).Draw(t, "delay") == 0) },
			"restart": func() { r.restart(region()) },
			"late":    func() { r.late(region()) },
			"repeat": func() {
				g := region()
				for _, entry := range g.applied {
					if out := r.apply(g, entry); len(out.Changes) > 0 {
						t.Fatalf("a repeated entry changes %v", out.Changes)
					}
				}
			},
			"split": func() {
				if len(r.regions) == 1 {
					r.split()
				}
			},
			"merge": func() {
				if len(r.regions) == 2 {
					r.merge()
				}
			},
		}
		names := slices.Sorted(maps.Keys(actions))
		names = append(names, "edit", "edit", "edit", "step", "step", "step", "learn", "order")
		for range rapid.IntRange(1, 120).Draw(t, "actions") {
			name := rapid.SampledFrom(names).Draw(t, "action")
			actions[name]()
			r.compare(name)
		}
		// In the end all orders are known and go on: each region comes to an end, and what it has done is final.
		for _, o := range r.model.orders {
			o.paused = false
		}
		for _, g := range r.regions {
			g.known = len(r.model.orders)
			for n := 0; r.step(g, false); n++ {
				if n > 1000 {
					t.Fatal("a rollback does not end")
				}
			}
		}
		r.compare("all")
		for _, g := range r.regions {
			for _, name := range orderers {
				for i, pos := range r.chunks {
					if g.land.cell.Contains(pos) {
						at := []grid.Pos{a, b}[i]
						at.Y = 9
						r.edit(at, name, chunk.Lamp)
					}
				}
			}
			if r.step(g, false) {
				t.Fatal("a rollback goes on after it was complete")
			}
			r.late(g)
		}
		for _, o := range r.model.orders {
			for at := range r.model.blocks {
				if to, left := r.model.to(o, at); left && !o.claim && !o.aborted {
					t.Fatalf("rollback %+v is complete, but does not make %v %v: %+v", o, at, to, r.model.blocks[at])
				}
			}
		}
		r.compare(fmt.Sprintf("%d orders", len(r.model.orders)))
	})
}
