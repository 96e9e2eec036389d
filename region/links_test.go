package region

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A gateway that follows a region knows the regions next to it, and finds founded land nearby by asking their leaders,
// without the DHT.
func TestLinksOfANeighbour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, _, c := net.start("A", newDisk()), net.start("B", newDisk()), net.start("C", newDisk())
		net.near("B")
		next, far := grid.ChunkPos{X: here.X + 16, Z: here.Z}, grid.ChunkPos{X: here.X + 32, Z: here.Z}
		for _, pos := range []grid.ChunkPos{here, next, far} {
			a.follow(pos).state(pos)
		}
		<-time.After(time.Second) // they are introduced
		net.mu.Lock()
		clear(net.mu.regions) // the DHT has nothing
		net.mu.Unlock()
		c.follow(here).state(here)
		<-time.After(time.Second)
		if info, ok := c.Directory.Known(next); !ok || info.Leader != "B" {
			t.Errorf("the neighbour's route is %+v, %v", info, ok)
		}
		if links := c.Directory.Neighbours(grid.CellAt(here, grid.FoundingLabel)); len(links) != 1 || !links[0].Cell.Contains(next) {
			t.Errorf("links %+v", links)
		}
		if info, err := c.Locate(t.Context(), far); err != nil || info.Leader != "B" {
			t.Error(info, err)
		}
	})
}

// mendTime is how long after the last change of leaders, splits and merges all links are right.
const mendTime = 10 * time.Second

// Leaders know who leads the regions next to theirs, and those of the Hamming neighbours, within mendTime of a split, a
// move, a drain, deaths and a merge. Whoever then crosses a border, or asks what is there, needs one hop and no lookup.
func TestLinksAreMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.copies = 3
		nodes := make(map[string]*node)
		for _, peer := range []string{"A", "B", "C", "D", "E", "F", "Z"} { // Z is a gateway only
			nodes[peer] = net.start(peer, newDisk())
		}
		z := nodes["Z"]
		net.near("A", "C", "D", "E", "F") // the catalog
		corner := func(x, z int32) grid.ChunkPos { return grid.ChunkPos{X: x * cellSize, Z: z * cellSize} }
		place := func(pos grid.ChunkPos, nearest string) {
			net.mu.Lock()
			defer net.mu.Unlock()
			net.mu.nearTo[z.Directory.Key(grid.CellAt(pos, grid.FoundingLabel))] = strings.Split(nearest, "")
		}
		middle, next := corner(1, 1), corner(0, 1)
		middleCell := grid.CellAt(middle, grid.FoundingLabel)
		for i := range int32(9) {
			place(corner(i%3, i/3), "ABCDEFABCDEF"[i%6:i%6+6])
		}
		place(middle, "BCDEFA")
		place(next, "BDEFAC")
		watch := &linkWatch{net: net}
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stay := func(pos grid.ChunkPos) { // a player is there
			for ctx.Err() == nil {
				link, _, err := z.Follow(ctx, pos)
				for err == nil {
					var frame nodemsg.FromRegion
					if frame, err = link.Receive(ctx); frame.Closed != "" {
						break
					}
				}
				if link != nil {
					link.Close()
				}
				<-time.After(250 * time.Millisecond)
			}
		}
		for i := range int32(9) {
			wg.Go(func() { stay(corner(i%3, i/3)) })
		}
		wg.Go(func() { stay(grid.ChunkPos{X: middle.X + cellSize/2, Z: middle.Z}) })
		wg.Go(func() { stay(grid.ChunkPos{X: middle.X, Z: middle.Z + cellSize/2}) })
		wg.Go(func() { watch.run(ctx) })

		visitors := 0
		mended := func(after string, regions int) {
			t.Helper()
			leaders := watch.settled()
			if len(leaders) != regions {
				t.Errorf("after the %s: %d regions", after, len(leaders))
			}
			visitors++
			visitor := net.start(fmt.Sprint("V", visitors), newDisk())
			defer visitor.stop()
			g := visitor.follow(middle)
			defer g.Close()
			<-time.After(time.Second)
			net.mu.Lock()
			looked := net.mu.looked
			net.mu.Unlock()
			for at, leader := range leaders {
				area := at.cell.Area()
				if !area.Overlaps(around(g.Link.(routedLink).info.Cell)) {
					continue
				}
				if info, ok := visitor.Directory.Known(grid.ChunkPos{X: area.MinX, Z: area.MinZ}); !ok || info.Leader != leader || info.ID != at.id {
					t.Errorf("after the %s: a gateway's route to %v is %+v", after, at.cell, info)
				}
			}
			result := visitor.query(rollback.RangeQuery{Area: square(3)})
			if len(result.Regions) != regions || len(result.Missing) != 0 || result.Rounds > 2 {
				t.Errorf("after the %s: %d regions in %d rounds, missing %v", after, len(result.Regions), result.Rounds, result.Missing)
			}
			net.mu.Lock()
			defer net.mu.Unlock()
			if net.mu.looked != looked {
				t.Errorf("after the %s: %d lookups in the DHT", after, net.mu.looked-looked)
			}
		}
		mended("beginning", 9)
		if err := z.Splitter.Split(t.Context(), middleCell); err != nil {
			t.Fatal(err)
		}
		mended("split", 10)
		place(corner(2, 1), "BEDACF")
		<-time.After(2 * time.Minute)
		mended("move", 10)
		nodes["F"].Drain(t.Context())
		mended("drain", 10)
		net.setMute(true)    // questions to the dead get no answer and no error
		net.kill(nodes["B"]) // it leads regions next to each other
		mended("death", 10)
		<-time.After(3 * time.Minute) // others take B's place
		net.kill(nodes["A"])          // it leads the catalog
		mended("death of the catalog's leader", 10)
		if err := z.Splitter.Merge(t.Context(), middleCell); err != nil {
			t.Fatal(err)
		}
		mended("merge", 9)
		t.Logf("links were mended within %v", watch.longest)
		if watch.longest > mendTime {
			t.Errorf("%v after a change, %s", watch.longest, watch.worst)
		}
	})
}

