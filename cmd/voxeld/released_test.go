package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bot"
)

var releasedMinutes = flag.Float64("released.minutes", 0, "minutes that TestReleasedClient plays at least; it ends after three nodes have stopped")

// wanderer is one player with the habits of the released client, as a bot plays them.
type wanderer struct {
	t      *testing.T
	second atomic.Pointer[bot.Second] // the last one
	ended  chan struct{}
	report bot.Report // valid once ended is closed
	err    error      // valid once ended is closed
}

// releasedRate is the frame rate of the player's screen, in Hz.
const releasedRate = 240

func wander(ctx context.Context, t *testing.T, target string) *wanderer {
	w := &wanderer{t: t, ended: make(chan struct{})}
	w.second.Store(&bot.Second{})
	go func() {
		defer close(w.ended)
		w.report, w.err = bot.Run(ctx, bot.Options{
			Target: target, Mode: bot.Wander, Protocol: bot.Original, Players: 1, Rate: releasedRate, Speed: 15,
			Duration: 24 * time.Hour, Timeout: 30 * time.Second, Progress: func(s bot.Second) { w.second.Store(&s) },
		})
	}()
	return w
}

func (w *wanderer) lost() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// plays waits until a whole second of play has passed, or the player has ended.
func (w *wanderer) plays() {
	w.t.Helper()
	since := w.second.Load().At + 1.5 // the second one from now is a whole one
	eventually(w.t, "the player plays", patience, func() bool {
		s := w.second.Load()
		return s.At > since && s.Sent > releasedRate/2 || w.lost()
	})
}

// wait lets the player play for the duration.
func (w *wanderer) wait(d time.Duration) {
	select {
	case <-w.ended:
	case <-time.After(d):
	}
}

// underfoot returns the index of the node that leads the region in which somebody plays; -1 if none does.
func underfoot(nodes []*daemon) int {
	return slices.IndexFunc(nodes, func(d *daemon) bool {
		return slices.ContainsFunc(d.regions(), func(r admin.Region) bool { return r.Bodies > 0 && r.Leader == d.Status.Peer })
	})
}

// complete reports whether each region of the nodes, and the catalog, has all its members, and they live.
func complete(nodes []*daemon) bool {
	return !slices.ContainsFunc(nodes, func(d *daemon) bool {
		all := d.metric("voxeld_node_regions")
		return all == 0 || d.metric("voxeld_node_regions", "state", "healthy") != all
	})
}

