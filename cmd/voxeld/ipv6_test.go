package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// namespaces makes network namespaces that reach each other by IPv6 only, and returns their names. The first has the
// address fd00::1, the second fd00::2.
func namespaces(t *testing.T, n int) (names []string) {
	t.Helper()
	if why := process.MissingTools("ip"); why != "" || os.Geteuid() != 0 {
		t.Skipf("network namespaces need root and ip: %s", why)
	}
	must := func(args ...string) {
		t.Helper()
		if err := process.Run("ip", args...); err != nil {
			t.Fatal(err)
		}
	}
	need := func(args ...string) { // of the kernel, which may lack namespaces, bridges, or IPv6
		t.Helper()
		if err := process.Run("ip", args...); err != nil {
			t.Skipf("no network of IPv6 only can be made here: %v", err)
		}
	}
	hub := fmt.Sprintf("vx6hub%d", os.Getpid())
	need("netns", "add", hub)
	remove := func(name string) {
		t.Cleanup(func() {
			if err := process.Run("ip", "netns", "del", name); err != nil {
				t.Error(err)
			}
		})
	}
	remove(hub)
	need("-n", hub, "link", "add", "bridge", "type", "bridge")
	must("-n", hub, "link", "set", "bridge", "up")
	for i := range n {
		name, port := fmt.Sprintf("vx6n%dp%d", i, os.Getpid()), fmt.Sprintf("port%d", i)
		must("netns", "add", name)
		remove(name)
		need("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
		must("-n", hub, "link", "set", port, "master", "bridge", "up")
		need("-n", name, "addr", "add", fmt.Sprintf("fd00::%d/64", i+1), "dev", "eth0", "nodad")
		must("-n", name, "link", "set", "eth0", "up")
		must("-n", name, "link", "set", "lo", "up")
		names = append(names, name)
	}
	return names
}

// Nodes on machines that have IPv6 only need no configuration: one joins with the other's token, and both tell players
// and nodes addresses that work, in brackets where a port follows.
func TestIPv6Only(t *testing.T) {
	t.Parallel()
	binary, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	within := namespaces(t, 2)
	dirs := []string{t.TempDir(), t.TempDir()}
	status := func(i int) (s admin.Status) {
		t.Helper()
		out, errs, code := voxeld(t, "status", "--data-dir", dirs[i], "--json", "--wait", "healthy", "--timeout", "1m")
		if code != 0 {
			t.Fatalf("node %d: %s%s", i, out, errs)
		}
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	start := func(i int, args ...string) {
		t.Helper()
		p, err := process.Start(process.Options{Prefix: []string{"ip", "netns", "exec", within[i]}, Log: filepath.Join(t.TempDir(), "log")}, binary, append([]string{"run", "--data-dir", dirs[i]}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		if err := process.Until(t.Context(), "it serves", 50*time.Millisecond, time.Minute, func() bool {
			return strings.Contains(p.Output(), "\n  Play:") || !p.Running()
		}); err != nil || !p.Running() {
			t.Fatalf("node %d: %v\n%s", i, err, p.Output())
		}
	}
	start(0)
	token, errs, code := voxeld(t, "invite", "--data-dir", dirs[0])
	if code != 0 {
		t.Fatal(errs)
	}
	start(1, "--join", strings.TrimSpace(token))
	for i := range within {
		s := status(i)
		if s.Peers != 1 {
			t.Errorf("node %d is connected with %d nodes", i, s.Peers)
		}
		ip := fmt.Sprintf("fd00::%d", i+1)
		if s.URL != "http://["+ip+"]:8080" {
			t.Errorf("node %d sends players to %s", i, s.URL)
		}
		// From the other machine: a page, and a game.
		for carrier, port := range map[string]string{"websocket": "8080", "tcp": "4002"} {
			if err := process.Run("ip", "netns", "exec", within[1-i], binary, "bot", "--carrier", carrier, "--target", "["+ip+"]:"+port, "--players", "1", "--duration", "1s"); err != nil {
				t.Errorf("over %s: %v", carrier, err)
			}
		}
	}
}
