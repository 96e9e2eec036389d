package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Two of three nodes are lost, and the operator recovers from the third one: edits are accepted again. Then the two
// come back and start afresh. When the survivor is killed, they have all edits that were acknowledged since.
func TestRecover(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	survivor, lost := all[0], all[1:]
	ann := join(t, survivor.Game, "ann", 1)
	before, after, later := under(ann, 1, 0, 2), under(ann, 1, 1, 2), under(ann, 1, -1, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(before); return ok })
	ann.put(before, chunk.Brick)
	eventually(t, "all is well", patience, func() bool { return len(survivor.doctor().Findings) == 0 })
	if out, errs, code := voxeld(t, "region", "recover", "catalog", "--data-dir", survivor.dir, "--yes"); code != exitFailed || !strings.Contains(out, "not lost") {
		t.Fatalf("recovered while all live: exit %d: %s%s", code, out, errs)
	}
	for _, d := range lost {
		d.kill()
	}
	killed := time.Now()
	if out, errs, code := voxeld(t, "region", "recover", "--all-lost", "--data-dir", survivor.dir, "--yes"); code != exitFailed || !strings.Contains(out, "wait") {
		t.Errorf("recovered at once: exit %d: %s%s", code, out, errs)
	}
	eventually(t, "the doctor finds the loss", patience, func() bool {
		return slices.Contains(findings(survivor.doctor()), "no_quorum")
	})
	if out, errs, code := voxeld(t, "region", "recover", "--all-lost", "--data-dir", survivor.dir); code == 0 || strings.Contains(out, ": recovered") {
		t.Errorf("recovered without confirmation: exit %d: %s%s", code, out, errs)
	}
	var out, errs string
	eventually(t, "the recovery", patience, func() bool {
		var code int
		out, errs, code = voxeld(t, "region", "recover", "--all-lost", "--data-dir", survivor.dir, "--yes")
		return code == 0
	})
	t.Logf("%v after the loss: %s%s", time.Since(killed), out, errs)
	if !strings.Contains(out, "catalog: recovered") || !strings.Contains(out, lost[0].Status.Peer) {
		t.Errorf("said: %s", out)
	}
	ann = join(t, survivor.Game, "ann", 1)
	ann.sees(before, chunk.Brick)
	ann.putPatiently(after, chunk.Glass)
	if address := locate(t, survivor.Game, grid.ChunkPos{X: 5000, Z: 5000}); address == "" {
		t.Error("no land can be founded")
	}

	for _, d := range lost {
		d.start()
	}
	back := time.Now()
	ann.putPatiently(later, chunk.Planks)
	eventually(t, "all is well again", patience, func() bool {
		health := survivor.doctor()
		if len(health.Findings) > 0 {
			t.Logf("not yet: %v", health.Findings)
		}
		return len(health.Findings) == 0
	})
	t.Logf("all is well %v after the lost ones came back", time.Since(back))
	survivor.kill()
	bob := join(t, lost[1].Game, "bob", 1)
	bob.sees(before, chunk.Brick)
	bob.sees(after, chunk.Glass)
	bob.sees(later, chunk.Planks)
	bob.putPatiently(later, chunk.Stone)
}

// A cell west of the origin looks like a flag, but is an argument.
func TestCellsThatLookLikeFlags(t *testing.T) {
	for args, want := range map[string]string{
		"region release -1,0/1010 --data-dir d": "region release --data-dir d -- -1,0/1010",
		"region recover 1,-2/01 --yes":          "region recover 1,-2/01 --yes",
		"region recover -- -1,-2/":              "region recover -- -1,-2/",
		"run --admin -1":                        "run --admin -1",
	} {
		if got := strings.Join(cellsLast(strings.Fields(args)), " "); got != want {
			t.Errorf("%s became %s", args, got)
		}
	}
}
