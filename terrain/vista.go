package terrain

import "github.com/voxelpopuli/voxeld/chunk"

const (
	// treeStep is the widest step, in blocks, at which each tree is a point of its own. With wider steps, points stand for woods.
	treeStep = 4
	saltWood = 300
)

// VistaIn returns the untouched land as it looks from afar: n×n columns, step blocks apart, from (minX, minZ) on, row by row along X. Trees
// raise the land to the height of their crowns. Caves, plants and what is smaller than a tree are left out. How steep the land is, is
// measured over a step, so that cliffs are found without the columns between. It uses room as working memory.
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
