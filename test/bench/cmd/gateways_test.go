package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
