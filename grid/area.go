package grid

// Area is a rectangle of chunks, half-open: X in [MinX, MaxX), Z in [MinZ, MaxZ).
type Area struct{ MinX, MinZ, MaxX, MaxZ int32 }

// Contains reports whether the chunk lies in the area.
func (a Area) Contains(c ChunkPos) bool {
	return c.X >= a.MinX && c.X < a.MaxX && c.Z >= a.MinZ && c.Z < a.MaxZ
}

// Overlaps reports whether the areas have a chunk in common.
func (a Area) Overlaps(b Area) bool {
	return max(a.MinX, b.MinX) < min(a.MaxX, b.MaxX) && max(a.MinZ, b.MinZ) < min(a.MaxZ, b.MaxZ)
}
