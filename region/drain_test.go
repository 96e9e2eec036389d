package region

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A drained node hands over its leaderships and is not chosen as leader or member, although it is nearest to all keys
// and keeps answering. It still serves as a member, and leads again after a restart.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		defer c.keepInUse()()
		g := c.follow(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatalf("the edit: %+v", r)
		}
		<-time.After(30*time.Second + time.Millisecond) // the catalog gets its members, A has led for minLeaderTime, and no question is under way
		if !a.leads() {
			t.Fatal("A does not lead")
		}
		start := time.Now()
		handed, kept := a.Drain(context.Background())
		if handed != 2 || kept != 0 { // the region and the catalog
			t.Errorf("%d handed over, %d kept", handed, kept)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		far := grid.ChunkPos{X: 7000, Z: 7000}
		info, err := b.Locate(context.Background(), far)
		if err != nil || actor.HasMember(info, "A") || len(info.Members) != 2 {
			t.Errorf("new land has the members %v (%v)", info.Members, err)
		}
		for range 20 {
			<-time.After(time.Second)
			if a.leads() || a.regions.Catalog().Raft().Status().Self {
				t.Fatal("A leads again while it is drained")
			}
		}
		if handed, kept := a.Drain(context.Background()); handed != 0 || kept != 0 {
			t.Errorf("once more: %d handed over, %d kept", handed, kept)
		}
		g = c.refollow()
		other := stone(2)
		other.Pos.Y++
		if r := g.edit(other)[2]; r.Refused != "" {
			t.Errorf("an edit after it: %+v", r)
		}
		a.stop()
		a = n.start("A", a.disk)
		for range 120 {
			if <-time.After(time.Second); a.leads() && slices.ContainsFunc(a.Regions(context.Background()), func(r Loaded) bool { return r.Voters == 3 }) {
				return
			}
		}
		t.Error("A does not lead again after a restart")
	})
}

// keepInUse keeps the region here in use until the returned function is called.
func (n *node) keepInUse() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			link, _, err := n.Follow(ctx, here)
			if err != nil {
				<-time.After(50 * time.Millisecond)
				continue
			}
			for err == nil {
				var frame nodemsg.FromRegion
				if frame, err = link.Receive(ctx); frame.Closed != "" {
					break
				}
			}
			link.Close()
		}
	}()
	return func() { cancel(); <-ended }
}

// Without other members there is nothing to hand over.
func TestDrainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		a.follow(here)
		start := time.Now()
		handed, kept := a.Drain(context.Background())
		if handed != 0 || kept != 2 || time.Since(start) > 0 {
			t.Errorf("%d handed over, %d kept, after %v", handed, kept, time.Since(start))
		}
	})
}

// In a rolling restart, a node that leaves can hand over to nodes that have just come back, even before they have been
// asked again whether they are alive.
func TestDrainToThoseJustBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		g := c.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		if leaderAmong(a, b, c) != a {
			t.Fatal("A does not lead")
		}
		a.detector.MarkLeaving("B")
		a.detector.MarkLeaving("C")
		a.Drain(t.Context())
		if it := leaderAmong(a, b, c); it == nil || it == a {
			t.Error("the region is left to an election")
		}
		if r := c.refollow().edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("over the new leader: %+v", r)
		}
	})
}

// A node that announced that it leaves, and then sends a message, is asked at once whether it is back. If it is, its
// leaving flag is cleared; if it is still leaving, the flag stays.
func TestReturningNodeMayLeadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, _ := three(t)
		speak := func() bool {
			a.detector.MarkLeaving("B")
			<-time.After(time.Second)
			if a.answer(t.Context(), "B", nodemsg.Question{Regions: &nodemsg.RegionsRequest{}}); a.detector.ShouldRecheck("B") {
				t.Error("it would be asked twice")
			}
			synctest.Wait()
			return a.detector.Leaving("B")
		}
		if speak() {
			t.Error("B is back, and does not count as living")
		}
		b.supervisor.StartLeaving()
		if !speak() {
			t.Error("B leaves, and counts as living because it speaks")
		}
	})
}
