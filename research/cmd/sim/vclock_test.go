package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command writes each table of a small walk as CSV.
func TestSimVclock(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		c := newSimVclock()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(append([]string{"--players", "40", "--side", "200", "--rounds", "20"}, args...))
		err := c.Execute()
		return out.String(), err
	}
	out, err := run("--figure", "all", "--seeds", "2", "--out", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Algorithm 2 as printed |", "| own, chained by what their gateway heard |", "| the same, 32 heard last |", "| 20 |"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q is printed", want)
		}
	}
	for name, lines := range map[string]int{"sizes": 7, "comparisons": 15, "settings": 11} {
		csv, err := os.ReadFile(filepath.Join(dir, "vclock-"+name+".csv"))
		if err != nil || bytes.Count(csv, []byte("\n")) != lines {
			t.Errorf("%s: the CSV has %d lines, want %d: %v", name, bytes.Count(csv, []byte("\n")), lines, err)
		}
	}
	if one, err := run(); err != nil || !strings.Contains(one, "| the authors' own |") {
		t.Errorf("one walk: %v, %s", err, one)
	}
	for _, bad := range [][]string{{"--figure", "9z"}, {"--seeds", "0"}, {"--players", "-1"}, {"--limit", "1"}} {
		if out, err := run(bad...); err == nil {
			t.Errorf("%q is taken: %s", bad, out)
		}
	}
}
