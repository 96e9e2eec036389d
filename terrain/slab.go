package terrain

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// slab is a rectangle of columns under construction. Its layers, each of which uses those below it, are volume,
// columns, caves and growth.
type slab struct{ growth }

// Chunk returns the untouched land of the chunk at pos, a new value that the caller owns.
func (g *Generator) Chunk(pos grid.ChunkPos) *chunk.Chunk { return g.ChunkIn(new(Room), pos) }

// Room is the memory for generating a chunk of four sections, half a megabyte. Keep one to generate many chunks. The
// zero value is ready. Only one goroutine may use it at a time, for any world.
type Room struct{ slab slab }

// ChunkIn is Chunk, using room as working memory.
func (g *Generator) ChunkIn(room *Room, pos grid.ChunkPos) *chunk.Chunk {
	s := &room.slab
	s.begin(g, int(pos.X)*grid.ChunkSize, int(pos.Z)*grid.ChunkSize, grid.ChunkSize, grid.ChunkSize)
	s.build()
	c, err := chunk.FromBlocks(s.blocks)
	if err != nil {
		panic(fmt.Sprintf("terrain: slab of %d blocks is no chunk: %v", len(s.blocks), err))
	}
	return c
}

// Surface returns the lowest y at which a body of two blocks stands in the untouched land at world blocks (x, z): on
// the ground, on water or, where a trunk or a bush fills the column, on top of that. Plants do not count. The result is
// between 1 and the world's height.
func (g *Generator) Surface(x, z int32) int32 {
	s := newSlab(g, int(x), int(z), 1, 1)
	s.build()
	at := func(y int) chunk.Block {
		if y >= g.height {
			return chunk.Air
		}
		return s.blocks[y]
	}
	y := s.ground(s.minX, s.minZ) + 1
	free := func(y int) bool { b := at(y); return b == chunk.Air || b.Plant() }
	for !free(y) || !free(y+1) {
		y++
	}
	return int32(y)
}

// TopBlock is the topmost block of a column, and its height.
type TopBlock struct {
	Y     int
	Block chunk.Block
}

// OverviewIn returns a chunk of the untouched land as it looks from above, without caves, trees and plants: every
// step-th column along X and along Z, row by row along X. It uses room as working memory, and takes a tenth of the time
// of ChunkIn.
func (g *Generator) OverviewIn(room *Room, pos grid.ChunkPos, step int) []TopBlock {
	s := &room.slab
	s.begin(g, int(pos.X)*grid.ChunkSize, int(pos.Z)*grid.ChunkSize, grid.ChunkSize, grid.ChunkSize)
	var tops []TopBlock
	for z := s.minZ; z < s.minZ+s.d; z += step {
		for x := s.minX; x < s.minX+s.w; x += step {
			tops = append(tops, s.top(x, z))
		}
	}
	return tops
}

func (s *slab) top(x, z int) TopBlock {
	c := s.own(x, z)
	if s.g.params.Sections == 1 {
		return TopBlock{c.ground, originalBlock(c.ground, c.ground)}
	}
	switch skin := s.cachedSkin(c, x, z); {
	case c.ground >= s.g.sea:
		return TopBlock{c.ground, skin.top}
	case skin.icy:
		return TopBlock{s.g.sea, chunk.Ice}
	default:
		return TopBlock{s.g.sea, chunk.Water}
	}
}

// newSlab returns a slab of w×d columns from block (minX, minZ).
func newSlab(g *Generator, minX, minZ, w, d int) *slab {
	s := &slab{}
	s.begin(g, minX, minZ, w, d)
	return s
}

// build fills the slab.
func (s *slab) build() {
	if s.g.params.Sections == 1 {
		s.buildOriginal()
		return
	}
	s.fill()
	s.veins()
	s.carve()
	s.repairSurface()
	s.features()
	s.plants()
}

// fill lays rock, skin and water.
func (s *slab) fill() {
	layer := s.w * s.d
	whole := s.g.height // below this y there is nothing but rock
	for x, z := range s.each {
		c := s.own(x, z)
		whole = min(whole, c.ground-s.cachedSkin(c, x, z).depth)
	}
	whole = max(whole, 1)
	fillWith(s.blocks[:layer], chunk.Bedrock)
	fillWith(s.blocks[layer:whole*layer], chunk.Stone)
	for x, z := range s.each {
		s.lay(s.own(x, z), s.index(x, whole, z), whole)
	}
}

// lay fills the column c from height y > 0, which is block i, upwards, as it is before veins, caves and features.
func (s *slab) lay(c *cached, i, y int) {
	layer := s.w * s.d
	run := func(end int, b chunk.Block) { // up to below y = end
		for ; y < end; y++ {
			s.blocks[i] = b
			i += layer
		}
	}
	run(c.ground-c.skin.depth, chunk.Stone)
	run(c.ground, c.skin.fill)
	run(c.ground+1, c.skin.top)
	if c.skin.icy {
		run(s.g.sea, chunk.Water)
		run(s.g.sea+1, chunk.Ice)
	}
	run(s.g.sea+1, chunk.Water)
}

// repairSurface cleans up after caves: loose blocks over a hole become stone, and grass grows on soil under the open
// sky.
func (s *slab) repairSurface() {
	layer := s.w * s.d
	for x, z := range s.each {
		c := s.own(x, z)
		if c.highHole == 0 {
			continue
		}
		i := s.index(x, c.lowHole, z)
		for y := c.lowHole; y <= min(c.highHole, c.ground-1); y++ {
			if over := &s.blocks[i+layer]; s.blocks[i] == chunk.Air && (*over == chunk.Sand || *over == chunk.Gravel) {
				*over = chunk.Stone
			}
			i += layer
		}
		top := s.index(x, c.ground, z)
		for s.blocks[top] == chunk.Air {
			top -= layer
		}
		if s.blocks[top] == chunk.Dirt && c.skin.fertile {
			s.blocks[top] = c.skin.top
		}
	}
}

