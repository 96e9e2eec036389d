package region

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Two nodes look up the same unknown land many times at once: exactly one region is founded.
func TestConcurrentLocatesFoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b := net.start("A", newDisk()), net.start("B", newDisk())
		net.near("B", "A")
		const n = 32
		found := make(chan nodemsg.Region, n)
		for i := range int32(n) {
			from := []*node{a, b}[i%2]
			go func() {
				info, err := from.Locate(context.Background(), grid.ChunkPos{X: i % 16, Z: i / 2})
				if err != nil {
					t.Error(err)
				}
				found <- info
			}()
		}
		first := <-found
		for range n - 1 {
			if other := <-found; other.ID != first.ID || other.Leader != "B" {
				t.Errorf("one got region %d on %s, another %d on %s", first.ID, first.Leader, other.ID, other.Leader)
			}
		}
		if all, err := a.regions.Catalog().Page(t.Context(), 0); err != nil || len(all) != 1 {
			t.Errorf("%d regions were founded, %v", len(all), err)
		}
	})
}

// Land that is not founded is not founded by being looked for, also while somebody else founds it.
func TestFindFoundsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b := net.start("A", newDisk()), net.start("B", newDisk())
		net.near("A", "B")
		pos := grid.ChunkPos{X: 4000, Z: -7}
		for _, n := range []*node{a, b} {
			if info, err := n.Find(t.Context(), pos); !errors.Is(err, ErrNotFounded) {
				t.Errorf("land that nobody has founded is found: %+v, %v", info, err)
			}
		}
		if all, err := a.regions.Catalog().Page(t.Context(), 0); err != nil || len(all) != 0 {
			t.Errorf("%d regions were founded, %v", len(all), err)
		}
		founded := make(chan nodemsg.Region, 1)
		go func() {
			info, err := a.Locate(context.Background(), pos)
			if err != nil {
				t.Error(err)
			}
			founded <- info
		}()
		_, err := a.Find(t.Context(), pos)
		if err != nil && !errors.Is(err, ErrNotFounded) {
			t.Error(err)
		}
		info := <-founded
		for _, n := range []*node{a, b} {
			if found, err := n.Find(t.Context(), pos); err != nil || found.ID != info.ID {
				t.Errorf("found region %d, %v, want %d", found.ID, err, info.ID)
			}
		}
	})
}

// A route to a node that the catalog does not list as a member is not followed. Once it was given up, the catalog is
// asked, though the DHT keeps returning it.
func TestFalseRouteIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b, c := net.start("A", newDisk()), net.start("B", newDisk()), net.start("C", newDisk())
		net.near("B")
		true1, err := a.Locate(t.Context(), here)
		if err != nil || true1.Leader != "B" {
			t.Fatal(true1, err)
		}
		for name, leader := range map[string]string{"no member": "A", "unreachable": "Z", "itself": "C"} {
			wrong := true1
			wrong.Leader, wrong.Members, wrong.Term = leader, []nodemsg.Member{member(leader)}, 9
			net.mu.Lock()
			net.mu.regions[wrong.Cell] = wrong
			net.mu.Unlock()
			c.Directory.Invalidate(c.Directory.CacheRoute(wrong))
			if got, err := c.Locate(t.Context(), here); err != nil || got.Leader != "B" {
				t.Errorf("%s: after the route was given up, it is %+v, %v", name, got, err)
			}
			c.Directory.CacheRoute(wrong)
			if got, ok := c.Directory.Known(here); !ok || got.Leader != leader {
				t.Fatal(got, ok)
			}
			if got, err := c.Locate(t.Context(), here); err != nil || got.Leader != "B" {
				t.Errorf("%s: while it is cached, it is %+v, %v", name, got, err)
			}
			c.Directory.CacheRoute(wrong)
			link, info, err := c.Follow(t.Context(), here)
			if err != nil || info.Leader != "B" || info.ID != true1.ID {
				t.Fatalf("%s: %+v is followed, %v", name, info, err)
			}
			if s := (gateway{link, t}).state(here); len(s.Edits) != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			if got, err := c.Locate(t.Context(), here); err != nil || got.Leader != "B" {
				t.Errorf("%s: the route is still %+v, %v", name, got, err)
			}
		}
		if all := b.Regions(t.Context()); len(all) != 1 {
			t.Errorf("B has %+v", all)
		}
	})
}

