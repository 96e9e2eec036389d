package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/store"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
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
	if errs, code := run(); code != exitData || !strings.Contains(errs, d.rootKey()) || !strings.Contains(errs, "--join") {
		t.Errorf("with a root key and no database: exit %d: %s", code, errs)
	}
	remove(joining.RootKeyFile)
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
	d.terminate()
	database := filepath.Join(d.dir, databaseName)
	elsewhere := filepath.Join(t.TempDir(), databaseName)
	if err := errors.Join(os.Remove(d.rootKey()), os.Remove(database), os.Symlink(elsewhere, database)); err != nil {
		t.Fatal(err)
	}
	if errs, code := run(); code != exitData || !strings.Contains(errs, elsewhere) {
		t.Errorf("with a link to a database that is missing: exit %d: %s", code, errs)
	}
}

// A node whose database has lost the row that names its world creates no new world over its replicas, nor does it join
// one.
func TestReplicasWithoutTheirWorld(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, kit.Options{})
	d.start()
	token := d.invite()
	d.terminate()
	db, err := store.Open(store.Options{Path: filepath.Join(d.dir, databaseName)})
	if err != nil {
		t.Fatal(err)
	}
	parts := newStack()
	parts.onStop("database", db.Close)
	parts.start("commits", db.Run)
	if err := errors.Join(db.Commit([]kv.Write{{Table: worldTable, Key: genesisKey}}), parts.stop()); err != nil {
		t.Fatal(err)
	}
	run := []string{"run", "--data-dir", d.dir, "--listen", fmt.Sprintf("/ip4/%s/tcp/4001", d.ip), "--game", d.Game, "--http", d.HTTP, "--metrics", ""}
	for _, args := range [][]string{{"init", "--data-dir", d.dir}, append(run, "--join", token), run} {
		if _, errs, code := voxeld(t, args...); code != exitData || !strings.Contains(errs, "replicas") || !strings.Contains(errs, "voxeld restore") {
			t.Errorf("voxeld %v: exit %d: %s", args, code, errs)
		}
	}
}

// A voxeld init that is refused leaves the node as it was: a root key beside another world would keep it from starting.
func TestRefusedInitCreatesNoRootKey(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	d := startDaemon(t, "--join", first.invite())
	refused := func(say string) {
		t.Helper()
		if _, errs, code := voxeld(t, "init", "--data-dir", d.dir); code != exitData || !strings.Contains(errs, say) {
			t.Errorf("init: exit %d: %s", code, errs)
		}
		if _, err := os.Lstat(d.rootKey()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("init has created a root key: %v", err)
		}
	}
	refused("in use")
	d.terminate()
	refused("already holds")
}

// A node that finds its disk full when it starts is started again by systemd, until there is space; one with a damaged
// data directory is not.
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
