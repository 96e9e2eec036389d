package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// joins measures a crowd that arrives.
type joins struct {
	*bench
	players int
	within  time.Duration
	view    int
	old     string // binary to compare with; "": none
	profile string // directory for CPU profiles; "": none
}

func newJoins(b *bench) *cobra.Command {
	j := &joins{bench: b}
	c := b.command("joins", "How long it takes many pages that open within some seconds to land",
		"An event begins: players open their pages, at equal intervals, log in with a key, and load all land in view; their\n"+
			"browsers have none of it. A player lands when the chunk under their feet has arrived: then the page lets them move,\n"+
			"and they do. Time counts from when a player was to connect. First all enter at the spawn, on a daemon that nobody has\n"+
			"played on; then two in each chunk, where they left before it was started again. The files of the page itself, and\n"+
			"surface tiles of far land, which it loads after the near land, are not part of it.",
		j.run)
	c.Flags().IntVar(&j.players, "players", 500, "players")
	c.Flags().DurationVar(&j.within, "within", 10*time.Second, "time in which they open their pages")
	c.Flags().IntVar(&j.view, "view", 6, "view distance in chunks: that of a page with a GPU")
	compareFlag(c, &j.old)
	c.Flags().StringVar(&j.profile, "profile", "", "directory for CPU profiles of the daemon, for go tool pprof")
	return c
}

// joinRow is the measurement of a crowd that arrives.
type joinRow struct {
	crowdRow
	late float64 // ticks that began more than a tick late
}

// cpuEach returns the processor time for each player in seconds: that of walking until all have arrived, too.
func (r joinRow) cpuEach() float64 { return r.TotalCPU() * r.Seconds / float64(r.wanted) }

func (r joinRow) kBEach() float64 { return float64(r.Seen.BytesIn) / float64(r.wanted) / 1000 }

func (r joinRow) landed(q float64) float64 { return 1000 * r.Seen.Landed.Quantile(q) }
func (r joinRow) loaded(q float64) float64 { return 1000 * r.Seen.Loaded.Quantile(q) }
func (r joinRow) gap(q float64) float64    { return 1000 * r.Seen.Gaps.Quantile(q) }

func (j *joins) run(ctx context.Context) error {
	if j.old != "" {
		for _, chunks := range []int{1, j.players / 2} {
			if err := compare(j.bench, j.old, fmt.Sprintf("%d players who join in %d chunks", j.players, chunks),
				func() (joinRow, error) { return j.measure(ctx, chunks) },
				[]compared[joinRow]{
					{"until they land, p50, ms", func(r joinRow) float64 { return r.landed(.5) }},
					{"until they land, p99, ms", func(r joinRow) float64 { return r.landed(.99) }},
					{"until all land in view is there, p99, ms", func(r joinRow) float64 { return r.loaded(.99) }},
					{"late ticks", func(r joinRow) float64 { return r.late }},
					{"from one frame to the next, p99, ms", func(r joinRow) float64 { return r.gap(.99) }},
					{"CPU for each, ms", func(r joinRow) float64 { return 1000 * r.cpuEach() }},
				}); err != nil {
				return err
			}
		}
		return nil
	}
	table := figure.Table{Head: []string{
		"players who join", "land p50 / p99, ms", "all land in view p50 / p99, ms", "tick p99, ms", "late ticks", "from one frame to the next p99 / max, ms",
		"kB to each", "CPU for each, ms", "CPU meanwhile, % of a core", "lost",
	}}
	for _, chunks := range []int{1, j.players / 2} {
		r, err := j.measure(ctx, chunks)
		if err != nil {
			return err
		}
		if why := r.Caveat(); why != "" {
			logf("DOUBTFUL: %s", why)
		}
		name := fmt.Sprintf("%d at the spawn", r.wanted)
		if chunks > 1 {
			name = fmt.Sprintf("%d in %d chunks", r.wanted, chunks)
		}
		table.Add(name, pair(r.landed(.5), r.landed(.99)), pair(r.loaded(.5), r.loaded(.99)), r.tickMS(), fmt.Sprint(r.late),
			pair(r.gap(.99), 1000*r.Seen.Gaps.Max()), r.kBEach(), 1000*r.cpuEach(), r.cpuPercent(), fmt.Sprint(r.wanted-r.Players))
		logf("players' core %.0f %%", r.botPercent())
	}
	return j.publish("joins", table.Markdown())
}

// measure measures players who join where they are in so many chunks.
func (j *joins) measure(ctx context.Context, chunks int) (r joinRow, err error) {
	d, o, err := j.startSpreadCrowd(ctx, chunks)
	if err != nil {
		return r, err
	}
	defer func() { d.Kill() }()
	r.wanted = j.players
	targets := []target{d}
	if chunks > 1 { // they go there, and leave
		err := j.play(ctx, o, j.players, targets, func(ctx context.Context, _ *crowd.Crowd) error {
			return process.Pause(ctx, 25*time.Second)
		})
		if err != nil {
			return r, err
		}
		d.Stop()
		if err := d.Start(ctx, ""); err != nil {
			return r, err
		}
	}
	o.View, o.Fresh, o.JoinRate = j.view, true, float64(j.players)/j.within.Seconds()
	err = j.play(ctx, o, 0, targets, func(ctx context.Context, c *crowd.Crowd) error {
		first, err := readInstant(ctx, targets, c)
		if err != nil {
			return err
		}
		profiled := func() error { return nil }
		if j.profile != "" {
			profiled = takeProfile(ctx, d, filepath.Join(j.profile, fmt.Sprintf("joins-%d.pprof", chunks)), j.within+time.Second)
		}
		if err := c.Add(ctx, j.players); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for seen := c.Counts(); int(seen.Loaded.Count()) < seen.Players-seen.Samples || seen.Players < j.players-seen.Lost; seen = c.Counts() {
			if err := process.Pause(ctx, 50*time.Millisecond); err != nil {
				return fmt.Errorf("%d of %d players have all land in view: %w", seen.Loaded.Count(), seen.Players, err)
			}
		}
		last, err := readInstant(ctx, targets, c)
		if err != nil {
			return err
		}
		const lateTicks = "voxeld_region_late_ticks_total"
		r.reading, r.late = j.cores.Between(first, last), last.scrape[0].Value(lateTicks)-first.scrape[0].Value(lateTicks)
		return profiled()
	})
	return r, err
}
