package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/store"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
)

// A node that creates a world because --join is not set warns about it, and about how to join another one. A node whose
// database was lost does not create a world silently: it refuses to start as long as anything of the old one is left.
func TestLostDatabaseIsNoNewWorld(t *testing.T) {
	d := newDaemon(t, kit.Options{})
	d.start()
	for _, said := range []string{"level=WARN", "a new world is created", "--join", d.Status.WorldID} {
		if !strings.Contains(d.Output(), said) {
			t.Errorf("the node does not say %q:\n%s", said, tail(d.Output(), 20))
		}
	}
	d.kill()
	run := func() (string, int) {
		_, errs, code := voxeld(t, "run", "--data-dir", d.dir, "--listen", fmt.Sprintf("/ip4/%s/tcp/4001", d.ip),
			"--game", d.Game, "--http", d.HTTP, "--metrics", d.Metrics)
		return errs, code
	}
	remove := func(pattern string) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(d.dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(databaseName)
	if errs, code := run(); code != exitData || !strings.Contains(errs, "a node ran here") || !strings.Contains(errs, "--join") {
		t.Errorf("with a socket and no database: exit %d: %s", code, errs)
	}
	remove("admin.sock")
	if errs, code := run(); code != exitData || !strings.Contains(errs, "its journal") || !strings.Contains(errs, "--join") {
		t.Errorf("with a journal and no database: exit %d: %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(d.dir, databaseName)); err == nil {
		t.Error("a database was made all the same")
	}
	remove("*.journal-*")
	first := d.Status.WorldID
	d.start()
	if d.Status.WorldID == first {
		t.Error("the world is the old one")
	}
}

// A node that finds its disk full when it starts is started again by systemd, until there is space; one with a damaged data directory is not.
func TestExitCodesThatPreventARestart(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/voxeld.service")
	if err != nil {
		t.Fatal(err)
	}
	_, codes, _ := strings.Cut(string(unit), "\nRestartPreventExitStatus=")
	codes, _, _ = strings.Cut(codes, "\n")
	for _, c := range []struct {
		err      error
		prevents bool
	}{{store.ErrFull, false}, {kv.ErrDamaged, true}, {errDatabaseGone, true}, {cli.Usage(errDatabaseGone), true}} {
		code := exitCode(fmt.Errorf("open data directory: %w", c.err))
		if prevents := slices.Contains(strings.Fields(codes), strconv.Itoa(code)); prevents != c.prevents {
			t.Errorf("%v: exit code %d prevents a restart: %v, want %v", c.err, code, prevents, c.prevents)
		}
	}
}
