package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// TestShort is a short run: five real daemons; kills, SIGSTOP, SIGTERM, a split, and where the machine allows it a
// power cut, disks that are full, hang and are slow, and cuts. `make chaos` makes long runs.
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
		Scenario: "short", Binary: binary, Out: out, Seed: 3, Rate: 100, Command: "go test ./test/chaos -run Short -v",
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
	if v := report.Verdict; v.Acknowledged < 300 || v.Joins < 50 {
		t.Errorf("only %d edits were acknowledged, and %d joins were shown land", v.Acknowledged, v.Joins)
	}
	os.RemoveAll(out)
}

// Each scenario's strikes exist, and each strike is of a scenario.
func TestScenarios(t *testing.T) {
	used := make(map[string]bool)
	for _, s := range scenarios {
		if len(s.kinds()) != len(s.strikes) || (s.run == nil) == (len(s.strikes) == 0) {
			t.Errorf("%s: strikes %v", s.name, s.strikes)
		}
		for _, name := range s.strikes {
			used[name] = true
		}
	}
	for _, k := range strikes {
		if !used[k.name] {
			t.Errorf("no scenario has the strike %s", k.name)
		}
	}
	if mix, err := find("mix"); err != nil || mix.expected(mix.events) > 40*time.Minute {
		t.Errorf("the mix takes %v: %v", mix.expected(mix.events), err)
	}
}

// Strikes are combined by name, with the flags that each of them needs.
func TestStrikesAreCombined(t *testing.T) {
	s, err := find("kill+flip+hang")
	if err != nil || s.events != 30 || len(s.kinds()) != 3 || !slices.Equal(s.flags(), replaceSoon) {
		t.Errorf("%+v, %v, %v", s, s.flags(), err)
	}
	for _, name := range []string{"kill+lie", "kill+kill", "", "+"} {
		if _, err := find(name); err == nil {
			t.Errorf("%q is taken for a scenario", name)
		}
	}
}
