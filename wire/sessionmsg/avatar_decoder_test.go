package sessionmsg

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// After a slow client's chunks come the motions of the ticks before.
func TestAvatarStaysInTheChunkItEnteredLast(t *testing.T) {
	before, after := grid.ChunkPos{X: 0, Z: 0}, grid.ChunkPos{X: 1, Z: 0}
	enter := func(at grid.ChunkPos, x float64) *TickDelta {
		return &TickDelta{Chunk: at, Enter: []TickAvatar{{Place: PlaceOf(at, motion.Pose{X: x})}}}
	}
	var d AvatarDecoder
	d.Tick(1)
	d.Delta(enter(before, 31))
	d.Delta(enter(after, 32))
	d.Delta(&TickDelta{Chunk: before, Leave: []uint32{0}})
	d.Motion(before, &Motion{Place: PlaceOf(before, motion.Pose{X: 31.5}), HasAcross: true})
	shown := 0
	d.Each(0, func(_ uint32, _ player.ID, pose motion.Pose) {
		if shown++; pose.X != 31.5 {
			t.Errorf("at %v, want 31.5", pose.X)
		}
	})
	if shown != 1 {
		t.Fatalf("%d avatars are in view, want 1", shown)
	}
	d.Delta(&TickDelta{Chunk: after, Leave: []uint32{0}})
	d.Each(0, func(uint32, player.ID, motion.Pose) { t.Error("the avatar is still in view") })
}
