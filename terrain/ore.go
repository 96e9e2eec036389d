package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// vein describes how one material occurs in the rock.
type vein struct {
	block  chunk.Block
	chance float64 // probability that a cube of veinCube³ blocks contains the heart of one
	low    float64 // range of the heart's height, as a share of the sea level
	high   float64
	radius float64 // of each bead, in blocks
	beads  int     // balls in a row that make up the vein
}

// veinCube is the edge of the cubes, each of which may contain the heart of one vein of each material.
const veinCube = 8

// veinReach is how far a vein's blocks may lie from the cube of its heart.
const veinReach = 6

// veins lists the materials; where two meet, the earlier one stays.
var veins = [...]vein{
	{block: chunk.DiamondOre, chance: 0.05, low: 0, high: 0.3, radius: 1.1, beads: 2},
	{block: chunk.GoldOre, chance: 0.06, low: 0, high: 0.55, radius: 1.2, beads: 2},
	{block: chunk.IronOre, chance: 0.16, low: 0, high: 1.15, radius: 1.3, beads: 3},
	{block: chunk.CoalOre, chance: 0.17, low: 0.2, high: 3, radius: 1.5, beads: 4},
	{block: chunk.Gravel, chance: 0.03, low: 0.1, high: 1.3, radius: 2.3, beads: 3},
	{block: chunk.Dirt, chance: 0.03, low: 0.3, high: 2, radius: 2.3, beads: 3},
	{block: chunk.Clay, chance: 0.012, low: 0.5, high: 1, radius: 2.0, beads: 3},
}

// veins adds ores and pockets of soil to the slab's stone.
func (s *columns) veins() {
	top := 0
	for x, z := range s.each {
		top = max(top, s.own(x, z).ground)
	}
	lowX, highX := floorDiv(s.minX-veinReach, veinCube), floorDiv(s.minX+s.w-1+veinReach, veinCube)
	lowZ, highZ := floorDiv(s.minZ-veinReach, veinCube), floorDiv(s.minZ+s.d-1+veinReach, veinCube)
	for i := range veins {
		v := &veins[i]
		lowY := int(mul(v.low, float64(s.g.sea))) / veinCube
		highY := min(top, int(mul(v.high, float64(s.g.sea)))) / veinCube
		for x := lowX; x <= highX; x++ {
			row := s.g.dice(saltVein + uint64(i)).at(x)
			for y := lowY; y <= highY; y++ {
				layer := row.at(y)
				for z := lowZ; z <= highZ; z++ {
					d := layer.at(z)
					if d.unit() < v.chance {
						s.vein(v, d, x*veinCube, y*veinCube, z*veinCube)
					}
				}
			}
		}
	}
}

// vein strings the beads of one vein whose heart lies in the cube from (x, y, z).
func (s *columns) vein(v *vein, d dice, x, y, z int) {
	// In eighths of a block, so that shapes are exact.
	px, py, pz := 8*x+d.roll(8*veinCube), 8*y+d.roll(8*veinCube), 8*z+d.roll(8*veinCube)
	dx, dy, dz := d.roll(17)-8, d.roll(9)-4, d.roll(17)-8
	for range v.beads {
		radius := int(8 * v.radius * lerp(0.75, 1.25, d.unit()))
		s.bead(v.block, px, py, pz, radius)
		px, py, pz = px+dx, py+dy, pz+dz
	}
}

// bead turns the stone within radius of a point into b; lengths are eighths of a block.
func (s *columns) bead(b chunk.Block, px, py, pz, radius int) {
	minX, maxX := max((px-radius)>>3, s.minX), min((px+radius)>>3, s.minX+s.w-1)
	minZ, maxZ := max((pz-radius)>>3, s.minZ), min((pz+radius)>>3, s.minZ+s.d-1)
	minY, maxY := max((py-radius)>>3, 1), min((py+radius)>>3, s.g.height-1)
	if minX > maxX || minZ > maxZ {
		return
	}
	for y := minY; y <= maxY; y++ {
		dy := 8*y + 4 - py
		i := s.index(minX, y, minZ) - s.w
		for z := minZ; z <= maxZ; z++ {
			i += s.w
			dz := 8*z + 4 - pz
			left := radius*radius - dy*dy - dz*dz
			if left < 0 {
				continue
			}
			row := s.blocks[i : i+maxX-minX+1]
			dx := 8*minX + 4 - px
			for j := range row {
				if dx*dx <= left && row[j] == chunk.Stone {
					row[j] = b
				}
				dx += 8
			}
		}
	}
}
