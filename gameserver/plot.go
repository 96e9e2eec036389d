package gameserver

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file holds the buckets of the interest index: chunks with avatars, divided into cells. Most cells of a region are empty,
// and most others are sent in one tier or two, so the cost of a frame depends on the number of avatars and on the tiers in use.
// Nothing here locks: the index does.

// plot is a chunk with avatars.
type plot struct {
	at       grid.ChunkPos
	actors   int
	awake    bool       // among the index's awake buckets
	moved    bool       // since the previous frame
	restless uint64     // the last tick with possible updates; as of the last frame
	looked   uint64     // the tick of the cells' pieces
	peopled  cellSet    // cells with actors
	told     cellSet    // cells with pieces
	weighers int        // observers that need the cost of every tier
	crossed  []crossing // since the previous frame
	cells    [wire.CellsPerChunk]cell
	used     [wire.CellsPerChunk]gradeSet      // by some observer
	uses     [wire.CellsPerChunk][grades]int32 // by how many
}

// crossing is an avatar's move from one cell of its bucket to another, which observers may have in different tiers.
type crossing struct {
	actor  *actor
	from   uint8
	before [grades]track // the predictions of each tier when it crossed
	kept   gradeSet      // the tiers for which before is valid
}

// cellSet is a set of a bucket's cells.
type cellSet uint16

var _ = [1]struct{}{}[wire.CellsPerChunk-16] // does not compile if there are more or fewer

func (s *cellSet) put(c uint8)    { *s |= 1 << c }
func (s *cellSet) remove(c uint8) { *s &^= 1 << c }

// next removes the first cell from a set that is not empty, and returns it.
func (s *cellSet) next() uint8 {
	c := uint8(bits.TrailingZeros16(uint16(*s)))
	*s &= *s - 1
	return c
}

// cell is a square of wire.CellSize blocks of a bucket, with its encoded updates of the current tick.
type cell struct {
	actors []*actor        // by index
	pieces *[grades][]byte // nil before the first
}

// piece returns the tick's update for clients of the tier.
func (c *cell) piece(g grade) []byte {
	if c.pieces == nil {
		return nil
	}
	return c.pieces[g]
}

// clear removes the pieces of the previous frame.
func (c *cell) clear() {
	if c.pieces == nil {
		return
	}
	for g := range c.pieces {
		c.pieces[g] = c.pieces[g][:0]
	}
}

// moment is the tick and the number of a frame. Ticks follow the clock; after a skipped frame, the tick grows by two.
type moment struct{ tick, look uint64 }

// add puts an actor into its cell, and remove takes it out.
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

// use records that an observer, which had a cell in one tier, has it in another one from now on; unseen is none.
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

// wanted returns the tiers in which a cell must be encoded.
func (p *plot) wanted(cell uint8) gradeSet {
	if p.weighers > 0 {
		return allGrades
	}
	return p.used[cell]
}

// turn grows with each frame; a tier is checked when it is a multiple of tierRules.every. The offset spreads the distant tier's
// chunks over the frames.
func (p *plot) turn(look uint64) uint64 {
	return look + uint64(uint32(p.at.X)*7+uint32(p.at.Z)*13)%gradeRules[distant].every
}

// restlessTicks is how long updates may be needed after a move: until its last extrapolation has ended.
const restlessTicks = 2 * wire.PaceTicks

// look encodes the pieces of a tick. It reports whether the bucket is awake.
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

// count adds up the pieces' bytes, by tier.
func (p *plot) count(bytes *[grades]int) {
	for left := p.told; left != 0; {
		for g, piece := range p.cells[left.next()].pieces {
			bytes[g] += len(piece)
		}
	}
}

// look encodes the cell's pieces of a tick, in the wanted tiers that are due, and reports whether there are any. They are empty
// before.
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

// lowest returns the height of the lowest avatar of a cell that has any.
func (c *cell) lowest() uint16 {
	lowest := uint16(math.MaxUint16)
	for _, a := range c.actors {
		lowest = min(lowest, a.place.Y)
	}
	return lowest
}
