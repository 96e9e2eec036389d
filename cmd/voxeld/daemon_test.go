package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests of this package run the real binary in separate processes and observe it from outside. Tests that mostly
// wait run in parallel, each on its own loopback addresses. Tests that bound a pause, or drive a crowd, run alone.

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
	code := m.Run()
	if path, err := daemonBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// voxeld runs a command to its end and returns what it printed.
func voxeld(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), path, args...)
	c.Stdout, c.Stderr = &out, &errs
	c.Run() //nolint:errcheck // the exit code is checked
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// daemon is one running node.
type daemon struct {
	t    *testing.T
	ip   string // its own loopback address
	dir  string
	args []string
	// binary is the path of the binary, if it is not the shared one.
	binary string
	env    []string // further environment variables
	cmd    *exec.Cmd
	logs   *lines

	Game, HTTP, Metrics string
	Status              statusAnswer
}

// lines collects what a process writes, and lets tests wait for a line.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startDaemon starts a node on the n-th loopback address, with its own data directory.
func startDaemon(t *testing.T, n int, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, ip: fmt.Sprintf("127.%d.0.1", n), dir: t.TempDir(), args: args}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("log of the node on %s:\n%s", d.ip, tail(d.logs.String(), 60))
		}
	})
	if !slices.Contains(args, "--join") {
		// A known seed, so that every run tests the same land.
		if _, errs, code := voxeld(t, "init", "--data-dir", d.dir, "--seed", "33"); code != 0 {
			t.Fatalf("voxeld init: exit %d: %s", code, errs)
		}
	}
	d.start()
	return d
}

// start runs the node and waits until it serves, at the default ports of its own address.
func (d *daemon) start() {
	d.t.Helper()
	path, err := daemonBinary()
	if err != nil {
		d.t.Fatal(err)
	}
	if d.binary != "" {
		path = d.binary
	}
	d.Game, d.HTTP, d.Metrics = d.ip+":4002", d.ip+":8080", d.ip+":9102"
	args := append([]string{
		"run", "--data-dir", d.dir, "--listen", "/ip4/" + d.ip + "/tcp/4001",
		"--game", d.Game, "--http", d.HTTP, "--metrics", d.Metrics, "--log-level", "debug",
	}, d.args...)
	d.logs = &lines{news: make(chan struct{}, 1)}
	d.cmd = exec.Command(path, args...)
	d.cmd.Env = append(os.Environ(), d.env...)
	d.cmd.Stdout, d.cmd.Stderr = d.logs, d.logs
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.await("Play:")
	d.ask("status", &d.Status)
}

// await waits until the node has printed the text.
func (d *daemon) await(text string) {
	d.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !strings.Contains(d.logs.String(), text) {
		select {
		case <-d.logs.news:
		case <-deadline.C:
			d.t.Fatalf("the node on %s did not print %q within %v:\n%s", d.ip, text, patience, tail(d.logs.String(), 40))
		}
	}
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

// metric scrapes one metric without labels.
func (d *daemon) metric(name string) float64 {
	d.t.Helper()
	response, err := http.Get("http://" + d.Metrics + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	for s := bufio.NewScanner(response.Body); s.Scan(); {
		if value, found := strings.CutPrefix(s.Text(), name+" "); found {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return v
		}
	}
	d.t.Fatalf("there is no metric %s", name)
	return 0
}

// invite returns a join token.
func (d *daemon) invite() string {
	d.t.Helper()
	var a inviteAnswer
	d.ask("invite", &a)
	return a.Token
}

// kill ends the node without warning, as a power failure would.
func (d *daemon) kill() {
	if d.cmd != nil && d.cmd.ProcessState == nil {
		d.cmd.Process.Kill() //nolint:errcheck // it may have ended
		d.cmd.Wait()         //nolint:errcheck // it was killed
	}
}

// terminate stops the node with SIGTERM and returns its exit code.
func (d *daemon) terminate() int {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { d.cmd.Wait(); close(ended) }() //nolint:errcheck // the exit code is checked
	select {
	case <-ended:
	case <-time.After(patience):
		d.kill()
		d.t.Fatalf("the node on %s did not stop within %v", d.ip, patience)
	}
	return d.cmd.ProcessState.ExitCode()
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
