package region

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A rollback is carried out in a region that nobody uses; while it is paused nothing is changed, and what was aborted is not gone on with.
func TestRollbacksAreOrderedPausedAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const look = 500 * time.Millisecond // between two looks at what is ordered
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		start := time.Now()
		a := n.start("A", newDisk())
		operate := func(command string) {
			t.Helper()
			<-time.After(time.Millisecond) // two commands at the same time have the same number
			if _, err := a.Policy.Operate(t.Context(), command); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
		}
		edit := func(name string, block chunk.Block, x int32) {
			t.Helper()
			g := a.follow(here)
			e := nodemsg.Intent{Player: player.GuestID(name), Seq: uint64(time.Now().UnixMicro()), Pos: at(here, x), Block: block}
			e.Name = name
			if r := g.edit(e)[e.Seq]; r.Refused != "" {
				t.Fatalf("%s: %+v", name, r)
			}
			g.Close()
		}
		sleep := func() {
			t.Helper()
			id := a.Regions(t.Context())[0].Region.ID
			<-time.After(time.Minute)
			if a.open(id) != nil {
				t.Fatal("the region is not closed: the test shows nothing")
			}
			<-time.After(look - time.Since(start)%look + time.Millisecond) // all that follows is before the next look
		}
		has := func(when string, x int32, want chunk.Block) {
			t.Helper()
			g := a.follow(here)
			defer g.Close()
			for _, b := range g.state(here).Edits {
				if b.At == chunk.At(at(here, x)) && b.Block == want {
					return
				}
			}
			t.Errorf("%s there is another block than %v", when, want)
		}
		progress := func(id int) (complete bool) {
			t.Helper()
			var r policy.Rollback
			a.Policy.Read(func(s *policy.State) { r, _ = s.Rollback(id) })
			p, err := a.History.Progress(t.Context(), r.Rollback)
			if err != nil {
				t.Fatal(err)
			}
			return p.Complete()
		}
		origin := here.Origin()
		box := grid.BoxOf(origin, grid.Pos{X: origin.X + 31, Y: 63, Z: origin.Z + 31})
		revert := func() { operate(policy.RevertText("guest:eve", start.UnixMilli(), box)) }

		edit("ann", chunk.Stone, 1)
		edit("eve", chunk.Brick, 1)
		sleep()
		revert()
		operate("pause 1")
		<-time.After(time.Minute)
		has("while it is paused", 1, chunk.Brick)
		sleep()
		operate("resume 1")
		<-time.After(time.Minute)
		has("when it is complete", 1, chunk.Stone)
		if !progress(1) {
			t.Error("it does not count as complete")
		}

		edit("ann", chunk.Stone, 2)
		edit("eve", chunk.Brick, 2)
		sleep()
		revert()
		operate("abort 2")
		<-time.After(time.Minute)
		has("after it was aborted", 2, chunk.Brick)
		if _, err := a.Policy.Operate(t.Context(), "resume 2"); err == nil {
			t.Error("it goes on after it was aborted")
		}
		operate("undo 1")
		<-time.After(time.Minute)
		has("when the first one is undone", 1, chunk.Brick)
		has("when the first one is undone", 2, chunk.Brick)
	})
}
