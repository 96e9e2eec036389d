package gameserver

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the ground of the stage: chunks with avatars, in cells. Most of a country's cells are empty, and most that are not are
// seen in one grade or two, so what a look costs is counted by avatars and by the grades that somebody has them in. Nothing here
// locks: the stage does.

// plot is a chunk with avatars.
type plot struct {
	at       grid.ChunkPos
	actors   int
	awake    bool       // among the stage's plots that are looked at
	moved    bool       // since the look before
	restless uint64     // the last tick at which something may have to be told; as of the last look
	looked   uint64     // the tick of the cells' pieces
	peopled  cellSet    // cells with actors
	told     cellSet    // cells with pieces
	weighers int        // vantages that have to know what it would cost in any grade
	crossed  []crossing // since the beat before
	cells    [wire.CellsPerChunk]cell
	used     [wire.CellsPerChunk]gradeSet      // by some vantage
	uses     [wire.CellsPerChunk][grades]int32 // by how many
}

// crossing is an avatar's way from one cell of its plot to another, which vantages may have in different grades.
type crossing struct {
	actor  *actor
	from   uint8
	before [grades]track // when it crossed: what clients of each grade knew
	kept   gradeSet      // those of which that is so
}

// cellSet is a set of a plot's cells.
type cellSet uint16

var _ = [1]struct{}{}[wire.CellsPerChunk-16] // does not compile if there are more or fewer

func (s *cellSet) put(c uint8)    { *s |= 1 << c }
func (s *cellSet) remove(c uint8) { *s &^= 1 << c }

// next takes the first cell out of a set that is not empty.
func (s *cellSet) next() uint8 {
	c := uint8(bits.TrailingZeros16(uint16(*s)))
	*s &= *s - 1
	return c
}

// cell is a square of wire.CellSize blocks of a plot, with what is told of it in the present tick.
type cell struct {
	actors []*actor        // by index
	pieces *[grades][]byte // nil before the first
}

// piece is what clients of the grade are told in the tick.
func (c *cell) piece(g grade) []byte {
	if c.pieces == nil {
		return nil
	}
	return c.pieces[g]
}

// clear does away with the pieces of the look before.
func (c *cell) clear() {
	if c.pieces == nil {
		return
	}
	for g := range c.pieces {
		c.pieces[g] = c.pieces[g][:0]
	}
}

// moment is a look at the stage: the tick that it is, and how many looks there were. Ticks follow the clock, looks are
// the gateway's beats; after one that was left out a tick is two after the one before.
type moment struct{ tick, look uint64 }

// add brings an actor into his cell, and remove takes him out.
func (p *plot) add(a *actor) {
	p.cells[a.cell].add(a)
	p.peopled.put(a.cell)
}

func (p *plot) remove(a *actor) {
	c := &p.cells[a.cell]
	if c.remove(a); len(c.actors) == 0 {
		p.peopled.remove(a.cell)
	}
}

// use notes that a vantage, which has had a cell in one grade, has it in another one from now on; unseen is none.
func (p *plot) use(cell uint8, from, to grade) {
	uses := &p.uses[cell]
	if to != unseen {
		uses[to]++
		p.used[cell] |= only(to)
	}
	if from != unseen {
		if uses[from]--; uses[from] == 0 {
			p.used[cell] &^= only(from)
		}
	}
}

// wanted are the grades in which a cell's avatars have to be told of.
func (p *plot) wanted(cell uint8) gradeSet {
	if p.weighers > 0 {
		return allGrades
	}
	return p.used[cell]
}

// turn grows with each look; a grade is looked at when it is a multiple of gradeRules.every. So not all chunks are told of to those
// who are far away in one look.
func (p *plot) turn(look uint64) uint64 {
	return look + uint64(uint32(p.at.X)*7+uint32(p.at.Z)*13)%gradeRules[distant].every
}

// restlessTicks is how long after a move something may have to be told: until its last pace has ended.
const restlessTicks = 2 * wire.PaceTicks

// look makes the pieces of a tick. It tells whether the plot is awake.
func (p *plot) look(now moment) (awake bool) {
	if p.moved {
		p.restless, p.moved = now.tick+restlessTicks, false
	}
	for p.told != 0 {
		p.cells[p.told.next()].clear()
	}
	if now.tick > p.restless {
		return false
	}
	due := dueIn(p.turn(now.look))
	for left := p.peopled; left != 0; {
		number := left.next()
		if p.cells[number].look(number, p.wanted(number), due, now) {
			p.told.put(number)
		}
	}
	p.looked = now.tick
	return true
}

// count adds up the pieces' bytes, by grade.
func (p *plot) count(bytes *[grades]int) {
	for left := p.told; left != 0; {
		for g, piece := range p.cells[left.next()].pieces {
			bytes[g] += len(piece)
		}
	}
}

// look makes the cell's pieces of a tick, in those of the wanted grades that are due, and tells whether there are any. They are
// empty before.
func (c *cell) look(number uint8, wanted, due gradeSet, now moment) (told bool) {
	var writers [grades]wire.MotionWriter
	lowest := c.lowest()
	for left := wanted & due; left != 0; {
		writers[left.next()].Begin(number, lowest)
	}
	for _, a := range c.actors {
		if a.late(now.look) {
			continue
		}
		a.remember(now.tick)
		told = a.tell(c, &writers, wanted, due, now.tick) || told
	}
	return told
}

func (c *cell) find(a *actor) (int, bool) {
	return slices.BinarySearchFunc(c.actors, a.index, func(b *actor, index uint32) int { return cmp.Compare(b.index, index) })
}

func (c *cell) add(a *actor) {
	if i, found := c.find(a); !found {
		c.actors = slices.Insert(c.actors, i, a)
	}
}

func (c *cell) remove(a *actor) {
	if i, found := c.find(a); found {
		c.actors = slices.Delete(c.actors, i, i+1)
	}
}

// lowest is the height of the lowest avatar of a cell that has any.
func (c *cell) lowest() uint16 {
	lowest := uint16(math.MaxUint16)
	for _, a := range c.actors {
		lowest = min(lowest, a.place.Y)
	}
	return lowest
}
