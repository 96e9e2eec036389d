package region

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ledByA starts three nodes, of which A leads a region with an edit, and all have loaded it. The gateway is linked with
// A.
func ledByA(t *testing.T) (n *network, a *node, g gateway) {
	n, a, _, _ = three(t)
	g = a.follow(here)
	g.edit(stone(1))
	<-time.After(time.Second) // all members load the region
	if !a.leads() {
		t.Fatal("A does not lead")
	}
	return n, a, g
}

// A leader that is cut off, and has not noticed yet, accepts no subscribers: the others may have another leader by now,
// and its own land may be old. Once it is connected again, it accepts them.
func TestDeposedLeaderShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _ := ledByA(t)
		info, err := a.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		subscribe := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			link, _, err := a.follower.subscribeAt(ctx, "A", nodemsg.Hello{Region: info.ID, Cell: info.Cell})
			if err == nil {
				link.Close()
			}
			return err
		}
		if err := subscribe(time.Second); err != nil {
			t.Fatal("not accepted by the leader of all: ", err)
		}
		n.cut("A", true)
		if err := subscribe(500 * time.Millisecond); err == nil {
			t.Error("accepted by a leader that is cut off")
		}
		if !a.leads() {
			t.Error("A knew already that it does not lead: this proves nothing")
		}
		n.cut("A", false)
		if err := subscribe(5 * time.Second); err != nil && a.leads() {
			t.Error("not accepted after the cut: ", err)
		}
	})
}

// A leader that has noticed that it is cut off sends its subscribers no more land, which may be old, until they are
// dismissed.
func TestPendingSubscriberGetsNoLand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, g := ledByA(t)
		n.cut("A", true)
		<-time.After(2 * time.Second) // it has noticed
		g.send(nodemsg.ToRegion{Watch: []grid.ChunkPos{here}})
		until(g, func(f nodemsg.FromRegion) (struct{}, bool) {
			for _, delta := range f.Chunks {
				if delta.State != nil {
					t.Error("land is shown by a node that may not lead any more")
				}
			}
			return struct{}{}, f.Closed != ""
		})
	})
}

// A gateway that is subscribed asks whether the land is the newest. The leader answers when a majority has confirmed
// after the question that it leads; not while it is cut off, although it has not noticed yet.
func TestQuestionsAreAnsweredByAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, g := ledByA(t)
		shown := false
		answered := func(question uint64) func(nodemsg.FromRegion) (string, bool) {
			return func(f nodemsg.FromRegion) (string, bool) {
				for _, delta := range f.Chunks {
					shown = shown || delta.State != nil && len(delta.State.Edits) == 1
				}
				return f.Closed, f.Closed != "" || f.Confirmed == question && f.AsOf == 0
			}
		}
		g.send(nodemsg.ToRegion{Watch: []grid.ChunkPos{here}, Confirm: 1})
		if closed := until(g, answered(1)); closed != "" || !shown {
			t.Fatalf("closed: %q, land shown before the answer: %v", closed, shown)
		}
		n.cut("A", true)
		g.send(nodemsg.ToRegion{Confirm: 2})
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for soon.Err() == nil {
			if f, err := g.Receive(soon); err == nil && f.Confirmed != 0 {
				t.Error("answered by a leader that is cut off")
			}
		}
		if !a.leads() {
			t.Error("A knew already that it does not lead: this proves nothing")
		}
		n.cut("A", false)
		if closed := until(g, answered(2)); closed != "" && a.leads() {
			t.Errorf("closed: %q", closed)
		}
	})
}

// A node that is cut off from the leader of a region, and from nobody else, knows that: others name the leader.
func TestCutOffFromTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		other := c
		if info.Leader == c.peer {
			other = b
		}
		a.net.part(info.Leader, other.peer)
		_, _, err := other.Follow(t.Context(), here)
		var cut CutOffError
		if !errors.As(err, &cut) || cut.Leader != info.Leader {
			t.Errorf("%s, cut off from %s: %v", other.peer, info.Leader, err)
		}
		a.net.part("", "")
		if _, _, err := other.Follow(t.Context(), here); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
