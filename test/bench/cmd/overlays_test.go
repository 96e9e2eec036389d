package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/voxelpopuli/voxeld/overlay/sim"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// The log of a live game yields the same score as the measurement.
func TestLiveGameIsScoredByItsLog(t *testing.T) {
	if testing.Short() {
		t.Skip("starts daemons")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := daemon.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &overlays{bench: new(bench), gateways: 2, players: []int{20}, games: []string{"random"}, rounds: 20, log: filepath.Join(dir, "log")}
	games, err := l.gamesToPlay()
	if err != nil {
		t.Fatal(err)
	}
	daemons, err := daemon.Network(ctx, daemon.Options{Binary: binary, Dir: dir, Args: []string{"--overlay", "psense", "--view-distance", "1"}}, l.gateways, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.KillAll(daemons)
	p, err := l.play(ctx, "psense", phaseTogether, games[0], daemons, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.seen.Corrections > 0 {
		t.Errorf("%d moves were refused", p.seen.Corrections)
	}
	if known := p.known(); known < .9 || len(p.seen.Updates) < 20*80 {
		t.Errorf("%.2f of the neighbors are known, by %d updates", known, len(p.seen.Updates))
	}
	var files [2]*os.File
	for i, name := range []string{"moves.csv", "deliveries.csv"} {
		if files[i], err = os.Open(filepath.Join(l.log, name)); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	moves, err := sim.ReadMoves(files[0])
	if err != nil {
		t.Fatal(err)
	}
	scored, err := sim.ScoreDeliveries(moves, files[1], sim.PaperRanges, sim.PSenseAge)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.result.Rounds, scored.Rounds, cmpopts.EquateApprox(0, 1e-3)); diff != "" { // the log's places have four digits
		t.Error(diff)
	}
	traffic, err := os.ReadFile(filepath.Join(l.log, "traffic.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(traffic), "\n"); n != 1+81*20+2*4 || !strings.Contains(string(traffic), "\n20,-1,") {
		t.Errorf("traffic has %d lines:\n%.300s", n, traffic)
	}
}

// No game exceeds the speed that gateways allow, and the middle of its plane is where players enter.
func TestMovementIsScaled(t *testing.T) {
	l := &overlays{players: []int{20}, games: []string{"random", "hotspot"}, rounds: 100}
	games, err := l.gamesToPlay()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range games {
		path, fastest, farthest := scaledMovement(g.moves), 0., 0.
		for round, places := range path {
			for i, at := range places {
				farthest = max(farthest, math.Abs(at.X), math.Abs(at.Z))
				if round > 0 {
					fastest = max(fastest, math.Hypot(at.X-path[round-1][i].X, at.Z-path[round-1][i].Z))
				}
			}
		}
		if fastest > crowd.MaxStep || fastest < .79 || farthest > paperSide*liveScale/2 {
			t.Errorf("%s: players move %v blocks in a round, and up to %v away", g.name, fastest, farthest)
		}
	}
}

// If players had no real-time priority, the measurement reports it.
func TestOverlaysReportPriority(t *testing.T) {
	for _, first := range []bool{true, false} {
		docs := t.TempDir()
		p := played{
			players: 1, result: &sim.Result{Rounds: make([]sim.Round, 1)}, from: 1, seconds: 1, out: []float64{1}, packets: []float64{1},
			seen: &crowd.GameResult{First: first},
		}
		if differs := strings.Contains(p.line(), "without priority"); differs == first {
			t.Errorf("players go first: %v; the line is %q", first, p.line())
		}
		if err := (&overlays{bench: &bench{docs: docs, write: true}}).report([]played{p}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(docs, "overlays.md"))
		if err != nil {
			t.Fatal(err)
		}
		if differs := strings.Contains(string(text), "had no priority over the daemons"); differs == first {
			t.Errorf("players go first: %v; the figure is\n%s", first, text)
		}
	}
}
