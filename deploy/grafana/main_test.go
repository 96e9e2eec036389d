package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const rules = "../prometheus/alerts.yml"

var update = flag.Bool("update", false, "write the dashboards")

// The files in dashboards are what this code writes.
func TestDashboardsAreCurrent(t *testing.T) {
	if *update {
		if err := write("dashboards", rules); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := write(dir, rules); err != nil {
		t.Fatal(err)
	}
	want, have := names(t, dir), names(t, "dashboards")
	if !slices.Equal(want, have) {
		t.Fatalf("dashboards has %v, want %v", have, want)
	}
	for _, name := range want {
		if a, b := read(t, filepath.Join(dir, name)), read(t, filepath.Join("dashboards", name)); !bytes.Equal(a, b) {
			t.Errorf("%s is not current: run go run ./deploy/grafana", name)
		}
	}
}

// Every metric that a node exports has a reader: a panel, an alert, or a page of the documentation.
func TestEveryMetricHasAReader(t *testing.T) {
	var readers strings.Builder
	for _, pattern := range []string{"dashboards/*.json", "../prometheus/alerts.yml", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, file := range files {
			readers.Write(read(t, file))
		}
	}
	text := readers.String()
	for _, m := range regexp.MustCompile("(?m)^(voxeld_[a-z_]+),").FindAllStringSubmatch(string(read(t, "../../docs/data/metrics.csv")), -1) {
		if !regexp.MustCompile(m[1] + `(_bucket|_sum|_count)?\b`).MatchString(text) {
			t.Errorf("no panel, alert or page uses %s: add one, or drop the metric", m[1])
		}
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
