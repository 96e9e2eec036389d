package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// hangs makes the node's disk hang until thaw is called: writes and fsyncs block, reads go on.
func (d *daemon) hangs() (thaw func()) {
	d.t.Helper()
	at := filepath.Dir(d.dir)
	if err := process.Run("fsfreeze", "-f", at); err != nil {
		d.t.Fatal(err)
	}
	thawed := false
	thaw = func() {
		if !thawed {
			thawed = true
			if err := process.Run("fsfreeze", "-u", at); err != nil {
				d.t.Error(err)
			}
		}
	}
	d.t.Cleanup(thaw) // before the node is killed, which would otherwise wait for the disk
	return thaw
}

// clusterOnDisks starts three daemons of one world, each with a disk of its own.
func clusterOnDisks(t *testing.T) []*daemon {
	t.Helper()
	if why := machine.DisksMissing(); why != "" {
		t.Skip(why)
	}
	if why := process.MissingTools("fsfreeze"); why != "" {
		t.Skip(why)
	}
	var all []*daemon
	var args []string
	for i := range 3 {
		at := filepath.Join(t.TempDir(), "disk")
		if _, err := machine.NewDisk(at+".ext4", at); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			var err error
			eventually(t, "the disk can be unmounted", patience, func() bool { err = syscall.Unmount(at, 0); return !errors.Is(err, syscall.EBUSY) })
			if err != nil {
				t.Error(err)
			}
		})
		d := newDaemon(t, kit.Options{Dir: filepath.Join(at, "data"), Args: args})
		if i == 0 {
			d.init()
		}
		d.start()
		if i == 0 {
			args = []string{"--join", d.invite()}
		}
		all = append(all, d)
	}
	for _, d := range all {
		eventually(t, "all land has three replicas", patience, func() bool {
			var s admin.Status
			d.ask("status", &s)
			return s.Peers == 2 && len(s.Problems()) == 0 && s.NodeRegions["healthy"] > 0 && s.NodeRegions["healthy"] == sum(s.NodeRegions)
		})
	}
	return all
}

func sum(of map[string]int) (n int) {
	for _, each := range of {
		n += each
	}
	return n
}

// readyz returns the status and the text of the node's /readyz.
func (d *daemon) readyz() (int, string) {
	d.t.Helper()
	answer, err := http.Get("http://" + d.Status.HTTP + "/readyz")
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text := make([]byte, 1024)
	n, _ := answer.Body.Read(text)
	return answer.StatusCode, string(text[:n])
}

// The disk of the node that leads the land hangs: nothing is written, nothing fails, and everything that needs no disk
// goes on. The others go on without it, and its own players with them. Players come and go on all nodes, also again and
// again; those whom the hung node cannot read are redirected as soon as others are welcomed. Nobody who joins is shown
// land from before.
func TestDiskHangs(t *testing.T) {
	all := clusterOnDisks(t)
	probe := join(t, all[0].Game, "ann", 1)
	spawn := under(probe, 1, 0, 0)
	probe.until("the ground", func() bool { _, ok := probe.at(spawn); return ok })
	hung, others := leaderOf(t, all, spawn.Chunk())
	probe.leave()
	ann, bob := join(t, hung.Game, "ann", 1), join(t, others[0].Game, "bob", 1)
	for _, p := range []*tester{ann, bob} {
		p.until("the ground", func() bool { _, ok := p.at(spawn); return ok })
	}
	n := int32(0)
	put := func(p *tester) (at grid.Pos, b chunk.Block, took time.Duration) {
		t.Helper()
		at = under(p, 1+n%3, n/3%5-2, 2)
		b = []chunk.Block{chunk.Planks, chunk.Brick, chunk.Glass}[n/15%3]
		n++
		began := time.Now()
		p.putPatiently(at, b)
		return at, b, time.Since(began)
	}
	for range 5 {
		put(ann)
		put(bob)
	}
	thaw := hung.hangs()
	began := time.Now()
	var longest, slowestJoin, slowestLand time.Duration
	ready := func() (int, string) { code, text := hung.readyz(); return code, text }
	notReady, joined, redirected := time.Duration(0), 0, 0
	pace := time.NewTicker(100 * time.Millisecond) // of two players who build
	defer pace.Stop()
	for ; time.Since(began) < 10*time.Second; <-pace.C {
		at, want, took := put(bob)
		longest = max(longest, took)
		if code, text := ready(); notReady == 0 && code != http.StatusOK {
			notReady = time.Since(began)
			t.Logf("%6v: not ready: %s", notReady, strings.TrimSpace(text))
		}
		if time.Since(began) > time.Duration(joined)*500*time.Millisecond {
			joined++
			for i, d := range all {
				for _, name := range []string{fmt.Sprintf("new%d-%d", i, joined), fmt.Sprintf("back%d", i)} {
					entered := time.Now()
					eve := dialSession(t, d.Game, name, 1)
					eve.until("a welcome", func() bool { return eve.Welcome.Player != "" || d == hung && eve.sentOn != nil })
					slowestJoin = max(slowestJoin, time.Since(entered))
					if eve.sentOn != nil { // the disk hung just when the store had moved its journal: its tables cannot be read
						redirected++
						continue
					}
					var shown chunk.Block
					eve.until("the land", func() (ok bool) { shown, ok = eve.at(at); return ok })
					if shown != want {
						t.Errorf("%v after the disk hung, %s was shown %v on %s, where %v was acknowledged before", time.Since(began), name, shown, d.ip, want)
					}
					slowestLand = max(slowestLand, time.Since(entered))
					eve.leave()
				}
			}
		}
		_, _, took = put(ann)
		longest = max(longest, took)
	}
	t.Logf("the longest edit took %v, the longest of %d joins (%d redirected) %v, %v until the land was there", longest, 6*joined, redirected, slowestJoin, slowestLand)
	if slowestJoin > 3*time.Second {
		t.Errorf("a player was welcomed after %v", slowestJoin)
	}
	for _, d := range all {
		health := d.doctor()
		t.Logf("doctor on %s: %+v", d.ip, health.Findings)
		if want := map[bool]string{true: "storage", false: "not_ready"}[d == hung]; !slices.Contains(findings(health), want) {
			t.Errorf("doctor on %s does not name the disk: %v", d.ip, health.Findings)
		}
	}
	if got := hung.metric("voxeld_replica_stalled"); got != 1 {
		t.Errorf("voxeld_replica_stalled is %v", got)
	}
	thaw()
	if longest > 3*time.Second {
		t.Errorf("an edit waited for %v", longest)
	}
	if notReady == 0 || notReady > 2500*time.Millisecond {
		t.Errorf("/readyz failed after %v", notReady)
	}
	thawed := time.Now()
	eventually(t, "the node is ready again", patience, func() bool { code, _ := ready(); return code == http.StatusOK })
	t.Logf("ready %v after the disk worked again", time.Since(thawed))
	for ; time.Since(thawed) < 15*time.Second; <-pace.C {
		if leader, _ := leaderOf(t, others, spawn.Chunk()); leader == hung {
			t.Fatal("the node whose disk hung leads again")
		}
		put(bob)
		put(ann)
	}
	for _, d := range all {
		eventually(t, "all is well", patience, func() bool { return len(d.doctor().Findings) == 0 })
	}
}
