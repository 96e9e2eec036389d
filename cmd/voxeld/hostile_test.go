package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/health"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/store"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// A node that sends nearly all of a large frame on each of 80 streams costs a bounded amount of memory, its streams end soon, and a
// player builds meanwhile. The world is open, so the node is admitted.
func TestHalfSentFrames(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, kit.Options{})
	if err := d.Init(t.Context(), "--seed", "33", "--open"); err != nil {
		t.Fatal(err)
	}
	d.start()
	alice := join(t, d.Game, "alice", 1)
	const memory = "go_memstats_heap_inuse_bytes"
	before := d.metric(memory)
	host, peer := strangerHost(t, d)
	half := append([]byte{0, 0x3f, 0xff, 0xff}, make([]byte, 0x3ffffe)...)
	var hello bytes.Buffer
	for _, r := range d.regions() {
		if r.Bodies == 0 {
			continue
		}
		id, err := strconv.ParseUint(r.ID, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		cell, err := grid.ParseCell(r.Cell)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.WriteFrame(&hello, nodemsg.Hello{Region: id, Cell: cell}); err != nil {
			t.Fatal(err)
		}
	}

	var crew sync.WaitGroup
	turns := make(chan struct{}, 4) // so that the connection goes on answering
	send := func(protocol string, data []byte) {
		crew.Go(func() {
			s, err := host.Open(t.Context(), peer, "/voxeld/"+d.Status.WorldID[:16]+protocol)
			if err != nil {
				t.Error(err)
				return
			}
			turns <- struct{}{}
			s.Write(data) //nolint:errcheck // the node may end the stream
			<-turns
			io.Copy(io.Discard, s) //nolint:errcheck // until the node ends the stream
		})
	}
	for range 40 {
		send(regiontransport.RaftProtocol, half)
		send(regiontransport.LinkProtocol, append(bytes.Clone(hello.Bytes()), half...))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		crew.Wait()
	}()
	most := 0.0
	for waiting, late := true, time.After(patience); waiting; {
		select {
		case <-ended:
			waiting = false
		case <-late:
			t.Fatal("the node does not end the streams")
		case <-time.After(200 * time.Millisecond):
		}
		most = max(most, d.metric(memory))
		alice.edit(under(alice, 2, 1, 1), chunk.Brick)
	}
	t.Logf("heap: %.0f MiB, before %.0f", most/(1<<20), before/(1<<20))
	if most-before > 128<<20 {
		t.Errorf("the node grew by %.0f MiB", (most-before)/(1<<20))
	}
}

// liar speaks with the identity and the certificate of a daemon that was stopped, and says what it wants.
type liar struct {
	t     *testing.T
	host  *transport.Host
	dht   *dht.DHT
	world world.Genesis
	self  nodemsg.Member
}

func newLiar(t *testing.T, stopped *daemon) *liar {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(store.Options{Path: filepath.Join(stopped.dir, databaseName)})
	must(err)
	t.Cleanup(func() { db.Close() })
	go db.Run(t.Context()) //nolint:errcheck // it ends with the test
	g, _, err := storedGenesis(db)
	must(err)
	host, err := transport.NewHost(transport.Options{Storage: db, Listen: []string{"/ip4/" + stopped.ip + "/tcp/4001"}})
	must(err)
	t.Cleanup(func() { host.Close() })
	node := &joining.Node{Host: host, Storage: db, DataDir: stopped.dir, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}
	gate, err := node.Enter(t.Context(), g, config.Bootstrap{})
	must(err)
	go gate.Run(t.Context()) //nolint:errcheck // likewise
	l := &liar{t: t, host: host, world: g, self: nodemsg.Member{Peer: host.PeerID(), Game: stopped.Game}}
	l.dht, err = dht.Join(host, dht.Options{World: g.ID(), Placement: g.Placement, Storage: db})
	must(err)
	t.Cleanup(func() { l.dht.Close() })
	return l
}

// ask asks a node, and returns its answer, and whether it is one without an error.
func (l *liar) ask(d *daemon, q nodemsg.Question) (answer nodemsg.Answer, ok bool) {
	l.t.Helper()
	question, err := nodemsg.EncodeQuestion(q)
	if err != nil {
		l.t.Fatal(err)
	}
	reply, err := l.host.Ask(l.t.Context(), d.Status.Peer, "/voxeld/"+l.world.ID()[:16]+regiontransport.AskProtocol, question)
	if err != nil {
		return answer, false
	}
	answer, err = nodemsg.DecodeAnswer(reply)
	return answer, err == nil && answer.Error == ""
}

// change asks a node to change the catalog, and reports whether that has happened. A node that does not lead the catalog answers with who does.
func (l *liar) change(d *daemon, q nodemsg.Question) bool {
	answer, ok := l.ask(d, q)
	return ok && answer.Region != nil && answer.Region.ID != world.CatalogID
}

