package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backupcmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/store"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
)

// backUp runs voxeld backup on the node, which must succeed, and returns the file.
func (d *daemon) backUp(args ...string) string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "world.voxback")
	out, errs, code := voxeld(d.t, append([]string{"backup", file, "--data-dir", d.dir}, args...)...)
	if code != 0 {
		d.t.Fatalf("voxeld backup: exit %d: %s%s", code, out, errs)
	}
	d.t.Logf("%s", strings.TrimSpace(errs))
	return file
}

// restoreDaemon restores the files, with the root key in a file unless the world is forked, into a new directory and
// starts a node there.
func restoreDaemon(t *testing.T, rootKey string, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data")})
	if rootKey != "" {
		args = append(args, "--root-key", rootKey)
	}
	out, errs, code := voxeld(t, append([]string{"restore", "--data-dir", d.dir}, args...)...)
	if code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	t.Logf("%s", out)
	d.start()
	return d
}

// The restore drill: a backup is made through a node while a player edits, all nodes are lost, the world is restored on
// one node, and two others join. Every edit that was acknowledged before the backup is found on each, and the world
// goes on.
func TestRestoreDrill(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	ann := join(t, all[0].Game, "ann", 1)
	places := []grid.Pos{under(ann, 1, 0, 2), under(ann, 1, 1, 2), under(ann, -1, 1, 2), under(ann, 0, 1, 2)}
	ann.until("the ground", func() bool { _, ok := ann.at(places[0]); return ok })
	for i, pos := range places {
		ann.put(pos, []chunk.Block{chunk.Brick, chunk.Glass, chunk.Planks, chunk.Stone}[i])
	}
	for x := range int32(8) { // regions that nobody visits
		if locate(t, all[0].Game, grid.ChunkPos{X: 1000 + 16*x, Z: 2000}) == "" {
			t.Fatal("no land founded")
		}
	}
	all[1].operate("set", "message", "Be kind")
	all[2].operate("ban", "mallory", "1h", "griefing")
	agree(t, all...)
	var editing sync.WaitGroup
	stop := make(chan struct{})
	busy := under(ann, 2, 0, 2)
	for i := range int32(8) { // the region changes all the time
		builder, pos := ann, busy
		if i > 0 {
			builder, pos = join(t, all[i%3].Game, fmt.Sprintf("builder%d", i), 1), under(ann, 2, 0, i-4)
			builder.until("the ground", func() bool { _, ok := builder.at(pos); return ok })
		}
		editing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					builder.putPatiently(pos, []chunk.Block{chunk.Brick, chunk.Glass}[i%2])
				}
			}
		})
	}
	file := all[1].backUp()
	close(stop)
	editing.Wait()
	if out, errs, code := voxeld(t, "verify", "--signed", file); code != 0 || !strings.Contains(out, "full backup") {
		t.Fatalf("voxeld verify: exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", t.TempDir()); code != exitFailed || !strings.Contains(errs, "is running") {
		t.Errorf("restored beside the running world: exit %d: %s%s", code, out, errs)
	}
	for _, d := range all {
		d.kill()
	}

	first := restoreDaemon(t, all[0].rootKey(), file)
	token := first.invite()
	nodes := []*daemon{first, startDaemon(t, "--join", token), startDaemon(t, "--join", token)}
	agree(t, nodes...)
	for _, d := range nodes {
		if code := dialSession(t, d.Game, "mallory", 1).ended(); code != wire.FailBanned {
			t.Errorf("somebody who was banned before the backup is answered %q", code)
		}
		bob := join(t, d.Game, "bob", 1)
		for i, pos := range places {
			bob.sees(pos, []chunk.Block{chunk.Brick, chunk.Glass, chunk.Planks, chunk.Stone}[i])
		}
		bob.putPatiently(busy, chunk.Sand)
		bob.leave()
	}
	eventually(t, "all is well", patience, func() bool {
		health := first.doctor()
		if len(health.Findings) > 0 {
			t.Logf("not yet: %v", health.Findings)
		}
		return len(health.Findings) == 0
	})
	if locate(t, nodes[1].Game, grid.ChunkPos{X: 5000, Z: 5000}) == "" {
		t.Error("no land can be founded")
	}

	// Two of the old nodes come back: they give up what they have.
	for _, d := range all[:2] {
		if err := d.Start(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	carol := join(t, all[0].Game, "carol", 1)
	carol.sees(busy, chunk.Sand)
	carol.putPatiently(busy, chunk.Brick)
	first.kill()
	dora := join(t, nodes[2].Game, "dora", 1)
	dora.sees(busy, chunk.Brick)
	dora.sees(places[0], chunk.Brick)
	eventually(t, "the old nodes have the new commands", patience, func() bool {
		var want, has []admin.AuditEntry
		nodes[2].ask("audit", &want)
		all[1].ask("audit", &has)
		return reflect.DeepEqual(has, want)
	})
}

// A node of the world comes back after the restore, before the restored world has run for the first time: that refuses
// to run, and changes nothing. Later it runs.
func TestFirstRunBesideLivingWorld(t *testing.T) {
	t.Parallel()
	old := startDaemon(t)
	ann := join(t, old.Game, "ann", 1)
	pos := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
	ann.put(pos, chunk.Brick)
	file := old.backUp()
	ann.put(pos, chunk.Glass) // what the restored world would take away
	old.kill()
	again := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data")})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", again.dir, "--root-key", old.rootKey()); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	old.start()
	for range 2 {
		if err := again.Launch(""); err != nil {
			t.Fatal(err)
		}
		if code := again.exited(patience); code != exitFailed || !strings.Contains(again.Output(), "is running") {
			t.Errorf("run beside the living world: exit %d: %s", code, tail(again.Output(), 5))
		}
	}
	bob := join(t, old.Game, "bob", 1)
	bob.sees(pos, chunk.Glass)
	bob.putPatiently(pos, chunk.Planks)
	old.kill()
	again.start()
	carol := join(t, again.Game, "carol", 1)
	carol.sees(pos, chunk.Brick)
}

// A region that is split is restored with both its parts, and can be backed up again at once.
func TestSplitRegionIsRestored(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 1)
	pos := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
	ann.put(pos, chunk.Brick)
	cell := grid.CellAt(pos.Chunk(), grid.FoundingLabel)
	if out, errs, code := voxeld(t, "region", "split", "--data-dir", d.dir, "--", cell.String()); code != 0 {
		t.Fatalf("voxeld region split: exit %d: %s%s", code, out, errs)
	}
	ann.putPatiently(pos, chunk.Glass)
	var file string
	eventually(t, "a backup with the parts", patience, func() bool {
		file = filepath.Join(t.TempDir(), "world.voxback")
		_, errs, code := voxeld(t, "backup", file, "--data-dir", d.dir)
		return code == 0 && !strings.Contains(errs, "backup: 1 region")
	})
	d.kill()
	again := restoreDaemon(t, d.rootKey(), file)
	again.backUp()
	bob := join(t, again.Game, "bob", 1)
	bob.sees(pos, chunk.Glass)
	bob.putPatiently(pos, chunk.Sand)
	again.backUp()
}

