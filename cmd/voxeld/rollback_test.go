package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
)

// An earlier copy of a node's data directory is put back after the other nodes have gone on. The copy must not vote: an
// edit that was acknowledged with the help of the newer data stays, whichever nodes are up.
func TestOldCopyDoesNotVote(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	ann := join(t, c.Game, "ann", 1)
	before, kept, later := under(ann, 1, 0, 2), under(ann, 1, 1, 2), under(ann, 1, -1, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(before); return ok })
	ann.put(before, chunk.Brick)
	healthy := func(d *daemon) func() bool {
		return func() bool { return len(d.doctor().Findings) == 0 }
	}
	eventually(t, "all is well", patience, healthy(c))
	a.terminate()
	old := filepath.Join(t.TempDir(), "old")
	copyDir(t, a.dir, old)
	known := func() int {
		return strings.Count(b.Output(), `"newer incarnation of a node remembered" peer=`+a.Status.Peer)
	}
	remembered := known()
	a.start()
	eventually(t, "all is well with the node back, and the others remember it", patience, func() bool { return known() > remembered && healthy(c)() })
	b.kill()
	ann.putPatiently(kept, chunk.Glass)
	ann.leave()
	a.kill()
	c.kill()
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	copyDir(t, old, a.dir)
	if err := b.Launch(""); err != nil {
		t.Fatal(err)
	}
	if err := a.Launch(""); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*daemon{a, b} {
		if err := d.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the old copy is noticed", patience, func() bool { return a.metric("voxeld_replicas_rolled_back_total") > 0 })
	if !strings.Contains(a.Output(), "earlier state") {
		t.Error("the log of the node that went back does not say so")
	}
	c.start()
	for _, d := range []*daemon{b, a} {
		eve := join(t, d.Game, "eve", 1)
		eve.sees(kept, chunk.Glass)
		eve.leave()
	}
	bob := join(t, b.Game, "bob", 1)
	bob.sees(kept, chunk.Glass)
	bob.putPatiently(later, chunk.Planks)
	eventually(t, "an old copy is replaced", patience, func() bool {
		return a.metric("voxeld_replicas_discarded_total", "reason", "rolled_back") > 0
	})
	if n := a.metric("voxeld_replicas_discarded_total", "reason", "damaged"); n != 0 {
		t.Errorf("%v old copies count as damaged: people would be told to replace the disk", n)
	}
	eventually(t, "all is well again", patience, healthy(b))
	c.kill() // the node that went back votes again, with what the others gave it
	bob.sees(kept, chunk.Glass)
	bob.putPatiently(later, chunk.Stone)
}

// copyDir copies a data directory.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// Two of three nodes are destroyed, and the third was put back to an old copy, which the others had noticed. The copy
// is the last resort: the doctor names the command, which says what is lost, and does nothing until the operator has
// typed that they want it. Then the land takes edits again.
func TestRecoverFromOldCopy(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3, "--replace-after", "10s")
	a, b, c := all[0], all[1], all[2]
	ann := join(t, c.Game, "ann", 1)
	before, lost, after := under(ann, 1, 0, 2), under(ann, 1, 1, 2), under(ann, 1, -1, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(before); return ok })
	ann.put(before, chunk.Brick)
	healthy := func(d *daemon) func() bool {
		return func() bool { return len(d.doctor().Findings) == 0 }
	}
	eventually(t, "all is well", patience, healthy(c))
	a.terminate()
	old := filepath.Join(t.TempDir(), "old")
	copyDir(t, a.dir, old)
	a.start()
	eventually(t, "all is well with the node back", patience, healthy(c))
	b.kill()
	ann.putPatiently(lost, chunk.Glass)
	ann.leave()
	a.kill()
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	copyDir(t, old, a.dir)
	a.start()
	eventually(t, "the old copy is noticed", patience, func() bool { return a.metric("voxeld_replicas_rolled_back_total") > 0 })
	eventually(t, "the doctor reports it", patience, func() bool {
		health := c.doctor()
		return slices.ContainsFunc(health.Findings, func(f region.Finding) bool { return f.Kind == "rolled_back" && f.Subject == a.Status.Peer }) &&
			!slices.Contains(findings(health), "damaged")
	})
	recover := []string{"region", "recover", "--all-lost", "--data-dir", a.dir}
	if out, errs, code := voxeld(t, append(recover, "--yes", "--old-copy")...); code == 0 || !strings.Contains(out, "alive, most complete") || strings.Contains(out, ": recovered") {
		t.Errorf("an old copy is preferred to a good one: exit %d: %s%s", code, out, errs)
	}
	c.kill()
	var said string
	eventually(t, "the doctor names the last resort", patience, func() bool {
		said, _, _ = voxeld(t, "doctor", "--data-dir", a.dir)
		return strings.Contains(said, "\nrolled_back: "+a.Status.Peer+"\n") && strings.Contains(said, "last resort is the old copy") &&
			strings.Contains(said, "region recover catalog") && strings.Contains(said, "region recover --all-lost")
	})
	t.Logf("the doctor:\n%s", said)
	said, _, _ = voxeld(t, "status", "--data-dir", a.dir)
	t.Logf("the status:\n%s", said)
	if !strings.Contains(said, "rolled back  ") {
		t.Errorf("the status does not say that replicas are not used")
	}
	eventually(t, "the others count as lost", patience, func() bool {
		out, errs, code := voxeld(t, append(recover, "--yes")...)
		if code == 0 || strings.Contains(out, ": recovered") {
			t.Fatalf("recovered without the confirmation: %s", out)
		}
		said = out + errs
		return strings.Contains(said, "pass --old-copy")
	})
	if out := inTerminal(t, "yes\n", recover...); !strings.Contains(out, "Type 'old copy' to confirm: ") || strings.Contains(out, ": recovered") {
		t.Errorf("the wrong text was typed: %s", out)
	}
	said = inTerminal(t, "old copy\n", recover...)
	t.Logf("the recovery:\n%s", said)
	for _, part := range []string{"catalog: recovered from the old copy", "lost: everything that was acknowledged there after it was made", b.Status.Peer, c.Status.Peer} {
		if !strings.Contains(said, part) {
			t.Errorf("voxeld region recover does not say %q", part)
		}
	}
	bob := join(t, a.Game, "bob", 1)
	bob.sees(before, chunk.Brick)
	bob.putPatiently(after, chunk.Planks)
	if address := locate(t, a.Game, grid.ChunkPos{X: 5000, Z: 5000}); address == "" {
		t.Error("no land can be founded")
	}
	bob.leave()
	a.terminate()
	a.start()
	bob = join(t, a.Game, "bob", 1)
	bob.sees(after, chunk.Planks)
	bob.putPatiently(lost, chunk.Stone)
	if out, _, _ := voxeld(t, "doctor", "--data-dir", a.dir); strings.Contains(out, "rolled_back") || strings.Contains(out, "no_quorum") {
		t.Errorf("after the recovery the doctor reports\n%s", out)
	}
}

// inTerminal runs a command in a terminal, types the text, and returns what it shows.
func inTerminal(t *testing.T, text string, args ...string) string {
	t.Helper()
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := pty.Start(exec.CommandContext(t.Context(), path, args...))
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if _, err := terminal.WriteString(text); err != nil {
		t.Fatal(err)
	}
	shown, _ := io.ReadAll(terminal) // an error when the command ends
	return strings.ReplaceAll(string(shown), "\r\n", "\n")
}
