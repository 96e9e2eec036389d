package region

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A gateway that follows a region knows the regions next to it, and finds founded land nearby by asking their leaders, without the DHT.
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

// Leaders know who leads the regions next to theirs within some seconds of a split, a move, a death and a merge there, though the DHT has
// nothing: crossing a border takes one hop.
func TestLinksAreMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.copies = 3
		var nodes []*node
		for _, peer := range []string{"A", "B", "C", "D", "E", "F", "G"} {
			nodes = append(nodes, net.start(peer, newDisk()))
		}
		a, g := nodes[0], nodes[6]
		next := grid.ChunkPos{X: here.X, Z: here.Z + 16}
		nextCell := grid.CellAt(next, grid.FoundingLabel)
		net.near("A", "B", "C", "D", "E", "F", "G")
		west := a.follow(here)
		net.near("D", "E", "F", "G", "A", "B", "C")
		follow := func() { // players stay there
			for _, pos := range []grid.ChunkPos{here, next, {X: next.X + 8, Z: next.Z}} {
				g.reach(pos).state(pos)
			}
		}
		follow()
		<-time.After(30 * time.Second)

		leader := func(info nodemsg.Region) *node {
			for _, n := range nodes {
				if l := n.regions.Loaded(info.ID); l != nil && l.Raft().Status().Self {
					return n
				}
			}
			return nil
		}
		mended := func(after string, regions int) {
			t.Helper()
			follow()
			<-time.After(5 * time.Second)
			net.mu.Lock()
			clear(net.mu.regions) // the DHT has nothing
			net.mu.Unlock()
			home := leader(west.Link.(routedLink).info)
			if home == nil {
				t.Fatalf("after the %s: the first region has no leader", after)
			}
			links := home.Directory.Neighbours(hereCell)
			if len(links) != regions {
				t.Errorf("after the %s: %d links: %+v", after, len(links), links)
			}
			for _, link := range links {
				if there := leader(link); there == nil || there.peer != link.Leader {
					t.Errorf("after the %s: the link to %v names %s, which does not lead it", after, link.Cell, link.Leader)
				}
			}
		}
		mended("beginning", 1)
		if err := g.Splitter.Split(t.Context(), nextCell); err != nil {
			t.Fatal(err)
		}
		mended("split", 2)
		info, err := g.Locate(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		moved := leader(info)
		moved.Drain(t.Context())
		mended("move", 2)
		if info, err = g.Locate(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		dead := leader(info)
		net.kill(dead)
		nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == dead })
		mended("death", 2)
		if err := g.Splitter.Merge(t.Context(), nextCell); err != nil {
			t.Fatal(err)
		}
		mended("merge", 1)
	})
}
