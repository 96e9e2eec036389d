package region

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// disk is a Storage in memory. Whatever Commit returned for survives a crash.
type disk struct {
	mu     sync.Mutex
	tables map[string]map[string][]byte
	shared map[string]bool   // tables that are copied before they are changed: other disks have them too
	hold   chan struct{}     // if not nil, Commit waits until it is closed
	refuse error             // if not nil, Commit stores nothing and returns this
	spoilt func([]byte) bool // if not nil, Commit refuses writes to the land with such keys
	bad    badRows           // rows with wrong checksums
	slow   time.Duration     // how long View takes
	broken error             // what CheckStructure returns
	read   func(string)      // if not nil, called with the table before Get reads a row
}

// CheckStructure returns what the test says.
func (d *disk) CheckStructure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

func (d *disk) setBroken(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err
}

func newDisk() *disk {
	return &disk{tables: make(map[string]map[string][]byte), shared: make(map[string]bool)}
}

// own returns a table to change. It is called with the lock held.
func (d *disk) own(table string) map[string][]byte {
	if d.tables[table] == nil {
		d.tables[table] = make(map[string][]byte)
	}
	if d.shared[table] {
		d.tables[table] = maps.Clone(d.tables[table])
		delete(d.shared, table)
	}
	return d.tables[table]
}

// onRead has a function called before a row of the table is read.
func (d *disk) onRead(table string, before func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = func(of string) {
		if of == table {
			before()
		}
	}
}

func (d *disk) Get(table string, key []byte) ([]byte, error) {
	d.mu.Lock()
	read := d.read
	d.mu.Unlock()
	if read != nil {
		read(table)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.bad.check(table, string(key)); err != nil {
		return nil, err
	}
	return slices.Clone(d.tables[table][string(key)]), nil
}

func (d *disk) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	d.mu.Lock()
	rows, bad := d.rows(table, prefix), maps.Clone(d.bad)
	d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := bad.check(table, key); err != nil {
			return err
		}
		if err := visit([]byte(key), slices.Clone(rows[key])); err != nil {
			return err
		}
	}
	return nil
}

// rows returns the rows of a table whose keys have a prefix. It is called with the lock held.
func (d *disk) rows(table string, prefix []byte) map[string][]byte {
	rows := make(map[string][]byte)
	for key, value := range d.tables[table] {
		if strings.HasPrefix(key, string(prefix)) {
			rows[key] = value
		}
	}
	return rows
}

// View reads a snapshot: later commits are not visible.
func (d *disk) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) error {
	d.mu.Lock()
	slow := d.slow
	d.mu.Unlock()
	<-time.After(slow)
	now := d.afterCrash()
	return read(now.Get, now.Scan)
}

func (d *disk) Commit(writes []kv.Write) error {
	d.mu.Lock()
	hold := d.hold
	d.mu.Unlock()
	if hold != nil {
		<-hold
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return d.refuse
	}
	if d.spoilt != nil && slices.ContainsFunc(writes, func(w kv.Write) bool {
		return w.Table == world.LandTable && d.spoilt(w.Key)
	}) {
		return errSpoilt
	}
	for _, w := range writes {
		delete(d.bad, w.Table+"/"+string(w.Key))
		if w.Value == nil {
			delete(d.own(w.Table), string(w.Key))
			continue
		}
		d.own(w.Table)[string(w.Key)] = slices.Clone(w.Value)
	}
	return nil
}

func (d *disk) setSlow(slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = slow
}

// block makes every Commit wait until the returned function is called.
func (d *disk) block() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hold := make(chan struct{})
	d.hold = hold
	return func() {
		d.mu.Lock()
		d.hold = nil
		d.mu.Unlock()
		close(hold)
	}
}

var errSpoilt = errors.New("that part of the disk is bad")

// spoil makes Commit refuse writes to the land with such keys.
func (d *disk) spoil(spoilt func(key []byte) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spoilt = spoilt
}

func (d *disk) setRefuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = err
}

