package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/overlay/areacast"
	"github.com/voxelpopuli/voxeld/overlay/sim"
	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// areacastOptions are the flags of `voxeld sim areacast`.
type areacastOptions struct {
	simOptions
	page   string
	fanout []int
	direct bool
}

// newSimAreacast returns the command `voxeld sim areacast`.
func newSimAreacast() *cobra.Command {
	paper := areacast.Paper()
	o := areacastOptions{fanout: []int{paper.FanoutIR, paper.FanoutVR, paper.FanoutInf}}
	c := &cobra.Command{
		Use: "areacast", Short: "Simulate areacast",
		Long: "With --figure it simulates the games of \"Area-Based Gossip Multicast\" (Seeger, Kemme, Kabus, Buchmann 2008),\n" +
			"and prints each figure's numbers beside the paper's. Without it, it simulates one game. An update that comes\n" +
			"directly from its origin has age 2 here, as in that paper. The pSense paper counts it as 1: see --direct-is-one.",
		Example: "  voxeld sim areacast --figure 2,3,table2 --seeds 5\n  voxeld sim areacast --players 1000 --improved --cap 20060",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.seeds < 1 || o.rounds < 0 || o.players < 1 || o.limit < 0 || len(o.fanout) != 3 {
				return usageError{errors.New("--seeds and --players must be 1 or more, --rounds and --cap 0 or more, --fanout three numbers")}
			}
			if o.figure == "" {
				return o.playOne(c.OutOrStdout())
			}
			return o.figures(c)
		},
	}
	f := c.Flags()
	f.StringVar(&o.figure, "figure", "", "figures to print, separated by commas: "+strings.Join(areacastNames(), ", ")+"; then only --seeds, --rounds, --out and --page count")
	f.IntVar(&o.seeds, "seeds", 3, "number of seeds for each case of a figure, counted from 1")
	f.StringVar(&o.out, "out", "", "directory to write each figure's CSV and SVG to; empty writes none")
	f.StringVar(&o.page, "page", "", "markdown page to insert the figures' tables into")
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

func areacastNames() []string {
	names := []string{"all"}
	for _, f := range sim.AreacastFigures() {
		names = append(names, f.Name)
	}
	return names
}

// playOne simulates one game.
func (o *areacastOptions) playOne(w io.Writer) error {
	if o.game != "random" && o.game != "hotspot" {
		return usageError{fmt.Errorf("--game: there is no game %q", o.game)}
	}
	opt := areacast.Paper()
	if o.improved {
		opt = areacast.Improved(o.limit)
		if o.limit == 0 {
			return usageError{errors.New("--improved requires --cap: set the bytes that a player may send per round")}
		}
		if o.leader {
			opt.Improved.ReportEvery = reportEvery
		}
	}
	opt.Vision, opt.Interaction, opt.Improved.Cap = o.vision, o.interaction, o.limit
	opt.FanoutIR, opt.FanoutVR, opt.FanoutInf = o.fanout[0], o.fanout[1], o.fanout[2]
	opt.Header = max(opt.Header, o.header)
	if err := opt.Validate(); err != nil {
		return usageError{err}
	}
	c := sim.AreacastCase{
		Players: o.players, Side: o.side, Rounds: o.rounds, Step: o.step, Hotspot: o.game == "hotspot",
		DirectIsOne: o.direct, Options: opt,
	}
	recorded, err := readMoves(o.moves)
	if err != nil {
		return err
	}
	if recorded != nil {
		c.Moves, c.Rounds = recorded, min(c.Length(), recorded.Rounds())
		if c.Rounds < 1 {
			return usageError{errors.New("--moves: the file must have two rounds or more")}
		}
	}
	return play(w, c.Config(o.seed), recorded, o.simOptions)
}

// reportEvery is the interval, in rounds, at which an improved machine reports to its leader.
const reportEvery = 2

// figures prints the chosen figures.
func (o *areacastOptions) figures(c *cobra.Command) error {
	wanted := strings.Split(o.figure, ",")
	for _, name := range wanted {
		if !slices.Contains(areacastNames(), name) {
			return usageError{fmt.Errorf("--figure: there is no %q; choose all, or some of %s", name, strings.Join(areacastNames()[1:], ","))}
		}
	}
	for _, f := range sim.AreacastFigures() {
		if !slices.Contains(wanted, f.Name) && !slices.Contains(wanted, "all") {
			continue
		}
		if err := o.show(c, f); err != nil {
			return err
		}
	}
	return nil
}

// show runs one figure, prints it and writes its files.
func (o *areacastOptions) show(c *cobra.Command, f sim.AreacastFigure) error {
	trials := make([]sim.Trial, len(f.Cases))
	for i := range f.Cases {
		if o.rounds > 0 {
			f.Cases[i].Rounds = min(o.rounds, f.Cases[i].Length())
		}
		trials[i].Config = f.Cases[i].Config
	}
	results, err := runAll(c.Context(), trials, 1, o.seeds)
	if err != nil {
		return fmt.Errorf("run figure %s: %w", f.Name, err)
	}
	text := areacastText(f, results)
	fmt.Fprintf(c.OutOrStdout(), "### %s\n\n%s\n", f.Heading(), text)
	if o.page != "" {
		if err := figure.Insert(o.page, "areacast-"+f.Name, text); err != nil {
			return err
		}
	}
	if o.out != "" {
		return areacastFiles(o.out, f, results)
	}
	return nil
}
