package dht

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/player"
)

// The records after a player's first are sent to its holders, without a walk, and all nodes find them. If too many of
// the holders are gone, a walk finds others.
func TestRecordsGoToTheirHolders(t *testing.T) {
	nodes := startNetwork(t, freshCopies+3, setup{})
	author := nodes[0]
	nettest.Eventually(t, "nobody new to put records to", func() bool {
		author.mu.Lock()
		defer author.mu.Unlock()
		return author.kad.RoutingTable().Size() <= author.DHT.mu.spread+author.DHT.mu.spread/4
	})
	ctx := nettest.Context(t)
	seq := uint64(0)
	put := func() (walks float64) {
		t.Helper()
		before := author.putWalks(t)
		seq++
		if err := author.PutPlayer(ctx, author.saved("ann", seq)); err != nil {
			t.Fatal(err)
		}
		walks = author.putWalks(t) - before
		if p, err := nodes[len(nodes)-1].Player(ctx, player.GuestID("ann")); err != nil || p.Seq != seq {
			t.Errorf("after save %d: %+v, %v", seq, p, err)
		}
		return walks
	}
	if put() != 1 {
		t.Error("the first record was put without a walk")
	}
	for range 3 {
		if put() != 0 {
			t.Error("a walk for a record whose holders are known")
		}
	}
	nodes[1].stop() // two more remain than necessary: another takes its place
	if put() != 0 {
		t.Error("a walk because one holder is gone")
	}
	nodes[2].stop()
	nodes[3].stop()
	if put() != 1 {
		t.Error("too few holders, and no walk")
	}
}

// putWalks returns the number of this node's walks for players' records.
func (n *node) putWalks(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	if err := n.DHT.metrics.lookups.WithLabelValues(kindPutPlayer).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestHoldersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHolders(nil, newPlaces())
		if err != nil {
			t.Fatal(err)
		}
		h.add("/player/alone", nil, time.Now())
		h.add("/player/ann", []peer.ID{"a"}, time.Now())
		<-time.After(holdersFor + time.Millisecond)
		for _, key := range []string{"/player/alone", "/player/ann", "/player/nobody"} {
			if h.put(t.Context(), key, nil, time.Now()) { // otherwise it would ask without a sender, and panic
				t.Errorf("%s was put without a walk", key)
			}
		}
	})
}
