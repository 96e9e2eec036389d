package region

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var (
	churnSeeds = flag.Int("churn.seeds", 1, "runs of TestSplitChurn")
	churnLog   = flag.Bool("churn.log", false, "show what the nodes log")
)

// digger is a player who edits chunks one after the other, and sends each edit again until it is answered.
type digger struct {
	net   *network
	id    player.ID
	rng   *rand.Rand
	done  map[grid.Pos]chunk.Block // what was acknowledged last
	last  nodemsg.Intent           // the newest edit, which may have been applied without an answer
	edits int
}

// anyone returns a node that runs, or nil.
func (b *digger) anyone() *node {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	for _, peer := range []string{"A", "B", "C", "D"}[b.rng.IntN(4):] {
		if it := b.net.mu.nodes[peer]; it != nil && !b.net.mu.apart[peer] {
			return it
		}
	}
	return nil
}

// build edits until ctx ends.
func (b *digger) build(ctx context.Context) {
	for seq := uint64(1); ctx.Err() == nil; seq++ {
		<-time.After(time.Duration(b.rng.IntN(200)) * time.Millisecond)
		pos := grid.ChunkPos{X: int32(b.rng.IntN(16)), Z: int32(b.rng.IntN(16))}
		e := nodemsg.Intent{Player: b.id, Seq: seq, Pos: at(pos, int32(b.id[0])), Block: chunk.Block(1 + b.rng.IntN(3))}
		b.last = e
		for ctx.Err() == nil && !b.try(ctx, pos, e) {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// try sends the edit over a new link, and reports whether it was acknowledged.
func (b *digger) try(ctx context.Context, pos grid.ChunkPos, e nodemsg.Intent) bool {
	it := b.anyone()
	if it == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	link, info, err := it.Follow(ctx, pos)
	if err != nil {
		return false
	}
	defer link.Close()
	if !info.Cell.Contains(pos) {
		b.net.t.Errorf("chunk %v is not in %v", pos, info.Cell)
	}
	if err := link.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{e}}); err != nil {
		return false
	}
	for {
		frame, err := link.Receive(ctx)
		if err != nil || frame.Closed != "" {
			return false
		}
		for _, r := range frame.Results {
			if r.Player == e.Player && r.Seq == e.Seq {
				if r.Refused == "" {
					b.done[e.Pos] = e.Block
					b.edits++
				}
				return r.Refused == ""
			}
		}
	}
}

// Regions are split again and again, down to single chunks, while players build, nodes are killed and started again, and the network is
// cut. Every acknowledged edit is in exactly one region, on all its members.
func TestSplitChurn(t *testing.T) {
	for seed := range *churnSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { splitChurn(t, rand.New(rand.NewPCG(uint64(seed), 1))) })
		})
	}
}

func splitChurn(t *testing.T, rng *rand.Rand) {
	n := newNetwork(t)
	n.copies = 3
	n.near("A", "B", "C", "D")
	if *churnLog {
		n.adjust = func(peer string, o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("at", peer)
		}
	}
	disks := make(map[string]*disk)
	for _, peer := range []string{"A", "B", "C", "D"} {
		disks[peer] = newDisk()
		n.start(peer, disks[peer])
	}
	<-time.After(30 * time.Second)
	ctx, stop := context.WithCancel(t.Context())
	var diggers []*digger
	ended := make(chan struct{})
	for i := range 4 {
		b := &digger{net: n, id: player.ID{byte(i + 1)}, rng: rand.New(rand.NewPCG(rng.Uint64(), 2)), done: make(map[grid.Pos]chunk.Block)}
		diggers = append(diggers, b)
		go func() {
			b.build(ctx)
			ended <- struct{}{}
		}()
	}
	splits, merges := 0, 0
	for range 20 {
		<-time.After(time.Duration(rng.IntN(3000)) * time.Millisecond)
		it := diggers[0].anyone()
		if it == nil {
			continue
		}
		pos := grid.ChunkPos{X: int32(rng.IntN(16)), Z: int32(rng.IntN(16))}
		if info, err := it.Locate(ctx, pos); err == nil {
			merge := info.Cell.Label.Len() > grid.FoundingLabel && rng.IntN(2) == 0
			asking, cancel := context.WithTimeout(ctx, 10*time.Second)
			go func() {
				defer cancel()
				if merge {
					if err := it.Splitter.Merge(asking, info.Cell.Parent()); err == nil {
						merges++
					} else {
						t.Log(err)
					}
				} else if it.Splitter.Split(asking, info.Cell) == nil {
					splits++
				}
			}()
		}
		<-time.After(time.Duration(rng.IntN(100)) * time.Millisecond)
		peer := []string{"A", "B", "C", "D"}[rng.IntN(4)]
		victim, err := n.node(peer)
		if err != nil {
			continue
		}
		switch rng.IntN(4) {
		case 0:
			disks[peer] = n.kill(victim)
			<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
			n.restart(peer, disks[peer])
		case 1:
			n.cut(peer, true)
			<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
			n.cut(peer, false)
		}
	}
	<-time.After(20 * time.Second)
	stop()
	for range diggers {
		<-ended
	}
	<-time.After(2 * time.Minute)
	edits := 0
	reader := diggers[0].anyone()
	regions := make(map[uint64]grid.Cell)
	for _, b := range diggers {
		edits += b.edits
		for pos, block := range b.done {
			g := reader.reach(pos.Chunk())
			info := g.Link.(routedLink).info
			regions[info.ID] = info.Cell
			if got := blockAt(g.state(pos.Chunk()), pos); got != block && (pos != b.last.Pos || got != b.last.Block) {
				t.Errorf("block %v of region %d, %v, is %d, acknowledged was %d", pos, info.ID, info.Cell, got, block)
			}
			g.Close()
		}
	}
	if splits == 0 || merges == 0 || edits < 100 {
		t.Errorf("%d splits, %d merges, %d edits", splits, merges, edits)
	}
	t.Logf("%d splits, %d merges, %d edits in %d regions", splits, merges, edits, len(regions))
}

// reach is follow for a node whose routes may be out of date, which costs some attempts.
func (n *node) reach(pos grid.ChunkPos) gateway {
	n.net.t.Helper()
	for range 20 {
		if link, _, err := n.Follow(n.net.t.Context(), pos); err == nil {
			link.Close()
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	return n.follow(pos)
}

// restart starts a node again. The leader of the catalog must run, as far as the test's DHT knows; it is another one by then.
func (n *network) restart(peer string, d *disk) {
	for {
		catalog, err := n.Catalog(context.Background())
		if err != nil || catalog.Leader == peer {
			break
		}
		if _, err := n.node(catalog.Leader); err == nil {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	n.start(peer, d)
}

func blockAt(s nodemsg.ChunkState, pos grid.Pos) chunk.Block {
	for _, e := range s.Edits {
		if e.At == chunk.At(pos) {
			return e.Block
		}
	}
	return chunk.Air
}
