package region

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var backedUpGenesis = world.Genesis{Name: "Test", Sections: 4, Terrain: 1, Placement: grid.PlacementHash}

// startFirst lets a node be started before the others that hold the catalog.
func (n *network) startFirst(peer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.catalog = nodemsg.Region{ID: world.CatalogID, Leader: peer, Members: []nodemsg.Member{member(peer)}}
}

func (n *node) export(t *testing.T, out *bytes.Buffer) (complete bool, err error) {
	t.Helper()
	o := backups.ExportOptions{Header: backup.Header{Genesis: backedUpGenesis.Encode(), Begun: time.Now().UnixMilli()}}
	return n.Exporter.Backup(t.Context(), out, o)
}

// backUp makes a backup through the node and verifies it.
func (n *node) backUp(t *testing.T) backup.Contents {
	t.Helper()
	var out bytes.Buffer
	complete, err := n.export(t, &out)
	if err != nil {
		t.Fatalf("backup: %v", err)
	}
	c, err := backup.Verify(&out, nil)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if complete != (len(c.Problems()) == 0) {
		t.Fatalf("complete: %v, with the problems %q", complete, c.Problems())
	}
	return c
}

// problem returns the one problem of a backup.
func problem(t *testing.T, c backup.Contents) string {
	t.Helper()
	if len(c.Problems()) != 1 {
		t.Fatalf("problems: %q", c.Problems())
	}
	return c.Problems()[0]
}

// A backup has what a majority has acknowledged, not what the copy has that happens to be asked. Without a majority it
// says so.
func TestBackupOfTheLongestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := b.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		n.cut("C", true)
		g = b.refollow()
		g.edit(stone(2), stone(3))
		n.kill(a)
		n.cut("C", false) // it has the first edit only, and so has the catalog's majority
		if made := c.backUp(t); made.Edits != 3 || len(made.Problems()) > 0 {
			t.Errorf("%d of 3 edits, problems %q", made.Edits, made.Problems())
		}
	})
}

func TestBackupWithoutMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := b.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		n.kill(a)
		n.kill(b)
		made := c.backUp(t)
		if all := strings.Join(made.Problems(), "\n"); made.Edits != 1 || strings.Count(all, "1 of its 3 members answered") != 2 { // the catalog and the region
			t.Errorf("%d edits, problems %q", made.Edits, made.Problems())
		}
	})
}

// All nodes are killed right after an edit is acknowledged, and the one with the leader is lost. The edit is left in a
// log only. A backup wakes the region and has it.
func TestBackupAppliesWhatIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := b.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		n.cut("C", true)
		g = b.refollow()
		edits, left := uint64(1), b.disk
		for applied, last := uint64(0), uint64(0); applied == last; { // B may have learned that it is committed
			if edits++; edits == 50 {
				t.Fatal("B applies every entry at once: the test shows nothing")
			}
			g.edit(stone(edits))
			left = b.disk.afterCrash()
			p, err := b.Replicas.Position(id)
			if err != nil {
				t.Fatal(err)
			}
			if applied, err = replica.AppliedIn(left.Get, id); err != nil {
				t.Fatal(err)
			}
			last = p.Last
		}
		n.kill(a)
		n.kill(b)
		behind := n.kill(c)
		n.startFirst("B")
		n.start("B", left)
		n.cut("C", false)
		c = n.start("C", behind)
		if made := c.backUp(t); made.Edits != edits || len(made.Problems()) > 0 {
			t.Errorf("%d of %d edits, problems %q", made.Edits, edits, made.Problems())
		}
	})
}

// A member that had a copy and has none may have voted for what the others lack. It does not count as one that has
// never opened it.
func TestForgottenCopiesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := b.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		n.cut("C", true)
		b.refollow().edit(stone(2))
		n.kill(a)
		left := n.kill(b)
		n.startFirst("B")
		b = n.start("B", left)
		if err := b.Replicas.Remove(id); err != nil {
			t.Fatal(err)
		}
		n.cut("C", false)
		made := c.backUp(t)
		if why := problem(t, made); made.Edits != 1 || !strings.Contains(why, "1 of its 3 members answered") {
			t.Errorf("%d edits, problem %q", made.Edits, why)
		}
	})
}

