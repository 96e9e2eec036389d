// Command sim runs the simulators of the overlays (package sim), of vector clocks (clocks) and of Walkad (walkad), and
// compares their results with the papers. README.md lists the papers, their commands and their figures.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/voxelpopuli/voxeld/overlay"

	"github.com/voxelpopuli/voxeld/research/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// newRoot returns the command, with a subcommand for each simulator.
func newRoot() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulate the overlays, vector clocks and Walkad, and compare the results with the papers",
		Long: "Runs the state machines that distribute players' movement (package overlay) in rounds: a message sent in\n" +
			"one round arrives in the next. Also simulates vector clocks and Walkad (research/README.md).\n" +
			"With --figure it prints a figure of the paper beside the simulated values.\n" +
			"Without it, it simulates one game, which may be read from a file, and can log it.",
		Example:      "  sim psense --figure all --out out\n  sim vclock --players 200",
		SilenceUsage: true, SilenceErrors: true,
	}
	c.AddCommand(newSimOverlay("relay", "VoxelPopuli's relay through the region's leader", nil),
		newSimOverlay("psense", "pSense", func(o simOptions) []sim.Figure {
			s := sim.PSenseSetting{Cap: o.limit, Header: o.header, Rounds: o.rounds}
			return append(sim.PSenseFigures(s), sim.PSenseAsked(s), sim.PSenseSwitches(s, o.players), sim.PSenseOpen(s))
		}), newSimAreacast(), newSimVclock(), newSimWalkad(), newSimCapacity(), newSimScore())
	return c
}

func newSimOverlay(name, what string, figures func(simOptions) []sim.Figure) *cobra.Command {
	var o simOptions
	c := &cobra.Command{
		Use: name, Short: "Simulate " + what,
		Example: "  sim " + name + " --players 600 --log out\n  sim " + name + " --moves moves.csv --log out",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.rounds < 1 || o.seeds < 1 || o.players < 1 || o.limit < 0 || o.header < 0 {
				return errors.New("--rounds, --seeds and --players must be 1 or more, --cap and --header 0 or more")
			}
			if o.figures == "" {
				return simGame(c.OutOrStdout(), name, o)
			}
			names, err := o.chosen(figureNames(figures))
			if err != nil {
				return err
			}
			for _, f := range figures(o) {
				if !slices.Contains(names, f.Name) {
					continue
				}
				if err := simFigure(c.Context(), c.OutOrStdout(), name, f, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := c.Flags()
	if figures != nil {
		o.flags(f, figureNames(figures), "; then only --cap, --header, --rounds, --players (figure switches), --seed, --seeds and --out count")
		f.IntVar(&o.seeds, "seeds", 1, "number of seeds for each point of a figure, counted from --seed")
	} else {
		o.seeds = 1
	}
	o.gameFlags(f)
	f.IntVar(&o.rounds, "rounds", 500, "number of rounds; a file of --moves with fewer ends earlier")
	f.IntVar(&o.limit, "cap", sim.DefaultCap, "maximum bytes that a player sends per round, headers included; 0 for no limit")
	f.IntVar(&o.header, "header", overlay.HeaderPlain, "header bytes of each packet; UDP over IPv4 has 28")
	f.IntVar(&o.players, "players", 300, "number of players")
	if name != "relay" {
		f.BoolVar(&o.improved, "improved", false, "use all improvements over the paper")
		f.BoolVar(&o.ownFirst, "own-first", false, "when over the cap, delete forwarded updates before own ones (paper, §3.1), not random ones (§3.2)")
		f.BoolVar(&o.leader, "leader", true, "with --improved: the region's leader introduces players to each other")
	}
	return c
}

func figureNames(figures func(simOptions) []sim.Figure) (names []string) {
	for _, f := range figures(simOptions{}) {
		names = append(names, f.Name)
	}
	return names
}