// A restore that is interrupted leaves nothing that runs.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "world.voxback")
	largeWorld(t, file, false, 20, 500, 1)
	chain, err := backup.VerifyFiles(t.Context(), []string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data")})
	var cfg config.Config
	cfg.DataDir, cfg.Game = d.dir, d.Game
	r := backupcmd.Restore{Chain: chain, Genesis: chain.Last().Genesis, RootKey: filepath.Join(filepath.Dir(file), joining.RootKeyFile)}
	if err := restoreWorld(t.Context(), cfg, r); !errors.Is(err, backup.ErrDamaged) {
		t.Fatalf("restored half a file: %v", err)
	}
	if err := d.Launch(""); err != nil {
		t.Fatal(err)
	}
	if code := d.exited(patience); code == 0 || !strings.Contains(d.Output(), "restore again") {
		t.Errorf("run after half a restore: exit %d: %s", code, tail(d.Output(), 5))
	}
}

// listenSilently returns the address of a server that accepts connections and says nothing.
func listenSilently(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp", takeAddress(t)+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr)
}

// listenSlowly returns the address of a server that passes on a connection three seconds after it was made.
func listenSlowly(t *testing.T, target string) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp", takeAddress(t)+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(3*time.Second, func() {
				defer near.Close()
				far, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer far.Close()
				go io.Copy(far, near) //nolint:errcheck // the other one ends it
				io.Copy(near, far)    //nolint:errcheck // a connection that ends
			})
		}
	}()
	return listener.Addr().(*net.TCPAddr)
}

