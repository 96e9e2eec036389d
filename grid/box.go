package grid

// Box is a cuboid of blocks. Both corners are part of it.
type Box struct {
	Min, Max Pos
}

// BoxOf returns the smallest box with two corners, in any order.
func BoxOf(a, b Pos) Box {
	return Box{
		Min: Pos{X: min(a.X, b.X), Y: min(a.Y, b.Y), Z: min(a.Z, b.Z)},
		Max: Pos{X: max(a.X, b.X), Y: max(a.Y, b.Y), Z: max(a.Z, b.Z)},
	}
}

// Contains reports whether the block is in the box.
func (b Box) Contains(p Pos) bool {
	return b.Min.X <= p.X && p.X <= b.Max.X && b.Min.Y <= p.Y && p.Y <= b.Max.Y && b.Min.Z <= p.Z && p.Z <= b.Max.Z
}

// Area returns the chunks that the box touches.
func (b Box) Area() Area {
	low, high := b.Min.Chunk(), b.Max.Chunk()
	return Area{MinX: low.X, MinZ: low.Z, MaxX: high.X + 1, MaxZ: high.Z + 1}
}
