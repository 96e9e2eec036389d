package wire

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

func TestWayOf(t *testing.T) {
	for _, c := range []struct{ x, y, z float64 }{
		{}, {.2, 0, 0}, {-1, .4, 1}, {0, -4, 0}, {-7.9, 7.9, -7.9}, {math.Pi / 20, -math.E / 20, 1. / 3},
	} {
		way := WayOf(c.x, c.y, c.z)
		if way.Goes() != (c.x != 0 || c.y != 0 || c.z != 0) {
			t.Errorf("WayOf(%v) = %v", c, way)
		}
		x, y, z := way.Blocks(1)
		if most := max(math.Abs(x-c.x), math.Abs(y-c.y), math.Abs(z-c.z)); most > .5/WayUnit {
			t.Errorf("WayOf(%v) is (%v, %v, %v)", c, x, y, z)
		}
	}
	for _, c := range []struct{ x, y, z float64 }{{8, 0, 0}, {0, -9, .1}, {0, 0, math.Inf(1)}} {
		if way := WayOf(c.x, c.y, c.z); way.Goes() {
			t.Errorf("WayOf(%v) = %v", c, way)
		}
	}
}

// An extrapolated avatar always has a valid pose in its chunk.
func TestAlongStaysInTheChunk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	chunkOf := func(p Pose) grid.ChunkPos {
		return grid.ChunkPos{X: int32(math.Floor(p.X / grid.ChunkSize)), Z: int32(math.Floor(p.Z / grid.ChunkSize))}
	}
	part := func(n int64) int16 { return int16(rng.Int64N(n) - n/2) }
	for range 100_000 {
		n := []int64{2, 2000, 1 << 16}[rng.IntN(3)]
		way := Way{X: part(n), Y: part(n), Z: part(n)}
		p := Pose{
			X: (rng.Float64() - .5) * []float64{64, 2 * maxXZ}[rng.IntN(2)], Y: MinY + rng.Float64()*(MaxY-MinY),
			Z: (rng.Float64() - .5) * []float64{64, 2 * maxXZ}[rng.IntN(2)], Yaw: 1, Pitch: .5,
		}
		at, ticks := chunkOf(p), rng.Float64()*2*WayTicks
		got := way.Along(p, ticks, at)
		if got.Valid() != nil || chunkOf(got) != at || got.Yaw != p.Yaw || got.Pitch != p.Pitch {
			t.Fatalf("%v for %v ticks from %v is %v", way, ticks, p, got)
		}
		x, y, z := way.Blocks(min(ticks, WayTicks))
		if free := (Pose{X: p.X + x, Y: p.Y + y, Z: p.Z + z}); free.Valid() == nil && chunkOf(free) == at &&
			math.Abs(got.X-free.X)+math.Abs(got.Y-free.Y)+math.Abs(got.Z-free.Z) > 1./1024 {
			t.Fatalf("%v for %v ticks from %v is %v, want %v", way, ticks, p, got, free)
		}
	}
}
