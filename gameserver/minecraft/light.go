package minecraft

import (
	"slices"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

const (
	sectionSize   = 16                                      // of the game's sections, in each direction
	sectionBlocks = sectionSize * sectionSize * sectionSize // Y first, then Z, then X
	layerBlocks   = grid.ChunkSize * grid.ChunkSize         // of one height of our chunks
)

// fullLight is the brightest.
const fullLight = 15

// light is how light the blocks of a chunk are: by the sky, and by lamps. It spreads within the chunk only; once the client changes a block
// it goes on by itself.
type light struct {
	tops       []uint16 // by Z, then X: one above the highest block that is not air
	sky, block []byte   // in the order of the blocks
	height     int
}

// lightOf returns the light of a chunk.
func lightOf(blocks []chunk.Block) light {
	l := light{
		tops: make([]uint16, layerBlocks), sky: make([]byte, len(blocks)), block: make([]byte, len(blocks)), height: len(blocks) / layerBlocks,
	}
	highest := 0
	for i := len(blocks) - 1; i >= 0; i-- {
		if place := i % layerBlocks; blocks[i] != chunk.Air && l.tops[place] == 0 {
			l.tops[place] = uint16(i/layerBlocks + 1) //nolint:gosec // at most 1024
			highest = max(highest, i/layerBlocks+1)
		}
	}
	l.shine(blocks, highest)
	var lamps []int32
	for i, b := range blocks[:highest*layerBlocks] {
		if given := blocktable.MinecraftLight(b); given > 0 {
			l.block[i] = given
			lamps = append(lamps, int32(i)) //nolint:gosec // at most wire.ColumnBlocks
		}
	}
	spread(l.block, blocks, lamps, len(blocks))
	return l
}

// shine lets the light of the sky in, from above, and then sideways.
func (l *light) shine(blocks []chunk.Block, highest int) {
	ground := make([]int, layerBlocks) // one above the highest block that stops light
	for place := range ground {
		y := l.height
		for ; y > 0 && (y > int(l.tops[place]) || !blocks[(y-1)*layerBlocks+place].Opaque()); y-- {
			l.sky[(y-1)*layerBlocks+place] = fullLight
		}
		ground[place] = y
	}
	var edges []int32
	for place, y := range ground {
		x, z := place%grid.ChunkSize, place/grid.ChunkSize
		most := y // how far up a place beside this one is covered
		for _, d := range [][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			if nx, nz := x+d[0], z+d[1]; nx >= 0 && nx < grid.ChunkSize && nz >= 0 && nz < grid.ChunkSize {
				most = max(most, ground[nz*grid.ChunkSize+nx])
			}
		}
		for ; y < most; y++ {
			edges = append(edges, int32(y*layerBlocks+place)) //nolint:gosec // at most wire.ColumnBlocks
		}
	}
	spread(l.sky, blocks, edges, highest*layerBlocks)
}

// spread lets light go on from blocks, one less with each, where it is not stopped. Blocks from limit on are left out.
func spread(light []byte, blocks []chunk.Block, from []int32, limit int) {
	for len(from) > 0 {
		var next []int32
		for _, i := range from {
			level := light[i]
			if level <= 1 {
				continue
			}
			x, z := i%grid.ChunkSize, i/grid.ChunkSize%grid.ChunkSize
			reach := func(is bool, n int32) {
				if is && n >= 0 && int(n) < limit && light[n] < level-1 && !blocks[n].Opaque() {
					light[n] = level - 1
					next = append(next, n)
				}
			}
			reach(x > 0, i-1)
			reach(x < grid.ChunkSize-1, i+1)
			reach(z > 0, i-grid.ChunkSize)
			reach(z < grid.ChunkSize-1, i+grid.ChunkSize)
			reach(true, i-layerBlocks)
			reach(true, i+layerBlocks)
		}
		from = next
	}
}

// lightBytes is the size of a section's light: half a byte for each block.
const lightBytes = sectionBlocks / 2

// appendTo appends the light of a column: which sections have some, which have none, and what the former have. There is one section more
// below the world, and one above it.
func (l *light) appendTo(p packet, x, z int) packet {
	sections := l.height/sectionSize + 2
	sky, block := make([][]byte, sections), make([][]byte, sections)
	for s := range sections - 2 {
		sky[s+1], block[s+1] = section(l.sky, x, s*sectionSize, z), section(l.block, x, s*sectionSize, z)
	}
	sky[sections-1] = slices.Repeat([]byte{fullLight<<4 | fullLight}, lightBytes)
	return p.longs(mask(sky, true)).longs(mask(block, true)).longs(mask(sky, false)).longs(mask(block, false)).arrays(sky).arrays(block)
}

// section returns the light of a section; nil if it is dark.
func section(light []byte, x, y, z int) []byte {
	packed, some := make([]byte, 0, lightBytes), byte(0)
	for dy := range sectionSize {
		for dz := range sectionSize {
			row := light[(y+dy)*layerBlocks+(z+dz)*grid.ChunkSize+x:][:sectionSize]
			for i := 0; i < sectionSize; i += 2 {
				both := row[i] | row[i+1]<<4
				packed, some = append(packed, both), some|both
			}
		}
	}
	if some == 0 {
		return nil
	}
	return packed
}

// mask returns a set of bits: the sections that have light, or those that have none.
func mask(sections [][]byte, lit bool) []uint64 {
	set := make([]uint64, (len(sections)+63)/64)
	for i, s := range sections {
		if (s != nil) == lit {
			set[i/64] |= 1 << (i % 64)
		}
	}
	return set
}

// arrays appends the sections that have light.
func (p packet) arrays(sections [][]byte) packet {
	n := 0
	for _, s := range sections {
		if s != nil {
			n++
		}
	}
	p = p.varint(n)
	for _, s := range sections {
		if s != nil {
			p = append(p.varint(len(s)), s...)
		}
	}
	return p
}
