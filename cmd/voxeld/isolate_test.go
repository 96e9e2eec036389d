package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire"
)

// faultBinary builds a voxeld in which faults can be provoked (region/provoke_on.go).
var faultBinary = sync.OnceValues(func() (string, error) {
	clean, err := daemonBinary() // TestMain removes its directory
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(clean), "voxeld-fault")
	if out, err := exec.Command("go", "build", "-tags", "fault", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// A player places a block that makes the leader of its region panic, and their node resends it again and again. The
// region moves, until half of its members keep it closed. No daemon ends, a player in the neighbouring region is not
// affected, and an operator reopens the region.
func TestPoisonousBlock(t *testing.T) {
	t.Parallel()
	path, err := faultBinary()
	if err != nil {
		t.Fatal(err)
	}
	fault := []string{fmt.Sprintf("FAULT_VOXELD=tick:%d", chunk.Glass)}
	var all []*daemon
	for i := range 3 {
		o := kit.Options{Binary: path, Options: process.Options{Env: fault}}
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
	ann, bea := join(t, all[0].Game, "ann", 1), join(t, all[1].Game, "bea", 1)
	at := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(at); return ok })
	ann.put(at, chunk.Brick)
	bea.walkTo(10, bea.Welcome.Pose.Z) // into the next cell
	beside := under(bea, 3, 0, 0)
	if grid.CellAt(at.Chunk(), grid.FoundingLabel) == grid.CellAt(beside.Chunk(), grid.FoundingLabel) {
		t.Fatal("bea stands in the same region")
	}
	bea.until("the land beside it", func() bool { _, ok := bea.at(beside); return ok })
	bea.put(beside, chunk.Planks)
	eventually(t, "all is well", patience, func() bool { return len(all[2].doctor().Findings) == 0 })

	start := time.Now()
	seq := ann.edit(at, chunk.Glass)
	var slowest time.Duration
	edits := 0
	for ok := false; !ok; _, ok = ann.Acks[seq] {
		begin := time.Now()
		bea.putPatiently(beside, []chunk.Block{chunk.Stone, chunk.Planks}[edits%2])
		slowest = max(slowest, time.Since(begin))
		edits++
		ann.drain()
		if time.Since(start) > patience {
			t.Fatal("the block is never answered")
		}
	}
	t.Logf("quarantined %v after the block; bea's slowest of %d edits took %v", time.Since(start), edits, slowest)
	if why := ann.Acks[seq].Error; why != wire.RefusedQuarantined {
		t.Errorf("the block is answered by %q", why)
	}
	if slowest > 2*time.Second {
		t.Errorf("bea waited %v", slowest)
	}
	isolated := 0.0
	for _, d := range all {
		isolated += d.metric("voxeld_regions_isolated_total", "reason", "panic")
	}
	if isolated < 4 || isolated > 6 {
		t.Errorf("regions were isolated %v times", isolated)
	}
	eventually(t, "two nodes count the quarantined region", noticedWithin, func() bool {
		return all[0].metric("voxeld_node_regions", "state", "quarantined")+all[1].metric("voxeld_node_regions", "state", "quarantined")+
			all[2].metric("voxeld_node_regions", "state", "quarantined") >= 2
	})
	health := all[2].doctor()
	if !slices.Contains(findings(health), "quarantined") {
		t.Errorf("the doctor finds %+v", health)
	}
	cell := grid.CellAt(at.Chunk(), grid.FoundingLabel).String()
	if out, errs, code := voxeld(t, "region", "release", cell, "--data-dir", all[2].dir); code != 0 || !strings.Contains(out, "3 of its members") {
		t.Errorf("release: exit %d: %s%s", code, out, errs)
	}
	ann.putPatiently(at, chunk.Stone)
	eventually(t, "all is well again", patience, func() bool { return len(all[2].doctor().Findings) == 0 })
}
