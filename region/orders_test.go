package region

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
)

// operate has the node's operator give a command. Two commands at the same time would have the same number.
func (n *node) operate(t *testing.T, command string) {
	t.Helper()
	<-time.After(time.Millisecond)
	if _, err := n.Policy.Operate(t.Context(), command); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// A rollback is carried out in a region that nobody uses; while it is paused nothing is changed, and what was aborted
// is not gone on with.
func TestRollbacksAreOrderedPausedAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const look = 500 * time.Millisecond // between two looks at what is ordered
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		start := time.Now()
		a := n.start("A", newDisk())
		edit := func(name string, block chunk.Block, x int32) {
			t.Helper()
			g := a.follow(here)
			e := guest(name, uint64(time.Now().UnixMicro()), at(here, x), block)
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
		revert := func() { a.operate(t, policy.RevertText("guest:eve", start.UnixMilli(), box)) }

		edit("ann", chunk.Stone, 1)
		edit("eve", chunk.Brick, 1)
		sleep()
		revert()
		a.operate(t, "pause 1")
		<-time.After(time.Minute)
		has("while it is paused", 1, chunk.Brick)
		sleep()
		a.operate(t, "resume 1")
		<-time.After(time.Minute)
		has("when it is complete", 1, chunk.Stone)
		if !progress(1) {
			t.Error("it does not count as complete")
		}

		edit("ann", chunk.Stone, 2)
		edit("eve", chunk.Brick, 2)
		sleep()
		revert()
		a.operate(t, "abort 2")
		<-time.After(time.Minute)
		has("after it was aborted", 2, chunk.Brick)
		if _, err := a.Policy.Operate(t.Context(), "resume 2"); err == nil {
			t.Error("it goes on after it was aborted")
		}
		a.operate(t, "undo 1")
		<-time.After(time.Minute)
		has("when the first one is undone", 1, chunk.Brick)
		has("when the first one is undone", 2, chunk.Brick)
	})
}

// What is built after a rollback was ordered stays, also if it is the same player who builds there, the rollback was
// complete before, or it waited behind a paused one. So does what is built in land that was closed when it was ordered,
// or that did not exist.
func TestRollbackLeavesWhatIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		start := time.Now()
		a := n.start("A", newDisk())
		edit := func(pos grid.ChunkPos, name string, block chunk.Block, x int32) {
			t.Helper()
			<-time.After(time.Millisecond)
			g := a.follow(pos)
			defer g.Close()
			e := guest(name, uint64(time.Now().UnixMicro()), at(pos, x), block)
			if r := g.edit(e)[e.Seq]; r.Refused != "" {
				t.Fatalf("%s: %+v", name, r)
			}
		}
		has := func(when string, pos grid.ChunkPos, x int32, want chunk.Block) {
			t.Helper()
			g := a.follow(pos)
			defer g.Close()
			for _, b := range g.state(pos).Edits {
				if b.At == chunk.At(at(pos, x)) {
					if b.Block != want {
						t.Errorf("%s there is %v at %v, %d, want %v", when, b.Block, pos, x, want)
					}
					return
				}
			}
			t.Errorf("%s nothing is edited at %v, %d", when, pos, x)
		}
		complete := func(id, changed int) {
			t.Helper()
			var r policy.Rollback
			a.Policy.Read(func(s *policy.State) { r, _ = s.Rollback(id) })
			if p, err := a.History.Progress(t.Context(), r.Rollback); err != nil || !p.Complete() || p.Changed != changed || p.Left != 0 {
				t.Errorf("rollback %d: %+v, %v, want one that is complete after %d blocks", id, p, err, changed)
			}
		}
		later := grid.ChunkPos{X: here.X + 70, Z: here.Z} // not founded yet
		origin := here.Origin()
		box := grid.BoxOf(origin, grid.Pos{X: later.Origin().X + 31, Y: 63, Z: origin.Z + 31})
		revert := func(who string) { a.operate(t, policy.RevertText("guest:"+who, start.UnixMilli(), box)) }

		for x := range int32(10) { // the nodes of this test do not generate what becomes natural again
			edit(here, "ann", chunk.Stone, x)
		}
		edit(here, "eve", chunk.Brick, 1)
		edit(here, "bob", chunk.Brick, 6)
		edit(here, "bob", chunk.Brick, 7)
		revert("eve")
		<-time.After(time.Second) // no longer than the clocks of nodes may differ
		edit(here, "eve", chunk.Planks, 2)
		<-time.After(5 * time.Second)
		complete(1, 1)
		edit(here, "eve", chunk.Planks, 3)

		revert("eve")
		a.operate(t, "pause 2")
		revert("bob") // waits
		<-time.After(20 * time.Second)
		edit(here, "eve", chunk.Glass, 4)
		edit(here, "bob", chunk.Glass, 6)
		edit(later, "bob", chunk.Glass, 1)
		edit(later, "ann", chunk.Stone, 2)
		edit(later, "eve", chunk.Glass, 2)
		a.operate(t, "resume 2")
		<-time.After(time.Minute)
		has("after rollback 1", here, 1, chunk.Stone)
		has("after rollback 2", here, 4, chunk.Glass)
		has("after rollback 3", here, 6, chunk.Glass)
		has("after rollback 3", later, 1, chunk.Glass)
		has("after rollback 2", later, 2, chunk.Glass)
		complete(2, 2) // blocks 2 and 3
		complete(3, 1) // block 7; on block 6 bob has built since

		// Land that nobody has open when it is ordered.
		edit(here, "eve", chunk.Lamp, 8)
		id := a.Regions(t.Context())[0].Region.ID
		<-time.After(time.Minute)
		if a.open(id) != nil {
			t.Fatal("the region is not closed: the test shows nothing")
		}
		box = grid.BoxOf(origin, grid.Pos{X: origin.X + 31, Y: 63, Z: origin.Z + 31})
		revert("eve")
		a.operate(t, "pause 4")
		<-time.After(2 * time.Second)
		edit(here, "eve", chunk.Lamp, 9)
		a.operate(t, "resume 4")
		<-time.After(time.Minute)
		has("after rollback 4", here, 9, chunk.Lamp)
		complete(4, 2) // blocks 4 and 8
		a.operate(t, "undo 4")
		<-time.After(time.Minute)
		has("when it is undone", here, 8, chunk.Lamp)
		has("when it is undone", here, 9, chunk.Lamp)
		complete(5, 2)
	})
}

