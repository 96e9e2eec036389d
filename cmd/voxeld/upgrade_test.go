package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/test/bot"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/ledger"
)

// previousFile names the version that the tests of upgrades start with: a commit or tag of this repository. It is the
// latest release; before there is one, a commit.
const previousFile = "testdata/previous"

// buildPrevious builds the previous version. It skips the test where the repository does not have that commit, as in a
// shallow clone.
func buildPrevious(t *testing.T) (binary string) {
	t.Helper()
	text, err := os.ReadFile(previousFile)
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(string(text))
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("the previous version, %s, is not in this clone; git fetch --unshallow --tags may bring it: %v %s", commit, err, out)
	}
	dir := t.TempDir()
	source, tar := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar")
	binary = filepath.Join(dir, "voxeld")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ dir, command string }{
		{"../..", "git archive --output " + tar + " " + commit},
		{source, "tar -xf " + tar},
		{source, "go build -o " + binary + " ./cmd/voxeld"},
	} {
		words := strings.Fields(step.command)
		c := exec.Command(words[0], words[1:]...)
		c.Dir = step.dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step.command, err, out)
		}
	}
	return binary
}

// A world of three nodes is upgraded from the previous version, one node after the other, while players walk and build
// on them; in between one node goes back to the previous version and forward again. No player is disconnected, and no
// acknowledged edit is lost. Afterwards any node may be lost.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	current, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	previous := buildPrevious(t)
	var all []*daemon
	for i := range 3 {
		o := kit.Options{Binary: previous}
		if i > 0 {
			o.Args = []string{"--join", all[0].invite()}
		}
		d := newDaemon(t, o)
		if i == 0 {
			d.init()
		}
		d.start()
		all = append(all, d)
	}
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool {
			var s admin.Status
			d.ask("status", &s)
			return s.Peers == 2
		})
		d.ready()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var book ledger.Ledger
	type result struct {
		bot.Report
		err error
	}
	results := make(chan result, len(all))
	for i, d := range all {
		o := bot.Options{
			Target: d.Game, Mode: bot.Wander, Players: 4, Rate: 5, Edits: 2, Keep: true, View: 1, Ramp: 20,
			Duration: time.Hour, Seed: uint64(i + 1), Acked: book.Acked,
		}
		go func() {
			r, err := bot.Run(ctx, o)
			results <- result{r, err}
		}()
	}
	building := func() {
		t.Helper()
		until := book.Edits() + 50
		eventually(t, fmt.Sprintf("%d edits are acknowledged", until), patience, func() bool { return book.Edits() >= until })
	}
	building()
	restart := func(d *daemon, binary string) {
		t.Helper()
		if code := d.terminate(); code != 0 {
			t.Errorf("%s exits with %d", d.ip, code)
		}
		d.UseBinary(binary)
		d.start()
		d.ready()
		threefold(t, all)
		building()
	}
	threefold(t, all)
	start := time.Now()
	// Once all nodes understand signed edits, regions have them, and no node can go back (docs/compatibility.md).
	restart(all[0], current)
	restart(all[1], current)
	restart(all[1], previous)
	restart(all[1], current)
	restart(all[2], current)
	took := time.Since(start)
	cancel()
	moved := 0
	for range all {
		r := <-results
		moved += r.Moved
		if r.err != nil || r.Lost+r.Failed+r.EditsLost > 0 {
			t.Errorf("%d players lost, %d failed, %d edits lost: %v %v %v", r.Lost, r.Failed, r.EditsLost, r.Failures, r.Causes, r.err)
		}
	}
	for _, d := range all {
		if d.Status.Version != "tested" {
			t.Errorf("%s runs version %q in the end", d.ip, d.Status.Version)
		}
	}
	lost := verify(t, &book, all[0])
	t.Logf("5 restarts in %v; players moved %d times; %d edits acknowledged, %d lost", took.Round(time.Millisecond), moved, book.Edits(), lost)
	ann := join(t, all[0].Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	ann.leave()
	healthy(t, all)
	survive(t, all, built)
}

// threefold waits until every region that is open on the nodes, of either version, has three voters.
func threefold(t *testing.T, all []*daemon) {
	t.Helper()
	eventually(t, "every region has three voters", patience, func() bool {
		for _, d := range all {
			for _, r := range d.regions() {
				if r.Leader == d.Status.Peer && r.Voters != 3 {
					return false
				}
			}
		}
		return true
	})
}
