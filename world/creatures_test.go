package world

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// middleOf returns the pose in the middle of a chunk.
func middleOf(pos grid.ChunkPos) motion.Pose {
	return motion.Pose{X: float64(pos.X)*grid.ChunkSize + 16, Y: 9, Z: float64(pos.Z)*grid.ChunkSize + 16}
}

func drawChunk(t *rapid.T, a grid.Area) grid.ChunkPos {
	return grid.ChunkPos{X: rapid.Int32Range(a.MinX, a.MaxX-1).Draw(t, "x"), Z: rapid.Int32Range(a.MinZ, a.MaxZ-1).Draw(t, "z")}
}

// drawCreatures returns an entry that changes the creatures of a land.
func drawCreatures(t *rapid.T, l *Land) []byte {
	var e CreatureChanges
	ids := slices.SortedFunc(maps.Keys(l.creatures.alive), player.ID.Compare)
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		c := creature.Creature{Kind: creature.Sheep, Pose: middleOf(drawChunk(t, l.cell.Area()))}
		if len(ids) > 0 {
			c.ID = rapid.SampledFrom(ids).Draw(t, "id")
		}
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			e.Moved(c)
		case 1:
			e.Died(c.ID)
		case 2:
			c.Pose.X += 16 * grid.ChunkSize
			e.Departed(c)
		case 3:
			source, number := rapid.Uint64Range(1, 3).Draw(t, "source"), rapid.Uint64Range(1, 20).Draw(t, "number")
			c.ID = player.ID{byte(source), byte(number)}
			e.Arrived(nodemsg.Departure{Passage: nodemsg.Passage{Source: source, Number: number}, Creature: c, Settled: rapid.Uint64Range(0, number-1).Draw(t, "settled")})
		case 4:
			for _, d := range l.Departures(1) {
				e.Settled(d.Passage)
			}
		default:
			e.Born(c)
		}
	}
	if e.Len() == 0 {
		e.Died(player.ID{})
	}
	return e.Encode()
}

// herd is a world of some regions, in which each creature must be exactly once. A region's log is what its leaders have
// committed; what they send each other arrives late, repeatedly, from leaders that were deposed, or never.
type herd struct {
	*rapid.T
	regions []*pasture
	parents []*pasture // split
	born    map[player.ID]bool
	offers  []nodemsg.Departure // ever sent
	arrived []nodemsg.Passage   // ever answered
}

// pasture is a region, as its members have it.
type pasture struct {
	land  *Land
	index uint64
	table rows // as it is stored
}

func (h *herd) add(id uint64, cell grid.Cell, index uint64, table rows) *pasture {
	g := &pasture{land: NewLand(id, cell, testHeight), index: index, table: table}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if err := g.land.Load([]byte(key), table[key]); err != nil {
			h.Fatal(err)
		}
	}
	return g
}

func (h *herd) apply(g *pasture, entry []byte) Outcome {
	g.index++
	out, err := g.land.Apply(g.index, entry)
	if err != nil {
		h.Fatal(err)
	}
	if out.Step != Splits {
		g.table.store(g.land.Writes())
	}
	return out
}

// draw returns one of the regions.
func (h *herd) draw() *pasture {
	return h.regions[rapid.IntRange(0, len(h.regions)-1).Draw(h.T, "region")]
}

func (h *herd) at(pos grid.ChunkPos) *pasture {
	i := slices.IndexFunc(h.regions, func(g *pasture) bool { return g.land.cell.Contains(pos) })
	return h.regions[i]
}

// offer delivers a departure to the region that has the land now, and remembers the answer.
func (h *herd) offer(d nodemsg.Departure) {
	g := h.at(d.Creature.Pose.Chunk())
	var e CreatureChanges
	e.Arrived(d)
	h.apply(g, e.Encode())
	if !g.land.Accepted(d.Passage) {
		h.Fatalf("%v was not accepted", d.Passage)
	}
	h.arrived = append(h.arrived, d.Passage)
}

func (h *herd) settle(p nodemsg.Passage) {
	var e CreatureChanges
	e.Settled(p)
	h.apply(h.draw(), e.Encode())
}

