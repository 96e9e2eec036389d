package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// network is figure 4.6.
type network struct {
	*bench
	nodes, players int
}

func newNetwork(b *bench) *cobra.Command {
	n := &network{bench: b}
	c := b.command("network", "CPU of 100 nodes with 1000 wandering players (figure 4.6)",
		"All daemons share the daemons' cores. Players join through all of them in turn, fly to places far from each other,\n"+
			"and wander there. The plot shows the busiest daemon and the mean of all; the dissertation's figure 4.6 shows the\n"+
			"maximum. Its run lasted an hour, as with --duration 1h.",
		n.run)
	c.Flags().IntVar(&n.nodes, "nodes", 100, "daemons")
	c.Flags().IntVar(&n.players, "players", 1000, "players")
	return c
}

func (b *network) run(ctx context.Context) error {
	warm, length := b.times(seconds{60, 300}) // players fly for a minute to where they wander
	logf("starting %d daemons", b.nodes)
	daemons, err := b.daemons(ctx, b.nodes)
	if err != nil {
		return err
	}
	defer daemon.KillAll(daemons)
	targets := targetsOf(daemons)
	before, err := unused(ctx, targets)
	if err != nil {
		return err
	}
	o := crowd.Options{Targets: b.addresses(daemons), Roam: 800, JoinRate: 20}
	var moments []moment
	var r reading
	joined := 0.0
	err = b.play(ctx, o, 1, targets, func(ctx context.Context, c *crowd.Crowd) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := record(ctx, targets, 2*time.Second)
		began := time.Now()
		if err := c.Add(ctx, b.players-1); err != nil {
			logf("not all players could join: %v", err) // the table has the number of those who joined
		}
		logf("%d players joined after %.0f s", c.Counts().Players, time.Since(began).Seconds())
		if err := process.Pause(ctx, warm); err != nil {
			return err
		}
		joined = time.Since(began).Seconds()
		logf("all players are in place: measuring for %v", length)
		var err error
		r, err = b.cores.Measure(ctx, targets, c, length)
		moments = stop()
		return err
	})
	if err != nil {
		return err
	}
	return b.report(moments, r, before, joined)
}

// idleUsage is what idle daemons have used.
type idleUsage struct {
	starting time.Duration // of a core, all together, until all of them served
	idle     float64       // after that, as a share of one core
}

// unused waits until newly started daemons are idle, and measures what they use then.
func unused(ctx context.Context, targets []target) (r idleUsage, err error) {
	settle, length := 30*time.Second, 20*time.Second
	r.starting = usedBy(targets)
	logf("starting took %.0f s of a core; waiting %v until the daemons are idle", r.starting.Seconds(), settle)
	if err := process.Pause(ctx, settle); err != nil {
		return r, err
	}
	before, began := usedBy(targets), time.Now()
	if err := process.Pause(ctx, length); err != nil {
		return r, err
	}
	r.idle = (usedBy(targets) - before).Seconds() / time.Since(began).Seconds()
	logf("idle daemons use %.1f %% of a core", percent(r.idle))
	return r, nil
}

// usedBy returns the processor time that all have used since they started.
func usedBy(targets []target) (sum time.Duration) {
	for _, u := range usages(targets) {
		sum += u.CPU
	}
	return sum
}

func (b *network) report(moments []moment, r reading, before idleUsage, joined float64) error {
	logf("all daemons use %.1f %% of a core", percent(r.TotalCPU()))
	if why := r.Caveat(); why != "" {
		return unreliable(why)
	}
	nodes := len(r.CPU)
	var most, mean, all []figure.Point
	peak := 0.0
	for _, m := range moments {
		high, cpu := slices.Max(m.cpu), m.total()
		most = append(most, figure.Point{X: m.at, Y: percent(high)})
		mean = append(mean, figure.Point{X: m.at, Y: percent(cpu) / float64(nodes)})
		all = append(all, figure.Point{X: m.at, Y: percent(cpu)})
		if m.at > joined {
			peak = max(peak, high)
		}
	}
	axis := figure.Axis{Label: "time, s"}
	if err := figure.WriteSVG(b.file("network.svg"),
		figure.Plot{
			Title: fmt.Sprintf("%d daemons, %d wandering players", nodes, r.Players), X: axis, Y: figure.Axis{Label: "CPU of a daemon, % of one core"},
			Lines: []figure.Line{{Name: "the busiest daemon", Points: most}, {Name: "mean of all daemons", Points: mean}},
		},
		figure.Plot{
			Title: "All daemons together", X: axis, Y: figure.Axis{Label: "CPU, % of one core", Max: 100},
			Lines: []figure.Line{{Name: "all daemons", Points: all}},
		}); err != nil {
		return err
	}
	rss := 0.0
	for _, v := range r.RSS {
		rss += float64(v)
	}
	table := figure.Table{Head: []string{"with all players in place", ""}}
	table.Add("players", r.Players)
	table.Add("all daemons, % of a core", percent(r.TotalCPU()))
	table.Add("busiest daemon in any 2 s, %", percent(peak))
	table.Add("memory of a daemon, MiB", rss/float64(nodes)/(1<<20))
	table.Add("kB/s to each player", r.PerPlayer(r.Seen.BytesIn)/1000)
	table.Add("players lost", r.Seen.Lost)
	table.Add("before players join: all daemons, % of a core", percent(before.idle))
	table.Add("to start them all, s of a core", before.starting.Seconds())
	reported, bytes := 0.0, 0.0
	for i := range r.After {
		reported += r.After[i].Value("voxeld_moves_total", "outcome", "sent") - r.Before[i].Value("voxeld_moves_total", "outcome", "sent")
		bytes += r.After[i].Value("voxeld_stream_bytes_total", "direction", "out") - r.Before[i].Value("voxeld_stream_bytes_total", "direction", "out")
	}
	table.Add("moves of a player that the gateway sends to the region, a second", ratio(reported, r.Seconds*float64(r.Players)))
	table.Add("kB/s from a daemon to others", ratio(bytes, r.Seconds*float64(nodes))/1000)
	text := "![CPU of the daemons](performance/network.svg)\n\n" + table.Markdown()
	return b.publish("network", text)
}
