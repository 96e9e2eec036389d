package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/research/sim"
)

// newSimScore returns the command that evaluates a log of deliveries, from the simulator or from a live game.
func newSimScore() *cobra.Command {
	var moves, dir string
	var areacast bool
	ranges := sim.PaperRanges
	c := &cobra.Command{
		Use: "score", Short: "Evaluate a log of deliveries",
		Long: "Reads a movement (round,player,x,y,vx,vy) and the deliveries.csv of a simulation or a live game, and prints\n" +
			"the results that the simulator would print.",
		Example: "  sim score --moves moves.csv --log out",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			age := sim.PSenseAge
			if areacast {
				age = sim.AreacastAge
			}
			return simScore(c.OutOrStdout(), moves, dir, ranges, age)
		},
	}
	f := c.Flags()
	f.StringVar(&moves, "moves", "", "CSV file of the movement (default moves.csv in the folder of --log)")
	f.StringVar(&dir, "log", ".", "folder that holds deliveries.csv")
	f.Float64Var(&ranges.Vision, "vision", ranges.Vision, "vision range, in blocks")
	f.Float64Var(&ranges.Interaction, "interaction", ranges.Interaction, "interaction range, in blocks")
	f.BoolVar(&areacast, "areacast", false, "count ages as areacast does: an update that came directly has age 2")
	return c
}

func simScore(w io.Writer, moves, dir string, ranges sim.Ranges, age sim.AgeRule) error {
	if moves == "" {
		moves = filepath.Join(dir, "moves.csv")
	}
	recorded, err := readMoves(moves)
	if err != nil {
		return err
	}
	deliveries, err := os.Open(filepath.Join(dir, "deliveries.csv"))
	if err != nil {
		return fmt.Errorf("open deliveries: %w", err)
	}
	defer deliveries.Close() //nolint:errcheck // opened for reading only
	r, err := sim.ScoreDeliveries(recorded, deliveries, ranges, age)
	if err != nil {
		return err
	}
	printScore(w, r)
	return nil
}
