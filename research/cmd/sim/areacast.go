package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/voxelpopuli/voxeld/overlay/areacast"

	"github.com/voxelpopuli/voxeld/research/sim"
)

// areacastOptions are the flags of `sim areacast`.
type areacastOptions struct {
	simOptions
	fanout []int
	direct bool
}

// newSimAreacast returns the command `sim areacast`.
func newSimAreacast() *cobra.Command {
	paper := areacast.Paper()
	o := areacastOptions{fanout: []int{paper.FanoutIR, paper.FanoutVR, paper.FanoutInf}}
	c := &cobra.Command{
		Use: "areacast", Short: "Simulate areacast",
		Long: "With --figure it simulates the games of \"Area-Based Gossip Multicast\" (Seeger, Kemme, Kabus, Buchmann 2008),\n" +
			"and prints each figure's numbers beside the paper's. Without it, it simulates one game. An update that comes\n" +
			"directly from its origin has age 2 here, as in that paper. The pSense paper counts it as 1: see --direct-is-one.",
		Example: "  sim areacast --figure 2,3,table2 --seeds 5\n  sim areacast --players 1000 --improved --cap 20060",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.seeds < 1 || o.rounds < 0 || o.players < 1 || o.limit < 0 || len(o.fanout) != 3 {
				return errors.New("--seeds and --players must be 1 or more, --rounds and --cap 0 or more, --fanout three numbers")
			}
			if o.figures == "" {
				return o.playOne(c.OutOrStdout())
			}
			return o.printFigures(c)
		},
	}
	f := c.Flags()
	o.flags(f, areacastNames(), "; then only --seeds, --rounds and --out count")
	f.IntVar(&o.seeds, "seeds", 3, "number of seeds for each case of a figure, counted from 1")
	f.IntVar(&o.rounds, "rounds", 0, "maximum number of rounds; 0 for 500, or for those of the figure")
	f.IntVar(&o.players, "players", 100, "number of players")
	f.IntSliceVar(&o.fanout, "fanout", o.fanout, "the paper's three fanouts: fanoutIR,fanoutVR,fanoutInf")
	f.BoolVar(&o.direct, "direct-is-one", false, "count an update that comes directly from its origin as age 1")
	f.BoolVar(&o.improved, "improved", false, "use all improvements over the paper; requires --cap")
	f.BoolVar(&o.leader, "leader", true, "with --improved: the region's leader introduces players to each other")
	f.IntVar(&o.limit, "cap", 0, "maximum bytes that a player sends per round; 0 for as many gossips as the fanout, whatever their size")
	f.IntVar(&o.header, "header", 0, "header bytes of each packet; the paper counts none, UDP over IPv4 has 28")
	o.gameFlags(f)
	return c
}

func areacastNames() (names []string) {
	for _, f := range sim.AreacastFigures() {
		names = append(names, f.Name)
	}
	return names
}

// playOne simulates one game.
func (o *areacastOptions) playOne(w io.Writer) error {
	opt := areacast.Paper()
	if o.improved {
		opt = areacast.Improved(o.limit)
		if o.limit == 0 {
			return errors.New("--improved requires --cap: set the bytes that a player may send per round")
		}
		if o.leader {
			opt.Improved.ReportEvery = reportEvery
		}
	}
	opt.Vision, opt.Interaction, opt.Improved.Cap = o.vision, o.interaction, o.limit
	opt.FanoutIR, opt.FanoutVR, opt.FanoutInf = o.fanout[0], o.fanout[1], o.fanout[2]
	opt.Header = max(opt.Header, o.header)
	if err := opt.Validate(); err != nil {
		return err
	}
	c := sim.AreacastCase{
		Players: o.players, Side: o.side, Rounds: o.rounds, Step: o.step, Hotspot: o.game == "hotspot",
		DirectIsOne: o.direct, Options: opt,
	}
	recorded, err := o.recorded()
	if err != nil {
		return err
	}
	if recorded != nil {
		c.Moves, c.Rounds = recorded, min(c.Length(), recorded.Rounds())
	}
	return play(w, c.Config(o.seed), recorded, o.simOptions)
}

// reportEvery is the interval, in rounds, at which an improved machine reports to its leader.
const reportEvery = 2

// printFigures prints the chosen figures.
func (o *areacastOptions) printFigures(c *cobra.Command) error {
	names, err := o.chosen(areacastNames())
	if err != nil {
		return err
	}
	for _, f := range sim.AreacastFigures() {
		if !slices.Contains(names, f.Name) {
			continue
		}
		if o.rounds > 0 {
			for i := range f.Cases {
				f.Cases[i].Rounds = min(o.rounds, f.Cases[i].Length())
			}
		}
		results, err := runAll(c.Context(), f.Cases, o.seeds, func(of sim.AreacastCase, seed uint64) (*sim.Result, error) {
			return sim.Run(of.Config(1 + seed))
		})
		if err != nil {
			return fmt.Errorf("run figure %s: %w", f.Name, err)
		}
		data, text := areacastData(f, results), ""
		if f.Claim != "" {
			text = "The paper: " + f.Claim + ".\n\n"
		}
		if err := o.write(c.OutOrStdout(), "areacast-"+f.Name, f.Heading(), text+data.tables[0].Markdown(), data); err != nil {
			return err
		}
	}
	return nil
}
