package admission_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// Nodes join while more strangers than there is room for connect again and again.
func TestJoinDuringFlood(t *testing.T) {
	const strangers, room, wg = 280, 256, 4
	w := newWorld(t)
	founder := w.found()
	lib := founder.host.LibP2P()
	to := peer.AddrInfo{ID: lib.ID(), Addrs: lib.Addrs()}
	flood := make([]libhost.Host, strangers)
	for i := range flood {
		host, err := libp2p.New(libp2p.NoListenAddrs, libp2p.ResourceManager(&network.NullResourceManager{}))
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		flood[i] = host
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i := range wg {
		running.Go(func() {
			for ctx.Err() == nil {
				for _, host := range flood[i*strangers/wg : (i+1)*strangers/wg] {
					host.Connect(ctx, to) //nolint:errcheck // it may be refused
				}
			}
		})
	}
	nettest.Eventually(t, "there is no room", func() bool { return len(lib.Network().Peers()) >= room })
	for range 5 {
		begun := time.Now()
		n := w.join(founder, "Bob")
		nettest.Eventually(t, "the node is admitted", func() bool { return founder.Admitted(n.host.LibP2P().ID()) })
		t.Logf("joined after %v", time.Since(begun).Round(time.Millisecond))
	}
	if n := len(lib.Network().Peers()); n < room*9/10 {
		t.Errorf("the flood is over: %d nodes and strangers are connected", n)
	}
}