// Every lookup is counted once, by what answered. While the catalog answers, only its word is followed. Without it,
// land is found that it has listed before, or that nodes name, and nodes that lead land find that soon.
func TestSourcesOfLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.start("A", newDisk()), n.start("B", newDisk())
		n.near("B")
		n.place(grid.CatalogKey, "A")
		c, e := n.start("C", newDisk()), n.start("E", newDisk())
		locate := func(it *node, source string, limit time.Duration) {
			t.Helper()
			count := func() (all, this float64) {
				for _, s := range []string{"cache", "catalog", "founded", "remembered", "unconfirmed"} {
					all += it.metric("voxeld_region_lookups_total", s)
				}
				return all, it.metric("voxeld_region_lookups_total", source)
			}
			before, of := count()
			began := time.Now()
			if info, err := it.Locate(t.Context(), here); err != nil || info.Leader != "B" {
				t.Errorf("%s, %s: %+v, %v", it.peer, source, info, err)
			}
			if took := time.Since(began); took > limit {
				t.Errorf("%s, %s: took %v", it.peer, source, took)
			}
			if after, now := count(); after != before+1 || now != of+1 {
				t.Errorf("%s, %s: counted are %v lookups, %v of them from there", it.peer, source, after-before, now-of)
			}
		}
		const now, soon = 0, 300 * time.Millisecond
		locate(c, "founded", now)
		locate(c, "cache", now)
		<-time.After(time.Hour)
		locate(c, "catalog", now)
		link := c.follow(here)
		link.state(here)
		<-time.After(time.Hour)
		n.setMute(true) // questions to the dead get no answer and no error
		n.kill(a)
		locate(b, "remembered", soon) // it was listed when B began to lead it
		locate(c, "remembered", soon)
		locate(e, "unconfirmed", 2*time.Second)
		locate(e, "unconfirmed", soon)
		link.Close()
	})
}

// When the leader stops, its gateways are notified. They find it again when it is back, with all edits.
func TestLeaderRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b := net.start("A", newDisk()), net.start("B", newDisk())
		net.near("B")
		g := a.follow(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatal(r)
		}
		b.stop()
		for err := error(nil); err == nil; { // with a reason, if that arrives before the network ends
			_, err = g.Receive(t.Context())
		}
		if _, _, err := a.Follow(t.Context(), here); err == nil {
			t.Error("a dead leader is followed")
		}
		net.start("B", b.disk)
		again := a.follow(here)
		if s := again.state(here); len(s.Edits) != 1 {
			t.Errorf("the land is %+v", s)
		}
		if r := again.edit(stone(1), stone(2)); r[1].Refused+r[2].Refused != "" {
			t.Errorf("results %+v", r)
		}
	})
}

// Only the leader itself may announce a route, and only a newer one than is known.
func TestIntroductions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a := net.start("A", newDisk())
		info, err := a.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		lie := info
		lie.Leader, lie.Members, lie.Term = "X", []nodemsg.Member{member("X")}, info.Term+1
		introduce := func(peer string, what nodemsg.Region) string {
			question, err := nodemsg.EncodeQuestion(nodemsg.Question{Introduce: &what})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.AnswerQuestion(t.Context(), peer, question); err != nil {
				t.Fatal(err)
			}
			got, ok := a.Directory.Known(here)
			if !ok {
				t.Fatal("the route is gone")
			}
			return got.Leader
		}
		if leader := introduce("Y", lie); leader != "A" {
			t.Errorf("Y made %s the leader", leader)
		}
		old := lie
		old.Term = info.Term
		if leader := introduce("X", old); leader != "A" {
			t.Errorf("an old introduction made %s the leader", leader)
		}
		if leader := introduce("X", lie); leader != "X" {
			t.Errorf("after a new introduction %s leads", leader)
		}
		if got, err := a.Locate(t.Context(), here); err != nil || got.Leader != "A" {
			t.Errorf("located is %+v, %v", got, err)
		}
		if _, info, err := a.Follow(t.Context(), here); err != nil || info.Leader != "A" {
			t.Errorf("%+v is followed, %v", info, err)
		}
		if _, err := a.AnswerQuestion(t.Context(), "X", []byte("garbage")); err == nil {
			t.Error("garbage was answered")
		}
	})
}

