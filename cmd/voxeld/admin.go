package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/gameserver"
)

// The admin socket serves HTTP on a Unix socket in the data directory. The permissions of the socket's file
// control access. The types below are its answers, in JSON.

type statusAnswer struct {
	Version  string        `json:"version"`
	World    string        `json:"world"`
	WorldID  string        `json:"world_id"`
	Peer     string        `json:"peer"`
	Game     string        `json:"game"`
	HTTP     string        `json:"http"`
	Uptime   time.Duration `json:"uptime_ns"`
	Peers    int           `json:"peers"`
	Regions  int           `json:"regions_loaded"`
	Players  int           `json:"players"`
	Database int64         `json:"database_bytes"`
	Damaged  int           `json:"damaged_copies"` // known on this node and not repaired
	Catalog  string        `json:"catalog"`        // peer that leads the catalog, as far as known; new land needs it
	URL      string        `json:"url"`            // where other nodes send the browsers of their players
	Draining bool          `json:"draining"`
}

type peerAnswer struct {
	Peer      string   `json:"peer"`
	Connected bool     `json:"connected"`
	Latency   string   `json:"latency"`
	Addrs     []string `json:"addrs"`
}

type regionAnswer struct {
	ID      string   `json:"id"`
	Cell    string   `json:"cell"`
	Leader  string   `json:"leader"`
	Members []string `json:"members"` // peers, including learners
	Voters  int      `json:"voters"`
	Term    uint64   `json:"term"`
	Links   int      `json:"links"`
	Bodies  int      `json:"players"`
	Edits   int      `json:"edits"`
}

type inviteAnswer struct {
	Token string `json:"token"`
}

func (n *node) startAdmin(_ context.Context, parts *stack) error {
	path := n.cfg.AdminSocket()
	if err := removeStaleSocket(path); err != nil {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen on admin socket %s: %w; choose another path with --admin", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(fmt.Errorf("set permissions of admin socket: %w", err), l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { reply(w, n.status(r.Context())) })
	mux.HandleFunc("GET /peers", func(w http.ResponseWriter, _ *http.Request) { reply(w, n.peerList()) })
	mux.HandleFunc("GET /regions", func(w http.ResponseWriter, r *http.Request) { reply(w, n.regionList(r.Context())) })
	mux.HandleFunc("GET /players", func(w http.ResponseWriter, _ *http.Request) { reply(w, n.playerList()) })
	mux.HandleFunc("GET /invite", func(w http.ResponseWriter, _ *http.Request) { reply(w, n.invite()) })
	n.addOperations(mux)
	mux.HandleFunc("POST /drain", n.shutdown.serve)
	mux.HandleFunc("GET /region/scrub", func(w http.ResponseWriter, r *http.Request) { n.answerScrub(w, r) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	serveUntil(parts, "admin socket", l, mux)
	return nil
}

// removeStaleSocket removes the socket that a killed daemon left at path. It returns an error if anything else
// is there.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stat admin socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return usageError{fmt.Errorf("admin socket %s: the file is not a socket; choose another path with --admin", path)}
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("admin socket %s: another daemon uses it; stop that one, or choose another path with --admin", path), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // refused: its daemon is gone
		return fmt.Errorf("admin socket %s: cannot find out whether a daemon still uses it: %w; choose another path with --admin", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove old admin socket: %w", err)
	}
	return nil
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}

func (n *node) status(ctx context.Context) statusAnswer {
	connected := 0
	for _, p := range n.host.Peers() {
		if p.Connected {
			connected++
		}
	}
	return statusAnswer{
		Version: version(), World: n.world.Name, WorldID: n.world.ID(), Peer: n.host.PeerID(),
		Game: n.gameAddress(), HTTP: n.http.Addr().String(), Uptime: time.Since(n.started),
		Peers: connected, Regions: len(n.regions.Regions(ctx)), Players: len(n.gateway.Online()),
		Damaged: len(n.regions.Damaged()), Database: n.db.Size(), Catalog: n.catalogLeader(ctx), URL: n.playerURL(), Draining: n.gateway.Draining(),
	}
}

// catalogLeader waits for at most 2 s: operators use status when something is wrong.
func (n *node) catalogLeader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return n.regions.Directory.CatalogLeader(ctx)
}

func (n *node) peerList() []peerAnswer {
	all := []peerAnswer{}
	for _, p := range n.host.Peers() {
		all = append(all, peerAnswer{Peer: p.ID, Connected: p.Connected, Latency: p.Latency.Round(10 * time.Microsecond).String(), Addrs: p.Addrs})
	}
	return all
}

func (n *node) regionList(ctx context.Context) []regionAnswer {
	all := []regionAnswer{}
	for _, r := range n.regions.Regions(ctx) {
		members := make([]string, len(r.Region.Members))
		for i, m := range r.Region.Members {
			members[i] = m.Peer
		}
		all = append(all, regionAnswer{
			ID: fmt.Sprintf("%016x", r.Region.ID), Cell: r.Region.Cell.String(), Leader: r.Region.Leader, Members: members, Voters: r.Voters, Term: r.Region.Term,
			Links: r.Links, Bodies: r.Bodies, Edits: r.Edits,
		})
	}
	return all
}

func (n *node) playerList() []gameserver.Player {
	return append([]gameserver.Player{}, n.gateway.Online()...)
}

func (n *node) invite() inviteAnswer {
	return inviteAnswer{Token: config.Token{World: n.world.ID(), Addrs: n.host.Addrs()}.String()}
}
