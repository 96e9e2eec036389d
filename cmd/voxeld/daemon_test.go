package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// The tests of this package run the real binary in separate processes and observe it from outside. Tests that mostly
// wait run in parallel, each daemon on its own loopback address. Tests that bound a pause, or drive a crowd, run alone.

// daemonBinary builds voxeld once for all tests.
var daemonBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "voxeld-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "voxeld")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.buildVersion=tested", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil { // these tests mostly wait; a flag on the command line counts
		panic(err)
	}
	code := m.Run()
	if path, err := daemonBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// voxeld runs a command to its end and returns what it printed.
func voxeld(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return voxeldWithEnv(t, os.Environ(), args...)
}

// voxeldWithEnv runs a command with these environment variables.
func voxeldWithEnv(t *testing.T, variables []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = variables
	c.Stdout, c.Stderr = &out, &errs
	c.Run() //nolint:errcheck // the exit code is checked
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// daemon is a node of a test.
type daemon struct {
	*kit.Daemon
	t       *testing.T
	ip, dir string
	Status  admin.Status // as of the latest start
}

// newDaemon returns a node that does not run yet. By default it has a new data directory, and the binary of this
// source.
func newDaemon(t *testing.T, o kit.Options) *daemon {
	t.Helper()
	var err error
	if o.Binary == "" {
		if o.Binary, err = daemonBinary(); err != nil {
			t.Fatal(err)
		}
	}
	if o.IP == "" {
		o.IP = takeAddress(t)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Log, o.LogLevel = filepath.Join(t.TempDir(), "log"), "debug"
	d := &daemon{Daemon: kit.New(o), t: t, ip: o.IP, dir: o.Dir}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() && d.Process != nil {
			t.Logf("log of the node on %s:\n%s", d.ip, tail(d.Output(), 60))
		}
	})
	return d
}

// takeAddress returns a loopback address of the test's own.
func takeAddress(t *testing.T) string {
	t.Helper()
	ip, err := kit.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

// startDaemon starts a node with these flags. Without --join its world has a known seed, so that every run tests the
// same land.
func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, kit.Options{Args: args})
	if !slices.Contains(args, "--join") {
		d.init()
	}
	d.start()
	return d
}

// init configures the world with the known seed.
func (d *daemon) init() {
	d.t.Helper()
	if err := d.Init(d.t.Context(), "--seed", "33"); err != nil {
		d.t.Fatal(err)
	}
}

// start runs the node and waits until it serves.
func (d *daemon) start() {
	d.t.Helper()
	if err := d.Start(d.t.Context(), ""); err != nil {
		d.t.Fatal(err)
	}
	d.ask("status", &d.Status)
}

// ask runs one of the query commands with --json.
func (d *daemon) ask(command string, answer any) {
	d.t.Helper()
	out, errs, code := voxeld(d.t, command, "--data-dir", d.dir, "--json")
	if code != 0 {
		d.t.Fatalf("voxeld %s: exit %d: %s", command, code, errs)
	}
	if err := json.Unmarshal([]byte(out), answer); err != nil {
		d.t.Fatalf("voxeld %s: %v in %s", command, err, out)
	}
}

// metric scrapes the sum of a metric's series that have the label values.
func (d *daemon) metric(name string, labels ...string) float64 {
	d.t.Helper()
	m, err := d.Scrape(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	if m[name] == nil {
		d.t.Fatalf("there is no metric %s", name)
	}
	return m.Value(name, labels...)
}

// rootKey returns the file with the root key of the world that the node created.
func (d *daemon) rootKey() string { return filepath.Join(d.dir, joining.RootKeyFile) }

// invite returns a join token.
func (d *daemon) invite() string {
	d.t.Helper()
	token, err := d.Invite(d.t.Context(), true)
	if err != nil {
		d.t.Fatal(err)
	}
	return token
}

// kill ends the node without warning, as a power failure would.
func (d *daemon) kill() {
	if d.Process != nil {
		d.Kill()
	}
}

// terminate stops the node with SIGTERM and returns its exit code.
func (d *daemon) terminate() int {
	d.t.Helper()
	if err := d.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	return d.exited(patience)
}

// exited waits until the process has ended, and returns its exit code.
func (d *daemon) exited(limit time.Duration) int {
	d.t.Helper()
	select {
	case <-d.Ended():
	case <-time.After(limit):
		d.kill()
		d.t.Errorf("the node on %s did not end within %v", d.ip, limit)
	}
	return d.ExitCode()
}

func tail(text string, n int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// patience is how long tests wait for an event. It detects hangs; it does not judge slow machines. A test of a promised
// time has its own limit.
const patience = 90 * time.Second

// eventually polls a condition of another process until it holds.
func eventually(t *testing.T, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", limit, what)
		case <-poll.C:
		}
	}
}
