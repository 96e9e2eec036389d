package dht

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const testWorld = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// memory is a Storage that is lost when the process ends. sealed makes every access fail the test.
type memory struct {
	mu     sync.Mutex
	tables map[string]map[string][]byte
	sealed error
}

func newMemory() *memory { return &memory{tables: make(map[string]map[string][]byte)} }

func (m *memory) Get(table string, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.tables[table][string(key)]), m.sealed
}

func (m *memory) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key := range m.tables[table] {
		if strings.HasPrefix(key, string(prefix)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := visit([]byte(key), m.tables[table][key]); err != nil {
			return err
		}
	}
	return m.sealed
}

func (m *memory) Commit(writes []kv.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sealed != nil {
		return m.sealed
	}
	for _, w := range writes {
		if m.tables[w.Table] == nil {
			m.tables[w.Table] = make(map[string][]byte)
		}
		if w.Value == nil {
			delete(m.tables[w.Table], string(w.Key))
		} else {
			m.tables[w.Table][string(w.Key)] = bytes.Clone(w.Value)
		}
	}
	return nil
}

func (m *memory) copied() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemory()
	for name, table := range m.tables {
		c.tables[name] = maps.Clone(table)
	}
	return c
}

func (m *memory) size(table string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tables[table])
}

// node is a daemon's network part in a test.
type node struct {
	*DHT
	storage *memory
	metrics *prometheus.Registry
	stop    func()
}

// setup configures startNode; the zero value is valid.
type setup struct {
	storage   *memory
	listen    string // default: TCP on any port of the node's own loopback address
	bootstrap []string
	options   Options
}

// startNode starts a node that listens on 127.x.0.1, an address of its own as on real networks. Its Run is awaited
// when the test ends, or by stop.
func startNode(t testing.TB, x int, s setup) *node {
	t.Helper()
	if s.storage == nil {
		s.storage = newMemory()
	}
	if s.listen == "" {
		s.listen = fmt.Sprintf("/ip4/127.%d.0.1/tcp/0", x)
	}
	n := &node{storage: s.storage, metrics: prometheus.NewRegistry()}
	host, err := NewHost(HostOptions{
		Storage: s.storage, Listen: []string{s.listen}, Bootstrap: s.bootstrap, Registerer: n.metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
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

func awaitTables(t testing.TB, nodes []*node, size int) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, "a full routing table", func() bool { return n.host.tableSize() >= size })
	}
}

// eventually polls a condition that depends on real sockets.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
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

// saved returns a player record that the node has saved.
func (n *node) saved(name string, seq uint64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{
		Player: player.GuestID(name), Name: name, Guest: true, Seq: seq,
		Pose: motion.Pose{X: 1.5, Y: 64, Z: -3}, Gateway: n.host.PeerID(), SavedAt: 1_700_000_000_000,
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
