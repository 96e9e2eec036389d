package chunk

import "github.com/voxelpopuli/voxeld/grid"

const (
	// SectionBlocks is the number of blocks of a section, 32³.
	SectionBlocks = grid.ChunkSize * grid.ChunkSize * grid.ChunkSize
	// MaxSections bounds the height of a column, in sections.
	MaxSections = 32

	layer = grid.ChunkSize * grid.ChunkSize // blocks of one height
)

// Index is the position of a block in a column: y·1024 + z·32 + x, with x and z from the chunk's origin and y from the
// bottom.
type Index uint32

// IndexOf returns the index of a block by its place in the column: 0 ≤ x, z < 32 and y ≥ 0.
func IndexOf(x, y, z int) Index { return Index(y*layer + z*grid.ChunkSize + x) }

// XYZ is the inverse of IndexOf.
func (i Index) XYZ() (x, y, z int) {
	return int(i) % grid.ChunkSize, int(i) / layer, int(i) / grid.ChunkSize % grid.ChunkSize
}

// At returns the index of a block in the column that holds it. Its Y must not be negative.
func At(pos grid.Pos) Index {
	return IndexOf(int(pos.X)&(grid.ChunkSize-1), int(pos.Y), int(pos.Z)&(grid.ChunkSize-1))
}

// Pos returns the world position of the block in chunk c.
func (i Index) Pos(c grid.ChunkPos) grid.Pos {
	x, y, z := i.XYZ()
	origin := c.Origin()
	return grid.Pos{X: origin.X + int32(x), Y: int32(y), Z: origin.Z + int32(z)}
}