// claimCatalog publishes that the liar is the only member of the catalog, with an epoch that nobody can exceed, and answers as that catalog from then on: it
// leads all land. Believed returns how many questions it was asked as the catalog.
func (l *liar) claimCatalog() (believed func() int64) {
	l.t.Helper()
	claim := nodemsg.Region{ID: world.CatalogID, Epoch: 1<<48 - 1, Term: 1<<48 - 1, Leader: l.self.Peer, Members: []nodemsg.Member{l.self}}
	if err := l.dht.PutCatalog(l.t.Context(), claim); err != nil {
		l.t.Fatal(err)
	}
	var asked atomic.Int64
	l.host.HandleAsk("/voxeld/"+l.world.ID()[:16]+regiontransport.AskProtocol, func(_ context.Context, _ string, question []byte) ([]byte, error) {
		q, err := nodemsg.DecodeQuestion(question)
		if err != nil {
			return nil, err
		}
		var answer nodemsg.Answer
		switch {
		case q.Status != nil:
			for _, id := range q.Status.Regions {
				answer.Statuses = append(answer.Statuses, nodemsg.RegionStatus{
					Region: id, State: nodemsg.StateOpen, Leader: l.self.Peer, Term: claim.Term, Epoch: claim.Epoch,
					Members: []nodemsg.MemberStatus{{Replica: nodemsg.Replica{ID: 1, Peer: l.self.Peer}}},
				})
			}
		case q.Authority != nil:
			asked.Add(1)
			region := claim
			region.ID, region.Cell = 77, grid.CellAt(q.Authority.Chunk, grid.FoundingLabel)
			answer.Region = &region
		default:
			answer.Member = &l.self
		}
		return nodemsg.EncodeAnswer(answer)
	})
	return asked.Load
}

// An admitted node of four lies about regions of which it is a member, founds land without end, and forges records, while players build.
// It claims to be the catalog as well, and a fifth node joins. No region is captured or quarantined, no edit is lost, and its damage is bounded. Once it is revoked, nobody listens to it.
func TestLiar(t *testing.T) {
	t.Parallel()
	all := cluster(t, 4)
	honest, stopped := all[:3], all[3]
	for i := range int32(6) {
		locate(t, all[0].Game, grid.ChunkPos{X: 48 * i, Z: 48})
	}
	alice := join(t, honest[0].Game, "alice", 1)
	at := under(alice, 2, 1, 1)
	alice.until("the ground", func() bool { _, ok := alice.at(at); return ok })
	alice.put(at, chunk.Brick)
	eventually(t, "all regions have all their members", patience, func() bool { return complete(all) })
	stopped.terminate()
	l := newLiar(t, stopped)
	for _, d := range honest {
		if _, err := l.host.Connect(t.Context(), "/ip4/"+d.ip+"/tcp/4001"); err != nil {
			t.Fatal(err)
		}
	}

	regions := make(map[uint64]nodemsg.Region) // of which it is a member
	for _, d := range honest {
		for _, r := range d.regions() {
			cell, err := grid.ParseCell(r.Cell)
			if err != nil || !slices.Contains(r.Members, l.self.Peer) {
				continue // the catalog has no cell
			}
			id, err := strconv.ParseUint(r.ID, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			regions[id] = nodemsg.Region{ID: id, Cell: cell, Epoch: 100, Term: 100, Leader: l.self.Peer, Members: []nodemsg.Member{l.self}}
		}
	}
	if len(regions) == 0 {
		t.Fatal("the liar is a member of no region: the test shows nothing")
	}
	captured := 0
	for id, r := range regions {
		for _, d := range honest {
			l.ask(d, nodemsg.Question{Failure: &nodemsg.RegionFailure{Region: id, Why: "a lie", Led: true, Shut: true, Quarantined: true}})
			l.ask(d, nodemsg.Question{Sleep: &nodemsg.Sleep{Group: id, Index: 1}})
			if l.change(d, nodemsg.Question{Moved: &r}) {
				captured++
			}
		}
		if err := l.dht.PutRegion(t.Context(), r); err != nil { // a hint, which misleads nobody for long
			t.Logf("record of region %d: %v", id, err)
		}
	}
	if captured > 0 {
		t.Errorf("%d reports that the liar is the only member were accepted", captured)
	}
	founded := 0
	for i := range int32(3000) {
		cell := grid.CellAt(grid.ChunkPos{X: 10_000 + 16*i, Z: 10_000}, grid.FoundingLabel)
		for _, d := range honest {
			if l.change(d, nodemsg.Question{Found: &nodemsg.Found{Cell: cell, Members: []nodemsg.Member{l.self}}}) {
				founded++
				break
			}
		}
	}
	t.Logf("the liar is a member of %d regions, and founded %d of 3000", len(regions), founded)
	if founded > 2500 {
		t.Errorf("it founded %d regions", founded)
	}
	unbeatable := nodemsg.PlayerRecord{
		Player: player.GuestID("alice"), Name: "alice", Guest: true, Seq: 1 << 47, SavedAt: time.Now().UnixMilli(), Gateway: l.self.Peer,
	}
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	l.dht.PutPlayer(limited, unbeatable) //nolint:errcheck // others refuse it

	believed := l.claimCatalog()
	newcomer := startDaemon(t, "--join", honest[0].invite())
	newcomer.terminate()
	newcomer.start()
	honest = append(honest, newcomer)

	alice.put(at, chunk.Glass)
	for i, d := range honest {
		locate(t, d.Game, grid.ChunkPos{X: 5000 + 48*int32(i), Z: 5000})
		if h := d.doctor(); slices.ContainsFunc(h.Findings, func(f health.Finding) bool { return f.Kind == "quarantined" }) {
			t.Errorf("a region is quarantined: %+v", h.Findings)
		}
		bob := join(t, d.Game, "bob", 1)
		bob.sees(at, chunk.Glass)
		bob.leave()
	}
	if n := believed(); n > 0 {
		t.Errorf("the liar was asked %d questions as the catalog", n)
	}
	alice.leave()
	again := join(t, honest[1].Game, "alice", 1)
	again.sees(at, chunk.Glass)

	honest[0].operate("peers", "revoke", l.self.Peer, "--reason", "it lies")
	eventually(t, "nobody listens to the liar", revocationTime, func() bool {
		return !slices.ContainsFunc(honest, func(d *daemon) bool {
			_, answered := l.ask(d, nodemsg.Question{Describe: &nodemsg.Describe{}})
			return answered
		})
	})
	again.put(at, chunk.Planks)
}
