package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/testkit/daemon"
)

// TestShort is a short run: five real daemons; a split, kill -9 of its leader and of all nodes, SIGSTOP, SIGTERM, and where the
// machine allows it a power cut of all nodes, a full disk and a partition. `make chaos` makes long runs.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("starts daemons")
	}
	binary, err := daemon.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(os.TempDir(), fmt.Sprintf("voxeld-chaos-test-%d", os.Getpid())) // kept if the test fails
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var table strings.Builder
	report, err := Run(ctx, Options{
		Scenario: "short", Binary: binary, Out: out, Seed: 3, Rate: 100, Command: "go test ./chaos -run Short -v",
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if report != nil {
		if err := report.WriteTable(&table); err != nil {
			t.Error(err)
		}
		t.Log(table.String())
	}
	if err != nil || report.Failed {
		t.Fatalf("failed (%v); ledger, logs and histories are in %s", err, out)
	}
	for _, s := range report.Skipped {
		t.Logf("SKIPPED %s", s)
	}
	if report.Verdict.Acknowledged < 300 {
		t.Errorf("only %d edits were acknowledged", report.Verdict.Acknowledged)
	}
	os.RemoveAll(out)
}
