package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// If a daemon does not answer, no other one is taken for the leader.
func TestLeaderIsFoundOrMissed(t *testing.T) {
	dir := t.TempDir()
	answering := func(players int) *daemon.Daemon {
		socket := filepath.Join(dir, fmt.Sprint(players))
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/status" {
				fmt.Fprint(w, `{"Peer": "its"}`)
				return
			}
			fmt.Fprintf(w, `[{"Leader": "its", "Players": %d}, {"Leader": "another's", "Players": 5000}]`, players)
		}))
		s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		return daemon.New(daemon.Options{Admin: socket})
	}
	daemons := []*daemon.Daemon{answering(0), answering(900), answering(100)}
	if leader, err := leaderOf(t.Context(), daemons); err != nil || leader != 1 {
		t.Errorf("%d leads: %v", leader, err)
	}
	daemons[1] = daemon.New(daemon.Options{Admin: filepath.Join(dir, "silent")})
	if leader, err := leaderOf(t.Context(), daemons); err == nil {
		t.Errorf("one does not answer, and %d leads", leader)
	}
}

// The functions that profiles are read by exist: a renamed one would count as 0 without an error.
func TestProfiledFunctionsExist(t *testing.T) {
	method := regexp.MustCompile(`^` + module + `((?:gameserver|region)(?:/\w+)*)\.\(\*(\w+)\)\.(\w+)$`)
	for _, name := range slices.Concat(receiveFuncs, leadFuncs) {
		m := method.FindStringSubmatch(name)
		if m == nil {
			t.Errorf("%s is no method of gameserver or region", name)
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", "..", m[1], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*` + m[2] + `\) ` + m[3] + `\(`)
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && declared.Match(text)
		}) {
			t.Errorf("there is no %s", name)
		}
	}
}
