package sessionmsg

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// In a late frame the motion of earlier ticks comes after the changes of chunks.
func TestMotionFromBeforeEnteringIsIgnored(t *testing.T) {
	before, after := grid.ChunkPos{X: 0, Z: 0}, grid.ChunkPos{X: 1, Z: 1}
	enter := func(at grid.ChunkPos, x, z float64) *TickDelta {
		return &TickDelta{Chunk: at, Enter: []TickAvatar{{Place: PlaceOf(at, motion.Pose{X: x, Z: z})}}}
	}
	walk := &Motion{Place: PlaceOf(before, motion.Pose{X: 31.5, Z: 31.5}), VelocityX: 26, HasAcross: true, HasVelocity: true}
	var d AvatarDecoder
	d.Tick(1)
	d.Delta(enter(before, 31, 31))
	d.Delta(enter(after, 32, 32))
	d.Delta(&TickDelta{Chunk: before, Leave: []uint32{0}})
	d.Motion(before, walk)
	shown := 0
	d.Each(10, func(_ uint32, _ player.ID, pose motion.Pose) {
		if shown++; pose.X != 32 || pose.Z != 32 {
			t.Errorf("at %v, %v, want 32, 32", pose.X, pose.Z)
		}
	})
	if shown != 1 {
		t.Fatalf("%d avatars are in view, want 1", shown)
	}
	d.Delta(&TickDelta{Chunk: after, Leave: []uint32{0}})
	d.Each(0, func(uint32, player.ID, motion.Pose) { t.Error("the avatar is still in view") })
}