// Two halves are merged after a rollback in one of them: what was built there since is not undone. While the rollback
// is paused they are not merged, and can both be built in.
func TestMergeAfterRollback(t *testing.T) {
	for name, both := range map[string]bool{"both halves have a history": true, "one half has none": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.adjust = func(_ string, o *Options) { o.World = "world" }
				start := time.Now()
				a := n.start("A", newDisk())
				edit := func(pos grid.ChunkPos, x int32) { // eve changes what ann has built
					t.Helper()
					for i, name := range []string{"ann", "eve"} {
						<-time.After(time.Millisecond)
						a.reach(pos).accepts(guest(name, uint64(time.Now().UnixMicro()), at(pos, x), []chunk.Block{chunk.Stone, chunk.Brick}[i]))
					}
				}
				want := func(when string, x int32, block chunk.Block) {
					t.Helper()
					for _, b := range a.reach(beyond).state(beyond).Edits {
						if b.At == chunk.At(at(beyond, x)) {
							if b.Block != block {
								t.Errorf("%s there is %v, want %v", when, b.Block, block)
							}
							return
						}
					}
					t.Errorf("%s nothing is edited there", when)
				}
				a.follow(here).Close()
				if both {
					edit(here, 1)
				}
				if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
					t.Fatal(err)
				}
				edit(beyond, 1)
				origin := beyond.Origin()
				box := grid.BoxOf(origin, grid.Pos{X: origin.X + 31, Y: 63, Z: origin.Z + 31})
				a.operate(t, policy.RevertText("guest:eve", start.UnixMilli(), box))
				a.operate(t, "pause 1")
				<-time.After(time.Second)
				if err := a.Splitter.Merge(t.Context(), hereCell); err == nil || !strings.Contains(err.Error(), "rollback 1 is not complete") {
					t.Errorf("merged while a rollback is paused: %v", err)
				}
				want("while the rollback is paused", 1, chunk.Brick)
				if both {
					edit(here, 2)
				}
				a.operate(t, "resume 1")
				<-time.After(5 * time.Second)
				want("after the rollback", 1, chunk.Stone)
				synctest.Wait()
				if left := a.metric("voxeld_rollback_regions", ""); left != 0 {
					t.Errorf("it is still being carried out in %v regions", left)
				}
				edit(beyond, 2) // soon enough that the rollback would undo it, too
				passed := a.Splitter.Passed
				a.Splitter.Passed = func(ctx context.Context, l *actor.Land) (int64, error) {
					if l.Cell().Contains(here) {
						return 0, nil // as if its leader did not know of the rollback yet
					}
					return passed(ctx, l)
				}
				if err := a.Splitter.Merge(t.Context(), hereCell); err == nil || !strings.Contains(err.Error(), "only one half knows of the last rollback or claim") {
					t.Errorf("merged although one half does not know of the rollback: %v", err)
				}
				a.Splitter.Passed = passed
				if err := a.Splitter.Merge(t.Context(), hereCell); err != nil {
					t.Fatal(err)
				}
				edit(beyond, 3)
				<-time.After(time.Minute)
				want("after the merge", 1, chunk.Stone)
				want("after the merge", 2, chunk.Brick)
				want("after the merge", 3, chunk.Brick)
			})
		})
	}
}

