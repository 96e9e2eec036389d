package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// gateways distributes a crowd over gateways.
type gateways struct {
	*bench
	nodes, players int
}

func newGateways(b *bench) *cobra.Command {
	g := &gateways{bench: b}
	c := b.command("gateways", "What a crowd in one place costs each of four gateways",
		"The same players in the same place, first all on one daemon, then spread over four daemons of one world. All daemons\n"+
			"share the daemons' cores. One gateway of four should cost a quarter of the single one, plus the work of receiving\n"+
			"the frames of the region's leader. A CPU profile of each daemon measures that work.",
		g.run)
	c.Flags().IntVar(&g.nodes, "nodes", 4, "daemons")
	c.Flags().IntVar(&g.players, "players", 1000, "players")
	return c
}

// receiveFuncs is the work of receiving what a region's leader sends; leadFuncs is the work of leading: ticks, and links to
// gateways. streamFuncs is the transport's work of receiving: for a gateway frames, which are nearly all of its
// incoming bytes, for the leader what gateways send. None of the functions calls another.
var (
	receiveFuncs = []string{module + "gameserver/mirror.(*feed).receive"}
	leadFuncs    = []string{module + "region/actor.(*land).loop", module + "region.(*Host).ServeLink", module + "region/transport.(*remoteLink).pump"}
	streamFuncs  = []string{"github.com/libp2p/go-yamux/v5.(*Session).recvLoop"}
)

const module = "github.com/voxelpopuli/voxeld/"

// gatewayRun is a measurement of a crowd on several gateways.
type gatewayRun struct {
	crowdRow
	leader   int                  // index of the daemon that leads the region of the crowd
	profiles []map[string]float64 // of each daemon, the shares of its functions
}

// spent returns what a daemon spent on the functions and their callees, as a share of one core.
func (d gatewayRun) spent(daemon int, functions ...string) float64 {
	sum := 0.0
	for _, f := range functions {
		sum += d.profiles[daemon][f]
	}
	return sum * d.CPU[daemon]
}

// frames returns what a daemon spent on receiving frames. The leader's own do not use a stream.
func (d gatewayRun) frames(daemon int) float64 {
	if daemon == d.leader {
		return d.spent(daemon, receiveFuncs...)
	}
	return d.spent(daemon, slices.Concat(receiveFuncs, streamFuncs)...)
}

// playersLed returns the number of players in the regions that a daemon leads.
func playersLed(ctx context.Context, d *daemon.Daemon) (sum int, err error) {
	status, err := d.Status(ctx)
	if err != nil {
		return 0, err
	}
	regions, err := d.Regions(ctx)
	for _, r := range regions {
		if r.Leader == status.Peer {
			sum += r.Players
		}
	}
	return sum, err
}

// leaderOf returns the index of the daemon that leads the most players.
func leaderOf(ctx context.Context, daemons []*daemon.Daemon) (leader int, err error) {
	most := -1
	for i, d := range daemons {
		players, err := playersLed(ctx, d)
		if err != nil {
			return 0, fmt.Errorf("find the leader: %w", err)
		}
		if players > most {
			most, leader = players, i
		}
	}
	return leader, nil
}

// through measures a crowd in one place that has joined through so many daemons.
func (b *gateways) through(ctx context.Context, nodes int) (d gatewayRun, err error) {
	warm, length := b.times(seconds{8, 20})
	d.wanted = b.players
	daemons, err := b.daemons(ctx, nodes)
	if err != nil {
		return d, err
	}
	defer daemon.KillAll(daemons)
	heights := crowd.NewHeightMap()
	spawn, err := heights.Fetch(ctx, b.address(daemons[0]), 1)
	if err != nil {
		return d, err
	}
	var files []string
	for i := range daemons {
		files = append(files, filepath.Join(b.dir, fmt.Sprintf("gateways-%d-%d.pprof", nodes, i+1)))
	}
	o := crowd.Options{Targets: b.addresses(daemons), Heights: heights, Homes: []grid.ChunkPos{spawn}, Samples: b.nodes}
	var led error
	d.reading, err = b.measureCrowd(ctx, targetsOf(daemons), o, b.players, warm, length, func(ctx context.Context) func() error {
		d.leader, led = leaderOf(ctx, daemons)
		var profiled []func() error
		for i, d := range daemons {
			profiled = append(profiled, takeProfile(ctx, d, files[i], length))
		}
		return func() (err error) {
			for _, wait := range profiled {
				err = errors.Join(err, wait())
			}
			return err
		}
	})
	err = errors.Join(err, led)
	for i := 0; i < nodes && err == nil; i++ {
		var p map[string]float64
		p, err = daemon.ReadProfile(ctx, files[i])
		d.profiles = append(d.profiles, p)
	}
	return d, err
}

func (b *gateways) run(ctx context.Context) error {
	nodes, players := b.nodes, b.players
	one, err := b.through(ctx, 1)
	if err != nil {
		return err
	}
	logf("%s", one.line("one daemon"))
	many, err := b.through(ctx, nodes)
	if err != nil {
		return err
	}
	logf("%s", many.line(fmt.Sprintf("%d daemons", nodes)))
	if why := cmp.Or(one.Caveat(), many.Caveat()); why != "" {
		return unreliable(why)
	}
	share := fmt.Sprintf("1/%d of the one", nodes)
	table := figure.Table{Head: []string{
		"daemon", "CPU, % of a core", "of it receiving frames, %", "against " + share, "against " + share + " and frames", "seen p50 / p99, ms",
	}}
	table.Add(fmt.Sprintf("one daemon, %d players", players), percent(one.CPU[0]), percent(one.frames(0)), "", "", one.seen())
	bare := one.CPU[0] - one.frames(0)
	worst, dearest := 0.0, 0.0
	for i, cpu := range many.CPU {
		name := fmt.Sprintf("gateway %d, %d players", i+1, players/nodes)
		frames := many.frames(i)
		plain, framed := ratio(cpu, one.CPU[0]/float64(nodes)), ratio(cpu, bare/float64(nodes)+frames)
		if i == many.leader {
			name += ", leads the region"
		} else {
			worst, dearest = math.Max(worst, plain), math.Max(dearest, framed)
		}
		table.Add(name, percent(cpu), percent(frames), plain, framed, many.seen())
	}
	text := table.Markdown() + "\n" +
		fmt.Sprintf("A gateway that does not lead costs at most **%s** of %s daemon, and **%s** of that without its frames plus the gateway's own:\n"+
			"the functions that receive from the region's leader, in the CPU profile. Leading the region takes %s %% of a core.\n",
			figure.Number(worst), share, figure.Number(dearest), figure.Number(percent(many.spent(many.leader, slices.Concat(leadFuncs, streamFuncs)...))))
	return b.publish("gateways", text)
}

// takeProfile starts a CPU profile of a daemon, which is written to a file before a measurement of that length ends. wait awaits it.
func takeProfile(ctx context.Context, d *daemon.Daemon, file string, length time.Duration) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- d.Profile(ctx, max(1, int(length.Seconds())-1), file) }() // awaited by wait, which every caller calls
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		return nil
	}
}
