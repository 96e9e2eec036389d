package bot

import (
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// land is one chunk as it arrived. Most chunks in view are never walked on, so a chunk stays packed (a few KiB) until
// a player walks or edits there.
type land struct {
	packed  []byte
	changes []change     // since packed arrived; applied when unpacking
	open    *chunk.Chunk // nil while packed
}

type change struct {
	at    chunk.Index
	block chunk.Block
}

// ground is the land that one player has received. It belongs to the player's goroutine.
type ground struct {
	unpack func(packed []byte) (*chunk.Chunk, error)
	lands  map[grid.ChunkPos]*land
	broken error // why a chunk could not be unpacked; its land stays unknown
}

func newGround(unpack func([]byte) (*chunk.Chunk, error)) *ground {
	return &ground{unpack: unpack, lands: make(map[grid.ChunkPos]*land)}
}

func (g *ground) put(c grid.ChunkPos, packed []byte) { g.lands[c] = &land{packed: packed} }

func (g *ground) remove(c grid.ChunkPos) { delete(g.lands, c) }

// set changes a block of known land.
func (g *ground) set(pos grid.Pos, b chunk.Block) {
	l := g.lands[pos.Chunk()]
	if l == nil || pos.Y < 0 {
		return
	}
	if l.open == nil {
		l.changes = append(l.changes, change{chunk.At(pos), b})
	} else if int(pos.Y) < l.open.Height() {
		l.open.Set(chunk.At(pos), b)
	}
}

// block returns the block at a place, if that land is known. Below the world is bedrock, above it air.
func (g *ground) block(pos grid.Pos) (chunk.Block, bool) {
	l := g.lands[pos.Chunk()]
	if l == nil {
		return chunk.Air, false
	}
	if l.open == nil {
		c, err := g.unpack(l.packed)
		if err != nil {
			g.broken = fmt.Errorf("unpack chunk %v: %w", pos.Chunk(), err)
			g.remove(pos.Chunk())
			return chunk.Air, false
		}
		for _, ch := range l.changes {
			if x, y, z := ch.at.XYZ(); y < c.Height() {
				c.Set(chunk.IndexOf(x, y, z), ch.block)
			}
		}
		*l = land{open: c}
	}
	switch {
	case pos.Y < 0:
		return chunk.Bedrock, true
	case int(pos.Y) >= l.open.Height():
		return chunk.Air, true
	}
	return l.open.Get(chunk.At(pos)), true
}

// A player's body, in blocks: a little more than the real one, so that rounding never pushes it into a wall.
const (
	bodyHalf   = 0.35
	bodyHeight = 1.9
	lookUp     = 24 // how far up to search for a way over an obstacle
	lookDown   = 256
)

// footing reports whether a bot can stand on the block: solid blocks, and water, on which bots swim.
func footing(b chunk.Block) bool { return b.Solid() || b == chunk.Water }

// stand returns the height of the feet at (x, z) for a body that comes from height y: on top of what is there, over
// obstacles up to lookUp blocks. known is false if the land has not arrived; ok is false if a body does not fit.
func (g *ground) stand(x, y, z float64) (feet float64, known, ok bool) {
	feet = math.Inf(-1)
	for _, col := range columns(x, z) {
		top, known, ok := g.standColumn(col[0], floor(y), col[1])
		if !known || !ok {
			return 0, known, ok
		}
		feet = max(feet, float64(top))
	}
	free, known := g.free(x, feet, z)
	return feet, known, free
}

// free reports whether a body with its feet at (x, y, z) touches nothing solid.
func (g *ground) free(x, y, z float64) (free, known bool) {
	for _, col := range columns(x, z) {
		for by := floor(y); float64(by) < y+bodyHeight; by++ {
			b, known := g.block(grid.Pos{X: col[0], Y: by, Z: col[1]})
			if !known {
				return false, false
			}
			if b.Solid() {
				return false, true
			}
		}
	}
	return true, true
}

// standColumn searches up from y for the first free block above footing, or down to the first footing.
func (g *ground) standColumn(x, y, z int32) (top int32, known, ok bool) {
	at := func(y int32) chunk.Block {
		b, is := g.block(grid.Pos{X: x, Y: y, Z: z})
		known = is
		return b
	}
	if footing(at(y)) && known {
		for up := y + 1; up <= y+lookUp; up++ {
			if !footing(at(up)) && !at(up+1).Solid() {
				return up, known, true
			}
		}
		return 0, known, false
	}
	for down := y - 1; known && down >= y-lookDown; down-- {
		if footing(at(down)) {
			return down + 1, true, true
		}
	}
	return 0, known, false
}

// solidBelow reports whether anything solid stands at height y or below in the column of (x, z), if that is known.
func (g *ground) solidBelow(x, y, z float64) (solid, known bool) {
	known = true
	for by := floor(y); by >= 0 && known && !solid; by-- {
		var b chunk.Block
		b, known = g.block(grid.Pos{X: floor(x), Y: by, Z: floor(z)})
		solid = b.Solid()
	}
	return solid, known
}

// columns returns the block columns (x, z) under a body's four corners, each once.
func columns(x, z float64) [][2]int32 {
	x0, x1 := floor(x-bodyHalf), floor(x+bodyHalf)
	z0, z1 := floor(z-bodyHalf), floor(z+bodyHalf)
	cols := append(make([][2]int32, 0, 4), [2]int32{x0, z0})
	if x1 != x0 {
		cols = append(cols, [2]int32{x1, z0})
	}
	if z1 != z0 {
		cols = append(cols, [2]int32{x0, z1})
	}
	if x1 != x0 && z1 != z0 {
		cols = append(cols, [2]int32{x1, z1})
	}
	return cols
}

func floor(v float64) int32 { return int32(math.Floor(v)) }