// A node is found at one of its addresses, even if nothing answers at the others, nor at those of many nodes before it.
func TestRefuseBeside(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	silent := listenSilently(t)
	nodes := []backup.Node{{Peer: d.Status.Peer, Addrs: []string{fmt.Sprintf("/ip4/%s/tcp/%d", silent.IP, silent.Port), "/ip4/" + d.ip + "/tcp/4001"}}}
	if err := refuseBeside(t.Context(), d.Status.WorldID, nodes); !errors.Is(err, backupcmd.ErrAlive) {
		t.Errorf("the node that runs: %v", err)
	}
	if err := refuseBeside(t.Context(), "another world", nodes); err != nil {
		t.Errorf("a node of another world: %v", err)
	}
	slow := listenSlowly(t, d.ip+":4001")
	if err := refuseBeside(t.Context(), d.Status.WorldID, []backup.Node{{Peer: d.Status.Peer, Addrs: []string{fmt.Sprintf("/ip4/%s/tcp/%d", slow.IP, slow.Port)}}}); !errors.Is(err, backupcmd.ErrAlive) {
		t.Errorf("the node that runs, slowly: %v", err)
	}
	for alive, serve := range map[bool]func(*transport.Host){
		true: func(h *transport.Host) {
			h.HandleAsk(admission.Protocol, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		},
		false: func(*transport.Host) {},
	} {
		other, err := transport.NewHost(transport.Options{Storage: &kv.Memory{}, Listen: []string{"/ip4/" + takeAddress(t) + "/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		serve(other)
		if err := refuseBeside(t.Context(), d.Status.WorldID, []backup.Node{{Peer: other.PeerID(), Addrs: other.Addrs()}}); errors.Is(err, backupcmd.ErrAlive) != alive {
			t.Errorf("a node that does not answer, %v, and one that serves nothing: %v", alive, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := refuseBeside(ended, d.Status.WorldID, nodes); !errors.Is(err, context.Canceled) {
		t.Errorf("a search that was ended: %v", err)
	}
	var many []backup.Node
	for i := range besideAtOnce + 1 {
		gone, err := admission.PeerOf(trust.Key{byte(i), byte(i >> 8)})
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, backup.Node{Peer: gone.String(), Addrs: nodes[0].Addrs[:1]})
	}
	if err := refuseBeside(t.Context(), d.Status.WorldID, append(many, nodes...)); !errors.Is(err, backupcmd.ErrAlive) {
		t.Errorf("the node that runs, after many that are gone: %v", err)
	}
	var closed []string
	for port := range besideAddrs {
		closed = append(closed, fmt.Sprintf("/ip4/%s/tcp/%d", silent.IP, port+1))
	}
	for asked, addrs := range map[bool][]string{true: closed[1:], false: closed} {
		addrs = append(slices.Clone(addrs), nodes[0].Addrs[1])
		if err := refuseBeside(t.Context(), d.Status.WorldID, []backup.Node{{Peer: d.Status.Peer, Addrs: addrs}}); errors.Is(err, backupcmd.ErrAlive) != asked {
			t.Errorf("the node that runs, at address %d: %v", len(addrs), err)
		}
	}
}

// A world that was restored does not wait for nodes of before for longer than a service manager waits for it, and asks
// once.
func TestAskingBeforeTheFirstRunIsBounded(t *testing.T) {
	t.Parallel()
	silent := listenSilently(t)
	db, err := store.Open(store.Options{Path: filepath.Join(t.TempDir(), databaseName)})
	if err != nil {
		t.Fatal(err)
	}
	parts := newStack()
	defer func() {
		if err := parts.stop(); err != nil {
			t.Error(err)
		}
	}()
	parts.onStop("database", db.Close)
	parts.start("commits", db.Run)
	gone, err := admission.PeerOf(trust.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	row, err := json.Marshal([]backup.Node{{Peer: gone.String(), Addrs: []string{fmt.Sprintf("/ip4/%s/tcp/%d", silent.IP, silent.Port)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Commit([]kv.Write{{Table: worldTable, Key: restoredKey, Value: row}}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	n := &node{db: db, logger: slog.New(slog.NewTextHandler(&log, nil))}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := n.checkRestored(ended, "a world", besideMost); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that was ended: %v", err)
	}
	if err := n.checkRestored(t.Context(), "a world", 100*time.Millisecond); err != nil || !strings.Contains(log.String(), "not all nodes of the backup were asked") {
		t.Errorf("after the time in which it asks: %v; log: %s", err, log.String())
	}
	if row, err := db.Get(worldTable, restoredKey); row != nil || err != nil {
		t.Errorf("it asks again at the next start: %s, %v", row, err)
	}
}

// Damaged and truncated files are refused, and nothing is left of a restore that was refused.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 1)
	pos := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
	ann.put(pos, chunk.Brick)
	file := d.backUp()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	for name, data := range map[string][]byte{
		"truncated": whole[:len(whole)/2],
		"changed":   append(append(bytes.Clone(whole[:len(whole)/2]), whole[len(whole)/2]^0x10), whole[len(whole)/2+1:]...),
		"longer":    append(bytes.Clone(whole), 1),
		"empty":     nil,
		"other":     []byte("this is no backup, but a text that somebody wrote"),
	} {
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "data")
		for _, args := range [][]string{{"verify", bad}, {"restore", bad, "--data-dir", dir, "--fork", "Other"}} {
			out, errs, code := voxeld(t, args...)
			if code != exitData || strings.Count(errs, "\n") != 1 {
				t.Errorf("%s: voxeld %s: exit %d: %s%s", name, args[0], code, out, errs)
			}
			t.Logf("%s: %s", name, strings.TrimSpace(errs))
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was restored", name)
		}
	}
}

// Incremental backups refer to what has not changed; an area is a backup of its regions; a fork is another world with
// the same land. Each is restored, and a backup that is not complete is refused.
func TestBackupKinds(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 1)
	first, second := under(ann, 1, 0, 2), under(ann, 1, 1, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(first); return ok })
	ann.put(first, chunk.Brick)
	for x := range int32(4) {
		locate(t, d.Game, grid.ChunkPos{X: 1000 + 16*x, Z: 2000})
	}
	full := d.backUp()
	ann.put(second, chunk.Glass)
	monday := d.backUp("--since", full)
	ann.put(first, chunk.Planks)
	tuesday := d.backUp("--since", monday)
	area := d.backUp("--area", fmt.Sprintf("%d,%d:%d,%d", first.X, first.Z, first.X, first.Z))
	out, errs, code := voxeld(t, "verify", full, monday, tuesday)
	if code != 0 || strings.Count(out, "incremental") != 2 || !strings.Contains(out, "(4 unchanged)") {
		t.Errorf("verify: exit %d: %s%s", code, out, errs)
	}
	for _, files := range [][]string{{monday}, {full, tuesday}, {full, full}, {monday, full}} {
		if _, errs, code := voxeld(t, append([]string{"verify"}, files...)...); code == 0 {
			t.Errorf("verified %v: %s", files, errs)
		}
	}
	if out, errs, code := voxeld(t, "restore", area, "--fork", "Town", "--data-dir", filepath.Join(t.TempDir(), "data")); code != exitLacks {
		t.Errorf("restored an area: exit %d: %s%s", code, out, errs)
	}
	worlds := make(map[string]bool)
	for _, args := range [][]string{{full, monday, tuesday, "--fork", "Fork"}, {area, "--fork", "Town", "--accept-incomplete"}} {
		f := restoreDaemon(t, "", args...)
		worlds[f.Status.WorldID] = true
		bob := join(t, f.Game, "bob", 1)
		bob.sees(first, chunk.Planks)
		bob.sees(second, chunk.Glass)
		bob.putPatiently(first, chunk.Sand)
		other := filepath.Join(t.TempDir(), "other")
		if out, errs, code := voxeld(t, "backup", other, "--since", full, "--data-dir", f.dir); code == 0 || !strings.Contains(errs, "another world") {
			t.Errorf("a backup since one of another world: exit %d: %s%s", code, out, errs)
		}
	}
	if worlds[d.Status.WorldID] || len(worlds) != 2 {
		t.Errorf("worlds %v, forked from %s", worlds, d.Status.WorldID)
	}
	ann.sees(first, chunk.Planks)
}

func (d *daemon) leadsCatalog() bool {
	d.t.Helper()
	var s admin.Status
	d.ask("status", &s)
	return s.Catalog == s.Peer
}

// A region of which no copy is left is found by the doctor, and put back from a backup, and founded anew. A backup
// meanwhile names it.
func TestLostRegion(t *testing.T) {
	t.Parallel()
	// The region must not be on the node that holds the catalog, which is the first. Peer ids are random, and so is
	// where it is.
	var all, others []*daemon
	var leader *daemon
	var ann *tester
	var pos grid.Pos
	for leader == nil || leader == all[0] {
		for _, d := range all {
			d.kill()
		}
		all = cluster(t, 3, "--replicas", "1")
		ann = join(t, all[0].Game, "ann", 1)
		pos = under(ann, 1, 0, 2)
		ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
		leader, others = leaderOf(t, all, pos.Chunk())
		eventually(t, "the catalog has moved to where it stays", patience, func() bool {
			members := 0.
			for _, d := range all {
				members += d.metric("voxeld_catalog_members")
			}
			return members == 1
		})
		if leader.metric("voxeld_catalog_members") > 0 {
			leader = nil
		}
	}
	ann.put(pos, chunk.Brick)
	file := all[0].backUp()
	cell := grid.CellAt(pos.Chunk(), grid.FoundingLabel).String()
	ann.leave()
	leader.kill()
	eventually(t, "the doctor names the ways on", patience, func() bool {
		for _, f := range all[0].doctor().Findings {
			if f.Subject == cell && strings.Contains(f.Do, "--anew") && strings.Contains(f.Do, all[0].Status.Peer) {
				return true
			}
		}
		return false
	})
	lacking := filepath.Join(t.TempDir(), "lacking")
	if out, errs, code := voxeld(t, "backup", lacking, "--data-dir", others[1].dir); code != exitLacks || !strings.Contains(errs, cell) {
		t.Errorf("a backup without the region: exit %d: %s%s", code, out, errs)
	}
	// recovered runs a command on the node that leads the catalog, which may move.
	recovered := func(how ...string) bool {
		t.Helper()
		for _, d := range all {
			if d == leader || !d.leadsCatalog() {
				continue
			}
			out, errs, code := voxeld(t, append(append([]string{"region", "recover", "--data-dir", d.dir, "--yes"}, how...), "--", cell)...)
			t.Logf("recover %v: exit %d: %s%s", how, code, out, errs)
			return code == 0
		}
		return false
	}
	eventually(t, "the region is back", patience, func() bool { return recovered("--from", file) })
	if recovered("--anew") {
		t.Error("founded a living region anew")
	}
	bob := join(t, others[1].Game, "bob", 1)
	bob.sees(pos, chunk.Brick)
	bob.putPatiently(pos, chunk.Glass)
	leader.start() // it gives up what it has
	carol := join(t, leader.Game, "carol", 1)
	carol.sees(pos, chunk.Glass)
	carol.leave()

	// The node with the only copy is lost again, and there is no backup.
	leader, others = leaderOf(t, all, pos.Chunk())
	if leader.leadsCatalog() {
		return // it would take the catalog along
	}
	bob.leave()
	leader.kill()
	eventually(t, "the region is founded anew", patience, func() bool { return recovered("--anew") })
	dora := join(t, others[0].Game, "dora", 1)
	dora.until("terrain", func() bool { b, ok := dora.at(pos); return ok && b != chunk.Glass && b != chunk.Brick })
}

// What init and restore create as root in a data directory of another user is of that user, as whom the node runs.
func TestRootCreatesDataForItsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	file := filepath.Join(t.TempDir(), "world.voxback")
	largeWorld(t, file, false, 1, 1, 1)
	key := filepath.Join(filepath.Dir(file), joining.RootKeyFile)
	for _, args := range [][]string{{"init"}, {"restore", file, "--root-key", key}} {
		const owner = 65532
		dir := t.TempDir()
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := voxeld(t, append(args, "--data-dir", dir)...); code != 0 {
			t.Fatalf("voxeld %s: exit %d: %s", args[0], code, errs)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) < 2 {
			t.Fatalf("voxeld %s created %v, %v", args[0], files, err)
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			if is := info.Sys().(*syscall.Stat_t); is.Uid != owner || is.Gid != owner {
				t.Errorf("after voxeld %s the file %s is of %d:%d", args[0], f.Name(), is.Uid, is.Gid)
			}
		}
	}
}