// buildOriginal fills the slab with the dissertation's world.
func (s *slab) buildOriginal() {
	for x, z := range s.each {
		top := s.own(x, z).ground
		for y := range top + 1 {
			s.blocks[s.index(x, y, z)] = originalBlock(top, y)
		}
	}
}

const (
	// treeStep is the widest step, in blocks, at which each tree is a point of its own. With wider steps, points stand
	// for woods.
	treeStep = 4
	saltWood = 300
)

// VistaIn returns the untouched land as it looks from afar: n×n columns, step blocks apart, from (minX, minZ) on, row
// by row along X. Trees raise the land to the height of their crowns. Caves, plants and what is smaller than a tree are
// left out. How steep the land is, is measured over a step, so that cliffs are found without the columns between. It
// uses room as working memory.
func (g *Generator) VistaIn(room *Room, minX, minZ, step, n int) []TopBlock {
	s := &room.slab.columns
	s.g, s.minX, s.minZ, s.w, s.d = g, minX, minZ, 0, 0 // only the samples of the relief, and some columns, are kept
	s.cache = zeroed(s.cache, 4*margin*margin)
	s.relief.begin(g)
	s.relief.cover(minX-step-margin, minZ-step-margin, (n+1)*step+2*margin, (n+1)*step+2*margin)
	wide := n + 2 // with the neighbours
	all := make([]column, 0, wide*wide)
	for j := range wide {
		s.relief.row.begin(&s.relief, minZ+(j-1)*step)
		for i := range wide {
			all = append(all, s.relief.row.at(minX+(i-1)*step))
		}
	}
	tops, fertile := make([]TopBlock, 0, n*n), make([]bool, 0, n*n)
	for j := range n {
		for i := range n {
			at := (j+1)*wide + i + 1
			c := &all[at]
			top, grows := s.vistaTop(c, steepest(all, at, wide)/step, minX+i*step, minZ+j*step)
			tops, fertile = append(tops, top), append(fertile, grows)
		}
	}
	switch {
	case g.params.Sections == 1:
	case step <= treeStep:
		s.addTrees(tops, step, n)
	default:
		for i := range tops {
			if fertile[i] {
				s.addWood(&tops[i], &all[(i/n+1)*wide+i%n+1], minX+i%n*step, minZ+i/n*step)
			}
		}
	}
	return tops
}

// steepest returns the greatest height difference, in blocks, between a column and its four neighbours.
func steepest(all []column, at, wide int) int {
	most := 0
	for _, next := range [...]int{at - 1, at + 1, at - wide, at + wide} {
		most = max(most, abs(all[at].ground-all[next].ground))
	}
	return most
}

// vistaTop returns the top of the column c at (x, z), and whether trees may grow on it.
func (s *columns) vistaTop(c *column, fall, x, z int) (top TopBlock, fertile bool) {
	if s.g.params.Sections == 1 {
		return TopBlock{c.ground, originalBlock(c.ground, c.ground)}, false
	}
	switch skin := chooseSkin(s.g, c, fall, x, z); {
	case c.ground >= s.g.sea:
		return TopBlock{c.ground, skin.top}, skin.fertile && c.rise <= treeLine
	case skin.icy:
		return TopBlock{s.g.sea, chunk.Ice}, false
	default:
		return TopBlock{s.g.sea, chunk.Water}, false
	}
}

// addTrees raises the points nearest to trees.
func (s *columns) addTrees(tops []TopBlock, step, n int) {
	edge, end := families[0].edge, (n-1)*step+step/2
	for cz := floorDiv(s.minZ-step/2, edge); cz <= floorDiv(s.minZ+end, edge); cz++ {
		for cx := floorDiv(s.minX-step/2, edge); cx <= floorDiv(s.minX+end, edge); cx++ {
			d := s.g.place(saltFamily, cx, 0, cz)
			x, z := cx*edge+d.roll(edge), cz*edge+d.roll(edge)
			i, j := floorDiv(x-s.minX+step/2, step), floorDiv(z-s.minZ+step/2, step)
			if i < 0 || j < 0 || i >= n || j >= n {
				continue
			}
			if !s.bearsTree(x, z, &d) {
				continue
			}
			c := s.column(x, z)
			if s.fall(s.at(x, z), x, z) > 2 || c.ground+16 > s.g.height {
				continue
			}
			if crown := crownOf(c); c.ground+crown > tops[j*n+i].Y {
				tops[j*n+i] = TopBlock{c.ground + crown, speciesOf(c).leaves}
			}
		}
	}
}

// addWood raises a point if it stands for woods: the denser the forest, the more points do.
func (s *columns) addWood(top *TopBlock, c *column, x, z int) {
	d := s.g.place(saltWood, x, 0, z)
	if chance := d.unit(); chance < mul(1.3, c.wood) {
		*top = TopBlock{top.Y + int(mul(float64(crownOf(c)), min(1, c.wood))), speciesOf(c).leaves}
	}
}

// crownOf returns the height, in blocks, to which most trees around the column grow.
func crownOf(c *column) int {
	switch speciesOf(c).leaves {
	case chunk.PineLeaves:
		return 10
	case chunk.BirchLeaves:
		return 8
	default:
		return 6
	}
}
