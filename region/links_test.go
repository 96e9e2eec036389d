package region

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
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
