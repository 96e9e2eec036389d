package motion

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

func TestVelocityOf(t *testing.T) {
	for _, c := range []struct{ x, y, z float64 }{
		{}, {.2, 0, 0}, {-1, .4, 1}, {0, -4, 0}, {-7.9, 7.9, -7.9}, {math.Pi / 20, -math.E / 20, 1. / 3},
	} {
		v := VelocityOf(c.x, c.y, c.z)
		if v.Moving() != (c.x != 0 || c.y != 0 || c.z != 0) {
			t.Errorf("VelocityOf(%v) = %v", c, v)
		}
		x, y, z := v.Displacement(1)
		if most := max(math.Abs(x-c.x), math.Abs(y-c.y), math.Abs(z-c.z)); most > .5/VelocityUnit {
			t.Errorf("VelocityOf(%v) is (%v, %v, %v)", c, x, y, z)
		}
	}
	for _, c := range []struct{ x, y, z float64 }{{8, 0, 0}, {0, -9, .1}, {0, 0, math.Inf(1)}} {
		if v := VelocityOf(c.x, c.y, c.z); v.Moving() {
			t.Errorf("VelocityOf(%v) = %v", c, v)
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
		v := Velocity{X: part(n), Y: part(n), Z: part(n)}
		p := Pose{
			X: (rng.Float64() - .5) * []float64{64, 2 * maxXZ}[rng.IntN(2)], Y: MinY + rng.Float64()*(MaxY-MinY),
			Z: (rng.Float64() - .5) * []float64{64, 2 * maxXZ}[rng.IntN(2)], Yaw: 1, Pitch: .5,
		}
		at, ticks := chunkOf(p), rng.Float64()*2*ExtrapolationTicks
		got := v.Extrapolate(p, ticks, at)
		if got.Valid() != nil || chunkOf(got) != at || got.Yaw != p.Yaw || got.Pitch != p.Pitch {
			t.Fatalf("%v for %v ticks from %v is %v", v, ticks, p, got)
		}
		x, y, z := v.Displacement(min(ticks, ExtrapolationTicks))
		if free := (Pose{X: p.X + x, Y: p.Y + y, Z: p.Z + z}); free.Valid() == nil && chunkOf(free) == at &&
			math.Abs(got.X-free.X)+math.Abs(got.Y-free.Y)+math.Abs(got.Z-free.Z) > 1./1024 {
			t.Fatalf("%v for %v ticks from %v is %v, want %v", v, ticks, p, got, free)
		}
	}
}
