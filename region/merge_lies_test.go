package region

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// splitRegion is a region that was split, and the half here, in a world where one member of the region lies about it.
type splitRegion struct {
	nodes        []*node
	parent, half nodemsg.Region
	liar         string

	mu  sync.Mutex
	lie *nodemsg.Answer // the liar's answer to questions about the region; nil: the truth
}

// splitWithLiar splits a region. The liar is listed first, and leads nothing.
func splitWithLiar(t *testing.T) *splitRegion {
	t.Helper()
	w := &splitRegion{}
	n := newNetwork(t)
	n.copies = 3
	n.meddle = func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
		w.mu.Lock()
		defer w.mu.Unlock()
		if q.Structure == nil || to != w.liar {
			return nil
		}
		return w.lie
	}
	n.near("A", "B", "C")
	for _, peer := range []string{"A", "B", "C"} {
		w.nodes = append(w.nodes, n.start(peer, newDisk()))
	}
	a := w.nodes[0]
	<-time.After(30 * time.Second)
	a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
	if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
		t.Fatal(err)
	}
	a.reach(here)
	a.reach(beyond)
	<-time.After(5 * time.Second)
	var err error
	if w.parent, err = a.Directory.Exactly(t.Context(), hereCell); err != nil {
		t.Fatal(err)
	}
	w.liar = w.parent.Members[0].Peer
	i := slices.IndexFunc(w.nodes, func(it *node) bool { return it.peer == w.liar })
	left := n.kill(w.nodes[i])
	n.near(w.nodes[(i+1)%3].peer, w.nodes[(i+2)%3].peer, w.liar)
	<-time.After(20 * time.Second)
	other := w.nodes[(i+1)%3]
	other.reach(beyond).accepts(stoneAt(beyond, 3))
	other.reach(here).accepts(stoneAt(here, 4))
	w.nodes[i] = n.start(w.liar, left)
	<-time.After(30 * time.Second)
	w.half = other.reach(here).Link.(routedLink).info
	if w.half.Leader == w.liar {
		t.Fatal("the liar leads the half")
	}
	return w
}

func (w *splitRegion) setLie(lie *nodemsg.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lie = lie
}

// merge has the leader of the region begin to merge its halves, and hang for 10 s.
func (w *splitRegion) merge(t *testing.T) {
	for _, it := range w.nodes {
		if it.peer != w.liar {
			it.Splitter.Follow = func(ctx context.Context, _ grid.ChunkPos) (transport.Link, nodemsg.Region, error) {
				<-ctx.Done()
				return nil, nodemsg.Region{}, ctx.Err()
			}
			go it.Splitter.MergeHere(t.Context(), it.peer, w.parent.ID) //nolint:errcheck // it fails
		}
	}
	<-time.After(time.Second)
}

// frozen reports whether the half is frozen on its leader, and on how many nodes there is a copy.
func (w *splitRegion) frozen(t *testing.T) (frozen bool, copies int) {
	t.Helper()
	for _, it := range w.nodes {
		has, err := it.Replicas.Has(w.half.ID)
		if err != nil {
			t.Fatal(err)
		}
		if has {
			copies++
		}
		l := it.regions.Loaded(w.half.ID)
		if it.peer != w.half.Leader || l == nil {
			continue
		}
		structure, err := l.StructureHere(t.Context())
		if err != nil {
			t.Error(err)
		}
		frozen = structure.Frozen != 0
	}
	return frozen, copies
}

// No copy of a half is deleted because one member of the region above says that it was merged, and none that is frozen
// changes because that member says that the merge was abandoned.
func TestLiesAboutMerge(t *testing.T) {
	for name, c := range map[string]struct {
		merged bool // the lie: else that it was abandoned
		merges bool // an attempt is under way
	}{
		"merged": {true, false}, "merged, during an attempt": {true, true}, "abandoned, during an attempt": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := splitWithLiar(t)
				lie := w.parent
				if c.merged {
					lie.Split, lie.Merged = 0, w.parent.Split+1
				}
				w.setLie(&nodemsg.Answer{Region: &lie, Attempt: 1})
				if c.merges {
					w.merge(t)
				}
				leader, err := w.nodes[0].net.node(w.half.Leader)
				if err != nil {
					t.Fatal(err)
				}
				fetch := nodemsg.Fetch{Freeze: &nodemsg.Freeze{Group: w.half.ID}}
				if got := answerPiece(leader.regions, leader.bases, nil, leader.Splitter)(t.Context(), w.liar, fetch); got.Error != "" {
					t.Fatal(got.Error)
				}
				<-time.After(7 * time.Second)
				if frozen, copies := w.frozen(t); frozen != c.merges || copies != 3 {
					t.Errorf("frozen: %v; %d copies", frozen, copies)
				}
				<-time.After(20 * time.Second)
				g := leader.reach(here)
				g.accepts(stoneAt(here, 5))
				g.has(here, stoneAt(here, 1), stoneAt(here, 4), stoneAt(here, 5))
				if _, copies := w.frozen(t); copies != 3 {
					t.Errorf("%d copies are left", copies)
				}
			})
		})
	}
}

