package motion

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

func TestChunk(t *testing.T) {
	for _, c := range []struct {
		x, z float64
		want grid.ChunkPos
	}{{0, 31.99, grid.ChunkPos{}}, {-.01, 32, grid.ChunkPos{X: -1, Z: 1}}, {-32, -32.01, grid.ChunkPos{X: -1, Z: -2}}} {
		if got := (Pose{X: c.x, Z: c.z}).Chunk(); got != c.want {
			t.Errorf("%v, %v is in chunk %v, want %v", c.x, c.z, got, c.want)
		}
	}
}
