package region

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ground returns a terrain generator for a test node: chunks 64 blocks high, filled with one kind of block up to a
// level.
func ground(block chunk.Block) func(grid.ChunkPos) *chunk.Chunk {
	return func(pos grid.ChunkPos) *chunk.Chunk {
		blocks := make([]chunk.Block, 2*chunk.SectionBlocks)
		for i := range blocks[:5000+int(pos.X)] {
			blocks[i] = block
		}
		c, err := chunk.FromBlocks(blocks)
		if err != nil {
			panic(err)
		}
		return c
	}
}

// different starts a world of three nodes, of which C generates different terrain.
func different(t *testing.T) (n *network, a, b, c *node) {
	n = newNetwork(t)
	n.copies = 3
	n.adjust = func(peer string, o *Options) {
		o.Ground = ground(chunk.Stone)
		if peer == "C" {
			o.Ground = ground(chunk.Dirt)
		}
		o.Base = func(pos grid.ChunkPos) [32]byte { return o.Ground(pos).Hash() }
	}
	n.near("A", "B", "C")
	a = n.start("A", newDisk())
	return n, a, n.start("B", newDisk()), n.start("C", newDisk())
}

// A member that generates different terrain fetches the base of a chunk as soon as the log names it, and stores it.
// After all nodes that could generate the base are gone, the member still has it and serves it to others.
func TestForeignBaseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := different(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(5 * time.Second)
		want := ground(chunk.Stone)(here)
		kept, err := c.disk.Get(baseTable, hashOf(want))
		if err != nil || kept == nil {
			t.Fatalf("C did not keep it: %v", err)
		}
		if rest, _ := a.disk.Get(baseTable, hashOf(want)); rest != nil {
			t.Error("A keeps what it generates")
		}
		n.kill(b)
		d := n.start("D", newDisk()) // generates the base, but is asked for C's
		other := ground(chunk.Dirt)(here)
		got, err := c.BaseOf(t.Context(), here, want.Hash())
		if err != nil || got.Hash() != want.Hash() {
			t.Errorf("C gives %v", err)
		}
		if got, err := d.BaseOf(t.Context(), here, other.Hash()); err != nil || got.Hash() != other.Hash() {
			t.Errorf("D gets what only C generates: %v", err)
		}
		if _, err := d.BaseOf(t.Context(), here, [32]byte{9}); !errors.Is(err, integrity.ErrNoBase) {
			t.Errorf("a base that no node has: %v", err)
		}
	})
}

func hashOf(c *chunk.Chunk) []byte {
	hash := c.Hash()
	return hash[:]
}

// A member that was away when a chunk was pinned fetches its base when it opens the region. A base that is damaged on
// disk is fetched again. A forged base is rejected.
func TestForeignBaseLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := different(t)
		left := n.kill(c)
		g := a.follow(here)
		g.edit(stone(1))
		c = n.start("C", left)
		g.edit(stone(2))
		<-time.After(5 * time.Second)
		want := ground(chunk.Stone)(here)
		if kept, err := c.disk.Get(baseTable, hashOf(want)); err != nil || kept == nil {
			t.Fatalf("C did not keep it: %v", err)
		}
		c.disk.harm(baseTable, func(rows map[string][]byte, bad badRows) {
			for key := range rows {
				bad[baseTable+"/"+key] = true
			}
		})
		if got, err := c.BaseOf(t.Context(), here, want.Hash()); err != nil || got.Hash() != want.Hash() {
			t.Errorf("after damage: %v", err)
		}
		c.disk.harm(baseTable, func(rows map[string][]byte, bad badRows) {
			for key, row := range rows {
				rows[key] = bytes.Clone(row[:len(row)/2])
				delete(bad, baseTable+"/"+key)
			}
		})
		if got, err := c.BaseOf(t.Context(), here, want.Hash()); err != nil || got.Hash() != want.Hash() {
			t.Errorf("after a forgery: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.BaseOf(ctx, here, [32]byte{8}); err == nil {
			t.Error("got a base that no node has")
		}
	})
}

// Bases that no node has are requested again after a pause, each once however often it is queued, and do not hold up
// what is queued meanwhile.
func TestMissingBasesHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var mu sync.Mutex
		checked := make(map[grid.ChunkPos]int)
		n.adjust = func(_ string, o *Options) {
			o.Base = func(pos grid.ChunkPos) [32]byte {
				<-time.After(time.Second)
				mu.Lock()
				defer mu.Unlock()
				checked[pos]++
				return baseOf(pos)
			}
		}
		a := n.start("A", newDisk())
		count := func(pos grid.ChunkPos) int {
			mu.Lock()
			defer mu.Unlock()
			return checked[pos]
		}
		missing := make([]nodemsg.BaseOf, 100)
		for i := range missing {
			missing[i] = nodemsg.BaseOf{Chunk: grid.ChunkPos{X: int32(i), Z: 9}, Hash: [32]byte{9}}
		}
		for range 5 {
			a.bases.Pinned(missing)
		}
		<-time.After(199*time.Second + 500*time.Millisecond)
		for _, one := range missing {
			if got := count(one.Chunk); got != 1 {
				t.Fatalf("%v was checked %d times, want once", one.Chunk, got)
			}
		}
		<-time.After(30 * time.Second) // they are being requested again
		there := nodemsg.BaseOf{Chunk: grid.ChunkPos{X: 1, Z: 1}, Hash: baseOf(grid.ChunkPos{X: 1, Z: 1})}
		a.bases.Pinned([]nodemsg.BaseOf{there})
		<-time.After(5 * time.Second)
		if got := count(there.Chunk); got != 1 {
			t.Errorf("what was queued meanwhile was checked %d times, want once", got)
		}
		<-time.After(180 * time.Second)
		for _, one := range missing {
			if got := count(one.Chunk); got != 2 {
				t.Fatalf("%v was checked %d times, want twice", one.Chunk, got)
			}
		}
	})
}