// The catalog does not list the halves of a region any more, and one member of it says that they were merged: their
// copies are kept.
func TestLieAboutUnlistedHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := splitWithLiar(t)
		forged := w.parent
		forged.Split, forged.Merged = 0, w.parent.Split+1
		w.setLie(&nodemsg.Answer{Region: &forged, Attempt: 1})
		catalog := w.nodes[0].regions.Catalog()
		for _, it := range w.nodes {
			if c := it.regions.Catalog(); c.Raft().Status().Self {
				catalog = c
			}
		}
		if _, err := catalog.Moved(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
		<-time.After(6 * time.Minute)
		if _, copies := w.frozen(t); copies != 3 {
			t.Errorf("%d copies are left", copies)
		}
	})
}

// Only members of the region above freeze its halves, and only for an attempt to which it has come.
func TestFreezeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := splitWithLiar(t)
		leader, err := w.nodes[0].net.node(w.half.Leader)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			peer    string
			attempt uint64
			want    string
		}{
			{"X", 0, "X is not a member"}, {w.liar, 7, "do not know of this attempt"}, {w.liar, 1<<40 - 1, "do not know of this attempt"},
		} {
			got := answerPiece(leader.regions, leader.bases, nil, leader.Splitter)(t.Context(), c.peer, nodemsg.Fetch{Freeze: &nodemsg.Freeze{Group: w.half.ID, Attempt: c.attempt}})
			if !strings.Contains(got.Error, c.want) {
				t.Errorf("freeze by %s for attempt %d: %q, want %q", c.peer, c.attempt, got.Error, c.want)
			}
		}
		if frozen, _ := w.frozen(t); frozen {
			t.Error("the half is frozen")
		}
	})
}

// A member that is taken for the leader of a half is not asked for its land, since the others say that it does not lead
// it.
func TestMergeConfirmsLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := splitWithLiar(t)
		for _, it := range w.nodes {
			follow := it.Splitter.Follow
			it.Splitter.Follow = func(ctx context.Context, pos grid.ChunkPos) (transport.Link, nodemsg.Region, error) {
				link, info, err := follow(ctx, pos)
				info.Leader = w.liar
				return link, info, err
			}
		}
		err := w.nodes[1].Splitter.Merge(t.Context(), hereCell)
		if want := "do not say that " + w.liar + " leads it"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	})
}

// Whoever asks a region to give up attempts to come does not prevent all later merges.
func TestAbandonedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := splitWithLiar(t)
		for i, it := range w.nodes {
			q := nodemsg.StructureRequest{Region: w.parent.ID, Abandon: 1 << 40}
			_, attempt, err := it.Splitter.StructureHere(t.Context(), q)
			if err == nil && attempt > uint64(i)+1 {
				t.Errorf("after %d questions, the next attempt to merge is %d", i+1, attempt)
			}
		}
		if err := w.nodes[1].Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		g := w.nodes[2].reach(here)
		g.has(here, stoneAt(here, 1), stoneAt(here, 4))
	})
}

