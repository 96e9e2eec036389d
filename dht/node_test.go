package dht

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const testWorld = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// node is a daemon's network part in a test.
type node struct {
	*DHT
	storage *nettest.Memory
	metrics *prometheus.Registry
	stop    func()
}

// setup configures startNode; the zero value is valid.
type setup struct {
	storage   *nettest.Memory
	listen    string // default: TCP on any port of the node's own loopback address
	bootstrap []string
	host      *transport.Host // default: one that has just been started
	options   Options
}

// startNode starts a node that listens on 127.x.0.1, an address of its own as on real networks. Its Run is awaited
// when the test ends, or by stop.
func startNode(t testing.TB, x int, s setup) *node {
	t.Helper()
	if s.storage == nil {
		s.storage = nettest.NewMemory()
	}
	if s.listen == "" {
		s.listen = fmt.Sprintf("/ip4/127.%d.0.1/tcp/0", x)
	}
	n := &node{storage: s.storage, metrics: prometheus.NewRegistry()}
	host := s.host
	var err error
	if host == nil {
		host, err = transport.NewHost(transport.Options{
			Storage: s.storage, Listen: []string{s.listen}, Bootstrap: s.bootstrap, Registerer: n.metrics,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Storage, o.Registerer = s.storage, n.metrics
	if o.World == "" {
		o.World = testWorld
	}
	if o.Placement == "" {
		o.Placement = grid.PlacementHash
	}
	if o.RedialEvery == 0 {
		o.RedialEvery = 50 * time.Millisecond
	}
	n.DHT, err = Join(host, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := n.DHT.Close(); err != nil {
			t.Error(err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// startNetwork starts n nodes that find each other through the first, and waits until each is connected to all.
func startNetwork(t testing.TB, n int, s setup) []*node {
	t.Helper()
	var nodes []*node
	for x := 1; x <= n; x++ {
		nodes = append(nodes, startNode(t, x, s))
		if x == 1 {
			s.bootstrap = nodes[0].host.Addrs()[:1]
		}
	}
	awaitTables(t, nodes, n-1)
	return nodes
}

// startHost starts a host that joins no world by itself.
func startHost(t *testing.T, x int) *transport.Host {
	t.Helper()
	h, err := transport.NewHost(transport.Options{
		Storage: nettest.NewMemory(), Listen: []string{fmt.Sprintf("/ip4/127.%d.0.1/tcp/0", x)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func awaitTables(t testing.TB, nodes []*node, size int) {
	t.Helper()
	for _, n := range nodes {
		nettest.Eventually(t, "a full routing table", func() bool { return n.kad.RoutingTable().Size() >= size })
	}
}

func cellOf(n int) grid.Cell {
	return grid.CellAt(grid.ChunkPos{X: int32(n) * 16, Z: int32(-n) * 16}, grid.FoundingLabel)
}

// led returns a region record of a cell that the node leads.
func (n *node) led(cell grid.Cell, epoch, term uint64) nodemsg.Region {
	return nodemsg.Region{
		ID: 7, Cell: cell, Epoch: epoch, Term: term, Leader: n.host.PeerID(),
		Members: []nodemsg.Member{{Peer: n.host.PeerID(), Game: "127.0.0.1:4002"}},
	}
}

// lately is when players were saved.
var lately = time.Now().UnixMilli()

// saved returns a player record that the node has saved.
func (n *node) saved(name string, seq uint64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{
		Player: player.GuestID(name), Name: name, Guest: true, Seq: seq,
		Pose: motion.Pose{X: 1.5, Y: 64, Z: -3}, Gateway: n.host.PeerID(), SavedAt: lately,
	}
}

func mustID(t testing.TB, text string) peer.ID {
	t.Helper()
	id, err := peer.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
