package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// profile reports where the time goes.
type profile struct {
	*bench
	players int
	game    string
}

func newProfile(b *bench) *cobra.Command {
	p := &profile{bench: b}
	c := b.command("profile", "Where the time goes with a crowd in one chunk, and what the next limit is",
		"Takes a CPU profile of the daemon over its admin socket while players walk about in one chunk, and reports the share\n"+
			"of each kind of work. The profile is kept beside the page.",
		p.run)
	c.Flags().IntVar(&p.players, "players", 1000, "players")
	c.Flags().StringVar(&p.game, "game", "", "the players' game: "+crowd.Games()+" (default: sessions)")
	return c
}

// workKinds are the kinds of work of a daemon with a crowd. The functions of one cover all of its work, and none of
// another kind.
var workKinds = []struct {
	name  string
	below []string
	limit string // the conclusion if this is the largest
}{
	{
		"writing frames into sockets",
		[]string{"gameserver/outbox.(*FrameWriter).Deliver", "gameserver/outbox.(*Outbox).Drain"},
		"the system's work for one write to each player and tick, which the floor program has too: fewer bytes do not help, only fewer frames do",
	},
	{
		"reading and checking moves",
		[]string{"gameserver.(*session).listen"},
		"a system call, and a wake of a goroutine, for each move: reading all sockets once a tick would save most of it",
	},
	{"computing motion: which updates each player receives", []string{"gameserver.(*Gateway).buildFrames"}, "the work for each avatar and cell in the gateway's tick; more gateways share it only in part"},
	{"receiving from regions", []string{"gameserver/mirror.(*feed).receive"}, "the mirror of each chunk, kept move by move"},
	{"sending to regions", []string{"gameserver/mirror.(*sender).run"}, "the messages from the gateway to its regions"},
	{"the regions' ticks", []string{"region/actor.(*Land).loop"}, "the region's tick, which is in one goroutine for each region"},
	{"saving and publishing players", []string{"gameserver/players.(*Store).runSaver", "gameserver/players.(*publisher).publish"}, "the records of players and their signatures"},
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}, "garbage"},
	{"scheduling goroutines", []string{"runtime.schedule"}, "waking goroutines, most of them for moves that arrive one by one"},
}

const module = "github.com/voxelpopuli/voxeld/"

func (b *profile) run(ctx context.Context) error {
	warm, length := b.times(seconds{8, 15}, seconds{8, 10})
	d, o, err := b.startCrowd(ctx, b.game)
	if err != nil {
		return err
	}
	defer d.Kill()
	players := b.players
	name := fmt.Sprintf("one-chunk-%d", players)
	row, err := b.measureCrowd(ctx, []measure.Target{d}, o, players, warm, length, func(ctx context.Context) func() error {
		return b.takeProfile(ctx, d, name, length)
	})
	if err != nil {
		return err
	}
	if why := row.Caveat(); why != "" {
		return unreliable(why)
	}
	p, err := daemon.ReadProfile(ctx, b.profileFile(name))
	if err != nil {
		return err
	}
	table := figure.Table{Head: []string{fmt.Sprintf("with %d players in one chunk", players), "% of the daemon's time", "µs a player and tick"}}
	each := row.TotalCPU() / float64(players) / measure.TickRate * 1e6
	rest, most, largest := 1.0, 0.0, 0
	for i, w := range workKinds {
		share := 0.0
		for _, f := range w.below {
			if !strings.HasPrefix(f, "runtime.") {
				f = module + f
			}
			share += p[f]
		}
		rest -= share
		table.Add(w.name, percent(share), share*each)
		if share > most {
			most, largest = share, i
		}
	}
	table.Add("all else", percent(rest), rest*each)
	text := fmt.Sprintf("%s\n%d players took %s %% of a core; at the same cost for each a core is full with **%.0f**. The next limit is %s.\n",
		table.Markdown(), players, figure.Number(percent(row.TotalCPU())), float64(players)/row.TotalCPU(), workKinds[largest].limit)
	return b.publish("profile", text)
}

// takeProfile starts a CPU profile that ends before the measurement does. After wait it is in profileFile.
func (b *bench) takeProfile(ctx context.Context, d *daemon.Daemon, name string, length time.Duration) (wait func() error) {
	done := make(chan error, 1)
	go func() { // awaited by wait, which every caller calls
		done <- d.Profile(ctx, max(1, int(length.Seconds())-1), b.profileFile(name))
	}()
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		return nil
	}
}

func (b *bench) profileFile(name string) string { return b.file(name + ".pprof") }
