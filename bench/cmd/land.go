package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/bot"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/testkit/histogram"
)

// sections is the height of the benchmark's worlds.
const sections = 4

// newLand returns the command that measures chunks and edits.
func newLand(b *bench) *cobra.Command {
	var players int
	c := b.command("land", "How fast land and edits arrive, and how many bytes they take",
		"A crowd walks about on the node. Probes fly over land: a move that crosses into another chunk requests the\n"+
			"chunks that come into view. Warm land is in view of another player on the node; cold land has never been loaded.\n"+
			"Then players build, which measures the time until an edit is safe on disk. Last, one player builds in front of a\n"+
			"crowd that stands still, so that all bytes that the crowd receives are those of changed blocks.",
		func(ctx context.Context) error { return b.land(ctx, players) })
	c.Flags().IntVar(&players, "players", 500, "players on the node")
	return c
}

// probes is the number of probes that fly at once.
const probes = 12

func (b *bench) land(ctx context.Context, players int) error {
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return err
	}
	defer d.Kill()
	spawn := o.Homes[0]
	o.View = warmRadius
	var warm, cold []crowd.Load
	var built bot.Report
	var r measure.Reading
	err = b.play(ctx, o, players, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) (err error) {
		first, err := measure.ReadInstant(ctx, []measure.Target{d}, c)
		if err != nil {
			return err
		}
		if warm, err = flights(ctx, d, spawn, true); err != nil {
			return err
		}
		if cold, err = flights(ctx, d, spawn, false); err != nil {
			return err
		}
		if built, err = bot.Run(ctx, bot.Options{
			Target: d.Game, Players: 8, Ramp: 100, Edits: 4, Rate: 20, Chunk: spawn, View: 1, Duration: 15 * time.Second, Seed: 7,
		}); err != nil {
			return err
		}
		last, err := measure.ReadInstant(ctx, []measure.Target{d}, c)
		r = b.cores.Between(first, last)
		return err
	})
	if err != nil {
		return err
	}
	d.Kill() // the next one uses its address
	each, alone, err := b.changes(ctx)
	if err != nil {
		return err
	}
	return b.reportLand(r, warm, cold, built, each, alone)
}

// warmRadius is the view distance of the crowd, in chunks: land within it is warm.
const warmRadius = 6

// flights flies probes and returns what they loaded. Warm ones fly to and fro over land that the crowd has in view,
// cold ones away from it.
func flights(ctx context.Context, d *daemon.Daemon, spawn grid.ChunkPos, warm bool) (all []crowd.Load, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range probes {
		wg.Go(func() {
			loads, failed := flight(ctx, d, fmt.Sprintf("probe-%v-%d", warm, i), spawn, warm, 2*math.Pi*float64(i)/probes)
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, loads...), errors.Join(err, failed)
		})
	}
	wg.Wait()
	return all, err
}

func flight(ctx context.Context, d *daemon.Daemon, name string, spawn grid.ChunkPos, warm bool, turn float64) ([]crowd.Load, error) {
	p, err := crowd.StartProbe(ctx, d.Game, name, 1)
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
func (b *bench) changes(ctx context.Context) (each, alone float64, err error) {
	const players = 20
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return 0, 0, err
	}
	defer d.Kill()
	o.Rate, o.Samples = -1, -1
	err = b.play(ctx, o, players, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) error {
		measured := func(builders int, rate float64, seed uint64) (float64, error) {
			// The builders stand still too. Their traffic without edits is measured first.
			empty, err := b.stillBytes(ctx, d, c, builders, 0, seed)
			if err != nil {
				return 0, err
			}
			full, err := b.stillBytes(ctx, d, c, builders, rate, seed+1)
			if err != nil {
				return 0, err
			}
			return (full.bytes - empty.bytes) / players / full.edits, nil
		}
		if _, err := b.stillBytes(ctx, d, c, 1, 0, 50); err != nil { // meanwhile the rest of the land arrives
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

func (b *bench) stillBytes(ctx context.Context, d *daemon.Daemon, c *crowd.Crowd, builders int, rate float64, seed uint64) (s still, err error) {
	before := c.Counts().BytesIn
	report, err := bot.Run(ctx, bot.Options{
		Target: d.Game, Players: builders, Ramp: 100, Rate: -1, Edits: rate, View: 1, Duration: 8 * time.Second, Seed: seed,
	})
	if err != nil {
		return s, err
	}
	if err := measure.Pause(ctx, 500*time.Millisecond); err != nil {
		return s, err
	}
	if report.Acked == 0 && rate > 0 {
		return s, errors.New("no edit was accepted")
	}
	return still{float64(c.Counts().BytesIn - before), float64(report.Acked)}, nil
}

func (b *bench) reportLand(r measure.Reading, warm, cold []crowd.Load, built bot.Report, each, alone float64) error {
	table := figure.Table{Head: []string{fmt.Sprintf("with %d players on the node", r.Players), "count", "p50, ms", "p99, ms"}}
	var csv [][]float64
	var bytes histogram.Histogram
	for i, group := range []struct {
		name  string
		loads []crowd.Load
	}{{"a warm chunk, from the request to the last byte", warm}, {"a cold chunk, likewise", cold}} {
		var took histogram.Histogram
		for _, l := range group.loads {
			bytes.Add(float64(l.Bytes))
			if l.Took > 0 {
				took.Add(l.Took.Seconds())
				csv = append(csv, []float64{float64(i), 1000 * l.Took.Seconds(), float64(l.Bytes)})
			}
		}
		table.Add(group.name, fmt.Sprint(took.Count()), 1000*took.Quantile(.5), 1000*took.Quantile(.99))
	}
	table.Add("an edit, from sending it until it is safe on disk", fmt.Sprint(built.Ack.Count), float64(built.Ack.P50), float64(built.Ack.P99))
	if err := figure.WriteCSV(b.file("land.csv"), []string{"cold", "load_ms", "bytes"}, csv); err != nil {
		return err
	}
	size := figure.Table{Head: []string{"bytes", ""}}
	size.Add("a chunk of 4 sections, mean", bytes.Mean())
	size.Add("a section, mean", bytes.Mean()/sections)
	size.Add("a changed block to each player who sees it, at most one a tick", alone)
	size.Add("a changed block to each player who sees it, several a tick", each)
	text := table.Markdown() + "\n" + size.Markdown()
	if why := r.Caveat(); why != "" {
		text += "\n**Unreliable**: " + why + ".\n"
	}
	return b.publish("land", text)
}
