package terrain

import "github.com/voxelpopuli/voxeld/chunk"

const (
	snowBelow = -0.42 // column.cold under which snow stays
	iceBelow  = -0.55 // column.cold under which still water freezes
)

// skin covers the rock of a column: one top block, then depth blocks of fill, then stone.
type skin struct {
	top, fill chunk.Block
	depth     int
	fertile   bool // plants may take root
	frozen    bool // snow stays here
	icy       bool // water freezes here
}

// loose reports whether the skin would fall if the ground below it were taken away.
func (k skin) loose() bool { return k.fill == chunk.Sand || k.fill == chunk.Gravel }

// chooseSkin returns the skin of the column c at (x, z), which differs from a neighbour by up to fall blocks in height.
// The patch field and chance fray the edges between materials, so that climates blend into each other.
func chooseSkin(g *Generator, c *column, fall, x, z int) skin {
	d := g.place(saltSkin, x, 0, z)
	fray := mul(0.7, c.patch) + mul(0.5, d.tilt()) // about -1..1
	frozen := c.cold+mul(0.09, fray) < snowBelow
	k := skin{depth: 3, frozen: frozen, icy: c.cold+mul(0.2, c.grove)+mul(0.05, fray) < iceBelow}
	depth := g.sea - c.ground // of the water over the ground, in blocks

	switch {
	case depth > 0:
		k.top, k.fill = bed(c, depth, fray)
	case onShore(c, depth, fray):
		k.top, k.fill, k.depth = chunk.Sand, chunk.Sand, 3
		if c.cold < snowBelow+0.12 {
			k.top, k.fill = chunk.Gravel, chunk.Gravel
		}
	case c.dry+mul(0.2, fray)+mul(0.08, c.grove) > 0.5:
		k.top, k.fill, k.depth = chunk.Sand, chunk.Sand, 4
		if fall > 3 {
			k.top, k.fill = chunk.Stone, chunk.Stone
		}
	default:
		chooseLandSkin(g, c, &k, fall, fray)
	}
	return k
}

// chooseLandSkin chooses between grass, snow, scree and bare rock for a column above the water.
func chooseLandSkin(g *Generator, c *column, k *skin, fall int, fray float64) {
	scale := max(1, g.lift)
	cliff := float64(fall) > mul(1.9, scale)+fray
	high := c.rise+mul(6, fray) > 31
	switch {
	case k.frozen && (high || cliff):
		k.top, k.fill, k.depth = chunk.Snow, chunk.Stone, 1
		if float64(fall) > mul(2.4, scale)+mul(1.5, fray) {
			k.top = chunk.Stone
		}
	case cliff || high:
		k.top, k.fill = chunk.Stone, chunk.Stone
		if !cliff && c.patch > 0.25 {
			k.top, k.fill, k.depth = chunk.Gravel, chunk.Gravel, 2
		}
	case k.frozen:
		k.top, k.fill, k.fertile = chunk.SnowyGrass, chunk.Dirt, true
	case c.dry > 0.2 && c.patch+mul(0.3, fray) > 0.62-mul(0.6, c.dry):
		k.top, k.fill = chunk.Dirt, chunk.Dirt // bare earth in dry grass
	default:
		k.top, k.fill, k.fertile = chunk.Grass, chunk.Dirt, true
	}
}

// onShore reports whether a dry column is beach: low, near the water's level, and not on every coast.
func onShore(c *column, depth int, fray float64) bool {
	high := float64(-depth) // blocks over the highest water
	width := 1.3 + mul(1.1, c.grove) + mul(0.8, fray) - mul(1.6, c.bank)
	return high <= width
}

// bed chooses the bottom of a sea, lake or river under the given depth of water, in blocks.
func bed(c *column, depth int, fray float64) (top, fill chunk.Block) {
	switch {
	case c.patch > 0.45 && depth > 1:
		return chunk.Clay, chunk.Clay
	case float64(depth) < 5+mul(2, fray):
		if c.bank > 0.3 && c.patch < -0.5 {
			return chunk.Gravel, chunk.Gravel
		}
		return chunk.Sand, chunk.Sand
	case c.grove+mul(0.4, fray) > 0.05:
		return chunk.Sand, chunk.Sand
	default:
		return chunk.Gravel, chunk.Gravel
	}
}