// A quarantined region is backed up from its stored copies. If its log has something that no copy can apply, the backup
// has the land before, and says so.
func TestBackupOfQuarantinedRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		for _, it := range []*node{a, b, c} {
			it.quarantines(info)
		}
		g.ends()
		<-time.After(time.Second)
		if made := b.backUp(t); made.Edits != 5 || len(made.Problems()) > 0 {
			t.Errorf("%d of 5 edits, problems %q", made.Edits, made.Problems())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		var panics atomic.Int32
		for _, it := range []*node{a, b, c} {
			it.opener.probes.land = onApply(&panics)
		}
		g := c.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second)
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(2)}})
		g.ends()
		id := idHere(t, a)
		for range 600 {
			<-time.After(100 * time.Millisecond)
			link, _, err := c.Follow(t.Context(), here)
			if err == nil {
				link.Close()
			} else if errors.Is(err, ErrQuarantined) {
				break
			}
		}
		failAgain(t, a, b, c)
		<-time.After(time.Minute)
		quarantined := 0
		for _, it := range []*node{a, b, c} {
			if it.facts.Quarantined(id) {
				quarantined++
			}
		}
		if quarantined < 2 {
			t.Fatalf("quarantined on %d nodes", quarantined)
		}
		made := b.backUp(t)
		if why := problem(t, made); made.Edits != 1 || !strings.Contains(why, "quarantined") {
			t.Errorf("%d edits, problem %q", made.Edits, why)
		}
	})
}

// A copy with rows that cannot be read does not spoil a backup: another one is read. If there is none, the region is
// named.
func TestBackupPassesBadCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, _, info := built(t)
		bad := []kv.Write{{Table: world.LandTable, Key: append(directory.Key(info.ID), "what"...), Value: []byte{1}}}
		if err := a.disk.Commit(bad); err != nil { // it leads
			t.Fatal(err)
		}
		if made := c.backUp(t); made.Edits != 5 || len(made.Problems()) > 0 {
			t.Errorf("%d of 5 edits, problems %q", made.Edits, made.Problems())
		}
		for _, it := range []*node{b, c} {
			if err := it.disk.Commit(bad); err != nil {
				t.Fatal(err)
			}
		}
		made := c.backUp(t)
		if why := problem(t, made); !strings.Contains(why, "the copy on") || !made.Groups[1].Missing {
			t.Errorf("problem %q of %+v", why, made.Groups[1])
		}
	})
}

// If no copy of the catalog is left, a backup fails, and the doctor names the way on.
func TestNoCatalogIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		<-time.After(30 * time.Second)
		d := n.start("D", newDisk())
		for _, it := range []*node{a, b, c} {
			n.kill(it)
		}
		_, err := d.export(t, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "voxeld doctor") {
			t.Errorf("backup without a catalog: %v", err)
		}
		for _, f := range d.Examiner.Examine(t.Context()).Findings {
			if f.Subject == "catalog" && strings.Contains(f.Do, "voxeld restore FILE --data-dir NEW") {
				return
			}
		}
		t.Errorf("findings: %+v", d.Examiner.Examine(t.Context()).Findings)
	})
}

// The node that leads a region dies after it has said how far the log is. Another one has the rest, and the backup is
// complete.
func TestNodeDiesDuringBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c, g, info := built(t)
		ask := c.Exporter.AskStatuses
		var die sync.Once
		c.Exporter.AskStatuses = func(ctx context.Context, peer string, q nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error) {
			statuses, skew, err := ask(ctx, peer, q)
			if peer == "A" && q.Log && slices.Contains(q.Regions, info.ID) {
				die.Do(func() { a.net.kill(a) })
			}
			return statuses, skew, err
		}
		g.edit(stone(6), stone(8))
		if made := c.backUp(t); made.Edits != 7 || len(made.Problems()) > 0 {
			t.Errorf("%d of 7 edits, problems %q", made.Edits, made.Problems())
		}
	})
}

// A copy that is older than what the members have said is not taken for complete, whatever the node says that sends it.
func TestOlderCopyThanAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, c, _, info := built(t)
		ask := c.Exporter.AskStatuses
		c.Exporter.AskStatuses = func(ctx context.Context, peer string, q nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error) {
			statuses, skew, err := ask(ctx, peer, q)
			for i, s := range statuses {
				if s.Region == info.ID && peer != "C" {
					statuses[i].Last += 10 // they have more than anybody can read
				}
			}
			return statuses, skew, err
		}
		made := c.backUp(t)
		if why := problem(t, made); made.Edits != 5 || !strings.Contains(why, "entry") {
			t.Errorf("%d of 5 edits, problem %q", made.Edits, why)
		}
	})
}

// signer signs backups with a key that is a node's own.
type signer struct{ peer string }