// afterCrash returns the disk as a node finds it that was killed just now.
func (d *disk) afterCrash() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := newDisk()
	left.bad = maps.Clone(d.bad)
	for name, rows := range d.tables {
		left.tables[name] = rows
		left.shared[name], d.shared[name] = true, true
	}
	return left
}

// network is the DHT of a test world and the connections between its nodes.
type network struct {
	t       testing.TB
	streams sync.WaitGroup // links being served
	copies  int            // number of members of a region; 0 means 1
	adjust  func(peer string, o *Options)
	old     string // a node that says that it understands neither signed edits nor roles that admins define
	// meddle may change a question to a node, or answer it instead of the node. It is set before the nodes start.
	meddle func(to, from string, q *nodemsg.Question) *nodemsg.Answer
	// operators are who runs each node; unknown if there is none.
	operators map[string]string

	mu struct {
		sync.Mutex
		nodes    map[string]*node
		regions  map[grid.Cell]nodemsg.Region
		catalog  nodemsg.Region
		nearest  []string            // to any key
		nearTo   map[string][]string // to some keys
		lost     string              // a node that is in no routing table any more
		outdated int                 // records refused because a newer one is there
		asked    int                 // questions between nodes
		looked   int                 // lookups of regions in the DHT
		dead     map[string]bool
		apart    map[string]bool // cut off from all others, and alive
		parted   [2]string       // cut off from each other only
		mute     bool            // cuts are silent: a question across a cut gets neither an answer nor an error
		pipes    []pipe
	}
}

func newNetwork(t testing.TB) *network {
	n := &network{t: t}
	n.mu.nodes = make(map[string]*node)
	n.mu.nearTo = make(map[string][]string)
	n.mu.dead = make(map[string]bool)
	n.mu.apart = make(map[string]bool)
	n.mu.regions = make(map[grid.Cell]nodemsg.Region)
	t.Cleanup(n.streams.Wait)
	return n
}

var (
	errUnreachable = errors.New("peer is unreachable")
	errNoRecord    = errors.New("no such record")
	errOutdated    = errors.New("a newer record is known")
)

func (n *network) Region(_ context.Context, cell grid.Cell) (nodemsg.Region, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.looked++
	r, ok := n.mu.regions[cell]
	if !ok {
		return r, errNoRecord
	}
	return r, nil
}

func (n *network) PutRegion(_ context.Context, r nodemsg.Region) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.regions[r.Cell].Term > r.Term {
		n.mu.outdated++
		return errOutdated
	}
	n.mu.regions[r.Cell] = r
	return nil
}

func (n *network) Catalog(context.Context) (nodemsg.Region, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.catalog.ID == 0 {
		return nodemsg.Region{}, errNoRecord
	}
	return n.mu.catalog, nil
}

func (n *network) PutCatalog(_ context.Context, r nodemsg.Region) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.catalog = r
	return nil
}

func (n *network) Nearest(_ context.Context, key string, _ int) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if peers, ok := n.mu.nearTo[key]; ok {
		return slices.Clone(peers), nil
	}
	return slices.Clone(n.mu.nearest), nil // callers may change it
}

func (n *network) NearestKnown(key string, count int, also ...string) []string {
	nearest, err := n.Nearest(context.Background(), key, count)
	if err != nil {
		panic(err) // cannot happen: it returns no error
	}
	n.mu.Lock()
	lost := n.mu.lost
	n.mu.Unlock()
	nearest = slices.DeleteFunc(nearest, func(peer string) bool { return peer == lost && !slices.Contains(also, peer) })
	return slices.Clone(nearest[:min(count, len(nearest))]) // callers cut it to what they need
}

// place sets the nodes nearest to a key. Those of other keys are set by near.
func (n *network) place(key string, peers ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.nearTo[key] = peers
}

func (n *network) near(peers ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.nearest = peers
}

func (n *network) node(peer string) (*node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.asked++
	if it := n.mu.nodes[peer]; it != nil {
		return it, nil
	}
	return nil, errUnreachable
}

func (n *network) Operator(peer string) string { return n.operators[peer] }

