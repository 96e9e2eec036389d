package crowd

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// The server's own rules accept every move of players who walk or fly here, and no body is ever inside a column.
func TestMovesAreHonest(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 9))
		home := grid.ChunkPos{X: int32(rng.IntN(5)) - 2, Z: int32(rng.IntN(5)) - 2}
		land := new(chunkHeights)
		for i := range land {
			land[i] = int16(40 + rng.IntN(1+int(seed)%9))
		}
		b := mover{rng: rng, sky: 134, home: home, heights: land, pose: motion.Pose{X: .5, Y: 60, Z: .5}}
		if seed%5 == 0 {
			b.heights, b.base = nil, 300
		}
		motion := player.NewMotion(player.Rules{Burst: 2}, 0, b.pose.X, b.pose.Y, b.pose.Z)
		arrived := false
		for i := range 20 * 60 {
			b.step(.05)
			p := b.pose
			if ok, why := motion.Check(time.Duration(i+1)*50*time.Millisecond, p.X, p.Y, p.Z, p.Yaw, p.Pitch); !ok {
				t.Fatalf("seed %d, step %d: %s at %+v", seed, i, why, p)
			}
			if b.heights == nil || p.Chunk() != home || b.flying {
				continue
			}
			arrived = true
			if ground := land.groundHeight(p.X, p.Z); p.Y < ground {
				t.Fatalf("seed %d, step %d: feet at %v, within a column of %v", seed, i, p.Y, ground)
			}
		}
		if b.heights != nil && !arrived {
			t.Errorf("seed %d: never arrived in %v", seed, home)
		}
	}
}
