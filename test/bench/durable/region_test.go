package main

import (
	"os"
	"testing"
	"time"
)

// TestMain is also the nodes that the benchmark starts: it runs its own binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		exit(runNode(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// The nodes of the region benchmark are put together here, not by cmd/voxeld: they must follow what regions need.
func TestRegions(t *testing.T) {
	o := options{dir: t.TempDir(), systems: []string{"region"}}
	s, err := startRegions(t.Context(), o, 180)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	r, err := measure(t.Context(), options{duration: 100 * time.Millisecond}, "region", s, 2)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ops == 0 {
		t.Errorf("no edit was acknowledged: %+v", r)
	}
}