func (s signer) key() trust.PrivateKey {
	seed := sha256.Sum256([]byte(s.peer))
	return trust.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func (s signer) Attest(a trust.Attestation) (node trust.Key, signature, certificate []byte, err error) {
	signature, err = a.Sign(s.key())
	return s.key().Key(), signature, []byte(s.peer), err
}

func (s signer) Check(peer string, a trust.Attestation, signature, _ []byte) error {
	if !a.Verify(signer{peer}.key().Key(), signature) {
		return errors.New("it has not signed that")
	}
	return nil
}

func (s signer) Charters() [][]byte { return nil }

// A member has another copy of a region, and says of itself what would make a backup take that one.
func TestBackupOutvotesOneMember(t *testing.T) {
	alone := func(s *nodemsg.RegionStatus) {
		s.Members = slices.DeleteFunc(s.Members, func(m nodemsg.MemberStatus) bool { return m.Replica.Peer != "C" })
	}
	for name, lie := range map[string]struct {
		claim  func(*nodemsg.RegionStatus)
		signed bool // members sign the backup
		blamed bool
	}{
		"a recovery": {func(s *nodemsg.RegionStatus) {
			s.Recovered++
			s.Epoch += nodemsg.RecoveredEpoch
			alone(s)
		}, false, true},
		"a change of members": {func(s *nodemsg.RegionStatus) {
			s.Epoch += 1000
			alone(s)
		}, false, true},
		"a longer log": {func(s *nodemsg.RegionStatus) { s.Last += 1000 }, false, false},
		"a leader": {func(s *nodemsg.RegionStatus) {
			s.State, s.Leader = nodemsg.StateOpen, "C"
			s.Applied += 1000
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.copies = 3
				n.near("A", "B", "C")
				if lie.signed {
					n.adjust = func(peer string, o *Options) { o.Attester = signer{peer} }
				}
				a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
				b.follow(here).edit(stone(1))
				<-time.After(20 * time.Second)
				id := idHere(t, a)
				var other []kv.Write
				for key := range c.disk.land(id) {
					other = append(other, kv.Write{Table: world.LandTable, Key: []byte(key)})
				}
				if err := c.disk.Commit(other); err != nil || len(other) == 0 {
					t.Fatal(other, err)
				}
				ask := a.Exporter.AskStatuses
				a.Exporter.AskStatuses = func(ctx context.Context, peer string, q nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error) {
					statuses, skew, err := ask(ctx, peer, q)
					for i, s := range statuses {
						if s.Region == id && peer == "C" {
							lie.claim(&statuses[i])
						}
					}
					return statuses, skew, err
				}
				var blamed atomic.Bool
				a.Exporter.Contradicted = func(peer, what string) {
					if blamed.Store(true); peer != "C" {
						t.Errorf("%s is blamed: %s", peer, what)
					}
				}
				if made := a.backUp(t); made.Edits != 1 || len(made.Problems()) > 0 {
					t.Errorf("%d edits of 1, problems %q", made.Edits, made.Problems())
				}
				if blamed.Load() != lie.blamed {
					t.Errorf("somebody is blamed: %v", blamed.Load())
				}
			})
		})
	}
}

// One node's tables cannot be read. The backup has those of the others, and names the node.
func TestBackupPassesBadTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, c := three(t)
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		long := bytes.Repeat([]byte{1}, 100) // no key is that long
		if err := c.disk.Commit([]kv.Write{{Table: backup.PlayersTable, Key: long, Value: []byte{1}}}); err != nil {
			t.Fatal(err)
		}
		made := a.backUp(t)
		if why := problem(t, made); made.Edits != 1 || !strings.Contains(why, "players on C") {
			t.Errorf("%d edits, problem %q", made.Edits, why)
		}
	})
}

// commands returns how many commands of the policy a backup has.
func commands(t *testing.T, made []byte) (n int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "world.voxback")
	if err := os.WriteFile(file, made, 0o600); err != nil {
		t.Fatal(err)
	}
	err := backup.Contents{File: file}.Rows(func(backup.Group) bool { return false }, func(_ *backup.Group, table string, rows []kv.Write) error {
		if table == backup.PolicyTable {
			n += len(rows)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The tables of the node that makes a backup cannot be read, or the catalog does not answer it. The backup then has all
// commands that another one has.
func TestBackupHasAllCommandsOfOthers(t *testing.T) {
	const many = 5000
	for name, fail := range map[string]func(a *node) error{
		"its tables": func(a *node) error {
			return a.disk.Commit([]kv.Write{{Table: backup.PlayersTable, Key: bytes.Repeat([]byte{1}, 100), Value: []byte{1}}}) // no key is that long
		},
		"the catalog": func(a *node) error {
			a.Exporter.UpdatePolicy = func(context.Context) error { return errUnreachable }
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, a, _, c := three(t)
				<-time.After(20 * time.Second)
				var acts []kv.Write
				for i := range uint64(many) {
					row, err := nodemsg.EncodeAct(nodemsg.Act{Key: make([]byte, 32), Seq: i, Name: "ann", Text: "register", Signature: make([]byte, 64)})
					if err != nil {
						t.Fatal(err)
					}
					acts = append(acts, kv.Write{Table: backup.PolicyTable, Key: binary.BigEndian.AppendUint64(nil, i+1), Value: row})
				}
				if err := errors.Join(c.disk.Commit(acts), fail(a)); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if complete, err := a.export(t, &out); complete || err != nil {
					t.Errorf("complete: %v, %v", complete, err)
				}
				if has := commands(t, out.Bytes()); has != many {
					t.Errorf("%d of %d commands", has, many)
				}
			})
		})
	}
}

