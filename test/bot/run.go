package bot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// drainTime is how long a player waits for the answers to their edits after the end of the run.
const drainTime = 2 * time.Second

// Run runs the load and returns its report. It returns when the duration is over or ctx is done, and every player has
// left. It returns an error for bad options, or if no player could join; the report is valid all the same.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, fmt.Errorf("run bots: %w", err)
	}
	o = o.withDefaults()
	c := &runState{Options: o, meter: newMeter(), allProbes: &latencyProbes{}}
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()

	var wg, watch sync.WaitGroup
	over := make(chan struct{})
	var series []Second
	watch.Go(func() { series = c.watch(over) })
	wg.Go(func() { c.ramp(ctx, &wg) })
	wg.Wait()
	close(over)
	watch.Wait()

	r := c.meter.report(o, series)
	if r.Joined == 0 && r.Failed > 0 {
		return r, fmt.Errorf("run bots: none of %d players could join %s: %s", r.Failed, o.Target, r.failureSummary())
	}
	return r, nil
}

// runState is what the players of one run share.
type runState struct {
	Options
	meter     *meter
	allProbes *latencyProbes
}

// ramp starts the players, one after another.
func (c *runState) ramp(ctx context.Context, wg *sync.WaitGroup) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / c.Ramp))
	defer tick.Stop()
	for i := range c.Players {
		wg.Go(func() { c.play(ctx, i) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watch collects the series, a row a second, until over is closed.
func (c *runState) watch(over <-chan struct{}) []Second {
	var series []Second
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return append(series, c.meter.second())
		case <-tick.C:
			s := c.meter.second()
			series = append(series, s)
			if c.Progress != nil {
				c.Progress(s)
			}
		}
	}
}

// play runs the i-th player from join to leave.
func (c *runState) play(ctx context.Context, i int) {
	p := c.newBasePlayer(i)
	var err error
	if c.Protocol == Original {
		err = (&originalPlayer{basePlayer: p}).run(ctx)
	} else {
		err = (&sessionPlayer{basePlayer: p}).run(ctx)
	}
	joined := !p.since.IsZero()
	if joined {
		c.meter.left(time.Since(p.since))
	}
	if err != nil && (joined || ctx.Err() == nil) {
		c.meter.failure(err, joined)
		c.Logger.Info("player disconnected", "player", p.name, "joined", joined, "error", err)
	}
}

// basePlayer is the state that a player has in either protocol. It belongs to the player's goroutine.
type basePlayer struct {
	*runState
	index  int
	name   string
	rng    *rand.Rand
	walk   walker
	build  builder
	ground *ground
	began  time.Time // when dialling began
	since  time.Time // when the player entered the world; zero before
	reach  float64   // blocks
	probes *probeSender
}

func (c *runState) newBasePlayer(i int) *basePlayer {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	p := &basePlayer{runState: c, index: i, name: c.name(i), rng: rng, reach: 6}
	p.walk = walker{rng: rng, speed: c.Speed}
	if c.Mode != Wander {
		home := c.homeOf(i)
		p.walk.home = grid.Area{MinX: home.X, MinZ: home.Z, MaxX: home.X + 1, MaxZ: home.Z + 1}
	}
	p.build = builder{rng: rng, blocks: []chunk.Block{chunk.Stone, chunk.Grass, chunk.Dirt}, keep: c.Keep}
	return p
}

// entered counts the player as in the world, once.
func (p *basePlayer) entered() {
	if p.since.IsZero() {
		p.since = time.Now()
		p.meter.entered(p.since.Sub(p.began))
	}
}

// moveEvery and editEvery return the intervals of moves and edits; 0 means never.
func (c *runState) moveEvery() time.Duration { return interval(c.Rate) }

func (c *runState) editEvery() time.Duration { return interval(c.Edits) }

func interval(rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / rate)
}

// newTicker returns a ticker. For an interval of 0 its channel is nil, and so never ready.
func newTicker(every time.Duration) (ticks <-chan time.Time, stop func()) {
	if every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}
