package bot_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
)

// startDaemon builds voxeld and runs a new world.
func startDaemon(t *testing.T) *daemon.Daemon {
	t.Helper()
	dir := t.TempDir()
	binary, err := daemon.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ip, err := daemon.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.New(daemon.Options{
		Binary: binary, Dir: filepath.Join(dir, "data"), IP: ip, Args: []string{"--sessions-per-address", "1000"},
		Options: process.Options{Log: filepath.Join(dir, "log")},
	})
	// A known seed: there is dry ground in the slab where the original bots play.
	if err := errors.Join(d.Init(t.Context(), "--seed", "87"), d.Start(t.Context(), "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Stop()
		if t.Failed() || d.ExitCode() != 0 {
			t.Errorf("voxeld: exit %d:\n%s", d.ExitCode(), d.Output())
		}
	})
	return d
}

// Bots of every mode and protocol play in a real world at once: all join, none is lost, every edit is answered.
func TestBotsPlay(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a daemon")
	}
	d := startDaemon(t)
	var runs sync.WaitGroup
	reports, errs := make([]bot.Report, 6), make([]error, 6)
	for i := range reports {
		o := bot.Options{
			Target: sessionclient.Page(d.HTTP), Players: 4, Edits: 1,
			Mode: []bot.Mode{bot.OneChunk, bot.ManyChunks, bot.Wander}[i%3], Protocol: bot.Session,
			Chunks: 4, Duration: 8 * time.Second, Seed: uint64(i + 1),
		}
		if o.Mode == bot.OneChunk {
			o.Players = 10 // few moves are both probes and sent to others: the region predicts most of them
		}
		if i >= 3 {
			o.Protocol, o.Target = bot.Original, d.Game
			o.Chunk = grid.ChunkPos{X: int32(20 * i)} // away from the other bots, which walk from the spawn
		}
		runs.Go(func() { reports[i], errs[i] = bot.Run(t.Context(), o) })
	}
	runs.Wait()
	m, err := d.Scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	untold := int(m.Value("voxeld_edit_refusals_total"))
	for _, r := range reports {
		for _, n := range r.Refused {
			untold -= n
		}
	}
	for i, r := range reports {
		t.Run(fmt.Sprintf("%s in %s", r.Mode, r.Protocol), func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			checkReport(t, r, untold)
			var b strings.Builder
			if err := r.WriteTable(&b); err != nil {
				t.Error(err)
			}
			t.Log(b.String())
		})
	}
}

// checkReport checks a run of bots. Untold is how many edits of original clients the node has refused: another player stands there, for example.
// Their protocol does not say so.
func checkReport(t *testing.T, r bot.Report, untold int) {
	t.Helper()
	if r.Joined != r.Players || r.Failed != 0 || r.Lost != 0 {
		t.Errorf("%d of %d joined, %d failed, %d lost: %v", r.Joined, r.Players, r.Failed, r.Lost, r.Failures)
	}
	refused := 0
	for _, n := range r.Refused {
		refused += n
	}
	// Each edit has exactly one outcome. Only VoxelPopuli's wanderers may also miss one in ten: their protocol does not
	// acknowledge edits, their moves and edits use different connections, and others build at the same place.
	lost := 0
	if r.Protocol == bot.Original {
		lost = untold
	}
	if r.Protocol == bot.Original && r.Mode == bot.Wander {
		lost = max(lost, r.Edits/10)
	}
	if r.Acked == 0 || r.Acked+refused+r.EditsLost != r.Edits || r.EditsLost > lost {
		t.Errorf("%d edits: %d acknowledged, %d refused (%v), %d lost", r.Edits, r.Acked, refused, r.Refused, r.EditsLost)
	}
	if r.Ack.Count != uint64(r.Acked) || r.Ack.P50 <= 0 || r.Ack.Max < r.Ack.P99 {
		t.Errorf("edit latency: %+v", r.Ack)
	}
	if r.Mode == bot.OneChunk && r.Seen.Count == 0 {
		t.Error("no player saw another move")
	}
	moves := uint64(0)
	for _, p := range r.Sent {
		if p.Type == "move" || p.Type == "PLAYER_MOVE" {
			moves = p.Count
		}
	}
	// 20 a second in at least half of the time; the machine may be busy.
	if float64(moves) < 10*float64(r.PlayerTime) {
		t.Errorf("%d moves in %.1f player seconds", moves, r.PlayerTime)
	}
	corrected := 0
	for _, n := range r.Corrections {
		corrected += n
	}
	if uint64(corrected) > moves/50 {
		t.Errorf("%d of %d moves were put back: %v", corrected, moves, r.Corrections)
	}
	if r.InPerPlayer <= 0 || r.OutPerPlayer <= 0 {
		t.Errorf("bytes: %g in, %g out", r.InPerPlayer, r.OutPerPlayer)
	}
	if len(r.Series) < 5 {
		t.Errorf("%d seconds in the series", len(r.Series))
	}
}

// If no bot can join, Run returns an error with the reason.
func TestRunReportsThatNoPlayerJoined(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil { // now nothing listens there
		t.Fatal(err)
	}
	for _, protocol := range []bot.Protocol{bot.Session, bot.Original} {
		r, err := bot.Run(t.Context(), bot.Options{
			Target: addr, Protocol: protocol, Players: 3, Ramp: 1000, Duration: 5 * time.Second,
		})
		if err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: error %v", protocol, err)
		}
		if r.Failed != 3 || r.Joined != 0 || r.Failures["dial failed"] != 3 {
			t.Errorf("%s: %+v", protocol, r)
		}
	}
}

// A run ends when its context does, long before its duration, with a report.
func TestRunEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // never accepts: the kernel's backlog does, and no byte is ever sent
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	r, err := bot.Run(ctx, bot.Options{Target: l.Addr().String(), Players: 3, Ramp: 1000, Duration: time.Hour, Timeout: time.Hour})
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.Joined != 0 || r.Lost != 0 {
		t.Errorf("report: %+v", r)
	}
}
