package dht

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	kb "github.com/libp2p/go-libp2p-kbucket"
	librecord "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/test"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestRecordsTravel(t *testing.T) {
	nodes := startNetwork(t, 5, setup{options: Options{Placement: grid.PlacementWalkad}})
	ctx := nettest.Context(t)
	first, last := nodes[0], nodes[len(nodes)-1]
	cell := cellOf(3)
	if _, err := last.Region(ctx, cell); !errors.Is(err, ErrNotFound) {
		t.Errorf("a region that was never founded: %v", err)
	}
	if err := first.PutRegion(ctx, first.led(cell, 1, 1)); err != nil {
		t.Fatal(err)
	}
	catalog := first.led(grid.Cell{}, 1, 1)
	catalog.ID = 1
	if err := first.PutCatalog(ctx, catalog); err != nil {
		t.Fatal(err)
	}
	if err := first.PutPlayer(ctx, first.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if r, err := n.Region(ctx, cell); err != nil || r.Leader != first.host.PeerID() || r.Cell != cell {
			t.Errorf("region: %+v, %v", r, err)
		}
		if r, err := n.Catalog(ctx); err != nil || r.ID != 1 {
			t.Errorf("catalog: %+v, %v", r, err)
		}
		if p, err := n.Player(ctx, player.GuestID("ann")); err != nil || p != first.saved("ann", 1) {
			t.Errorf("player: %+v, %v", p, err)
		}
	}
	if _, err := last.Player(ctx, player.GuestID("bob")); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown player: %v", err)
	}

	// After a change of leadership the new leader may publish where the region is.
	if err := last.PutRegion(ctx, last.led(cell, 1, 2)); err != nil {
		t.Fatal(err)
	}
	if r, err := nodes[2].Region(ctx, cell); err != nil || r.Leader != last.host.PeerID() {
		t.Errorf("after the leader changed: %+v, %v", r, err)
	}
	if err := first.PutRegion(ctx, first.led(cell, 1, 1)); !errors.Is(err, ErrOutdated) {
		t.Errorf("the old leader put its record again: %v", err)
	}
	// Republishing the same record does not conflict with itself.
	if err := last.PutRegion(ctx, last.led(cell, 1, 2)); err != nil {
		t.Errorf("republished: %v", err)
	}
	// A node cannot sign for another.
	if err := first.PutRegion(ctx, last.led(cell, 9, 9)); err == nil {
		t.Error("a node signed what another one leads")
	}
	for metric, least := range map[string]float64{
		"voxeld_dht_lookups_total": 6, "voxeld_dht_lookup_contacted_peers": 6, "voxeld_dht_lookup_seconds": 6,
		"voxeld_dht_table_peers": 4, "voxeld_peers_connected": 4,
	} {
		if got := first.measured(t, metric); got < least {
			t.Errorf("%s is %v, want at least %v", metric, got, least)
		}
	}
	if got := first.measured(t, "voxeld_dht_lookup_failures_total"); got != 1 { // the outdated record
		t.Errorf("%v failures", got)
	}
}

