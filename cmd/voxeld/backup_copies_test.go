package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// After a world was restored on one node and two others have joined, every region gets its three replicas. make
// backup-proof measures how long that takes with 2,000 regions.
func TestReplicasAfterRestore(t *testing.T) {
	if *largeRegions < 100 {
		t.Skip("make backup-proof runs it")
	}
	file := filepath.Join(t.TempDir(), "large.voxback")
	largeWorld(t, file, false, *largeRegions, *largeEdits, 0)
	first := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data")})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", first.dir, "--root-key", filepath.Join(filepath.Dir(file), joining.RootKeyFile)); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	first.start()
	token := first.invite()
	startDaemon(t, "--join", token)
	startDaemon(t, "--join", token)
	begun := time.Now()
	eventually(t, "the new nodes count", patience, func() bool {
		return first.metric("voxeld_world_regions", "state", "under_replicated") > 0
	})
	if _, errs, code := voxeld(t, "status", "--wait", "healthy", "--timeout", "1h", "--data-dir", first.dir); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	took := time.Since(begun)
	t.Logf("%d regions have three replicas after %v: %.1f a second", *largeRegions, took.Round(time.Second), float64(*largeRegions)/took.Seconds())
}
