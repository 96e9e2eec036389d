// Package monitoring has no code, only tests of the alerts and dashboards in deploy/ with the real thing: a real Prometheus
// scrapes real daemons on which bots play. Each condition is made with real means, as a failure would make it. Its alert must
// fire, and clear when the condition ends. On a healthy world no alert may fire, nor while nodes are drained and restarted.
//
// Prometheus runs with rules that are compressed in time (compress); nothing else of them changes.
package monitoring

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var everything = flag.Bool("monitoring.all", false, "make the rarer conditions, too; takes some minutes (make monitoring)")

// rare skips a test that only make monitoring runs.
func rare(t *testing.T) {
	t.Helper()
	if !*everything {
		t.Skip("make monitoring runs it")
	}
}

var workDir string // for binaries; gone after the tests

func TestMain(m *testing.M) {
	flag.Parse()
	code := func() int {
		var err error
		if workDir, err = os.MkdirTemp("", "voxeld-monitoring-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(workDir)
		return m.Run()
	}()
	os.Exit(code)
}

// build builds voxeld with these flags of go build.
func build(name string, flags ...string) (string, error) {
	path := filepath.Join(workDir, name)
	args := append(append([]string{"build", "-o", path}, flags...), "../../cmd/voxeld")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

var plainBinary = sync.OnceValues(func() (string, error) { return build("voxeld") })

// faultBinary returns a voxeld in which regions can be made to fail (region/provoke_on.go).
var faultBinary = sync.OnceValues(func() (string, error) { return build("voxeld-fault", "-tags", "fault") })

// skewedBinary returns a voxeld that states a time 10 s ahead when other nodes ask for it.
var skewedBinary = sync.OnceValues(func() (string, error) {
	return buildChanged("voxeld-skewed", "../../region/states.go", "Clock: time.Now().UnixMilli()", "Clock: time.Now().UnixMilli() + 10_000")
})

// formerBinary returns a voxeld that issues certificates as if it were 24 days ago.
var formerBinary = sync.OnceValues(func() (string, error) {
	return buildChanged("voxeld-former", "../../dht/admission/gate.go", "return time.Now()", "return time.Now().Add(-24*24*time.Hour)")
})

// shortLogBinary returns a voxeld whose log of commands has room for 20.
var shortLogBinary = sync.OnceValues(func() (string, error) {
	return buildChanged("voxeld-short-log", "../../policy/state.go", "MaxActs  = 1_000_000", "MaxActs  = 20")
})

// otherTerrainBinary returns a voxeld that places trees and ores elsewhere.
var otherTerrainBinary = sync.OnceValues(func() (string, error) {
	return buildChanged("voxeld-terrain", "../../terrain/terrain.go", "^ salt*golden", "^ salt*golden ^ 1")
})

// buildChanged builds a voxeld in which a text of a source file is replaced.
func buildChanged(name, source, before, after string) (string, error) {
	source, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(text, []byte(before)) {
		return "", fmt.Errorf("%s has no %q", source, before)
	}
	changed, overlay := filepath.Join(workDir, name+".go"), filepath.Join(workDir, name+".json")
	if err := os.WriteFile(changed, bytes.Replace(text, []byte(before), []byte(after), 1), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, source, changed), 0o600); err != nil {
		return "", err
	}
	return build(name, "-overlay", overlay)
}

// node is a daemon of a test.
type node struct {
	*kit.Daemon
	t *testing.T
	o kit.Options
}

// newNode returns a node that does not run yet: by default of this source, and with an empty data directory.
func newNode(t *testing.T, o kit.Options) *node {
	t.Helper()
	var err error
	if o.Binary == "" {
		if o.Binary, err = plainBinary(); err != nil {
			t.Fatal(err)
		}
	}
	if o.IP == "" {
		if o.IP, err = kit.TakeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Log = filepath.Join(t.TempDir(), "log")
	n := &node{Daemon: kit.New(o), t: t, o: o}
	t.Cleanup(func() {
		if n.Process == nil {
			return
		}
		n.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.Metrics, n.Log())
		}
	})
	return n
}

// start runs the node and waits until it serves.
func (n *node) start(invitation string) {
	n.t.Helper()
	if err := n.Start(n.t.Context(), invitation); err != nil {
		n.t.Fatal(err)
	}
}

// restartAs ends the node, and starts it with other options: another binary, environment or flags.
func (n *node) restartAs(change func(o *kit.Options)) {
	n.t.Helper()
	n.Kill()
	change(&n.o)
	n.Daemon = kit.New(n.o)
	n.start("")
}

