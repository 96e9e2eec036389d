package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/operate"
	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/test/testkit/ledger"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
)

var rounds = flag.Int("rounds", 1, "how often TestRollingRestart restarts each node")

// verify fails the test for each acknowledged edit that is not in the land that the node serves.
func verify(t *testing.T, book *ledger.Ledger, d *daemon) (lost int) {
	t.Helper()
	all, err := book.Lost(t.Context(), d.Game, patience)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range all {
		t.Error(edit)
	}
	return len(all)
}

// ready waits until /readyz of the node succeeds.
func (d *daemon) ready() {
	d.t.Helper()
	eventually(d.t, "the node on "+d.ip+" is ready", patience, func() bool {
		answer, err := http.Get("http://" + d.HTTP + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// drain runs voxeld drain and waits until the process has ended, cleanly. Any goroutine may call it.
func (d *daemon) drain() (answer operate.DrainAnswer) {
	d.t.Helper()
	out, errs, code := voxeld(d.t, "drain", "--data-dir", d.dir, "--json")
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 {
		d.t.Errorf("voxeld drain: exit %d: %s (%v)", code, errs, err)
	}
	if code := d.exited(2 * time.Second); code != 0 { // voxeld drain comes back when the node has ended
		d.t.Errorf("the drained node exits with %d", code)
	}
	return answer
}

// whole waits until every region led on these nodes has all its members again, as an operator does between two nodes.
func whole(t *testing.T, all []*daemon) {
	t.Helper()
	eventually(t, "no region lacks a member", patience, func() bool {
		for _, d := range all {
			if d.metric("voxeld_node_regions") != d.metric("voxeld_node_regions", "state", "healthy") {
				return false
			}
		}
		return true
	})
}

// Five nodes are restarted one after the other while 50 players walk and build on them. No player is disconnected,
// and no acknowledged edit is lost.
func TestRollingRestart(t *testing.T) {
	all := cluster(t, 5)
	for _, d := range all {
		d.ready()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var book ledger.Ledger
	reports, errs := make([]bot.Report, len(all)), make([]error, len(all))
	var crowd sync.WaitGroup
	for i, d := range all {
		o := bot.Options{
			Target: sessionclient.Page(d.HTTP), Mode: bot.Wander, Players: 10, Rate: 5, Edits: 2, Keep: true, View: 1, Ramp: 20,
			Duration: time.Hour, Seed: uint64(i + 1), Acked: book.Acked,
		}
		crowd.Go(func() { reports[i], errs[i] = bot.Run(ctx, o) })
	}
	eventually(t, "50 players play", patience, func() bool {
		n := 0
		for _, d := range all {
			var s admin.Status
			d.ask("status", &s)
			n += s.Players
		}
		return n == 50
	})
	whole(t, all)
	building := func(edits int) { // until so many edits are acknowledged
		t.Helper()
		until := book.Edits() + edits
		eventually(t, fmt.Sprintf("%d edits are acknowledged", until), patience, func() bool { return book.Edits() >= until })
	}
	building(200)
	quiet := watchStates(t, all)
	start := time.Now()
	for round := range *rounds {
		for i, d := range all {
			began := time.Now()
			if (round+i)%2 == 0 {
				answer := d.drain()
				if answer.Cut+answer.NoTarget > 0 || answer.Followed != answer.Sessions {
					t.Errorf("drain of %s: %+v", d.ip, answer)
				}
			} else if code := d.terminate(); code != 0 {
				t.Errorf("%s exits with %d", d.ip, code)
			}
			stopped := time.Since(began)
			d.start()
			d.ready()
			up := time.Since(began)
			whole(t, all)
			building(100)
			t.Logf("%s: stopped after %v, ready after %v, 100 edits later %v", d.ip, stopped, up, time.Since(began))
		}
	}
	took := time.Since(start)
	quiet()
	cancel()
	crowd.Wait()
	var sum bot.Report
	for i, r := range reports {
		if errs[i] != nil {
			t.Error(errs[i])
		}
		if r.Lost > 0 || r.Failed > 0 || r.EditsLost > 0 {
			t.Errorf("players of %s: %d lost, %d failed, %d edits lost: %v %v", all[i].ip, r.Lost, r.Failed, r.EditsLost, r.Failures, r.Causes)
		}
		sum.Joined += r.Joined
		sum.Moved += r.Moved
		sum.Acked += r.Acked
		sum.Move.Max, sum.Ack.Max = max(sum.Move.Max, r.Move.Max), max(sum.Ack.Max, r.Ack.Max)
		sum.Move.P50, sum.Ack.P50 = max(sum.Move.P50, r.Move.P50), max(sum.Ack.P50, r.Ack.P50)
		t.Logf("players of %s: moved %d times (%+v), %d of %d edits acknowledged (%+v), refused %v, corrected %v", all[i].ip, r.Moved, r.Move, r.Acked, r.Edits, r.Ack, r.Refused, r.Corrections)
	}
	if sum.Joined != 50 || sum.Moved < 50**rounds/2 || sum.Acked != book.Edits() {
		t.Errorf("%d joined, moved %d times, %d edits acknowledged, %d in the ledger", sum.Joined, sum.Moved, sum.Acked, book.Edits())
	}
	lost := verify(t, &book, all[0])
	t.Logf("%d restarts in %v: %d moves to a new home (median %v ms, slowest %v ms), 0 without; %d edits acknowledged (median %v ms, slowest %v ms), %d lost",
		*rounds*len(all), took.Round(time.Millisecond), sum.Moved, sum.Move.P50, sum.Move.Max, sum.Acked, sum.Ack.P50, sum.Ack.Max, lost)
}

// voxeld drain reports what moves. The node reports that it drains to load balancers, new players and voxeld status.
func TestDrainCommand(t *testing.T) {
	t.Parallel()
	all := cluster(t, 2, "--replicas", "1")
	a, b := all[0], all[1]
	ann := join(t, a.Game, "ann", 1) // does not follow a reconnect
	built := under(ann, 1, 0, 2)
	ann.put(built, chunk.Brick)
	type end struct {
		out, errs string
		code      int
	}
	ended := make(chan end)
	go func() {
		out, errs, code := voxeld(t, "drain", "--data-dir", a.dir)
		ended <- end{out, errs, code}
	}()
	ann.until("a reconnect", func() bool { return ann.sentOn != nil })
	if homes := ann.sentOn.Gateways; len(homes) != 1 || homes[0] != (wire.Gateway{URL: "ws://" + b.HTTP + "/ws", Game: b.Game}) {
		t.Errorf("ann is sent to %+v", homes)
	}
	answer, err := http.Get("http://" + a.HTTP + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %s", answer.Status)
	}
	var s admin.Status
	if a.ask("status", &s); !s.Draining {
		t.Errorf("status: %+v", s)
	}
	bob := dialSession(t, a.Game, "bob", 1)
	bob.until("a new player is redirected", func() bool { return bob.sentOn != nil })
	if why := ann.ended(); why != wire.FailShuttingDown {
		t.Errorf("ann is disconnected with %q", why)
	}
	drained := <-ended
	for _, part := range []string{
		"draining a node with 1 player\n", "http://" + b.HTTP + " accepts players; it has 0",
		"\n1 player was disconnected\n", "stopped after ",
	} {
		if !strings.Contains(drained.out, part) {
			t.Errorf("voxeld drain does not say %q:\n%s", part, drained.out)
		}
	}
	if drained.code != 0 {
		t.Errorf("voxeld drain: exit %d: %s", drained.code, drained.errs)
	}
	if code := a.exited(patience); code != 0 {
		t.Errorf("the node exits with %d", code)
	}
	if _, errs, code := voxeld(t, "drain", "--data-dir", a.dir); code != exitFailed || !strings.Contains(errs, "no node runs") {
		t.Errorf("drain of a node that is gone: exit %d: %s", code, errs)
	}
	if _, errs, code := voxeld(t, "drain", "now"); code != exitUsage || !strings.Contains(errs, "takes no arguments") {
		t.Errorf("drain with an argument: exit %d: %s", code, errs)
	}
}

// A node without other nodes asks its players to wait for it, and stops soon.
func TestDrainAlone(t *testing.T) {
	d := startDaemon(t, "--advertise-http", "https://voxels.example/a")
	if d.Status.URL != "https://voxels.example/a" {
		t.Errorf("advertised URL: %q", d.Status.URL)
	}
	ann := join(t, d.Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.put(built, chunk.Brick)
	drained := make(chan operate.DrainAnswer, 1)
	go func() { drained <- d.drain() }()
	ann.until("a reconnect", func() bool { return ann.sentOn != nil })
	ann.leave()
	answer := <-drained
	if answer.Sessions != 1 || answer.NoTarget != 1 || len(answer.Targets) != 0 || answer.Kept == 0 {
		t.Errorf("%+v", answer)
	}
	if answer.Took > 5*time.Second {
		t.Errorf("it took %v", answer.Took)
	}
	if ann.sentOn == nil || len(ann.sentOn.Gateways) != 0 || ann.sentOn.Reason == "" {
		t.Errorf("told %+v", ann.sentOn)
	}
	d.start()
	ann = join(t, d.Game, "ann", 1)
	ann.sees(built, chunk.Brick)
}
