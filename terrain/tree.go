package terrain

import "github.com/voxelpopuli/voxeld/chunk"

const treeLine = 36.0 // column.rise above which no tree grows

// tree grows a tree where the forest is dense enough for the place's dice: conifers in the cold, birches in groves,
// flat-topped trees towards the desert, and otherwise oaks, great ones in the open.
func (s *growth) tree(x, z int, d dice) {
	if !s.bearsTree(x, z, &d) {
		return
	}
	ground, firm := s.footing(x, z)
	if !firm || ground+16 > s.g.height {
		return
	}
	c, k := s.column(x, z), s.skin(x, z)
	chill := c.cold + mul(0.25, d.tilt())
	lone := c.wood < 0.3
	switch {
	case chill < -0.24:
		s.conifer(x, ground, z, d, k.frozen)
	case c.dry > 0.1:
		s.umbrella(x, ground, z, d)
	case c.grove+mul(0.4, d.tilt()) > 0.22:
		s.birch(x, ground, z, d)
	case d.roll(12) == 0 || (lone && d.roll(3) == 0):
		s.greatOak(x, ground, z, d)
	default:
		s.oak(x, ground, z, d)
	}
	s.soil(x, ground, z)
}

// bearsTree reports whether the forest and the soil at (x, z) bear a tree. It rolls the dice of the place once.
func (s *columns) bearsTree(x, z int, d *dice) bool {
	if chance := d.unit(); chance >= 0.72 || chance >= mul(0.72, s.wood(x, z)) {
		return false
	}
	return s.column(x, z).rise <= treeLine && s.skin(x, z).fertile
}

// wood returns that of the column at (x, z) without computing the column.
func (s *columns) wood(x, z int) float64 { return s.relief.climates.at(x, z).wood }

// speciesOf returns the species of most trees around the column c.
func speciesOf(c *column) species {
	switch {
	case c.cold < -0.24:
		return pineTree
	case c.dry > 0.1:
		return dryTree
	case c.grove > 0.22:
		return birchTree
	}
	return oakTree
}

// oak: a short trunk and a round crown.
func (s *growth) oak(x, ground, z int, d dice) {
	height := 4 + d.roll(3)
	top := ground + height
	s.trunk(x, ground, z, height, oakTree.wood)
	s.disc(x, top-2, z, 2, 2, oakTree.leaves, false)
	s.disc(x, top-1, z, 2, 2, oakTree.leaves, false)
	s.disc(x, top, z, 1, 1, oakTree.leaves, false)
	s.disc(x, top+1, z, 1, 0, oakTree.leaves, false)
}

// birch: slender, with a high and narrow crown.
func (s *growth) birch(x, ground, z int, d dice) {
	height := 7 + d.roll(3)
	top := ground + height
	s.trunk(x, ground, z, height, birchTree.wood)
	s.disc(x, top-4, z, 1, 0, birchTree.leaves, false)
	s.disc(x, top-3, z, 2, 0, birchTree.leaves, false)
	s.disc(x, top-2, z, 2, 0, birchTree.leaves, false)
	s.disc(x, top-1, z, 1, 3, birchTree.leaves, false)
	s.disc(x, top, z, 1, 0, birchTree.leaves, false)
	s.disc(x, top+1, z, 0, 0, birchTree.leaves, false)
}

// conifer: a spire of skirts that widen downwards; if frozen, snow lies on their edges.
func (s *growth) conifer(x, ground, z int, d dice, frozen bool) {
	height := 7 + d.roll(6)
	widest := 2
	if height > 9 {
		widest = 3
	}
	bare := 1 + d.roll(2)
	top := ground + height
	s.trunk(x, ground, z, height, pineTree.wood)
	s.disc(x, top+1, z, 0, 0, pineTree.leaves, frozen)
	radius, peak := 1, 1
	for y := top; y > ground+bare; y-- {
		s.disc(x, y, z, radius, 0, pineTree.leaves, frozen)
		if radius == peak {
			radius, peak = max(1, peak-1), min(widest, peak+1)
			continue
		}
		radius = peak
	}
}

// umbrella: a bent trunk under a wide flat crown, as on savannas.
func (s *growth) umbrella(x, ground, z int, d dice) {
	height, bend := 4+d.roll(2), 1+d.roll(2)
	side := [...][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}[d.roll(4)]
	s.trunk(x, ground, z, height-1, dryTree.wood)
	y := ground + height - 1
	for range bend {
		x, z = x+side[0], z+side[1]
		y++
		s.put(x, y-1, z, dryTree.wood)
		s.put(x, y, z, dryTree.wood)
	}
	s.disc(x, y, z, 3, 0, dryTree.leaves, false)
	s.disc(x, y+1, z, 2, 0, dryTree.leaves, false)
}

// greatOak: a tall trunk, branches, and a crown of several clumps.
func (s *growth) greatOak(x, ground, z int, d dice) {
	height := 7 + d.roll(3)
	top := ground + height
	s.trunk(x, ground, z, height, oakTree.wood)
	s.blob(x, top, z, 6, 5, oakTree.leaves)
	for _, side := range [...][2]int{{1, 0}, {0, 1}, {-1, 0}, {0, -1}} {
		if d.roll(4) == 0 {
			continue
		}
		across := d.roll(3) - 1
		y := top - 3 + d.roll(3)
		for i := 1; i <= 3; i++ {
			bx := x + side[0]*i + side[1]*across*(i/2)
			bz := z + side[1]*i + side[0]*across*(i/2)
			s.put(bx, y+i/3, bz, oakTree.wood)
			if i == 3 {
				s.blob(bx, y+1, bz, 5, 4, oakTree.leaves)
			}
		}
	}
}

// palm grows on warm beaches: a leaning trunk with four hanging fronds.
func (s *growth) palm(x, z int, d dice) {
	if d.roll(5) != 0 {
		return
	}
	c := s.column(x, z)
	if c.rise > 4 || c.cold < 0.12 || c.ground < s.g.sea {
		return
	}
	if s.skin(x, z).top != chunk.Sand || c.dry > 0.5 && c.rise > 3 {
		return
	}
	ground, firm := s.footing(x, z)
	if !firm {
		return
	}
	height, lean := 5+d.roll(3), d.roll(3)
	side := [...][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}[d.roll(4)]
	for i := 1; i <= height; i++ {
		if i > 2 && lean > 0 && i%3 == 0 {
			lean--
			x, z = x+side[0], z+side[1]
			s.put(x, ground+i-1, z, oakTree.wood)
		}
		s.put(x, ground+i, z, oakTree.wood)
	}
	top := ground + height
	s.disc(x, top+1, z, 1, 0, oakTree.leaves, false)
	for _, frond := range [...][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
		s.put(x+2*frond[0], top+1, z+2*frond[1], oakTree.leaves)
		s.put(x+3*frond[0], top, z+3*frond[1], oakTree.leaves)
		diagonal := [2]int{frond[0] - frond[1], frond[0] + frond[1]}
		s.put(x+2*diagonal[0], top, z+2*diagonal[1], oakTree.leaves)
		s.put(x+diagonal[0], top+1, z+diagonal[1], oakTree.leaves)
	}
}