// voxeld runs a command on the node's data directory, and returns what it printed.
func (n *node) voxeld(args ...string) string {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.o.Binary, append(args, "--data-dir", n.o.Dir)...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("voxeld %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// findings returns what the doctor finds of one kind, as cells, peers or other subjects.
func (n *node) findings(kind string) (subjects []string) {
	n.t.Helper()
	var health struct {
		Findings []struct{ Kind, Subject string }
	}
	if err := n.Ask(n.t.Context(), "/doctor", &health); err != nil {
		n.t.Fatal(err)
	}
	for _, f := range health.Findings {
		if f.Kind == kind {
			subjects = append(subjects, f.Subject)
		}
	}
	return subjects
}

// addMod adds a mod that is called when players place or break blocks, and does nothing.
func (n *node) addMod() {
	dir := n.t.TempDir()
	for name, text := range map[string]string{
		"mod.toml": "name = \"watcher\"\nversion = \"1\"\napi = 1\n[permissions]\nevents = [\"place\", \"break\"]\nblocks = [\"all\"]\n",
		"main.js":  "on(\"place\", () => {})\non(\"break\", () => {})\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	n.voxeld("mod", "add", dir)
}

// healthy waits until the node sees the whole world healthy, as an operator does between two steps.
func (n *node) healthy() {
	n.t.Helper()
	n.voxeld("status", "--wait", "healthy", "--timeout", patience.String())
}

// newWorld starts nodes of one world, with these flags.
func newWorld(t *testing.T, count int, flags ...string) []*node {
	t.Helper()
	return newWorldOf(t, slices.Repeat([]kit.Options{{Args: flags}}, count))
}

// newWorldOf starts nodes of one world with these options.
func newWorldOf(t *testing.T, options []kit.Options) []*node {
	t.Helper()
	var all []*node
	invitation := ""
	for _, o := range options {
		n := newNode(t, o)
		n.start(invitation)
		all = append(all, n)
		if invitation == "" {
			var err error
			if invitation, err = n.Invite(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// play lets bots walk and build on the node until the test ends.
func (n *node) play(flags ...string) *process.Process {
	n.t.Helper()
	p, err := process.Start(process.Options{Log: filepath.Join(n.t.TempDir(), "bots")}, n.o.Binary,
		append([]string{"bot", "--quiet", "--carrier", "tcp", "--target", n.Game, "--duration", "1h"}, flags...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.Kill)
	return p
}

// meddle lets one player after the other load the page, join, chat, strike themself, jump too far and leave, until the test ends
// or the node does.
func (n *node) meddle() {
	n.t.Helper()
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ctx, cancel := context.WithCancel(n.t.Context())
	var playing sync.WaitGroup
	n.t.Cleanup(func() { cancel(); playing.Wait() })
	playing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			page, err := browser.Get("https://" + n.HTTP)
			if err != nil {
				return
			}
			page.Body.Close()
			if err := meddler(ctx, n.Game, fmt.Sprintf("meddler%d", i)); err != nil {
				return
			}
		}
	})
}

// meddler plays for two seconds.
func meddler(ctx context.Context, game, name string) error {
	c, err := sessionclient.Dial(ctx, game, sessionmsg.Join{Name: name, View: 1, Encoding: sessionmsg.EncodingJSON})
	if err != nil {
		return err
	}
	p := sessionclient.NewPlayer(c)
	defer p.Leave()
	end := time.After(2 * time.Second)
	for {
		select {
		case m, open := <-p.Inbox:
			if !open || m.Err != nil {
				return m.Err
			}
			if _, err := p.Apply(m.FromServer); err != nil {
				return err
			}
			if _, entered := m.FromServer.(sessionmsg.Welcome); !entered {
				continue
			}
			far := p.Welcome.Pose
			far.X += 1000
			for _, m := range []sessionmsg.FromClient{
				sessionmsg.Chat{Text: "hello"}, sessionmsg.Hit{Player: p.Welcome.Player}, sessionmsg.Move{Pose: far},
			} {
				if _, err := p.Send(m); err != nil {
					return err
				}
			}
		case <-end:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// patience is how long tests wait for an event. It detects hangs; it does not judge slow machines.
const patience = 90 * time.Second

// eventually polls a condition of another process until it holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		case <-poll.C:
		}
	}
}