// busySigner signs after some time, in which its land is edited on.
type busySigner struct {
	signer

	signed *sync.Map // by region, how often
}

func (s busySigner) Attest(a trust.Attestation) (node trust.Key, signature, certificate []byte, err error) {
	<-time.After(3 * time.Second)
	times, _ := s.signed.LoadOrStore(a.Group, new(atomic.Int32))
	times.(*atomic.Int32).Add(1)
	return s.signer.Attest(a)
}

// A region that never has the same rows on two members is in the backup without signatures. It is read three times on
// the leader, and once on each of the others.
func TestBackupOfABusyRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.near("A", "B", "C")
		var signed sync.Map
		n.adjust = func(peer string, o *Options) { o.Attester = busySigner{signer{peer}, &signed} }
		a, b, _ := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		b.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		id, g := idHere(t, a), b.refollow()
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for seq := uint64(2); ; seq++ {
				select {
				case <-done:
					return
				case <-time.After(50 * time.Millisecond):
					g.edit(stone(seq))
				}
			}
		}()
		made := a.backUp(t)
		close(done)
		<-ended
		if len(made.Problems()) > 0 || len(made.Groups) != 2 {
			t.Errorf("%d groups, problems %q", len(made.Groups), made.Problems())
		}
		times, _ := signed.Load(id)
		if got := times.(*atomic.Int32).Load(); got != 3*(3+2) { // each time all three sign
			t.Errorf("signed %d times", got)
		}
	})
}

// A command was acknowledged, and the only node dies that has read it from the catalog.
func TestBackupHasTheLastCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, b, c := three(t)
		<-time.After(30*time.Second + 500*time.Millisecond)
		if _, err := b.Policy.Operate(t.Context(), "set message Hello"); err != nil {
			t.Fatal(err)
		}
		n.kill(b)
		if c.Policy.Acts() > 0 {
			t.Fatal("C has read the command already: the test shows nothing")
		}
		var out bytes.Buffer
		if _, err := c.export(t, &out); err != nil {
			t.Fatal(err)
		}
		if has := commands(t, out.Bytes()); has != 1 {
			t.Errorf("%d commands", has)
		}
	})
}

// What is read for a node that receives nothing is held in memory: a node is sent two copies at a time, and others are
// not held up by it. A copy is not woken for entries that nobody has.
func TestExportsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, _ := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		id := idHere(t, a)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if b.regions.Loaded(id) != nil {
			t.Fatal("the region does not hibernate")
		}
		ask := func(peer string, index uint64) net.Conn {
			stream := b.serveOn(transport.ExportProtocol, peer)
			write(t, stream, nodemsg.Export{Group: id, Cell: hereCell, Index: index})
			synctest.Wait()
			return stream
		}
		answer := func(stream net.Conn) string {
			t.Helper()
			begun := time.Now()
			f, err := wire.ReadFrame[nodemsg.Fetched](bufio.NewReaderSize(stream, 16), wire.MaxHandshake)
			if took := time.Since(begun); err != nil || took > 2*time.Second {
				t.Fatalf("after %v: %v", took, err)
			}
			return f.Error
		}
		slow := []net.Conn{ask("X", 0), ask("X", 0)}
		waits := ask("X", 0)
		if why := answer(ask("Y", 0)); why != "" {
			t.Errorf("another node is refused: %s", why)
		}
		if why := answer(ask("Y", 1<<60)); !strings.Contains(why, "the log of this copy") || b.regions.Loaded(id) != nil {
			t.Errorf("a copy with entries that nobody has: %q, woken: %v", why, b.regions.Loaded(id) != nil)
		}
		if err := waits.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := waits.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a third copy for a slow node: %v", err)
		}
		for _, s := range slow {
			s.Close()
		}
		if err := waits.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if why := answer(waits); why != "" {
			t.Errorf("when the others are gone, it is refused: %s", why)
		}
	})
}

// A backup of a world with many regions that cannot be read takes no longer than with one.
func TestBackupWithManyLostRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		b := n.start("B", newDisk())
		n.near("B", "A")
		const lost = 30
		for i := range int32(lost) {
			if _, err := a.Locate(t.Context(), grid.ChunkPos{X: 16 * i}); err != nil {
				t.Fatal(err)
			}
		}
		n.kill(b)
		begun := time.Now()
		made := a.backUp(t)
		if took := time.Since(begun); took > 10*time.Second || len(made.Problems()) != lost {
			t.Errorf("%v, %d problems: %q", took, len(made.Problems()), made.Problems())
		}
	})
}
