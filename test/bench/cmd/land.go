package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// sections is the height of the benchmark's worlds.
const sections = 4

// land measures chunks and edits.
type land struct {
	*bench
	players int
	old     string // binary to compare with; "": none
}

func newLand(b *bench) *cobra.Command {
	l := &land{bench: b}
	c := b.command("land", "How fast land and edits arrive, and how many bytes they take",
		"A crowd walks about on the node. Probes fly over land: a move that crosses into another chunk requests the\n"+
			"chunks that come into view. Warm land is in view of another player on the node; cold land has never been loaded.\n"+
			"Then players build, which measures the time until an edit is safe on disk. Last, one player builds in front of a\n"+
			"crowd that stands still, so that all bytes that the crowd receives are those of changed blocks.",
		l.run)
	c.Flags().IntVar(&l.players, "players", 500, "players on the node")
	compareFlag(c, &l.old)
	return c
}

// probes is the number of probes that fly at once.
const probes = 12

// arrivals is how fast land and edits arrived.
type arrivals struct {
	reading
	warm, cold loads
	edits      bot.Latency
}

// loads are the chunks that probes loaded.
type loads []crowd.Load

// took returns the times of the chunks that were waited for.
func (l loads) took() *histogram.Histogram {
	h := new(histogram.Histogram)
	for _, load := range l {
		if load.Took > 0 {
			h.Add(load.Took.Seconds())
		}
	}
	return h
}

func (l *land) run(ctx context.Context) error {
	if l.old != "" {
		return compare(l.bench, l.old, fmt.Sprintf("with %d players on the node", l.players),
			func() (arrivals, error) { return l.arrivals(ctx) },
			[]compared[arrivals]{
				{"a warm chunk, p99, ms", func(a arrivals) float64 { return 1000 * a.warm.took().Quantile(.99) }},
				{"a cold chunk, p99, ms", func(a arrivals) float64 { return 1000 * a.cold.took().Quantile(.99) }},
				{"an edit until it is safe on disk, p99, ms", func(a arrivals) float64 { return float64(a.edits.P99) }},
				{"CPU, % of a core", func(a arrivals) float64 { return percent(a.TotalCPU()) }},
			})
	}
	a, err := l.arrivals(ctx)
	if err != nil {
		return err
	}
	each, alone, err := l.changes(ctx)
	if err != nil {
		return err
	}
	return l.report(a, each, alone)
}

// arrivals measures a crowd's node while probes fly and players build.
func (l *land) arrivals(ctx context.Context) (a arrivals, err error) {
	d, o, err := l.startSpreadCrowd(ctx, 1)
	if err != nil {
		return a, err
	}
	defer d.Kill()
	spawn := o.Homes[0]
	o.View = warmRadius
	err = l.play(ctx, o, l.players, []target{d}, func(ctx context.Context, c *crowd.Crowd) (err error) {
		first, err := readInstant(ctx, []target{d}, c)
		if err != nil {
			return err
		}
		if a.warm, err = flights(ctx, l.address(d), spawn, true); err != nil {
			return err
		}
		if a.cold, err = flights(ctx, l.address(d), spawn, false); err != nil {
			return err
		}
		built, err := bot.Run(ctx, bot.Options{
			Target: l.address(d), Players: 8, Ramp: 100, Edits: 4, Rate: 20, Chunk: spawn, View: 1, Duration: 15 * time.Second, Seed: 7,
		})
		if err != nil {
			return err
		}
		a.edits = built.Ack
		last, err := readInstant(ctx, []target{d}, c)
		a.reading = l.cores.Between(first, last)
		return err
	})
	return a, err
}

// warmRadius is the view distance of the crowd, in chunks: land within it is warm.
const warmRadius = 6

// flights flies probes and returns what they loaded. Warm ones fly to and fro over land that the crowd has in view,
// cold ones away from it.
func flights(ctx context.Context, address string, spawn grid.ChunkPos, warm bool) (all []crowd.Load, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range probes {
		wg.Go(func() {
			loads, failed := flight(ctx, address, fmt.Sprintf("probe-%v-%d", warm, i), spawn, warm, 2*math.Pi*float64(i)/probes)
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, loads...), errors.Join(err, failed)
		})
	}
	wg.Wait()
	return all, err
}