// A player with the released client's habits walks on three nodes, two of which are drained and killed again and again:
// no connection closes without a reset, and there is ground wherever they walk.
func TestReleasedClient(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	dht := dialOriginal(t, all[0].Game)
	dht.send(`{"type":"dht"}`)
	dht.expect("ok")
	x, y, z := dht.whereIsPlayer("stranger")
	t.Logf("strangers begin at %g, %g, %g", x, y, z)
	// The surrounding land is founded, with replicas on all three, before any player comes.
	begin := grid.Pos{X: int32(floor(x)), Z: int32(floor(z))}.Chunk()
	for _, d := range []int32{-1, 1} {
		locate(t, all[0].Game, grid.ChunkPos{X: begin.X + d, Z: begin.Z + d})
		locate(t, all[0].Game, grid.ChunkPos{X: begin.X + d, Z: begin.Z - d})
	}
	leader, others := leaderOf(t, all, begin)
	target, victims := others[0], []*daemon{leader, others[1]}
	eventually(t, "all regions have three members", patience, func() bool { return complete(all) })
	for _, d := range all {
		d.ready()
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	length := time.Duration(*releasedMinutes * float64(time.Minute))
	w := wander(ctx, t, target.Game)
	defer func() { // also when a step below fails
		cancel()
		<-w.ended
		t.Logf("%+v; failures %v %v, corrected %v", w.report.Chunks, w.report.Failures, w.report.Causes, w.report.Corrections)
	}()
	w.plays()
	stopped := 0
	faults := 0
	for ; !w.lost() && (faults < 3 || time.Since(began) < length); faults++ {
		var leads int
		eventually(t, "the player stands where one of the two leads, the first time", patience, func() bool {
			leads = underfoot(victims)
			return leads >= 0 || faults > 0 || w.lost()
		})
		if faults == 0 && leads == 1 {
			slices.Reverse(victims)
			leads = 0
		}
		next := victims[faults%2]
		if leads >= 0 && faults > 1 {
			next = victims[leads]
		}
		under := leads >= 0 && next == victims[leads]
		if under {
			stopped++
		}
		how, at := "drained", time.Now()
		if faults%3 == 0 {
			next.drain()
		} else {
			how = "killed"
			next.kill()
		}
		gone := time.Since(at)
		w.plays()
		t.Logf("after %v %s is %s in %v, under the player's feet: %v; the player plays within %v",
			at.Sub(began).Round(time.Second), next.ip, how, gone, under, time.Since(at))
		next.start()
		next.ready()
		eventually(t, "all regions have three members", patience, func() bool { return w.lost() || complete(all) })
		w.plays()
		// In a long run most time passes quietly: connections stay silent for longer than any timeout.
		w.wait(min(90*time.Second, (length-time.Since(began))/4))
	}
	played := time.Since(began)
	early := w.lost()
	cancel()
	<-w.ended
	r := w.report
	if early || w.err != nil || r.Joined != 1 || r.Lost > 0 || len(r.Failures) > 0 {
		t.Errorf("lost after %v: %v %v (%v)", played.Round(time.Second), r.Failures, r.Causes, w.err)
	}
	if want := min(20, int(played.Seconds()/5)); r.Chunks.Borders < want {
		t.Errorf("%d chunk borders crossed in %v, want %d", r.Chunks.Borders, played.Round(time.Second), want)
	}
	if stopped > 0 && (r.Chunks.Resets == 0 || r.Chunks.Pause == 0) {
		t.Errorf("%d nodes stopped under the player's feet: %d resets survived, longest pause %g ms", stopped, r.Chunks.Resets, r.Chunks.Pause)
	}
}

// Whatever ends a node, connections of the original protocol end by a reset, also those on which nothing was ever sent.
func TestOriginalConnectionsEndByReset(t *testing.T) {
	d := startDaemon(t)
	for how, end := range map[string]func(){"stopped": func() { d.terminate() }, "killed": d.kill} {
		dht, silent := dialOriginal(t, d.Game), dialOriginal(t, d.Game)
		dht.send(`{"type":"dht"}`)
		dht.expect("ok")
		silent.send(`{"type":"connect","chunk":[0,0],"player":"Player"}`)
		silent.expect("ok")
		silent.packet(5)
		end()
		for name, c := range map[string]*original{"dht": dht, "chunk": silent} {
			if _, err := io.Copy(io.Discard, c.in); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: the %s connection ends with %v, want a reset", how, name, err)
			}
		}
		d.start()
	}
}

// Clients of one name see each other, from two addresses or from one: the released client has a fixed name.
func TestNamesakesMeet(t *testing.T) {
	d := startDaemon(t)
	var clients []*original
	others := make([][]string, 3) // the players announced to each client
	for i, host := range []byte{2, 3, 3} {
		c := dialOriginalFrom(t, net.IPv4(127, 0, 0, host), d.Game)
		c.send(`{"type":"connect","chunk":[0,0],"player":"Player"}`)
		c.expect("ok")
		c.send(`{"type":1,"args":[0,0],"player":"Player"}` + "\n")
		for p := c.next(); p.Type != 6; p = c.next() { // only registered clients are sent the time
			if p.Type == 1 {
				others[i] = append(others[i], p.Player)
			}
		}
		clients = append(clients, c)
	}
	for i, c := range clients {
		for len(others[i]) < 2 {
			others[i] = append(others[i], c.packet(1).Player)
		}
	}
	first, second, third := others[1][0], others[2][1], others[1][1]
	if others[2][0] != first {
		first, second = others[2][1], others[2][0]
	}
	t.Logf("the three see %v", others)
	names := map[string]bool{first: true, second: true, third: true}
	if !slices.Equal(others[0], []string{second, third}) || len(names) != 3 || first != "Player" {
		t.Fatalf("the three see %v", others)
	}
	for i, c := range clients {
		c.send(fmt.Sprintf(`{"type":3,"args":[%d.5,20,8.5,90],"player":"Player"}`+"\n", 10+i))
	}
	for i, c := range clients {
		for seen := map[int]bool{i: true}; len(seen) < len(clients); {
			m := c.packet(3)
			if j := slices.Index([]string{first, second, third}, m.Player); m.Args[0] == float64(10+j)+.5 {
				seen[j] = true
			}
		}
	}
}
