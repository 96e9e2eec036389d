package handoff

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// nodes are gateways that answer after the given times.
type nodes map[string]time.Duration

func (n nodes) Connected() []string { return slices.Collect(maps.Keys(n)) }

func (n nodes) Ask(ctx context.Context, peer, _ string, _ []byte) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(n[peer]):
		return nodemsg.EncodeHandoffOffer(nodemsg.HandoffOffer{HTTP: "http://" + peer, Game: peer + ":4002", Ready: true})
	}
}

// Whoever answers within a second is found. If nobody does, the first who answers is.
func TestFind(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		nodes nodes
		found string
		took  time.Duration
	}{
		"nobody":         {nodes{}, "", 0},
		"all at once":    {nodes{"a": 0, "b": time.Millisecond}, "a b", time.Millisecond},
		"one is silent":  {nodes{"a": 0, "b": 900 * time.Millisecond, "c": never}, "a b", answerTimeout},
		"both are slow":  {nodes{"a": 2 * time.Second, "b": 2500 * time.Millisecond}, "a", 2 * time.Second},
		"nobody answers": {nodes{"a": never}, "", firstTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var peers []string
				for _, target := range Find(t.Context(), c.nodes, 1, slog.New(slog.DiscardHandler)).Snapshot() {
					peers = append(peers, target.Peer)
				}
				if found, took := strings.Join(peers, " "), time.Since(begun); found != c.found || took != c.took {
					t.Errorf("%q after %v, not %q after %v", found, took, c.found, c.took)
				}
			})
		})
	}
}

// asked counts the questions to each of some nodes, which answer at once.
type asked struct {
	sync.Mutex
	nodes

	questions map[string]int
}

func (a *asked) Connected() []string {
	a.Lock()
	defer a.Unlock()
	return a.nodes.Connected()
}

func (a *asked) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	a.Lock()
	defer a.Unlock()
	a.questions[peer]++
	return a.nodes.Ask(ctx, peer, protocol, question)
}

// A node that has answered is asked again only after five minutes, or for an origin that nobody is known to have; one
// that has come is asked within a minute.
func TestOriginsAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &asked{nodes: nodes{"a": 0}, questions: make(map[string]int)}
		o := NewOrigins(others)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { o.Run(ctx) })
		defer running.Wait()
		defer stop()
		expect := func(when string, want map[string]int) {
			t.Helper()
			synctest.Wait()
			others.Lock()
			defer others.Unlock()
			if !maps.Equal(others.questions, want) {
				t.Errorf("%s: questions %v, want %v", when, others.questions, want)
			}
		}
		time.Sleep(2 * time.Minute)
		expect("alone with a", map[string]int{"a": 1})
		others.Lock()
		others.nodes["b"] = 0
		others.Unlock()
		time.Sleep(2 * time.Minute)
		expect("b has come", map[string]int{"a": 1, "b": 1})
		if !o.Known(ctx, "http://b") {
			t.Error("b's origin is not known")
		}
		expect("for a known origin", map[string]int{"a": 1, "b": 1})
		if o.Known(ctx, "http://c") {
			t.Error("c's origin is known")
		}
		expect("for an origin that nobody has", map[string]int{"a": 2, "b": 2})
		time.Sleep(askAllEvery + askEvery)
		expect("five minutes later", map[string]int{"a": 3, "b": 3})
	})
}

func TestTargetsAssign(t *testing.T) {
	var targets Targets
	if addresses := targets.Assign(""); addresses == nil || len(addresses) != 0 {
		t.Errorf("without targets: %v", addresses)
	}
	for i := range uint64(wire.MaxGateways + 2) {
		host := string(rune('a' + i))
		targets.add(Target{Peer: host, Sessions: i * i, offer: nodemsg.HandoffOffer{HTTP: "http://" + host, Game: host, Games: map[string]uint16{"luanti": 30000 * uint16(i%2)}}})
	}
	var first []byte
	for range 12 {
		addresses := targets.Assign("")
		if len(addresses) != wire.MaxGateways {
			t.Fatalf("%d addresses", len(addresses))
		}
		first = append(first, addresses[0].Game[0])
	}
	// a has 0, b 1, c 4, d 9: the least loaded is next, the first of equals by name.
	if want := "aababababcab"; string(first) != want {
		t.Errorf("players go to %s, want %s", first, want)
	}
	// Of another game, to those who serve it: b first, which has ten now.
	if addresses := targets.Assign("luanti"); len(addresses) != 5 || addresses[0].Game != "b:30000" || addresses[1].Game != "d:30000" {
		t.Errorf("players of another game go to %v", addresses)
	}
	if addresses := targets.Assign("minecraft"); addresses == nil || len(addresses) > 0 {
		t.Errorf("players of a game that nobody serves go to %v", addresses)
	}
}

// Only what happened is logged.
func TestCounts(t *testing.T) {
	if got := (Step{Step: "begun"}).Counts(); len(got) != 0 {
		t.Error(got)
	}
	got := Step{Targets: make([]Target, 2), Followed: 3}.Counts()
	if want := []any{"targets", 2, "followed", 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