func flight(ctx context.Context, address, name string, spawn grid.ChunkPos, warm bool, turn float64) ([]crowd.Load, error) {
	p, err := crowd.StartProbe(ctx, address, name, 1)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := p.Settle(ctx); err != nil {
		return nil, err
	}
	to := func(chunks float64) error {
		return p.Fly(ctx, (float64(spawn.X)+.5+chunks*math.Sin(turn))*grid.ChunkSize, (float64(spawn.Z)+.5+chunks*math.Cos(turn))*grid.ChunkSize)
	}
	if !warm {
		if err := to(warmRadius + 3); err != nil {
			return nil, err
		}
		p.Loads()
		err = to(warmRadius + 18)
		return p.Loads(), err
	}
	const turns = 4
	if err := to(-(warmRadius - 2)); err != nil {
		return nil, err
	}
	p.Loads()
	for i := range turns {
		if err := to((warmRadius - 2) * float64(1-2*(i%2))); err != nil {
			return nil, err
		}
	}
	return p.Loads(), nil
}

// changes measures the bytes that one changed block costs each player who sees it: if a tick has several (each), and
// if it has at most one (alone).
func (l *land) changes(ctx context.Context) (each, alone float64, err error) {
	const players = 20
	d, o, err := l.startSpreadCrowd(ctx, 1)
	if err != nil {
		return 0, 0, err
	}
	defer d.Kill()
	o.Still = true
	err = l.play(ctx, o, players, []target{d}, func(ctx context.Context, c *crowd.Crowd) error {
		measured := func(builders int, rate float64, seed uint64) (float64, error) {
			// The builders stand still too. Their traffic without edits is measured first.
			empty, err := stillBytes(ctx, l.address(d), c, builders, 0, seed)
			if err != nil {
				return 0, err
			}
			full, err := stillBytes(ctx, l.address(d), c, builders, rate, seed+1)
			if err != nil {
				return 0, err
			}
			return (full.bytes - empty.bytes) / players / full.edits, nil
		}
		if _, err := stillBytes(ctx, l.address(d), c, 1, 0, 50); err != nil { // meanwhile the rest of the land arrives
			return err
		}
		var err error
		if alone, err = measured(1, 8, 100); err != nil {
			return err
		}
		each, err = measured(10, 16, 200)
		return err
	})
	return each, alone, err
}

type still struct{ bytes, edits float64 }

func stillBytes(ctx context.Context, address string, c *crowd.Crowd, builders int, rate float64, seed uint64) (s still, err error) {
	before := c.Counts().BytesIn
	report, err := bot.Run(ctx, bot.Options{
		Target: address, Players: builders, Ramp: 100, Rate: -1, Edits: rate, View: 1, Duration: 8 * time.Second, Seed: seed,
	})
	if err != nil {
		return s, err
	}
	if err := process.Pause(ctx, 500*time.Millisecond); err != nil {
		return s, err
	}
	if report.Acked == 0 && rate > 0 {
		return s, errors.New("no edit was accepted")
	}
	return still{float64(c.Counts().BytesIn - before), float64(report.Acked)}, nil
}

func (l *land) report(a arrivals, each, alone float64) error {
	if why := a.Caveat(); why != "" {
		return unreliable(why)
	}
	table := figure.Table{Head: []string{fmt.Sprintf("with %d players on the node", a.Players), "count", "p50, ms", "p99, ms"}}
	var bytes histogram.Histogram
	for _, group := range []struct {
		name  string
		loads loads
	}{{"a warm chunk, from the request to the last byte", a.warm}, {"a cold chunk, likewise", a.cold}} {
		for _, load := range group.loads {
			bytes.Add(float64(load.Bytes))
		}
		took := group.loads.took()
		table.Add(group.name, fmt.Sprint(took.Count()), 1000*took.Quantile(.5), 1000*took.Quantile(.99))
	}
	table.Add("an edit, from sending it until it is safe on disk", fmt.Sprint(a.edits.Count), float64(a.edits.P50), float64(a.edits.P99))
	size := figure.Table{Head: []string{"bytes", ""}}
	size.Add("a chunk of 4 sections, mean", bytes.Mean())
	size.Add("a section, mean", bytes.Mean()/sections)
	size.Add("a changed block to each player who sees it, at most one a tick", alone)
	size.Add("a changed block to each player who sees it, several a tick", each)
	text := table.Markdown() + "\n" + size.Markdown()
	return l.publish("land", text)
}