// measured returns the sum of a metric over its labels; for a histogram, the number of observations.
func (n *node) measured(t *testing.T, name string) (sum float64) {
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestAlone(t *testing.T) {
	n := startNode(t, 1, setup{bootstrap: []string{"/ip4/127.99.0.1/tcp/9"}}) // no node listens there
	start := time.Now()
	ctx := nettest.Context(t)
	if err := n.PutRegion(ctx, n.led(cellOf(1), 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := n.PutPlayer(ctx, n.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	if r, err := n.Region(ctx, cellOf(1)); err != nil || r.ID != 7 {
		t.Errorf("region: %+v, %v", r, err)
	}
	if p, err := n.Player(ctx, player.GuestID("ann")); err != nil || p.Seq != 1 {
		t.Errorf("player: %+v, %v", p, err)
	}
	if near, err := n.Nearest(ctx, grid.CatalogKey, 3); err != nil || !slices.Equal(near, []string{n.host.PeerID()}) {
		t.Errorf("nearest: %v, %v", near, err)
	}
	if _, err := n.Region(ctx, cellOf(2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("no region: %v", err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("a node alone waited %v", took)
	}
}

func TestNearestIsRight(t *testing.T) {
	nodes := startNetwork(t, 8, setup{})
	ctx := nettest.Context(t)
	var all []peer.ID
	for _, n := range nodes {
		all = append(all, mustID(t, n.host.PeerID()))
	}
	for i := range 9 {
		key := grid.PlacementWalkad.Key(cellOf(i))
		want := slices.Clone(all)
		place := kb.ConvertKey(key)
		slices.SortFunc(want, func(a, b peer.ID) int { // kbucket's own order, by brute force
			if kb.Closer(a, b, key) {
				return -1
			}
			return 1
		})
		for _, n := range nodes { // the nearest itself, too
			got, err := n.Nearest(ctx, key, 3)
			if err != nil {
				t.Fatal(err)
			}
			for j := range got {
				if got[j] != want[j].String() {
					t.Fatalf("nearest to %x: %v, want %v", place[:4], got, want[:3])
				}
			}
		}
	}
	stranger, err := peer.Decode("12D3KooWGouFBL8SQfJmqWHvhU2YYBWN2wGndzSJ7kWp7iswtjH8")
	if err != nil {
		t.Fatal(err)
	}
	known := nodes[0].NearestKnown(grid.CatalogKey, 20)
	also := nodes[0].NearestKnown(grid.CatalogKey, 20, stranger.String(), nodes[0].host.PeerID(), "nobody")
	if len(also) != len(known)+1 || !slices.Contains(also, stranger.String()) {
		t.Errorf("with a stranger: %v, without %v", also, known)
	}
}

// forgingNode joins the DHT of the test world without any rules.
type forgingNode struct {
	*kaddht.IpfsDHT
	host *transport.Host
}

type anything struct{}

func (anything) Validate(string, []byte) error        { return nil }
func (anything) Select(string, [][]byte) (int, error) { return 0, nil }

func startForgingNode(t *testing.T, x int, meet string) forgingNode {
	h := startHost(t, x)
	kad, err := kaddht.New(h.LibP2P(), kaddht.ProtocolPrefix(protocol.ID("/voxeld/"+testWorld[:16])), kaddht.Mode(kaddht.ModeServer),
		kaddht.Validator(librecord.NamespacedValidator{"chunk": anything{}, "player": anything{}, "pk": anything{}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kad.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := h.Connect(nettest.Context(t), meet); err != nil {
		t.Fatal(err)
	}
	return forgingNode{kad, h}
}

func TestForgedRecordsAreRefused(t *testing.T) {
	nodes := startNetwork(t, 3, setup{})
	evil := startForgingNode(t, 66, nodes[0].host.Addrs()[0])
	nettest.Eventually(t, "the liar to be believed a peer", func() bool {
		return evil.RoutingTable().Size() == 3 && nodes[2].kad.RoutingTable().Find(evil.host.LibP2P().ID()) != ""
	})
	ctx := nettest.Context(t)
	honest, cell := nodes[0], cellOf(1)
	key := grid.PlacementHash.Key(cell)
	if err := honest.PutRegion(ctx, honest.led(cell, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := honest.PutPlayer(ctx, honest.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	before := nodes[1].storage.Size(tableRecords)
	seal := func(key string, r nodemsg.Region) []byte {
		payload, err := nodemsg.EncodeRegion(r)
		if err != nil {
			t.Fatal(err)
		}
		value, err := record.Seal(evil.host.LibP2P().Peerstore().PrivKey(evil.host.LibP2P().ID()), testWorld, key, payload)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	other := grid.PlacementHash.Key(cellOf(2))
	for forged, value := range map[string][]byte{
		key:                         seal(key, honest.led(cell, 9, 9)),              // in the name of the leader
		other:                       seal(other, honest.led(cellOf(2), 1, 1)),       // the same, nothing there before
		"/chunk/0,0/0000/12345":     []byte("rubbish"),                              // no record
		player.GuestID("ann").Key(): make([]byte, 1<<20),                            // too long
		"/pk/" + evil.host.PeerID(): seal("/pk/x", honest.led(cell, 1, 1)),          // an unknown namespace
		"/chunk/catalog":            seal("/chunk/catalog", honest.led(cell, 1, 1)), // not the catalog
	} {
		if err := evil.PutValue(ctx, forged, value); err != nil { // stored by the liar, refused by the others
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if got := n.storage.Size(tableRecords); got != before {
			t.Errorf("%d records stored, were %d", got, before)
		}
		if r, err := n.Region(ctx, cell); err != nil || r.Epoch != 1 {
			t.Errorf("region: %+v, %v", r, err)
		}
		if _, err := n.Region(ctx, cellOf(2)); !errors.Is(err, ErrNotFound) { // although the liar answers with one
			t.Errorf("forged region: %v", err)
		}
		if p, err := n.Player(ctx, player.GuestID("ann")); err != nil || p.Seq != 1 {
			t.Errorf("player: %+v, %v", p, err)
		}
		if _, err := n.Catalog(ctx); !errors.Is(err, ErrNotFound) {
			t.Errorf("forged catalog: %v", err)
		}
	}
}

func TestTwoWorldsDoNotMix(t *testing.T) {
	here := startNode(t, 1, setup{})
	there := startNode(t, 2, setup{
		bootstrap: here.host.Addrs()[:1],
		options:   Options{World: strings.Repeat("ab", 32)},
	})
	nettest.Eventually(t, "a connection", func() bool { return there.connected(here.lib.ID()) })
	third := startNode(t, 3, setup{bootstrap: here.host.Addrs()[:1]})
	awaitTables(t, []*node{here, third}, 1)
	ctx := nettest.Context(t)
	if err := there.PutRegion(ctx, there.led(cellOf(1), 1, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Region(ctx, cellOf(1)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a region of another world: %v", err)
	}
	if size := there.kad.RoutingTable().Size(); size != 0 {
		t.Errorf("%d peers of another world in the table", size)
	}
	if near, err := here.Nearest(ctx, "x", 5); err != nil || slices.Contains(near, there.host.PeerID()) {
		t.Errorf("nearest: %v, %v", near, err)
	}
}

func TestIslandsFindEachOther(t *testing.T) {
	storage := nettest.NewMemory()
	meeting := startNode(t, 1, setup{storage: storage})
	addr := meeting.host.Addrs()[0]
	s := setup{bootstrap: []string{addr}}
	nodes := []*node{startNode(t, 2, s), startNode(t, 3, s), startNode(t, 4, s)}
	awaitTables(t, append(nodes, meeting), 3)

	// The meeting place goes away; the others stay together, with tables that are not empty.
	meeting.stop()
	nettest.Eventually(t, "the loss to be noticed", func() bool {
		for _, n := range nodes {
			if n.connected(meeting.lib.ID()) || n.kad.RoutingTable().Size() < 2 {
				return false
			}
		}
		return true
	})
	ctx := nettest.Context(t)
	for _, n := range nodes { // a failed query drops it from the tables
		if _, err := n.Nearest(ctx, "x", 4); err != nil {
			t.Fatal(err)
		}
	}

	// It returns without known peers: the island must find it.
	storage.Clear("peers")
	listen, _, _ := strings.Cut(addr, "/p2p/")
	meeting = startNode(t, 1, setup{storage: storage, listen: listen})
	awaitTables(t, append(nodes, meeting), 3)

	// A new node that connects to it finds the whole island.
	newcomer := startNode(t, 5, s)
	awaitTables(t, append(nodes, meeting, newcomer), 4)
}

func TestRestartKeepsEverything(t *testing.T) {
	storages := []*nettest.Memory{nettest.NewMemory(), nettest.NewMemory()}
	a := startNode(t, 1, setup{storage: storages[0]})
	b := startNode(t, 2, setup{storage: storages[1], bootstrap: a.host.Addrs()[:1]})
	awaitTables(t, []*node{a, b}, 1)
	ctx := nettest.Context(t)
	if err := a.PutRegion(ctx, a.led(cellOf(1), 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := a.PutPlayer(ctx, a.saved("ann", 5)); err != nil {
		t.Fatal(err)
	}
	idA, idB := a.host.PeerID(), b.host.PeerID()
	listenA, _, _ := strings.Cut(a.host.Addrs()[0], "/p2p/")
	listenB, _, _ := strings.Cut(b.host.Addrs()[0], "/p2p/")
	a.stop()
	b.stop()

	// The nodes no longer have a bootstrap address.
	a = startNode(t, 1, setup{storage: storages[0], listen: listenA})
	b = startNode(t, 2, setup{storage: storages[1], listen: listenB})
	if a.host.PeerID() != idA || b.host.PeerID() != idB {
		t.Error("a node came back as another one")
	}
	awaitTables(t, []*node{a, b}, 1)
	for _, n := range []*node{a, b} {
		if r, err := n.Region(ctx, cellOf(1)); err != nil || r.Leader != idA {
			t.Errorf("region: %+v, %v", r, err)
		}
		if p, err := n.Player(ctx, player.GuestID("ann")); err != nil || p.Seq != 5 {
			t.Errorf("player: %+v, %v", p, err)
		}
	}
}

// Nodes that are killed soon after they have met find each other again without a bootstrap address.
func TestKilledNodesFindEachOther(t *testing.T) {
	storages := []*nettest.Memory{nettest.NewMemory(), nettest.NewMemory()}
	a := startNode(t, 1, setup{storage: storages[0]})
	b := startNode(t, 2, setup{storage: storages[1], bootstrap: a.host.Addrs()[:1]})
	awaitTables(t, []*node{a, b}, 1)
	listenA, _, _ := strings.Cut(a.host.Addrs()[0], "/p2p/")
	listenB, _, _ := strings.Cut(b.host.Addrs()[0], "/p2p/")
	met := time.Now()
	nettest.Eventually(t, "both are saved", func() bool { return storages[0].Size("peers") == 1 && storages[1].Size("peers") == 1 })
	if took := time.Since(met); took > 3*time.Second {
		t.Errorf("they were saved after %v only", took)
	}
	copies := []*nettest.Memory{storages[0].Copied(), storages[1].Copied()} // the storage of a killed node
	a.stop()
	b.stop()
	a = startNode(t, 1, setup{storage: copies[0], listen: listenA})
	b = startNode(t, 2, setup{storage: copies[1], listen: listenB})
	awaitTables(t, []*node{a, b}, 1)
}

// A node that starts again does not take what it has for the newest before it has reached another node, unless none
// appears.
func TestFirstLookupAfterAStart(t *testing.T) {
	t.Parallel()
	storage := nettest.NewMemory()
	a := startNode(t, 74, setup{storage: storage})
	b := startNode(t, 75, setup{bootstrap: a.host.Addrs()[:1]})
	awaitTables(t, []*node{a, b}, 1)
	nettest.Eventually(t, "b is saved", func() bool { return storage.Size("peers") == 1 })
	ctx := nettest.Context(t)
	if err := a.PutPlayer(ctx, a.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	a.stop()
	b.stop()
	a = startNode(t, 74, setup{storage: storage})
	if p, err := a.Player(ctx, player.GuestID("ann")); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("before: %+v, %v", p, err)
	}
	a.joined = a.joined.Add(-startTime)
	if _, err := a.Player(ctx, player.GuestID("bob")); !errors.Is(err, ErrNotFound) {
		t.Errorf("alone for long: %v", err)
	}
	a.joined = time.Now()
	startNode(t, 75, setup{bootstrap: a.host.Addrs()[:1], storage: b.storage})
	nettest.Eventually(t, "the record", func() bool {
		p, err := a.Player(ctx, player.GuestID("ann"))
		return err == nil && p.Seq == 1
	})
}

func TestPlayersOutliveTheRecordsAge(t *testing.T) {
	storage := nettest.NewMemory()
	n := startNode(t, 1, setup{storage: storage})
	ctx := nettest.Context(t)
	if err := n.PutPlayer(ctx, n.saved("ann", 5)); err != nil {
		t.Fatal(err)
	}
	n.stop()
	storage.Clear(tableRecords) // as kad-dht does after 48 h
	n = startNode(t, 1, setup{storage: storage})
	if p, err := n.Player(ctx, player.GuestID("ann")); err != nil || p.Seq != 5 {
		t.Errorf("player after a long time: %+v, %v", p, err)
	}
	nettest.Eventually(t, "the record to be in the network again", func() bool { return storage.Size(tableRecords) == 1 })
}

// keyed returns the record that the node saves of a player with a key, who has logged in there.
func (n *node) keyed(key ed25519.PrivateKey, seq uint64) nodemsg.PlayerRecord {
	l := player.Login{Key: [32]byte(key.Public().(ed25519.PublicKey)), At: lately}
	l.Signature = [64]byte(ed25519.Sign(key, player.ProofText(l.Nonce(n.host.PeerID()), testWorld)))
	return nodemsg.PlayerRecord{Player: l.Player(), Name: "ann", Seq: seq, Gateway: n.host.PeerID(), SavedAt: lately, Login: &l}
}

// A node that a player never visited publishes their record with the highest number: the gateway's record wins.
func TestPlayersAreNotDisplaced(t *testing.T) {
	nodes := startNetwork(t, 4, setup{})
	gateway, liar, late := nodes[0], nodes[1], nodes[2]
	ctx := nettest.Context(t)
	ann := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	good := gateway.keyed(ann, uint64(lately))
	forged := liar.keyed(ann, uint64(time.Now().Add(47*time.Hour).UnixMilli()))
	forged.Login, forged.Pose.X = nil, 1e6
	check := func() {
		t.Helper()
		for _, n := range []*node{gateway, late, nodes[3]} {
			if p, err := n.Player(ctx, good.Player); err != nil || p.Gateway != gateway.host.PeerID() {
				t.Errorf("player: %+v, %v", p, err)
			}
		}
	}
	if err := liar.PutPlayer(ctx, forged); err != nil { // before there is another one
		t.Fatal(err)
	}
	if err := gateway.PutPlayer(ctx, good); err != nil {
		t.Fatal(err)
	}
	check()
	forged.Seq++
	liar.PutPlayer(ctx, forged) //nolint:errcheck // the others refuse it
	value, err := liar.sealPlayer(forged)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		liar.holders.putTo(ctx, []peer.ID{n.lib.ID()}, librecord.MakePutRecord(good.Player.Key(), value))
	}
	check()
}

func TestRepublishing(t *testing.T) {
	s := setup{options: Options{RepublishEvery: 100 * time.Millisecond}}
	a := startNode(t, 1, s)
	ctx := nettest.Context(t)
	if err := a.PutRegion(ctx, a.led(cellOf(1), 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := a.PutPlayer(ctx, a.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	// Records reach a node that joined later.
	s.bootstrap = a.host.Addrs()[:1]
	b := startNode(t, 2, s)
	nettest.Eventually(t, "the records to arrive", func() bool { return b.storage.Size(tableRecords) == 2 })

	// The player moves on. The old gateway retracts its record, also on disk.
	if err := b.PutPlayer(ctx, b.saved("ann", 2)); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the old gateway to give up", func() bool { return a.storage.Size(tablePublished) == 0 })
	if p, err := a.Player(ctx, player.GuestID("ann")); err != nil || p.Seq != 2 || p.Gateway != b.host.PeerID() {
		t.Errorf("player: %+v, %v", p, err)
	}
	if err := a.PutPlayer(ctx, a.saved("ann", 1)); !errors.Is(err, ErrOutdated) {
		t.Errorf("an outdated save: %v", err)
	}
	if a.storage.Size(tablePublished) != 0 {
		t.Error("an outdated save was kept")
	}

	// A guest who has been away for a month is given up, too.
	gone := b.saved("gone", 1)
	gone.SavedAt -= 31 * 24 * time.Hour.Milliseconds()
	if err := b.PutPlayer(ctx, gone); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the guest's record to expire", func() bool { return b.storage.Size(tablePublished) == 1 })
}

// A record that was put while its author was alone reaches the nodes that join later, long before it is due: they may
// be nearer to its key, and are asked then.
func TestRecordsSpreadToNewcomers(t *testing.T) {
	a := startNode(t, 1, setup{})
	ctx := nettest.Context(t)
	if err := a.PutRegion(ctx, a.led(cellOf(1), 1, 1)); err != nil {
		t.Fatal(err)
	}
	root := nodemsg.Region{ID: 1, Epoch: 1, Term: 1, Leader: a.host.PeerID(), Members: []nodemsg.Member{{Peer: a.host.PeerID(), Game: "127.0.0.1:4002"}}}
	if err := a.PutCatalog(ctx, root); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= 4; i++ {
		n := startNode(t, i, setup{bootstrap: a.host.Addrs()[:1]})
		nettest.Eventually(t, "a record to arrive", func() bool { return n.storage.Size(tableRecords) > 0 })
	}
	b := startNode(t, 5, setup{bootstrap: a.host.Addrs()[:1]})
	nettest.Eventually(t, "both records to arrive", func() bool { return b.storage.Size(tableRecords) == 2 })
}

// A joining daemon connects and asks for the genesis first, and joins the world's DHT only afterwards. Both then know each
// other as nodes, also if what libp2p knows of the other's protocols is from before.
func TestConnectedBeforeJoining(t *testing.T) {
	a := startNode(t, 1, setup{})
	h := startHost(t, 2)
	if _, err := h.Connect(nettest.Context(t), a.host.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	b := startNode(t, 2, setup{host: h})
	awaitTables(t, []*node{a, b}, 1)
	for _, pair := range [][2]*node{{a, b}, {b, a}} {
		of, by := pair[0].host.LibP2P().ID(), pair[1]
		if err := by.lib.Peerstore().SetProtocols(of, ping.ID); err != nil { // as an identification that was late
			t.Fatal(err)
		}
		by.kad.RoutingTable().RemovePeer(of)
	}
	awaitTables(t, []*node{a, b}, 1)
}

func TestOpenFindsAddresses(t *testing.T) {
	nodes := startNetwork(t, 3, setup{})
	a, c := nodes[1].host, nodes[2].host
	c.Handle("/test/hello", func(_ context.Context, _ string, s io.ReadWriteCloser) { fmt.Fprint(s, "hello") })
	if err := a.LibP2P().Network().ClosePeer(c.LibP2P().ID()); err != nil {
		t.Fatal(err)
	}
	a.LibP2P().Peerstore().ClearAddrs(c.LibP2P().ID())
	s, err := a.Open(nettest.Context(t), c.PeerID(), "/test/hello")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := a.Open(nettest.Context(t), "rubbish", "/test/hello"); err == nil {
		t.Error("opened a stream to rubbish")
	}
	stranger, err := test.RandPeerID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Open(nettest.Context(t), stranger.String(), "/test/hello"); err == nil {
		t.Error("opened a stream to an unknown peer")
	}
}

func TestJoinRefusesBadOptions(t *testing.T) {
	h := startHost(t, 1)
	storage := nettest.NewMemory()
	for _, o := range []Options{
		{},
		{World: testWorld, Placement: grid.PlacementHash},
		{World: "short", Placement: grid.PlacementHash, Storage: storage},
		{World: strings.ToUpper(testWorld[:15]) + "XY", Placement: grid.PlacementHash, Storage: storage},
		{World: testWorld, Placement: "random", Storage: storage},
		{World: testWorld, Placement: grid.PlacementHash, BucketSize: -1, Storage: storage},
	} {
		if d, err := Join(h, o); err == nil {
			t.Errorf("joined with %+v", o)
			d.Close()
		}
	}
}

// A lookup that does not end in time does not pass this node's own record off as the newest.
func TestUnfinishedLookupReturnsAnError(t *testing.T) {
	t.Parallel()
	n := startNode(t, 73, setup{})
	if err := n.PutPlayer(nettest.Context(t), n.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := n.Player(ended, player.GuestID("ann")); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("player %+v, %v", p, err)
	}
}

// A walk does not wait for a peer behind a dead connection until kad-dht gives up: the connection is replaced, and the
// walk asks over the new one.
func TestWalkReplacesSilentConnection(t *testing.T) {
	t.Parallel()
	b := startNode(t, 72, setup{})
	if err := b.PutPlayer(nettest.Context(t), b.saved("ann", 1)); err != nil {
		t.Fatal(err)
	}
	addr := strings.Split(b.host.Addrs()[0], "/") // /ip4/<address>/tcp/<port>/…
	r := nettest.StartRelay(t, addr[2]+":0", addr[2]+":"+addr[4])
	a := startNode(t, 71, setup{bootstrap: []string{r.Multiaddr(t)}})
	awaitTables(t, []*node{a, b}, 1)
	if _, err := a.Player(nettest.Context(t), player.GuestID("nobody")); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	r.Cut.Store(true)
	start := time.Now()
	p, err := a.Player(nettest.Context(t), player.GuestID("ann"))
	if err != nil || p.Name != "ann" {
		t.Errorf("player %+v, %v", p, err)
	}
	if took := time.Since(start); took > slowAfter+silentTime+3*time.Second {
		t.Errorf("found after %v", took)
	}
}

// While the disk of a node does not answer, others find players, and publish them, without waiting for it.
func TestHungDiskDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	nodes := startNetwork(t, 3, setup{})
	a, b, hung := nodes[0], nodes[1], nodes[2]
	end := hung.storage.Hang()
	t.Cleanup(end)
	slowest := time.Duration(0)
	for seq := range uint64(5) {
		start := time.Now()
		if err := a.PutPlayer(nettest.Context(t), a.saved("ann", seq+1)); err != nil {
			t.Errorf("put: %v", err)
		}
		if p, err := b.Player(nettest.Context(t), player.GuestID("ann")); err != nil || p.Seq != seq+1 {
			t.Errorf("player: %+v, %v", p, err)
		}
		slowest = max(slowest, time.Since(start))
	}
	t.Logf("a player was put and found within %v", slowest)
	if slowest > commitWithin+2*time.Second {
		t.Errorf("a player was put and found after %v", slowest)
	}
	end()
	nettest.Eventually(t, "the node stores again", func() bool { return hung.store.Put(nettest.Context(t), ds.NewKey("/player/A"), nil) == nil })
}

// A node whose disk does not answer for longer than others wait for it stores and publishes its own players' records
// when it does.
func TestOwnRecordsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	nodes := startNetwork(t, 2, setup{})
	hung, other := nodes[0], nodes[1]
	end := hung.storage.Hang()
	t.Cleanup(end)
	put := make(chan error, 1)
	go func() { put <- hung.PutPlayer(nettest.Context(t), hung.saved("ann", 1)) }()
	if err := other.PutPlayer(nettest.Context(t), other.saved("bob", 1)); err != nil { // the hung one refuses it after commitWithin
		t.Error(err)
	}
	end()
	if err := <-put; err != nil {
		t.Errorf("put: %v", err)
	}
	if p, err := other.Player(nettest.Context(t), player.GuestID("ann")); err != nil || p.Seq != 1 {
		t.Errorf("player: %+v, %v", p, err)
	}
}

// A node republishes only so many players: those who were saved last.
func TestPublishedPlayersAreBounded(t *testing.T) {
	n := startNode(t, 1, setup{})
	n.maxPublished = 3
	for i := range 10 {
		if err := n.PutPlayer(nettest.Context(t), n.saved(fmt.Sprint("ann", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.storage.Size(tablePublished); got != 3 {
		t.Errorf("%d players on disk, want 3", got)
	}
	for i := range 10 {
		if _, mine := n.publishedValue(player.GuestID(fmt.Sprint("ann", i)).Key()); mine != (i >= 7) {
			t.Errorf("player %d is republished: %v", i, mine)
		}
	}
}