// A restarted catalog has every cell, and founds further ones at once.
func TestCatalogRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a := net.start("A", newDisk())
		before := make(map[grid.ChunkPos]nodemsg.Region)
		for i := range int32(20) {
			pos := grid.ChunkPos{X: i * 16, Z: -i * 16}
			info, err := a.Locate(t.Context(), pos)
			if err != nil {
				t.Fatal(err)
			}
			before[pos] = info
		}
		left := a.disk.afterCrash()
		a.stop()
		release := left.block() // so that it does not lead yet
		a = net.start("A", left)
		early := make(chan error, 1)
		go func() { _, err := a.Locate(context.Background(), grid.ChunkPos{X: 5000}); early <- err }()
		synctest.Wait()
		release()
		if err := <-early; err != nil {
			t.Error("founding before it leads: ", err)
		}
		for pos, want := range before {
			got, err := a.regions.Catalog().Locate(t.Context(), pos)
			if err != nil || got.ID != want.ID || got.Leader != want.Leader {
				t.Errorf("chunk %v was in region %d, and is in %d, %v", pos, want.ID, got.ID, err)
			}
		}
	})
}

// While storage refuses writes, nothing is founded and known land is found. A caller whose request failed may retry.
func TestCatalogStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		known, err := a.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		a.disk.setRefuse(errors.New("no space left on device"))
		away := grid.ChunkPos{X: 1000}
		for range 2 { // the first caller detects the stall, the second gets the error at once
			if info, err := a.Locate(t.Context(), away); err == nil {
				t.Errorf("founded %+v", info)
			}
		}
		if got, err := a.regions.Catalog().Locate(t.Context(), here); err != nil || got.ID != known.ID {
			t.Errorf("known land is %+v, %v", got, err)
		}
		a.disk.setRefuse(nil)
		g := gateway{nil, t}
		for g.Link == nil {
			if g.Link, _, err = a.Follow(t.Context(), away); err != nil {
				<-time.After(time.Second) // as gateways do
			}
		}
		if r := g.state(away); len(r.Edits) != 0 {
			t.Error(r)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// When a node stops, all waiting callers get an answer at once.
func TestStopAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		g.state(here)
		release := a.disk.block()
		errs := make(chan error, 2)
		go func() { _, err := a.Locate(context.Background(), grid.ChunkPos{X: 900}); errs <- err }()
		go func() {
			_, err := a.regions.Catalog().Found(context.Background(), nodemsg.Found{
				Cell: grid.CellAt(grid.ChunkPos{X: 800}, grid.FoundingLabel), Members: []nodemsg.Member{a.Self},
			})
			errs <- err
		}()
		synctest.Wait()
		start := time.Now()
		go func() { <-time.After(time.Second); release() }()
		a.stop()
		for range 2 {
			if err := <-errs; err == nil {
				t.Error("answered after the end")
			}
		}
		if why := g.closed(); why == "" {
			t.Error("no reason is given")
		}
		if _, _, err := a.Follow(t.Context(), here); !errors.Is(err, background.ErrStopping) {
			t.Error(err)
		}
		if all := a.Regions(t.Context()); len(all) != 0 {
			t.Errorf("still loaded: %+v", all)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stopping took %v", took)
		}
	})
}

// The records that a node publishes after a restart are not older than those from before.
func TestRecordsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a := net.start("A", newDisk())
		for range 3 {
			a.follow(here).state(here)
			<-time.After(time.Second) // it is published
			left := a.disk.afterCrash()
			a.stop()
			a = net.start("A", left)
		}
		net.mu.Lock()
		record := net.mu.regions[grid.CellAt(here, grid.FoundingLabel)]
		clear(net.mu.regions) // the network has lost the records
		net.mu.Unlock()
		if record.Term < 3 {
			t.Errorf("the record is of term %d", record.Term)
		}
		<-time.After(6*time.Hour + time.Minute)
		net.mu.Lock()
		defer net.mu.Unlock()
		if again := net.mu.regions[record.Cell]; again.Term != record.Term || net.mu.outdated != 0 {
			t.Errorf("renewed with term %d after %d; %d were outdated", again.Term, record.Term, net.mu.outdated)
		}
	})
}
