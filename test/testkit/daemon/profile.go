package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Collect makes the daemon collect its garbage now, so that its heap holds live objects only.
func (d *Daemon) Collect(ctx context.Context) error {
	_, err := d.request(ctx, http.MethodGet, "/debug/pprof/heap?gc=1")
	return err
}

// Profile writes a CPU profile of so many seconds to a file, for ReadProfile.
func (d *Daemon) Profile(ctx context.Context, seconds int, path string) error {
	data, err := d.request(ctx, http.MethodGet, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("save profile: %w", err)
	}
	return nil
}

// ReadProfile returns each function's share of a CPU profile, callees included; 0 to 1. It keeps a core busy for a
// while.
func ReadProfile(ctx context.Context, path string) (map[string]float64, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=100000", "-nodefraction=0", path).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("read profile: %w: %s", err, out)
	}
	return sharesOf(string(out)), nil
}

// sharesOf parses the table of go tool pprof -top.
func sharesOf(table string) map[string]float64 {
	shares := make(map[string]float64)
	for line := range strings.Lines(table) {
		cells := strings.Fields(line) // flat, flat%, sum%, cum, cum%, name
		if len(cells) < 6 || !strings.HasSuffix(cells[4], "%") {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSuffix(cells[4], "%"), 64); err == nil {
			shares[cells[5]] = v / 100
		}
	}
	return shares
}
