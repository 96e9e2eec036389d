package grid

import (
	"fmt"
	"iter"
	"strings"
)

// Cells returns the cells with labels of the given length that the area touches, along Z first.
func (a Area) Cells(length int) iter.Seq[Cell] {
	return func(yield func(Cell) bool) {
		for p := (ChunkPos{X: a.MinX, Z: a.MinZ}); p.X < a.MaxX && p.Z < a.MaxZ; {
			cell := CellAt(p, length)
			if !yield(cell) {
				return
			}
			if p.Z = cell.Area().MaxZ; p.Z >= a.MaxZ {
				p = ChunkPos{X: cell.Area().MaxX, Z: a.MinZ}
			}
		}
	}
}

// ParseArea returns the chunks that an area in blocks touches. The text is "X1,Z1:X2,Z2": two opposite corners, both
// included.
func ParseArea(text string) (Area, error) {
	var x1, z1, x2, z2 int32
	if n, err := fmt.Sscanf(text, "%d,%d:%d,%d", &x1, &z1, &x2, &z2); n != 4 || err != nil || strings.ContainsAny(text, " \t") {
		return Area{}, fmt.Errorf("area %q: want X1,Z1:X2,Z2 in blocks, such as -64,-64:64,64", clip(text))
	}
	from, to := Pos{X: min(x1, x2), Z: min(z1, z2)}.Chunk(), Pos{X: max(x1, x2), Z: max(z1, z2)}.Chunk()
	return Area{MinX: from.X, MinZ: from.Z, MaxX: to.X + 1, MaxZ: to.Z + 1}, nil
}
