package terrain

// family is a kind of feature with a lattice of its own: each square of edge×edge blocks holds at most one origin, at a
// place determined by its dice.
//
// A feature rolls its dice before it looks at its column, so that most places without one need not be computed. It may
// look at columns, but never at blocks of the slab, which another slab does not have. It writes with put. Where two
// features meet, the outcome may depend on their order, which is the same in every slab: by family, then by the
// lattice's rows.
type family struct {
	edge int
	grow func(s *growth, x, z int, d dice)
}

// families lists the features in the order in which they grow. Their index is part of the terrain version.
var families = [...]family{
	{edge: 5, grow: (*growth).tree},
	{edge: 7, grow: (*growth).palm},
	{edge: 9, grow: (*growth).cactus},
	{edge: 21, grow: (*growth).boulder},
	{edge: 31, grow: (*growth).fallenTrunk},
	{edge: 8, grow: (*growth).bush},
	{edge: 67, grow: (*growth).cairn},
}

// features grows everything whose origin is within reach of the slab.
func (s *growth) features() {
	for i, f := range families {
		lowX, highX := floorDiv(s.minX-reach, f.edge), floorDiv(s.minX+s.w-1+reach, f.edge)
		lowZ, highZ := floorDiv(s.minZ-reach, f.edge), floorDiv(s.minZ+s.d-1+reach, f.edge)
		for cz := lowZ; cz <= highZ; cz++ {
			for cx := lowX; cx <= highX; cx++ {
				d := s.g.place(saltFamily+uint64(i), cx, 0, cz)
				x, z := cx*f.edge+d.roll(f.edge), cz*f.edge+d.roll(f.edge)
				if s.near(x, z) {
					f.grow(s, x, z, d)
				}
			}
		}
	}
}

// near reports whether a feature with its origin at (x, z) may reach into the slab.
func (s *growth) near(x, z int) bool {
	return x >= s.minX-reach && x < s.minX+s.w+reach && z >= s.minZ-reach && z < s.minZ+s.d+reach
}
