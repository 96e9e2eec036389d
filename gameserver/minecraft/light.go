package minecraft

import (
	"slices"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
)

const (
	sectionSize   = 16                                      // of the game's sections, in each direction
	sectionBlocks = sectionSize * sectionSize * sectionSize // Y first, then Z, then X
	layerBlocks   = grid.ChunkSize * grid.ChunkSize         // of one height of our chunks
)

// light is that of a chunk. Once the client changes a block it goes on by itself.
type light struct {
	games.Light
	tops   []uint16 // by Z, then X: one above the highest block that is not air
	height int
}

// lightOf returns the light of a chunk.
func lightOf(blocks []chunk.Block) light {
	l := light{
		Light: games.LightOf(blocks, chunk.Block.Opaque, blocktable.MinecraftLight),
		tops:  make([]uint16, layerBlocks), height: len(blocks) / layerBlocks,
	}
	for i, b := range blocks {
		if b != chunk.Air {
			l.tops[i%layerBlocks] = uint16(i/layerBlocks + 1) //nolint:gosec // at most 1024
		}
	}
	return l
}

// lightBytes is the size of a section's light: half a byte for each block.
const lightBytes = sectionBlocks / 2

// appendTo appends the light of a column: which sections have some, which have none, and what the former have. There is
// one section more below the world, and one above it.
func (l *light) appendTo(p packet, x, z int) packet {
	sections := l.height/sectionSize + 2
	sky, block := make([][]byte, sections), make([][]byte, sections)
	for s := range sections - 2 {
		sky[s+1], block[s+1] = section(l.Sky, x, s*sectionSize, z), section(l.Lamps, x, s*sectionSize, z)
	}
	sky[sections-1] = slices.Repeat([]byte{games.FullLight<<4 | games.FullLight}, lightBytes)
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
	lit := slices.DeleteFunc(slices.Clone(sections), func(s []byte) bool { return s == nil })
	p = p.varint(len(lit))
	for _, s := range lit {
		p = append(p.varint(len(s)), s...)
	}
	return p
}
