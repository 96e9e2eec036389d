package region

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// farPeers and farRecords are the network of a node that is one roundTrip from all others.
type (
	farPeers struct {
		transport.Peers
		asked *atomic.Int64 // questions about land, and links
	}
	farRecords struct{ directory.Records }
)

func (f farPeers) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	<-time.After(roundTrip)
	if q, err := nodemsg.DecodeQuestion(question); err == nil && (q.Locate != nil && q.Locate.ID == 0 || q.Authority != nil) {
		f.asked.Add(1)
	}
	return f.Peers.Ask(ctx, peer, protocol, question)
}

func (f farPeers) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	<-time.After(roundTrip)
	f.asked.Add(1)
	return f.Peers.Open(ctx, peer, protocol)
}

func (f farRecords) Region(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	<-time.After(roundTrip)
	return f.Records.Region(ctx, cell)
}

// How long a node that knows no land takes to link with regions that twelve other nodes lead, 50 ms from it: the
// figures of docs/scale.md, of 1,024 regions with -v. It asks the catalog once for each, and nobody else.
func TestFindingFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side := int32(8)
		if testing.Verbose() {
			side = 32 // for the figures
		}
		nodes := rangeNet(t, 13, side)
		net := nodes[0].net
		var asked atomic.Int64
		net.adjust = func(_ string, o *Options) { o.Peers, o.Records = farPeers{o.Peers, &asked}, farRecords{o.Records} }
		<-time.After(time.Minute) // the links are exchanged, and the regions hibernate
		for _, order := range []struct {
			name string
			cell func(i int32) (x, z int32)
		}{
			{"row by row", func(i int32) (x, z int32) { return i % side, i / side }},
			{"all over", func(i int32) (x, z int32) { i = i * 389 % (side * side); return i % side, i / side }},
		} {
			z := net.start("Z", newDisk())
			net.mu.Lock()
			looked := net.mu.looked
			net.mu.Unlock()
			var took []time.Duration
			for i := range side * side {
				cx, cz := order.cell(i)
				began := time.Now()
				link, _, err := z.Follow(t.Context(), grid.ChunkPos{X: cx * cellSize, Z: cz * cellSize})
				if err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
				link.Close()
				<-time.After(100 * time.Millisecond) // the player goes on
			}
			net.mu.Lock()
			looked = net.mu.looked - looked
			net.mu.Unlock()
			all := asked.Swap(0)
			slices.Sort(took)
			t.Logf("%s: p50 %v, p99 %v, longest %v; %.2f questions and links, %.2f lookups in the DHT for each",
				order.name, took[len(took)/2], took[len(took)*99/100], took[len(took)-1], float64(all)/float64(len(took)), float64(looked)/float64(len(took)))
			if each := float64(all) / float64(len(took)); each > 2 || looked != 0 || took[len(took)/2] > 2*roundTrip {
				t.Errorf("%s: %.2f questions and links for each", order.name, each)
			}
			z.stop()
		}
	})
}