// pipe is a stream between two nodes.
type pipe struct {
	from, to string
	end      net.Conn
}

// kill ends a node without warning: it sends nothing any more. Its disk keeps what is on it.
func (n *network) kill(it *node) *disk {
	left := it.disk.afterCrash()
	n.mu.Lock()
	n.mu.dead[it.peer] = true
	delete(n.mu.nodes, it.peer)
	for _, p := range n.mu.pipes {
		if p.from == it.peer || p.to == it.peer {
			p.end.Close()
		}
	}
	n.mu.Unlock()
	it.stop()
	return left
}

// cut separates a node from all others, or connects it again.
func (n *network) cut(peer string, off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.apart[peer] = off
	for _, p := range n.mu.pipes {
		if p.from == peer || p.to == peer {
			p.end.Close()
		}
	}
}

// part cuts two nodes off from each other.
func (n *network) part(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.parted = [2]string{a, b}
	for _, p := range n.mu.pipes {
		if p.from == a && p.to == b || p.from == b && p.to == a {
			p.end.Close()
		}
	}
}

// wires is the network as seen from one node.
type wires struct {
	*network
	self string
}

func (w wires) node(peer string) (*node, error) {
	w.mu.Lock()
	dead := w.mu.dead[w.self] || w.mu.apart[w.self] != w.mu.apart[peer] || w.mu.parted == [2]string{w.self, peer} || w.mu.parted == [2]string{peer, w.self}
	w.mu.Unlock()
	if dead {
		return nil, errUnreachable
	}
	return w.network.node(peer)
}

func (w wires) Ask(ctx context.Context, peer, _ string, question []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	it, err := w.node(peer)
	if err != nil {
		return nil, w.hang(ctx, err)
	}
	if w.meddle != nil {
		q, err := nodemsg.DecodeQuestion(question)
		if err != nil {
			return nil, err
		}
		if answer := w.meddle(peer, w.self, &q); answer != nil {
			return nodemsg.EncodeAnswer(*answer)
		}
		if question, err = nodemsg.EncodeQuestion(q); err != nil {
			return nil, err
		}
	}
	raw, err := it.AnswerQuestion(ctx, w.self, question)
	w.mu.Lock()
	old := w.old
	w.mu.Unlock()
	if peer != old || err != nil {
		return raw, err
	}
	answer, err := nodemsg.DecodeAnswer(raw)
	if err != nil {
		return nil, err
	}
	answer.Version = min(answer.Version, nodemsg.Version-1)
	return nodemsg.EncodeAnswer(answer)
}

func (w wires) Connected() []string {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	var all []string
	for peer := range w.mu.nodes {
		if peer != w.self && (w.mu.mute || w.mu.apart[w.self] == w.mu.apart[peer]) {
			all = append(all, peer)
		}
	}
	return all
}

func (w wires) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	it, err := w.node(peer)
	if err != nil {
		return nil, w.hang(ctx, err)
	}
	return it.serveOn(protocol, w.self), nil
}

// node is a daemon without sockets.
type node struct {
	*Host
	net   *network
	peer  string
	disk  *disk
	links context.Context //nolint:containedctx // of the links that it serves, like the network's own
	stop  func()          // stops regions before replicas, as the daemon does
}

// start starts a node on the disk. The first node creates the world.
func (n *network) start(peer string, d *disk) *node {
	n.t.Helper()
	it, err := n.startOn(peer, d)
	if err != nil {
		n.t.Fatal(err)
	}
	it.disk = d
	return it
}

