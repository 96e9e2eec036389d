package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/test/chaos/hostile"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A node that sends nearly all of a large frame on each of 80 streams costs a bounded amount of memory, its streams end
// soon, and a player builds meanwhile. The world is open, so the node is admitted.
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
	s := newStranger(t, d)
	host, peer := s.Host, s.Peer
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

	var wg sync.WaitGroup
	turns := make(chan struct{}, 4) // so that the connection goes on answering
	send := func(protocol string, data []byte) {
		wg.Go(func() {
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
		wg.Wait()
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

// An admitted node of four lies about regions of which it is a member, founds land without end, and forges records,
// while players build. It also claims to be the catalog while a fifth node joins. No region is captured or quarantined,
// no edit is lost, and its damage is bounded. Once it is revoked, nobody listens to it.
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
	carol := joinWithKey(t, honest[0].Game, "carol", "carol's secret")
	carol.sees(at, chunk.Brick)
	eventually(t, "the land has signed edits only", patience, func() bool { return carol.unsigned(at, chunk.Planks) == wire.RefusedUnsigned })
	carol.put(at, chunk.Stone)
	genuine := carol.intent(at, chunk.Stone)
	alice.put(at, chunk.Brick)
	eventually(t, "all regions have all their members", patience, func() bool { return complete(all) })
	stopped.terminate()
	var addresses []string
	for _, d := range honest {
		addresses = append(addresses, d.Listen)
	}
	l, err := hostile.Impersonate(t.Context(), filepath.Join(stopped.dir, databaseName), "/ip4/"+stopped.ip+"/tcp/4001", stopped.Game, addresses)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	regions, member := l.Regions(t.Context())
	if member == 0 {
		t.Fatal("the liar is a member of no region: the test shows nothing")
	}
	replicas := func() (all []map[uint64]uint64) {
		for _, d := range honest {
			all = append(all, l.Replicas(t.Context(), d.Status.Peer, regions))
		}
		return all
	}
	before := replicas()
	for _, lie := range hostile.Lies {
		if n := lie.Tell(l, t.Context()); n > 0 {
			t.Errorf("%q was believed %d times", lie.Name, n)
		}
	}
	for i, d := range honest {
		nowhere := grid.ChunkPos{X: 7000 + 64*int32(i), Z: 7000}
		if answered := l.Introduce(t.Context(), nowhere); answered != len(honest) {
			t.Errorf("%d nodes have answered the introduction", answered)
		}
		locate(t, d.Game, nowhere)
	}
	if n := l.Followed(); n > 0 {
		t.Errorf("%d gateways followed the liar to land that is listed nowhere", n)
	}
	banned := player.GuestID("mallory")
	honest[1].operate("ban", banned.String())
	agree(t, honest...)
	for _, r := range regions {
		if !r.Cell.Contains(at.Chunk()) {
			continue
		}
		edit, answer := nodemsg.Intent{Player: banned, Seq: uint64(time.Now().UnixMicro()), Pos: at, Block: chunk.Air}, ""
		eventually(t, "an answer to an edit in the name of a banned player", patience, func() bool {
			answer, err = l.EditAs(t.Context(), r, edit)
			return err == nil
		})
		if answer != wire.RefusedNotAllowed {
			t.Errorf("an edit in the name of a banned player is answered %q", answer)
		}
	}
	for _, forged := range forgeries(genuine) {
		refused := ""
		for _, r := range regions {
			if r.Cell.Contains(at.Chunk()) {
				eventually(t, "an answer to a forged edit", patience, func() bool {
					refused, err = l.EditAs(t.Context(), r, forged)
					return err == nil
				})
			}
		}
		if refused != wire.RefusedUnsigned {
			t.Errorf("the forged edit %+v is answered %q", forged, refused)
		}
	}
	for _, r := range regions {
		if r.Cell.Contains(at.Chunk()) {
			l.EditAs(t.Context(), r, genuine) //nolint:errcheck // it is confirmed, and changes nothing
		}
	}
	alice.sees(at, chunk.Brick)
	begun := time.Now()
	founded := l.Found(t.Context(), 3000, 10_000)
	t.Logf("the liar is a member of %d of %d regions, and founded %d of 3000", member, len(regions), founded)
	if most := 1000 + int(100*time.Since(begun).Seconds()); founded > most {
		t.Errorf("it founded more than %d regions", most)
	}
	first := dialWithKey(t, honest[0].Game, "carol", "carol")
	first.until("a welcome", func() bool { return first.Welcome.Player != "" })
	stays, id := first.Welcome.Pose, player.IDOf(first.key.Public().(ed25519.PublicKey))
	eventually(t, "carol's record is in the network", patience, func() bool {
		r, err := l.Player(t.Context(), id)
		return err == nil && r.Gateway == honest[0].Status.Peer
	})
	forge := func(r nodemsg.PlayerRecord) {
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r.SavedAt = time.Now().UnixMilli()
		l.PutPlayer(limited, r) //nolint:errcheck // others refuse it
	}
	forge(nodemsg.PlayerRecord{Player: player.GuestID("alice"), Name: "alice", Guest: true, Seq: 1 << 47})
	forge(nodemsg.PlayerRecord{
		Player: id, Name: "carol", Pose: motion.Pose{X: 1e6, Y: 100, Z: 1e6},
		Seq: uint64(time.Now().Add(47 * time.Hour).UnixMilli()),
	})
	first.leave()
	second := dialWithKey(t, honest[1].Game, "carol", "carol")
	second.until("a welcome", func() bool { return second.Welcome.Player != "" })
	if second.Welcome.Pose != stays {
		t.Errorf("carol left at %+v, and is back at %+v", stays, second.Welcome.Pose)
	}
	second.leave()

	if !slices.ContainsFunc(honest, func(d *daemon) bool { return names(d.doctor(), l.Self.Peer) }) {
		t.Error("doctor names the liar on no node")
	}

	for i, after := range replicas() {
		for id, replica := range before[i] {
			if after[id] != replica {
				t.Errorf("%s was replica %d of region %d, and is %d", honest[i].Status.Peer, replica, id, after[id])
			}
		}
	}
	newcomer := startDaemon(t, "--join", honest[0].invite())
	newcomer.terminate()
	newcomer.start()
	honest = append(honest, newcomer)

	alice.put(at, chunk.Glass)
	for i, d := range honest {
		locate(t, d.Game, grid.ChunkPos{X: 5000 + 48*int32(i), Z: 5000})
		if h := d.doctor(); slices.ContainsFunc(h.Findings, func(f region.Finding) bool { return f.Kind == "quarantined" }) {
			t.Errorf("a region is quarantined: %+v", h.Findings)
		}
		bob := join(t, d.Game, "bob", 1)
		bob.sees(at, chunk.Glass)
		bob.leave()
	}
	if n := l.Believed(); n > 0 {
		t.Errorf("the liar was asked %d questions as the catalog", n)
	}
	alice.leave()
	again := join(t, honest[1].Game, "alice", 1)
	again.sees(at, chunk.Glass)

	honest[0].operate("peers", "revoke", l.Self.Peer, "--reason", "it lies", "--force")
	eventually(t, "nobody listens to the liar", revocationTime, func() bool {
		return !slices.ContainsFunc(honest, func(d *daemon) bool {
			return l.Heard(t.Context(), d.Status.Peer)
		})
	})
	again.put(at, chunk.Planks)
	if slices.ContainsFunc(honest, func(d *daemon) bool { return names(d.doctor(), l.Self.Peer) }) {
		t.Error("doctor still names the liar after it was revoked")
	}
}

// unsigned changes a block without a signature, and returns why that is refused.
func (p *tester) unsigned(pos grid.Pos, b chunk.Block) string {
	p.t.Helper()
	p.seq++
	p.send(sessionmsg.Edit{Seq: p.seq, X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b)})
	p.until("an answer to an unsigned edit", func() bool { _, ok := p.Acks[p.seq]; return ok })
	return p.Acks[p.seq].Error
}

// intent returns the player's last edit, as their gateway passes it on.
func (p *tester) intent(pos grid.Pos, b chunk.Block) nodemsg.Intent {
	e := nodemsg.Intent{Player: player.IDOf(p.key.Public().(ed25519.PublicKey)), Seq: p.seq, Pos: pos, Block: b}
	e.Key = [32]byte(p.key.Public().(ed25519.PublicKey))
	copy(e.Signature[:], p.sign(p.Welcome.World, pos, b))
	return e
}

// forgeries are edits in the name of a player, made of one that they have signed.
func forgeries(genuine nodemsg.Intent) []nodemsg.Intent {
	seed := sha256.Sum256([]byte("the liar's secret"))
	own := ed25519.NewKeyFromSeed(seed[:])
	bare, guest, later, air, elsewhere, mine, world := genuine, genuine, genuine, genuine, genuine, genuine, genuine
	bare.Proof = nodemsg.Proof{}
	guest.Proof = nodemsg.Proof{Name: "carol"}
	later.Seq++
	air.Block = chunk.Air
	elsewhere.Pos.Y++
	mine.Key = [32]byte(own.Public().(ed25519.PublicKey))
	world.Seq++
	copy(world.Signature[:], ed25519.Sign(own, world.SignedText("another world")))
	all := []nodemsg.Intent{bare, guest, later, air, elsewhere, mine, world}
	for i := range all {
		all[i].Seq += uint64(10 * (1 + i)) // each is a new one
	}
	return all
}

// names reports whether an examination found that a node is contradicted by others.
func names(h region.Health, peer string) bool {
	return slices.ContainsFunc(h.Findings, func(f region.Finding) bool { return f.Kind == "contradicted" && f.Subject == peer })
}