// Halves are led by nodes that are no members of the region above. They end everywhere when they are merged.
func TestMergeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.near("A", "B", "C")
		var nodes []*node
		for _, peer := range []string{"A", "B", "C", "D", "E", "F"} {
			nodes = append(nodes, n.start(peer, newDisk()))
		}
		a, d := nodes[0], nodes[3]
		<-time.After(30 * time.Second)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		a.reach(here)
		a.reach(beyond)
		<-time.After(time.Minute)
		lower, upper := hereCell.Children()
		n.mu.Lock()
		for _, half := range []grid.Cell{lower, upper} {
			n.mu.nearTo[a.Directory.Key(half)] = []string{"D", "E", "F", "A", "B", "C"}
		}
		n.mu.nearTo[a.Directory.Key(hereCell)] = []string{"A", "B", "C", "D", "E", "F"}
		n.mu.Unlock()
		<-time.After(3 * time.Minute)
		parent, err := a.Directory.Exactly(t.Context(), hereCell)
		if err != nil || actor.HasMember(parent, "D") {
			t.Fatalf("the region above: %+v, %v", parent, err)
		}
		low, high := d.reach(here), d.reach(beyond)
		if a, b := low.Link.(routedLink).info, high.Link.(routedLink).info; strings.Contains("ABC", a.Leader) && strings.Contains("ABC", b.Leader) {
			t.Fatalf("no half is led elsewhere: %+v, %+v", a, b)
		}
		low.accepts(stoneAt(here, 3))
		if err := d.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if low.closed() == "" || high.closed() == "" || time.Since(began) > time.Second {
			t.Errorf("the gateways are sent away after %v", time.Since(began))
		}
		g := d.reach(here)
		g.has(here, stoneAt(here, 1), stoneAt(here, 3))
		g.has(beyond, stoneAt(beyond, 2))
		<-time.After(10 * time.Second)
		for _, it := range nodes {
			all, err := it.regions.registry.All()
			if err != nil || slices.ContainsFunc(all, func(r nodemsg.Region) bool { return slices.Contains([]grid.Cell{lower, upper}, r.Cell) }) {
				t.Errorf("%s stores %+v, %v", it.peer, all, err)
			}
		}
	})
}

// A node cannot have another one split ever more regions. Commands that are entered on the leader are not counted.
func TestSplitsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		split := func(by *node) (done int, err error) {
			for ; done < 100; done++ {
				info, err := a.Locate(t.Context(), grid.ChunkPos{X: int32(done) * cellChunks, Z: here.Z})
				if err != nil {
					t.Fatal(err)
				}
				a.reach(grid.ChunkPos{X: int32(done) * cellChunks, Z: here.Z})
				if err := by.Splitter.Split(t.Context(), info.Cell); err != nil {
					return done, err
				}
			}
			return done, nil
		}
		b, err := n.node("B")
		if err != nil {
			t.Fatal(err)
		}
		if done, err := split(b); done < 20 || done > 50 || err == nil || !strings.Contains(err.Error(), "at once") {
			t.Errorf("%d regions were split by another node, then: %v", done, err)
		}
	})
}

// Whoever has a region merged again and again is refused after a while, and at once after an attempt during which
// players could not edit.
func TestMergesOfOneNodeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := splitWithLiar(t)
		var leader *node
		for _, it := range w.nodes {
			if l := it.regions.Loaded(w.parent.ID); l != nil && l.Raft().Status().Self {
				leader = it
			}
		}
		if leader == nil { // it hibernates
			leader = w.nodes[slices.IndexFunc(w.nodes, func(it *node) bool { return it.peer != w.liar })]
		}
		ask := func(peer string) string {
			return leader.answer(t.Context(), peer, nodemsg.Question{Merge: &nodemsg.Release{Region: w.parent.ID}}).Error
		}
		var frozen atomic.Int32
		for _, it := range w.nodes {
			it.Splitter.Passed = func(context.Context, *actor.Land) (int64, error) {
				frozen.Add(1)
				return 0, errors.New("not now")
			}
		}
		if why := ask("M"); !strings.Contains(why, "not now") || frozen.Load() == 0 {
			t.Fatalf("the attempt ends with %q", why)
		}
		before := frozen.Load()
		for _, peer := range []string{"M", "N"} {
			if why := ask(peer); !strings.Contains(why, "it has just failed") || frozen.Load() != before {
				t.Errorf("%s asks again: %q, %d halves are to freeze", peer, why, frozen.Load()-before)
			}
		}
		<-time.After(time.Minute)
		leader.Splitter.Follow = func(context.Context, grid.ChunkPos) (transport.Link, nodemsg.Region, error) {
			return nil, nodemsg.Region{}, errors.New("before the halves freeze")
		}
		asked := 0
		for why := "before"; strings.Contains(why, "before"); asked++ {
			if why = ask("M"); asked > 100 {
				t.Fatal("a node may ask without end")
			}
		}
		if why := ask("M"); !strings.Contains(why, "a node may have 30 regions") || asked < 20 {
			t.Errorf("after %d times: %q", asked, why)
		}
		if why := ask("N"); !strings.Contains(why, "before the halves freeze") {
			t.Errorf("another node: %q", why)
		}
	})
}