// Two regions next to each other, without a common member but the dead leader of both, and without other neighbours who
// would tell: their new leaders find each other through the members.
func TestLinksOfADeadLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.copies = 3
		for _, peer := range []string{"A", "B", "C", "D", "E", "F"} {
			net.start(peer, newDisk())
		}
		net.near("A", "C", "D") // the catalog
		net.mu.Lock()
		a, b := net.mu.nodes["A"], net.mu.nodes["B"]
		next := grid.ChunkPos{X: here.X + cellSize, Z: here.Z}
		for pos, peers := range map[grid.ChunkPos]string{here: "BCD", next: "BEF"} {
			net.mu.nearTo[a.Directory.Key(grid.CellAt(pos, grid.FoundingLabel))] = strings.Split(peers, "")
		}
		net.mu.mute = true // questions to the dead get no answer and no error
		net.mu.Unlock()
		a.follow(here).state(here)
		a.follow(next).state(next)
		<-time.After(mendTime)
		net.kill(b)
		<-time.After(mendTime)
		watch := &linkWatch{net: net}
		if leaders := watch.led(); len(leaders) != 2 || watch.wrong(leaders) != "" {
			t.Errorf("%d regions are led: %s", len(leaders), watch.wrong(leaders))
		}
	})
}

// linkWatch looks at the links of all leaders again and again.
type linkWatch struct {
	net *network
	mu  sync.Mutex

	leaders map[led]string // who leads which regions
	changed time.Time      // since when
	longest time.Duration  // how long links were wrong after a change
	worst   string
}

// led is a region that is led.
type led struct {
	cell grid.Cell
	id   uint64
}

func (w *linkWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		leaders := w.led()
		wrong := w.wrong(leaders)
		still := maps.Equal(leaders, w.led()) // nothing has changed meanwhile
		w.mu.Lock()
		switch {
		case !still || !maps.Equal(leaders, w.leaders):
			w.leaders, w.changed = leaders, time.Now()
		case wrong != "" && time.Since(w.changed) > w.longest:
			w.longest, w.worst = time.Since(w.changed), wrong
		}
		w.mu.Unlock()
		<-time.After(100 * time.Millisecond)
	}
}

// settled waits until nothing has changed for twice mendTime.
func (w *linkWatch) settled() map[led]string {
	for {
		<-time.After(time.Second)
		w.mu.Lock()
		leaders, since := w.leaders, time.Since(w.changed)
		w.mu.Unlock()
		if since > 2*mendTime {
			return leaders
		}
	}
}

// led returns who leads which regions now.
func (w *linkWatch) led() map[led]string {
	leaders := make(map[led]string)
	w.net.mu.Lock()
	nodes := slices.Collect(maps.Values(w.net.mu.nodes))
	w.net.mu.Unlock()
	for _, n := range nodes {
		for _, l := range n.regions.lands() {
			info, err := l.Info(w.net.t.Context())
			if err == nil && info.Split == 0 && info.Leader == n.peer {
				leaders[led{l.Cell(), l.ID()}] = n.peer
			}
		}
	}
	return leaders
}

// wrong describes a link that is wrong, or returns "".
func (w *linkWatch) wrong(leaders map[led]string) string {
	for from, leader := range leaders {
		n, err := w.net.node(leader)
		if err != nil {
			continue
		}
		for to, there := range leaders {
			area := to.cell.Area()
			info, ok := n.Directory.Known(grid.ChunkPos{X: area.MinX, Z: area.MinZ})
			neighbour := area.Overlaps(around(from.cell)) || slices.ContainsFunc(from.cell.Hamming(), to.cell.Covers)
			if neighbour && (!ok || info.ID != to.id || info.Leader != there) {
				return fmt.Sprintf("%s, which leads %v, has not %s but %q as the leader of %v", leader, from.cell, there, info.Leader, to.cell)
			}
		}
	}
	return ""
}

// around returns the area of a cell and of the chunks next to it.
func around(cell grid.Cell) grid.Area {
	a := cell.Area()
	return grid.Area{MinX: a.MinX - 1, MinZ: a.MinZ - 1, MaxX: a.MaxX + 1, MaxZ: a.MaxZ + 1}
}
