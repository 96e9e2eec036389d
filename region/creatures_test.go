package region

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// meadow is flat land.
func meadow(grid.ChunkPos) *chunk.Chunk {
	blocks := make([]chunk.Block, 64*grid.ChunkSize*grid.ChunkSize)
	for i := range 10 * grid.ChunkSize * grid.ChunkSize {
		blocks[i] = chunk.Stone
	}
	c, err := chunk.FromBlocks(blocks)
	if err != nil {
		panic(err)
	}
	return c
}

// herdsmen returns three nodes of a world of meadows.
func herdsmen(t *testing.T) (a, b, c *node) {
	n := newNetwork(t)
	n.copies = 3
	n.adjust = func(_ string, o *Options) { o.Ground = meadow }
	n.near("A", "B", "C")
	a, b, c = n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
	<-time.After(30 * time.Second) // all are members of the catalog
	return a, b, c
}

// watching keeps a gateway of the node subscribed to some chunks, whoever leads them, until the test ends.
func (n *node) watching(chunks ...grid.ChunkPos) {
	for _, pos := range chunks {
		go func() {
			for n.links.Err() == nil {
				link, _, err := n.Follow(n.links, pos)
				if err == nil && link.Send(nodemsg.ToRegion{Watch: []grid.ChunkPos{pos}}) == nil {
					for err == nil {
						var f nodemsg.FromRegion
						if f, err = link.Receive(n.links); f.Closed != "" {
							break
						}
					}
				}
				if link != nil {
					link.Close() //nolint:errcheck // a test's
				}
				select {
				case <-n.links.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
	}
}

// herd returns the creatures in the regions that these nodes lead, and how many are on their way.
func herd(t *testing.T, nodes ...*node) (ids []player.ID, waiting int) {
	t.Helper()
	for _, n := range nodes {
		for _, l := range n.regions.ledLands() {
			type found struct {
				ids     []player.ID
				waiting int
			}
			got, err := actor.Ask(t.Context(), l.Actor, l.Enqueue, func(tx actor.Tx) (f found) {
				tx.Contents().Creatures(func(c creature.Creature) { f.ids = append(f.ids, c.ID) })
				f.waiting = len(tx.Contents().Departures(1000))
				return f
			})
			if err != nil {
				t.Fatal(err)
			}
			ids, waiting = append(ids, got.ids...), waiting+got.waiting
		}
	}
	slices.SortFunc(ids, player.ID.Compare)
	return ids, waiting
}

// inChunk returns a creature in a chunk, that goes to the middle of another one.
func inChunk(pos, to grid.ChunkPos, n int) creature.Creature {
	x, z := func(p grid.ChunkPos) float64 { return float64(p.X)*32 + 16 }, func(p grid.ChunkPos) float64 { return float64(p.Z)*32 + 16 }
	return creature.Creature{
		Kind: creature.Sheep, Pose: motion.Pose{X: x(pos), Y: 10, Z: z(pos) + float64(n%10)},
		Goal: creature.Goal{Do: creature.GoTo, X: x(to), Z: z(to)},
	}
}

var (
	westOf = grid.ChunkPos{X: 15, Z: 1}
	eastOf = grid.ChunkPos{X: 16, Z: 1} // in the next founding cell
)

// Creatures walk over the border of two regions, while their leaders are killed: each arrives once.
func TestCreaturesCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := herdsmen(t)
		a.watching(westOf, eastOf)
		b.watching(westOf, eastOf)
		<-time.After(5 * time.Second)
		const many = 20
		var all []creature.Creature
		for i := range many {
			all = append(all, inChunk(westOf, eastOf, i))
		}
		if born, err := b.Creatures.Add(t.Context(), all); born != many || err != nil {
			t.Fatal(born, err)
		}
		before, _ := herd(t, a, b, c)
		<-time.After(20 * time.Second) // some are at the border
		west, err := a.Find(t.Context(), westOf)
		if err != nil {
			t.Fatal(err)
		}
		nodes := []*node{a, b, c}
		first := slices.IndexFunc(nodes, func(n *node) bool { return n.peer == west.Leader })
		d := a.net.kill(nodes[first])
		<-time.After(3 * time.Second)
		nodes[first] = a.net.start(nodes[first].peer, d)
		nodes[first].watching(westOf, eastOf)
		<-time.After(60 * time.Second)
		ids, waiting := herd(t, nodes...)
		if !slices.Equal(ids, before) || waiting != 0 {
			t.Fatalf("%d creatures, and %d on their way, want %d", len(ids), waiting, many)
		}
		var arrived int
		for _, n := range nodes {
			for _, l := range n.regions.ledLands() {
				if l.Cell().Contains(eastOf) {
					count, err := actor.Ask(context.Background(), l.Actor, l.Enqueue, func(tx actor.Tx) int { return tx.Contents().CountCreatures() })
					if err != nil {
						t.Fatal(err)
					}
					arrived += count
				}
			}
		}
		if arrived < many-2 {
			t.Errorf("%d have crossed the border, of %d", arrived, many)
		}
	})
}

