package deploy

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/test/testkit/ledger"
)

// patience is how long the tests with players wait for anything.
const patience = 90 * time.Second

// crowd is four players on each of some nodes, who walk and build. Every edit that is acknowledged to them is in the
// book.
type crowd struct {
	t       *testing.T
	nodes   []string // addresses of their game servers
	book    ledger.Ledger
	end     context.CancelFunc
	playing sync.WaitGroup
	errs    []error
}

// startCrowd starts the players. They leave when leave is called, or the test ends.
func startCrowd(t *testing.T, nodes ...string) *crowd {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	c := &crowd{t: t, nodes: nodes, end: end, errs: make([]error, len(nodes))}
	for i, node := range nodes {
		o := bot.Options{
			Target: node, Mode: bot.Wander, Players: 4, Rate: 5, Edits: 2, Keep: true, View: 1, Ramp: 20,
			Duration: time.Hour, Seed: uint64(i + 1), Acked: c.book.Acked,
		}
		c.playing.Go(func() { _, c.errs[i] = bot.Run(ctx, o) })
	}
	t.Cleanup(func() { end(); c.playing.Wait() })
	return c
}

// build waits until 50 more edits are acknowledged.
func (c *crowd) build() {
	c.t.Helper()
	until := c.book.Edits() + 50
	eventually(c.t, fmt.Sprintf("%d edits are acknowledged", until), func() bool { return c.book.Edits() >= until })
}

// leave ends the players. Edits of players whose node died may never be answered: only acknowledged ones count.
func (c *crowd) leave() {
	c.t.Helper()
	c.end()
	c.playing.Wait()
	for i, err := range c.errs {
		if err != nil {
			c.t.Errorf("players of %s: %v", c.nodes[i], err)
		}
	}
}

// check fails the test for each acknowledged edit that is not in the land that a node serves. Nobody may build
// meanwhile.
func (c *crowd) check() {
	c.t.Helper()
	for _, node := range c.nodes {
		lost, err := c.book.Lost(c.t.Context(), node, patience)
		if err != nil {
			c.t.Fatalf("%s: %v", node, err)
		}
		for _, edit := range lost {
			c.t.Errorf("%s: %s", node, edit)
		}
	}
}

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

// stepper returns a function that logs what has been done, and when.
func stepper(t *testing.T) func(format string, args ...any) {
	start := time.Now()
	return func(format string, args ...any) {
		t.Helper()
		t.Logf("%5.1fs "+format, append([]any{time.Since(start).Seconds()}, args...)...)
	}
}
