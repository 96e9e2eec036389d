package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// cactus grows in the desert, now and then with an arm.
func (s *growth) cactus(x, z int, d dice) {
	if d.roll(4) != 0 {
		return
	}
	c := s.column(x, z)
	if c.dry < 0.45 || c.ground <= s.g.sea+2 || s.skin(x, z).top != chunk.Sand {
		return
	}
	ground, firm := s.footing(x, z)
	if !firm {
		return
	}
	height := 2 + d.roll(3)
	for i := 1; i <= height; i++ {
		s.put(x, ground+i, z, chunk.Cactus)
	}
	if height > 2 && d.roll(3) == 0 {
		side := [...][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}[d.roll(4)]
		for i := range 2 {
			s.put(x+side[0], ground+height-1+i, z+side[1], chunk.Cactus)
		}
	}
}

// boulder drops a rock on open ground, half sunk.
func (s *growth) boulder(x, z int, d dice) {
	chance := d.unit()
	if chance > 0.5 {
		return
	}
	c := s.column(x, z)
	if chance > lerp(0.12, 0.5, smooth(8, 30, c.rise)) || c.dry > 0.5 || c.ground <= s.g.sea {
		return
	}
	ground, firm := s.footing(x, z)
	if !firm {
		return
	}
	wide, tall := 2+d.roll(3), 2+d.roll(2) // in half blocks
	for dy := -1; dy <= tall/2; dy++ {
		for dz := -wide / 2; dz <= wide/2; dz++ {
			for dx := -wide / 2; dx <= wide/2; dx++ {
				if 4*((dx*dx+dz*dz)*tall*tall+dy*dy*wide*wide) > wide*wide*tall*tall {
					continue
				}
				b := chunk.Stone
				if chip := s.g.place(saltLeaf, x+dx, ground+dy, z+dz); chip.roll(3) == 0 {
					b = chunk.Cobble
				}
				s.put(x+dx, ground+1+dy, z+dz, b)
			}
		}
	}
}

// fallenTrunk lays a log on level ground in a wood.
func (s *growth) fallenTrunk(x, z int, d dice) {
	if chance := d.unit(); chance > 0.9 || chance > mul(0.9, s.wood(x, z)) {
		return
	}
	c := s.column(x, z)
	if c.dry > 0.3 {
		return
	}
	length, alongX := 3+d.roll(3), d.roll(2) == 0
	place := func(i int) (int, int) {
		if alongX {
			return x + i, z
		}
		return x, z + i
	}
	ground := c.ground
	for i := range length {
		px, pz := place(i)
		at, firm := s.footing(px, pz)
		if !firm || at != ground || !s.skin(px, pz).fertile {
			return
		}
	}
	wood := speciesOf(c).wood
	for i := range length {
		px, pz := place(i)
		s.put(px, ground+1, pz, wood)
	}
}

// bush sets knee-high leaves at the edge of woods.
func (s *growth) bush(x, z int, d dice) {
	chance := d.unit()
	if chance > 0.1+0.5/4 {
		return
	}
	if wood := s.wood(x, z); chance > 0.1+mul(0.5, mul(wood, 1-wood)) {
		return
	}
	c := s.column(x, z)
	if c.dry > 0.4 {
		return
	}
	leaves := speciesOf(c).leaves
	for _, at := range [...][2]int{{0, 0}, {1, 0}, {0, 1}, {-1, 0}, {0, -1}} {
		px, pz := x+at[0], z+at[1]
		if d.roll(2) == 0 && at != [2]int{} {
			continue
		}
		ground, firm := s.footing(px, pz)
		if k := s.skin(px, pz); firm && k.fertile && abs(ground-c.ground) <= 1 {
			s.leaf(px, ground+1, pz, leaves, k.frozen)
		}
	}
}

// cairn piles a few stones at places with a view.
func (s *growth) cairn(x, z int, d dice) {
	if d.roll(2) == 0 {
		return
	}
	c := s.column(x, z)
	if c.rise < 9 || c.wood > 0.4 || c.dry > 0.5 {
		return
	}
	ground, firm := s.footing(x, z)
	if !firm {
		return
	}
	for i := range 2 + d.roll(3) {
		s.put(x, ground+1+i, z, chunk.Cobble)
	}
	for _, at := range [...][2]int{{1, 0}, {0, 1}, {-1, 0}, {0, -1}} {
		px, pz := x+at[0], z+at[1]
		if base, firm := s.footing(px, pz); firm && d.roll(3) > 0 {
			s.put(px, base+1, pz, chunk.Cobble)
		}
	}
}