// startOn starts a node on any storage. The error is NewHost's.
func (n *network) startOn(peer string, d integrity.Storage) (*node, error) {
	n.t.Helper()
	ctx, endReplicas := context.WithCancel(context.Background())
	carrier := transport.NewCarrier(wires{n, peer}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	replicas, err := replica.NewHost(replica.Options{Storage: d, Self: peer, Send: carrier.Send, SendSnapshot: carrier.SendSnapshot})
	if err != nil {
		n.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { carrier.Run(ctx) }) //nolint:errcheck // always nil
	wg.Go(func() {
		if err := replicas.Run(ctx); err != nil {
			n.t.Log("replicas:", err)
		}
	})
	if catalog, err := n.Catalog(ctx); err != nil {
		if err := FoundCatalog(ctx, replicas, peer); err != nil {
			n.t.Fatal(err)
		}
	} else if catalog.Leader != peer {
		if _, err := n.node(catalog.Leader); err != nil {
			n.t.Fatal("start the node of the catalog first")
		}
	}
	options := Options{
		Self: member(peer), Height: 64, Placement: grid.PlacementHash, Copies: max(1, n.copies), CatalogCopies: max(1, n.copies), Grace: time.Minute, Base: baseOf,
		Storage: d, Replicas: replicas, Records: n, Peers: wires{n, peer}, Operator: operator(peer),
		Logger: slog.New(reached), Registerer: prometheus.NewRegistry(),
	}
	if n.adjust != nil {
		n.adjust(peer, &options)
	}
	h, err := NewHost(ctx, options)
	if err != nil {
		endReplicas()
		wg.Wait()
		return nil, err
	}
	runs, endRegions := context.WithCancel(context.Background())
	links, endLinks := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := h.Run(runs); err != nil {
			n.t.Error(err)
		}
	}()
	it := &node{Host: h, net: n, peer: peer, links: links}
	it.stop = sync.OnceFunc(func() {
		endRegions()
		<-ended
		n.mu.Lock()
		delete(n.mu.nodes, peer)
		n.mu.Unlock()
		endReplicas()
		wg.Wait()
		endLinks()
	})
	n.t.Cleanup(it.stop)
	n.mu.Lock()
	n.mu.nodes[peer] = it
	delete(n.mu.dead, peer)
	if n.mu.nearest == nil {
		n.mu.nearest = []string{peer}
	}
	n.mu.Unlock()
	synctest.Wait() // its records are published
	return it, nil
}

// operator signs with a key that is a node's own. All nodes are issuers.
func operator(peer string) policysync.Operator {
	seed := sha256.Sum256([]byte(peer))
	key := ed25519.NewKeyFromSeed(seed[:])
	return policysync.Operator{
		Key: key.Public().(ed25519.PublicKey), Sign: func(text []byte) ([]byte, error) { return ed25519.Sign(key, text), nil }, Charter: func() uint64 { return 0 },
	}
}

func member(peer string) nodemsg.Member { return nodemsg.Member{Peer: peer, Game: "127.0.0.1:4002"} }

func baseOf(pos grid.ChunkPos) [32]byte { return [32]byte{byte(pos.X), byte(pos.Z), 1} }

// serve opens a link to the node and returns the caller's end of the stream.
func (n *node) serve(peer string) net.Conn { return n.serveOn(transport.LinkProtocol, peer) }

// greeted opens a stream to the region here, from a peer, and sends the hello on it.
func (n *node) greeted(peer string) net.Conn {
	t := n.net.t
	t.Helper()
	_, info, err := n.Follow(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	stream := n.serve(peer)
	write(t, stream, nodemsg.Hello{Region: info.ID, Cell: info.Cell})
	return stream
}

func (n *node) serveOn(protocol, peer string) net.Conn {
	near, far := net.Pipe()
	n.net.mu.Lock()
	n.net.mu.pipes = append(n.net.mu.pipes, pipe{peer, n.peer, far})
	n.net.mu.Unlock()
	n.net.streams.Go(func() {
		switch protocol {
		case transport.LinkProtocol:
			n.ServeLink(n.links, peer, far)
		case transport.RaftProtocol:
			n.ServeRaft(n.links, peer, far)
		case transport.SnapshotProtocol:
			n.ServeSnapshot(n.links, peer, far)
		case transport.PieceProtocol:
			n.ServePiece(n.links, peer, far)
		case transport.ExportProtocol:
			n.Exporter.Serve(n.links, peer, far)
		}
		far.Close()
	})
	return near
}
