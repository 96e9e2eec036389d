package minecraft

import (
	"math"
	"math/bits"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// column is a chunk of the game: 16 × 16 blocks. A chunk of ours has four.
type column struct{ x, z int32 }

const (
	columnSize = 16
	across     = grid.ChunkSize / columnSize // columns of a chunk, in each direction
	// maxAcross is how far from the middle of the world the game lets players go, in blocks.
	maxAcross = 29_999_000
)

func columnOf(p motion.Pose) column {
	return column{int32(math.Floor(p.X / columnSize)), int32(math.Floor(p.Z / columnSize))}
}

// columns calls visit with the columns of a chunk, and where in it they begin.
func columns(at grid.ChunkPos, visit func(at column, x, z int)) {
	for z := range across {
		for x := range across {
			visit(column{at.X*across + int32(x), at.Z*across + int32(z)}, x*columnSize, z*columnSize) //nolint:gosec // small
		}
	}
}

// heightmaps are what the client uses of them: one above the highest block of each place.
type heightmaps struct {
	Motion []int64 `nbt:"MOTION_BLOCKING"`
}

// chunkPackets returns the packets of a chunk's four columns, and the fittings in it.
func chunkPackets(at grid.ChunkPos, c *chunk.Chunk) ([]packet, fittings) {
	blocks := c.Blocks()
	fittings := fittingsOf(blocks)
	light := lightOf(blocks)
	packets := make([]packet, 0, across*across)
	columns(at, func(at column, x, z int) {
		var data packet
		for y := 0; y < c.Height(); y += sectionSize {
			data = appendSection(data, blocks, fittings, x, y, z)
		}
		p := begin(packetColumn).i32(at.x).i32(at.z)
		p = append(p, marshal(heightmaps{heightmap(light.tops, x, z, c.Height())})...)
		p = append(p.varint(len(data)), data...).varint(0) // no entities of blocks
		packets = append(packets, light.appendTo(p, x, z))
	})
	return packets, fittings
}

// appendSection appends a section: the number of its blocks, their states, and the biome.
func appendSection(p packet, blocks []chunk.Block, fittings fittings, x, y, z int) packet {
	var (
		indices [sectionBlocks]uint16        // into the palette
		palette []uint16                     // states
		known   = make(map[uint16]uint16, 8) // indices, by the state
		last    = chunk.Air
		index   uint16
		filled  int16
	)
	i := 0
	for dy := range sectionSize {
		for dz := range sectionSize {
			first := chunk.IndexOf(x, y+dy, z+dz)
			for dx, b := range blocks[first:][:sectionSize] {
				if b != last || len(palette) == 0 || isFitting(b) {
					state := fittings.state(first+chunk.Index(dx), b) //nolint:gosec // small
					var is bool
					if index, is = known[state]; !is {
						index = uint16(len(palette)) //nolint:gosec // at most sectionBlocks
						palette, known[state] = append(palette, state), index
					}
					last = b
				}
				indices[i] = index
				i++
				if b != chunk.Air {
					filled++
				}
			}
		}
	}
	p = p.i16(filled)
	p = appendStates(p, palette, indices[:])
	return p.u8(0).varint(0).varint(0) // one biome, the first
}

// Sizes of palettes: below indirectBits at least, and above directFrom none.
const (
	indirectBits = 4
	directFrom   = 1 << 8
)

// appendStates appends the states of a section's blocks, in a container with a palette.
func appendStates(p packet, palette, indices []uint16) packet {
	switch n := len(palette); {
	case n == 1:
		return p.u8(0).varint(int(palette[0])).varint(0)
	case n > directFrom:
		states := make([]uint16, len(indices))
		for i, index := range indices {
			states[i] = palette[index]
		}
		return p.u8(blocktable.MinecraftStateBits).longs(packBits(states, blocktable.MinecraftStateBits))
	default:
		width := max(indirectBits, bits.Len(uint(n-1)))
		p = p.u8(byte(width)).varint(n)
		for _, state := range palette {
			p = p.varint(int(state))
		}
		return p.longs(packBits(indices, width))
	}
}

// packBits packs values of a width into words, the first at the bottom. None is split between two words.
func packBits(values []uint16, width int) []uint64 {
	each := 64 / width
	words := make([]uint64, 0, (len(values)+each-1)/each)
	for len(values) > 0 {
		n := min(each, len(values))
		var word uint64
		for i, v := range values[:n] {
			word |= uint64(v) << (i * width)
		}
		words, values = append(words, word), values[n:]
	}
	return words
}

// heightmap returns the heights of a column.
func heightmap(tops []uint16, x, z, height int) []int64 {
	var values [columnSize * columnSize]uint16
	for i := range values {
		values[i] = tops[(z+i/columnSize)*grid.ChunkSize+x+i%columnSize]
	}
	words := packBits(values[:], bits.Len(uint(height)))
	signed := make([]int64, len(words))
	for i, w := range words {
		signed[i] = int64(w) //nolint:gosec // the same bits
	}
	return signed
}
