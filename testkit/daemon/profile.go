package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Collect makes the daemon collect its garbage now, so that its heap holds live objects only.
func (d *Daemon) Collect(ctx context.Context) error {
	_, err := d.get(ctx, "/debug/pprof/heap?gc=1")
	return err
}

// Profile is a CPU profile as read by go tool pprof.
type Profile struct {
	Top   string             // the functions that used most, a table
	Below map[string]float64 // by function, its share of all samples, callees included; 0 to 1
}

// Profile writes a CPU profile of so many seconds to a file. ReadProfile reads it.
func (d *Daemon) Profile(ctx context.Context, seconds int, path string) error {
	data, err := d.get(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("save profile: %w", err)
	}
	return nil
}

// ReadProfile reads one profile, or merges several. It keeps a core busy for a while.
func ReadProfile(ctx context.Context, paths ...string) (p Profile, err error) {
	read := func(flags ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "go", slices.Concat([]string{"tool", "pprof", "-top"}, flags, paths)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("read profile: %w: %s", err, out)
		}
		return string(out), nil
	}
	if p.Top, err = read("-nodecount=25"); err != nil {
		return p, err
	}
	all, err := read("-cum", "-nodecount=100000", "-nodefraction=0")
	p.Below = sharesOf(all)
	return p, err
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