// The changes of several players are found wherever they are, in the whole world, and undone in one go: a block that
// they have changed in turns becomes what it was before all of them. What others have changed since stays. Places that
// are too far apart for one rollback are found, too.
func TestRollbackOfSeveralPlayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		start := time.Now()
		a := n.start("A", newDisk())
		b := n.start("B", newDisk())
		near, far := grid.ChunkPos{X: here.X + 70, Z: here.Z}, grid.ChunkPos{X: here.X + 1000, Z: here.Z}
		edit := func(node *node, pos grid.ChunkPos, name string, block chunk.Block, x int32) {
			t.Helper()
			<-time.After(time.Millisecond)
			g := node.follow(pos)
			e := guest(name, uint64(time.Now().UnixMicro()), at(pos, x), block)
			if r := g.edit(e)[e.Seq]; r.Refused != "" {
				t.Fatalf("%s: %+v", name, r)
			}
			g.Close()
		}
		want := func(pos grid.ChunkPos, blocks ...chunk.Block) {
			t.Helper()
			g := a.follow(pos)
			defer g.Close()
			edits := g.state(pos).Edits
			for x, block := range blocks {
				found := chunk.Air
				for _, e := range edits {
					if e.At == chunk.At(at(pos, int32(x))) {
						found = e.Block
					}
				}
				if found != block {
					t.Errorf("at %v, %d there is %v, want %v", pos, x, found, block)
				}
			}
		}
		for _, pos := range []grid.ChunkPos{here, near, far} {
			for x := range int32(4) {
				edit(a, pos, "ann", chunk.Stone, x)
			}
		}
		for _, pos := range []grid.ChunkPos{here, near} {
			edit(b, pos, "eve", chunk.Brick, 0)
			edit(a, pos, "bob", chunk.Glass, 0) // in turns
			edit(a, pos, "eve", chunk.Brick, 1)
			edit(a, pos, "bob", chunk.Glass, 2)
			edit(b, pos, "ann", chunk.Planks, 2) // since then
			edit(a, pos, "ann", chunk.Planks, 3)
		}
		edit(a, far, "bob", chunk.Glass, 1)

		of := "guest:eve,guest:bob"
		var proposed history.Rollback
		b.Policy.Read(func(s *policy.State) {
			var err error
			if proposed, err = s.ProposeRollback(of, start.UnixMilli(), grid.Box{}); err != nil {
				t.Fatal(err)
			}
		})
		places, missing, err := b.History.Search(t.Context(), proposed)
		if err != nil || len(missing) > 0 || len(places) != 2 || places[0].Left != 4 || places[1].Left != 1 {
			t.Fatalf("found %+v, %v, %v", places, missing, err)
		}
		for i, chunks := range [][2]grid.ChunkPos{{here, near}, {far, far}} {
			low, high := chunks[0].Origin(), chunks[1].Origin()
			if got, want := places[i].Extent, (grid.Box{Min: low, Max: grid.Pos{X: high.X + 31, Y: grid.MaxHeight - 1, Z: high.Z + 31}}); got != want {
				t.Errorf("place %d is %v, want %v", i, got, want)
			}
		}
		for i, p := range places {
			if got, err := a.Policy.Operate(t.Context(), policy.RevertText(of, start.UnixMilli(), p.Extent)); err != nil || got != fmt.Sprintf("Rollback %d has begun.", i+1) {
				t.Fatal(got, err)
			}
			<-time.After(time.Minute)
		}
		for _, pos := range []grid.ChunkPos{here, near} {
			want(pos, chunk.Stone, chunk.Stone, chunk.Planks, chunk.Planks)
		}
		want(far, chunk.Stone, chunk.Stone, chunk.Stone, chunk.Stone)
		if places, _, err := b.History.Search(t.Context(), proposed); err != nil || len(places) > 0 {
			t.Errorf("after that there is left %+v, %v", places, err)
		}
		if _, err := a.Policy.Operate(t.Context(), "undo 1"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		want(here, chunk.Glass, chunk.Brick, chunk.Planks, chunk.Planks)
		want(far, chunk.Stone, chunk.Stone)
	})
}
