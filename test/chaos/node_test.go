package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Joins at a node that serves are judged: one that is only starting does not serve, nor does one that is being ended.
func TestServes(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "voxeld")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	n := &Node{Number: 1, dir: dir, pid: filepath.Join(dir, "pid"), log: filepath.Join(dir, "log")}
	n.Daemon = daemon.New(daemon.Options{Binary: binary, Dir: dir, Admin: filepath.Join(dir, "sock"), IP: "127.0.0.1", Options: process.Options{Log: n.log}})
	if err := n.launch(""); err != nil {
		t.Fatal(err)
	}
	defer n.kill() //nolint:errcheck // it has no error
	serves := func(what string, want bool) {
		t.Helper()
		if got := n.Serves(); got != want {
			t.Errorf("%s: serves is %t", what, got)
		}
	}
	serves("launched", false)
	n.mu.served = true
	serves("started", true)
	n.setPaused(true)
	serves("paused", false)
	n.setPaused(false)
	n.expectEnd()
	serves("about to be killed", false)
}
