package mirror

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// A player who comes to see a chunk costs as much when many see it already.
func TestJoiningACrowd(t *testing.T) {
	const few, many = 200, 3000
	at := grid.ChunkPos{X: 2, Z: 2}
	slower := 0.0
	for range 5 { // the machine may be busy
		sub, with, shown := countryside(t), newBuffers(), 0
		join := func(n int) (each time.Duration) {
			began := time.Now()
			for range n {
				view := &onlooker{}
				sub.watch(at, view)
				c := sub.mu.chunks[at]
				c.hasState, c.shown = true, true
				f := sub.feedAt(at)
				f.beginConfirming()
				f.confirmation.answer(time.Now(), f.confirmation.asked, time.Time{})
				sub.m.builder.build(c, with)
				sub.Refresh(at, view) // of which they had the hash
				sub.m.builder.build(c, with)
				shown += view.chunks
			}
			return time.Since(began) / time.Duration(n)
		}
		join(10) // what happens once
		first := join(few)
		join(many)
		if slower = float64(join(few)) / float64(first); shown != 2*(10+2*few+many) {
			t.Fatalf("%d chunks were sent", shown)
		}
		if slower < 4 {
			return
		}
	}
	t.Errorf("a player who joins %d others takes %.1f times as long as one of the first %d", many, slower, few)
}
