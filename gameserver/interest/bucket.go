package interest

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file holds the buckets of the interest index: chunks with avatars, divided into cells. Most cells of a region
// are empty, and most others are sent in one tier or two, so the cost of a frame depends on the number of avatars and
// on the tiers in use.
//

// bucket is a chunk with avatars.
type bucket struct {
	at            grid.ChunkPos
	avatars       int
	awake         bool       // among the index's awake buckets
	moved         bool       // since the previous frame
	activeUntil   uint64     // the last tick with possible updates; as of the last frame
	encodedTick   uint64     // the tick of the cells' pieces
	occupied      cellSet    // cells with avatars
	withPieces    cellSet    // cells with pieces
	costObservers int        // observers that need the cost of every tier
	crossed       []crossing // since the previous frame
	cells         [sessionmsg.CellsPerChunk]cell
	used          [sessionmsg.CellsPerChunk]tierSet      // by some observer
	uses          [sessionmsg.CellsPerChunk][tiers]int32 // by how many
}

// crossing is an avatar's move from one cell of its bucket to another, which observers may have in different tiers.
type crossing struct {
	avatar *avatar
	from   uint8
	before [tiers]prediction // the predictions of each tier when it crossed
	valid  tierSet           // the tiers for which before is valid
}

// cellSet is a set of a bucket's cells.
type cellSet uint16

var _ = [1]struct{}{}[sessionmsg.CellsPerChunk-16] // does not compile if there are more or fewer

func (s *cellSet) put(c uint8)    { *s |= 1 << c }
func (s *cellSet) remove(c uint8) { *s &^= 1 << c }

// next removes the first cell from a set that is not empty, and returns it.
func (s *cellSet) next() uint8 {
	c := uint8(bits.TrailingZeros16(uint16(*s)))
	*s &= *s - 1
	return c
}

// cell is a square of sessionmsg.CellSize blocks of a bucket, with its encoded updates of the current tick.
type cell struct {
	avatars []*avatar      // by index
	pieces  *[tiers][]byte // nil before the first
}

// piece returns the tick's update for clients of the tier.
func (c *cell) piece(tier lodTier) []byte {
	if c.pieces == nil {
		return nil
	}
	return c.pieces[tier]
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

// frameTime is the tick and the number of a frame. Ticks follow the clock; after a skipped frame, the tick grows by
// two.
type frameTime struct{ tick, frame uint64 }

// add puts an avatar into its cell, and remove takes it out.
func (bkt *bucket) add(a *avatar) {
	bkt.cells[a.cell].add(a)
	bkt.occupied.put(a.cell)
}

func (bkt *bucket) remove(a *avatar) {
	c := &bkt.cells[a.cell]
	if c.remove(a); len(c.avatars) == 0 {
		bkt.occupied.remove(a.cell)
	}
}

// use records that an observer, which had a cell in one tier, has it in another one from now on; unseen is none.
func (bkt *bucket) use(cell uint8, from, to lodTier) {
	uses := &bkt.uses[cell]
	if to != unseen {
		uses[to]++
		bkt.used[cell] |= only(to)
	}
	if from != unseen {
		if uses[from]--; uses[from] == 0 {
			bkt.used[cell] &^= only(from)
		}
	}
}

// neededTiers returns the tiers in which a cell must be encoded.
func (bkt *bucket) neededTiers(cell uint8) tierSet {
	if bkt.costObservers > 0 {
		return allTiers
	}
	return bkt.used[cell]
}

// turnOf grows with each frame; a tier is checked when it is a multiple of tierRules.every. The offset spreads the
// distant tier's chunks over the frames.
func (bkt *bucket) turnOf(frame uint64) uint64 {
	return frame + uint64(uint32(bkt.at.X)*7+uint32(bkt.at.Z)*13)%tierRules[distant].every
}

// activeTicks is how long updates may be needed after a move: until its last extrapolation has ended.
const activeTicks = 2 * sessionmsg.TickExtrapolation

// encode encodes the pieces of a tick. It reports whether the bucket is awake.
func (bkt *bucket) encode(now frameTime) (awake bool) {
	if bkt.moved {
		bkt.activeUntil, bkt.moved = now.tick+activeTicks, false
	}
	for bkt.withPieces != 0 {
		bkt.cells[bkt.withPieces.next()].clear()
	}
	if now.tick > bkt.activeUntil {
		return false
	}
	due := dueIn(bkt.turnOf(now.frame))
	for left := bkt.occupied; left != 0; {
		number := left.next()
		if bkt.cells[number].encode(number, bkt.neededTiers(number), due, now) {
			bkt.withPieces.put(number)
		}
	}
	bkt.encodedTick = now.tick
	return true
}

// count adds up the pieces' bytes, by tier.
func (bkt *bucket) count(bytes *[tiers]int) {
	for left := bkt.withPieces; left != 0; {
		for g, piece := range bkt.cells[left.next()].pieces {
			bytes[g] += len(piece)
		}
	}
}

// encode encodes the cell's pieces of a tick, in the wanted tiers that are due, and reports whether there are any. They
// are empty before.
func (c *cell) encode(number uint8, wanted, due tierSet, now frameTime) (encoded bool) {
	var writers [tiers]sessionmsg.MotionWriter
	lowest := c.lowest()
	for left := wanted & due; left != 0; {
		writers[left.next()].Begin(number, lowest)
	}
	for _, a := range c.avatars {
		if a.late(now.frame) {
			continue
		}
		a.remember(now.tick)
		encoded = a.encode(c, &writers, wanted, due, now.tick) || encoded
	}
	return encoded
}

func (c *cell) find(a *avatar) (int, bool) {
	return slices.BinarySearchFunc(c.avatars, a.index, func(b *avatar, index uint32) int { return cmp.Compare(b.index, index) })
}

func (c *cell) add(a *avatar) {
	if i, found := c.find(a); !found {
		c.avatars = slices.Insert(c.avatars, i, a)
	}
}

func (c *cell) remove(a *avatar) {
	if i, found := c.find(a); found {
		c.avatars = slices.Delete(c.avatars, i, i+1)
	}
}

// lowest returns the height of the lowest avatar of a cell that has any.
func (c *cell) lowest() uint16 {
	lowest := uint16(math.MaxUint16)
	for _, a := range c.avatars {
		lowest = min(lowest, a.place.Y)
	}
	return lowest
}