func (h *herd) split(g *pasture) {
	if g.land.cell.Label.Len() > grid.FoundingLabel+1 || h.apply(g, EncodeSplit()).Step != Splits {
		return
	}
	h.regions = slices.DeleteFunc(h.regions, func(one *pasture) bool { return one == g })
	for _, c := range g.land.Children(g.index) {
		table := make(rows)
		table.store(c.Rows)
		h.regions = append(h.regions, h.add(c.ID, c.Cell, g.index, table))
	}
	g.table.store(g.land.Writes())
	g.table.store(g.land.Split(g.index))
	h.parents = append(h.parents, g)
}

// merge merges the halves of the region that was split last.
func (h *herd) merge() {
	if len(h.parents) == 0 {
		return
	}
	g := h.parents[len(h.parents)-1]
	attempt := g.land.Structure().Attempt
	var packed [2][]byte
	for half := range packed {
		child := h.regions[slices.IndexFunc(h.regions, func(one *pasture) bool {
			return one.land.id == ChildID(g.land.id, g.land.Structure().Split, half)
		})]
		h.apply(child, EncodeFreeze(attempt))
		var err error
		if packed[half], err = child.land.PackedRows(0, 0); err != nil {
			h.Fatal(err)
		}
		h.regions = slices.DeleteFunc(h.regions, func(one *pasture) bool { return one == child })
	}
	if h.apply(g, EncodeMerge(attempt, packed)).Step != Merged {
		h.Fatal("not merged")
	}
	h.parents = h.parents[:len(h.parents)-1]
	h.regions = append(h.regions, g)
}

func (h *herd) step() {
	g := h.draw()
	switch rapid.IntRange(0, 9).Draw(h.T, "step") {
	case 0: // a leader dies: the next one has what is stored
		h.regions[slices.Index(h.regions, g)] = h.add(g.land.id, g.land.cell, g.index, g.table)
	case 1:
		h.split(g)
	case 2:
		h.merge()
	case 3, 4, 5: // some creatures cross a border
		var e CreatureChanges
		ids := slices.SortedFunc(maps.Keys(g.land.creatures.alive), player.ID.Compare)
		for _, id := range ids[:min(len(ids), rapid.IntRange(1, 3).Draw(h.T, "crossing"))] {
			c, _ := g.land.Creature(id)
			to := h.draw()
			if c.Pose = middleOf(drawChunk(h.T, to.land.cell.Area())); to == g {
				e.Moved(c)
			} else {
				e.Departed(c)
			}
		}
		if e.Len() > 0 {
			h.apply(g, e.Encode())
		}
	case 6: // a leader sends what has departed
		h.offers = append(h.offers, g.land.Departures(MaxCreatureChanges)...)
	case 7, 8:
		if n := len(h.offers); n > 0 {
			h.offer(h.offers[rapid.IntRange(0, n-1).Draw(h.T, "offer")])
		}
	case 9:
		if n := len(h.arrived); n > 0 {
			h.settle(h.arrived[rapid.IntRange(0, n-1).Draw(h.T, "answer")])
		}
	}
}

// check checks that each creature is in exactly one region, or on its way.
func (h *herd) check(when string) {
	alive, waiting := make(map[player.ID]int), make(map[player.ID]int)
	for _, g := range h.regions {
		for id := range g.land.creatures.alive {
			alive[id]++
		}
		for passage, d := range g.land.creatures.departed {
			if to := h.at(d.Pose.Chunk()); !to.land.Accepted(passage) {
				waiting[d.ID]++
			}
		}
	}
	for id := range h.born {
		if alive[id]+waiting[id] != 1 {
			h.Fatalf("%s: %v is in %d regions, and on %d ways", when, id, alive[id], waiting[id])
		}
	}
	if n := len(alive) + len(waiting); n != len(h.born) {
		h.Fatalf("%s: there are %d creatures, of %d", when, n, len(h.born))
	}
}

