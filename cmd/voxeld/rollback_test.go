package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// An earlier copy of a node's data directory is put back after the other nodes have gone on. The copy must not vote: an edit that
// was acknowledged with the help of the newer data stays, whichever nodes are up.
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
	a.start()
	eventually(t, "all is well with the node back", patience, healthy(c))
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