// Creatures wander over the borders of four founding cells, whose regions are split and merged, and nodes are killed:
// none is lost, and none is twice.
func TestCreaturesSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := herdsmen(t)
		nodes := []*node{a, b, c}
		corner := []grid.ChunkPos{{X: 15, Z: 15}, {X: 16, Z: 15}, {X: 15, Z: 16}, {X: 16, Z: 16}}
		watch := func(n *node) { n.watching(corner...) }
		watch(a)
		watch(b)
		<-time.After(5 * time.Second)
		const each = 15
		for _, pos := range corner {
			var all []creature.Creature
			for i := range each {
				one := inChunk(pos, pos, i)
				one.Goal = creature.Goal{}
				all = append(all, one)
			}
			if born, err := c.Creatures.Add(t.Context(), all); born != each || err != nil {
				t.Fatal(born, err)
			}
		}
		before, _ := herd(t, nodes...)
		crossed := make(map[player.ID]map[grid.Cell]bool)
		random := rand.New(rand.NewPCG(1, 2))
		for range 40 {
			at := random.IntN(len(nodes))
			switch n := nodes[at]; random.IntN(4) {
			case 0, 1:
				d := n.net.kill(n)
				<-time.After(3 * time.Second)
				nodes[at] = n.net.start(n.peer, d)
				watch(nodes[at])
			case 2:
				n.Splitter.Split(t.Context(), grid.CellAt(corner[random.IntN(4)], grid.FoundingLabel)) //nolint:errcheck // it may be split
			default:
				n.Splitter.Merge(t.Context(), grid.CellAt(corner[random.IntN(4)], grid.FoundingLabel)) //nolint:errcheck // it may not be
			}
			<-time.After(15 * time.Second)
			for _, n := range nodes {
				for _, l := range n.regions.ledLands() {
					l.Enqueue(func(tx actor.Tx) {
						tx.Contents().Creatures(func(one creature.Creature) {
							if crossed[one.ID] == nil {
								crossed[one.ID] = make(map[grid.Cell]bool)
							}
							crossed[one.ID][grid.CellAt(one.Pose.Chunk(), grid.FoundingLabel)] = true
						})
					})
					synctest.Wait()
				}
			}
		}
		<-time.After(time.Minute)
		ids, waiting := herd(t, nodes...)
		for tries := 0; waiting > 0 && tries < 20; tries++ { // some have just left
			<-time.After(200 * time.Millisecond)
			ids, waiting = herd(t, nodes...)
		}
		if !slices.Equal(ids, before) {
			t.Errorf("%d creatures, and %d on their way, want %d", len(ids), waiting, len(before))
		}
		travelled := 0
		for _, cells := range crossed {
			if len(cells) > 1 {
				travelled++
			}
		}
		if travelled < len(before)/4 {
			t.Errorf("%d of %d creatures were in several founding cells", travelled, len(before))
		}
	})
}
