package grid

import "pgregory.net/rapid"

// Generators that the property tests share.

func drawChunk(t *rapid.T) ChunkPos {
	return ChunkPos{
		X: rapid.Int32Range(-Limit, Limit-1).Draw(t, "chunk x"),
		Z: rapid.Int32Range(-Limit, Limit-1).Draw(t, "chunk z"),
	}
}

func drawCell(t *rapid.T) Cell {
	return CellAt(drawChunk(t), rapid.IntRange(0, MaxLabel).Draw(t, "length"))
}
