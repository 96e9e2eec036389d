package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// walls is a harness with ann at the spawn and what is built around her.
type walls struct {
	*harness
	ann *client
	seq uint64
}

func newWalls(t *testing.T) *walls {
	w := &walls{harness: newHarness(t)}
	w.ann = w.join("ann", 1)
	return w
}

// build fills the blocks from low to high, both included.
func (w *walls) build(low, high grid.Pos) {
	for x := low.X; x <= high.X; x++ {
		for y := low.Y; y <= high.Y; y++ {
			for z := low.Z; z <= high.Z; z++ {
				w.seq++
				w.lands.commit(nodemsg.Intent{Player: guestID("zoe"), Seq: w.seq, Pos: grid.Pos{X: x, Y: y, Z: z}, Block: chunk.Brick})
			}
		}
	}
	pass(100 * time.Millisecond)
}

// goes checks whether ann may go to a place.
func (w *walls) goes(x, y, z float64, want bool) {
	w.t.Helper()
	before := w.ann.mu.corrections
	w.ann.goTo(x, y, z)
	pass(time.Second) // so that speed is never the reason
	if got := w.ann.mu.corrections == before; got != want {
		w.t.Errorf("to %v, %v, %v: allowed %v, want %v", x, y, z, got, want)
	}
	if got := w.g.Online()[0].Pose; (got.X == x && got.Y == y && got.Z == z) != want {
		w.t.Errorf("to %v, %v, %v: she is at %+v", x, y, z, got)
	}
}

func TestGroundHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		w.build(grid.Pos{X: -2, Y: 22, Z: -2}, grid.Pos{X: 2, Y: 23, Z: 2})
		w.goes(.5, 24, .5, true)
		w.goes(.5, 23.95, .5, true) // rounding
		w.goes(.5, 23.5, .5, false)
		w.goes(.5, 21, .5, false) // through it
		for y := 23.9; y > 23; y -= .08 {
			w.ann.goTo(.5, y, .5)
			pass(time.Second)
		}
		if got := w.g.Online()[0].Pose.Y; got < 23.85 {
			t.Errorf("step by step she sank to %v", got)
		}
	})
}

func TestWallsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		w.build(grid.Pos{X: 3, Y: 24, Z: -2}, grid.Pos{X: 3, Y: 28, Z: 2})
		w.goes(2.7, 25, .5, true)
		w.goes(2.79, 25, .5, true) // rounding
		w.goes(2.95, 25, .5, false)
		w.goes(3.5, 25, .5, false)
		w.goes(4.5, 25, .5, false)
		w.goes(9.5, 25, .5, false)
		w.goes(4.5, 27, 1.5, false)
		w.goes(12.5, 25, .5, false)
		w.goes(-9.5, 25, .5, true) // 12 blocks from where she is, 22 from where she wanted to be
		w.goes(.5, 25, .5, true)
		w.goes(4.5, 29, .5, true) // up first, and over
		w.goes(4.5, 25, .5, true)
		w.goes(.5, 25, .5, false)
		w.goes(4.5, 25, 3.5, true) // around
		w.goes(.5, 25, .5, true)   // across first, and then along
	})
}

// Four chunks meet at the spawn: a body is in several, and so are the walls.
func TestWallsHoldAcrossBorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		for _, at := range []grid.Pos{{X: -1, Y: 25, Z: 0}, {X: 0, Y: 25, Z: -1}, {X: -1, Y: 25, Z: -1}} {
			w.build(at, at)
		}
		w.goes(.5, 25, .5, true)
		w.goes(.1, 25, .5, false)
		w.goes(.5, 25, .1, false)
		w.goes(.1, 25, .1, false)
		w.goes(.1, 26, .1, true) // on top of them
		w.goes(-.5, 26, -.5, true)
		w.goes(-.5, 25.5, -.5, false)
	})
}

func TestTheBuriedGetOut(t *testing.T) {
	for name, to := range map[string][3]float64{"aside": {-1.5, 25, .5}, "up": {.5, 25.3, .5}, "up far": {.5, 28, .5}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWalls(t)
			w.build(grid.Pos{X: 0, Y: 25, Z: 0}, grid.Pos{X: 2, Y: 27, Z: 2})
			w.goes(1.5, 25, .5, false) // deeper
			if w.goes(to[0], to[1], to[2], true); t.Failed() {
				t.Log(name)
			}
		})
	}
}

// A client shows what the player breaks before the region has confirmed it, and lets the player go there.
func TestWhatIsBeingBrokenIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		w.build(grid.Pos{X: 0, Y: 22, Z: 0}, grid.Pos{X: 0, Y: 24, Z: 0})
		w.lands.deaf(true)
		w.goes(.5, 24.5, .5, false)
		w.ann.put(grid.Pos{X: 0, Y: 24, Z: 0}, chunk.Air)
		w.goes(.5, 24, .5, true)
		w.goes(.5, 23, .5, false)
	})
}

func TestCorrectionNamesTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		w.build(grid.Pos{X: 0, Y: 24, Z: 0}, grid.Pos{X: 0, Y: 24, Z: 0})
		w.goes(.5, 24, .5, false)
		if got := w.ann.mu.reason; got != "inside_block" {
			t.Errorf("reason %q", got)
		}
	})
}

// While a chunk is rebuilt, here since its edits were made on terrain that this gateway has not fetched yet, the blocks
// that clients still show stop players, with the changes that have come since.
func TestWallsHoldWhileLandIsRebuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalls(t)
		low, high := grid.Pos{X: 3, Y: 24, Z: 0}, grid.Pos{X: 3, Y: 28, Z: 2}
		w.build(low, high)
		chunkHere := grid.Pos{X: 3}.Chunk()
		state := &nodemsg.ChunkState{Base: make([]byte, 32)}
		w.lands.sendFrame(chunkHere, nodemsg.FromRegion{Tick: 1000, Chunks: []nodemsg.ChunkDelta{{Chunk: chunkHere, State: state}}})
		pass(100 * time.Millisecond)
		w.goes(2.5, 25, .5, true)
		w.goes(3.5, 25, .5, false)
		w.lands.sendFrame(chunkHere, nodemsg.FromRegion{Tick: 1001, Chunks: []nodemsg.ChunkDelta{{Chunk: chunkHere, Blocks: []nodemsg.BlockAt{
			{At: chunk.At(grid.Pos{X: 3, Y: 25, Z: 0})}, {At: chunk.At(grid.Pos{X: 3, Y: 26, Z: 0})},
		}}}})
		pass(100 * time.Millisecond)
		w.goes(3.5, 25, .5, true)
	})
}
