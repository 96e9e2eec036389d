package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command writes each figure as CSV and as a plot, and compares the approaches without --figure.
func TestSimWalkad(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		c := newSimWalkad()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(append([]string{"--nodes", "64", "--max-nodes", "64", "--max-regions", "5", "--avatars", "5", "--seconds", "300", "--keys", "paper"}, args...))
		err := c.Execute()
		return out.String(), err
	}
	if out, err := run("--figure", "all", "--out", dir); err != nil || strings.Contains(out, "NaN") {
		t.Fatal(err, out)
	}
	for _, f := range walkadFigures {
		csv, err := os.ReadFile(filepath.Join(dir, "walkad-"+f.name+".csv"))
		if err != nil || bytes.Count(csv, []byte("\n")) < 4 {
			t.Errorf("%s: the CSV has %d lines: %v", f.name, bytes.Count(csv, []byte("\n")), err)
		}
		if svg, err := os.ReadFile(filepath.Join(dir, "walkad-"+f.name+".svg")); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
			t.Errorf("%s: no plot: %v", f.name, err)
		}
	}
	first, err := run()
	if err != nil || !strings.Contains(first, "| plain Kademlia |") {
		t.Errorf("one network: %v, %s", err, first)
	}
	if again, _ := run(); again != first {
		t.Errorf("a second run prints something else:\n%s\n%s", first, again)
	}
	for _, bad := range [][]string{{"--figure", "4"}, {"--seeds", "0"}, {"--nodes", "0"}, {"--links", "11"}, {"--keys", "other"}} {
		if out, err := run(bad...); err == nil {
			t.Errorf("%q is taken: %s", bad, out)
		}
	}
}