// Whatever is repeated, delayed or lost, and whatever becomes of the regions, each creature is exactly once.
func TestCreaturesCrossOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &herd{T: t, born: make(map[player.ID]bool)}
		for i := range int32(2) {
			cell := grid.CellAt(grid.ChunkPos{X: 16 * i}, grid.FoundingLabel)
			g := h.add(uint64(10+i), cell, 1, make(rows))
			var e CreatureChanges
			for range 3 {
				e.Born(creature.Creature{Kind: creature.Sheep, Pose: middleOf(grid.ChunkPos{X: 16 * i})})
			}
			h.apply(g, e.Encode())
			for id := range g.land.creatures.alive {
				h.born[id] = true
			}
			h.regions = append(h.regions, g)
		}
		for i := range rapid.IntRange(0, 150).Draw(t, "steps") {
			h.step()
			h.check(fmt.Sprint("step ", i))
		}
		for range 2 { // in the end, everything arrives
			for _, g := range slices.Clone(h.regions) {
				for _, d := range g.land.Departures(MaxCreatureChanges) {
					h.offer(d)
					var e CreatureChanges
					e.Settled(d.Passage)
					h.apply(g, e.Encode())
				}
			}
		}
		for _, g := range h.regions {
			if len(g.land.creatures.departed) > 0 {
				t.Fatal("some never arrive")
			}
		}
		h.check("in the end")
	})
}

// A frozen region, of which the other half's leader has a copy, changes nothing any more.
func TestFrozenCreaturesStay(t *testing.T) {
	parent := newTestLand()
	half := children(t, parent, 10)[0]
	at := middleOf(grid.ChunkPos{X: half.cell.Area().MinX, Z: half.cell.Area().MinZ})
	var born CreatureChanges
	born.Born(creature.Creature{Kind: creature.Sheep, Pose: at})
	mustApply(t, half, 11, born.Encode())
	mustApply(t, half, 12, EncodeFreeze(0))
	mustApply(t, half, 13, born.Encode())
	if n := half.CountCreatures(); n != 1 {
		t.Errorf("%d creatures, want 1", n)
	}
}

func TestCreaturesAreBounded(t *testing.T) {
	l := newTestLand()
	area := l.cell.Area()
	var born CreatureChanges
	for range MaxCreatures + 5 {
		born.Born(creature.Creature{Kind: creature.Sheep, Pose: middleOf(grid.ChunkPos{X: area.MinX, Z: area.MinZ})})
	}
	out, err := l.Apply(2, born.Encode())
	if err != nil || out.Born != MaxCreatures || l.CountCreatures() != MaxCreatures {
		t.Errorf("%d were born, and %d are there: %v", out.Born, l.CountCreatures(), err)
	}
	for i := range rememberedSources + 5 {
		var e CreatureChanges
		c := creature.Creature{ID: player.ID{byte(i), byte(i >> 8), 1}, Pose: middleOf(grid.ChunkPos{X: area.MinX, Z: area.MinZ})}
		e.Arrived(nodemsg.Departure{Passage: nodemsg.Passage{Source: uint64(i + 100), Number: 1}, Creature: c}) //nolint:gosec // small
		mustApply(t, l, uint64(i+3), e.Encode())                                                                //nolint:gosec // small
	}
	if n := len(l.creatures.accepted); n != rememberedSources || l.Accepted(nodemsg.Passage{Source: 100, Number: 1}) {
		t.Errorf("it remembers %d sources, want the %d newest", n, rememberedSources)
	}
}

func FuzzCreatures(f *testing.F) {
	var e CreatureChanges
	c := creature.Creature{ID: player.ID{1}, Kind: creature.Sheep, Pose: middleOf(grid.ChunkPos{X: -3, Z: 3})}
	e.Born(c)
	e.Moved(c)
	e.Died(c.ID)
	e.Departed(c)
	e.Arrived(nodemsg.Departure{Passage: nodemsg.Passage{Source: 5, Number: 6}, Settled: 4, Creature: c})
	e.Settled(nodemsg.Passage{Source: 5, Number: 6})
	f.Add(e.Encode())
	f.Fuzz(func(t *testing.T, entry []byte) {
		l, table := newTestLand(), make(rows)
		if len(entry) == 0 || entry[0] != tagCreatures {
			return
		}
		if _, err := l.Apply(2, entry); err == nil {
			table.store(l.Writes())
			if n := table.load(t).CountCreatures(); n != l.CountCreatures() {
				t.Errorf("%d creatures are stored, of %d", n, l.CountCreatures())
			}
		}
	})
}
