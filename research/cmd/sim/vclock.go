package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"

	"github.com/voxelpopuli/voxeld/research/clocks"
)

// vclockFigures are the tables of research/measured.md.
var vclockFigures = []string{"sizes", "comparisons", "settings"}

// vclockOptions are the flags of `sim vclock`.
type vclockOptions struct {
	report
	seeds int
	walk  clocks.Config
}

// newSimVclock returns the command `sim vclock`.
func newSimVclock() *cobra.Command {
	var o vclockOptions
	c := &cobra.Command{
		Use: "vclock", Short: "Simulate pruned vector clocks",
		Long: "Simulates players who walk and act (research/measured.md). It measures the size of their vector clocks, and\n" +
			"compares how each method orders pairs of events with the order of full vector clocks. The methods are\n" +
			"Algorithm 2 as printed, common components, the authors' own components, and these with chains, which the\n" +
			"daemon uses. With --figure it prints tables, without it the results of one walk. It fails if a\n" +
			"method that must never be wrong is.",
		Example: "  sim vclock --figure all --out out\n  sim vclock --players 200 --side 450 --linger 10",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.seeds < 1 {
				return errors.New("--seeds must be 1 or more")
			}
			if err := o.walk.Validate(); err != nil {
				return err
			}
			if o.figures == "" {
				return o.one(c.Context(), c.OutOrStdout())
			}
			return o.printFigures(c.Context(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	o.flags(f, vclockFigures, "")
	f.IntVar(&o.seeds, "seeds", 1, "number of seeds, counted from --seed; their pairs are added up")
	f.Uint64Var(&o.walk.Seed, "seed", 1, "seed of the walk")
	f.IntVar(&o.walk.Players, "players", 1000, "number of players")
	f.IntVar(&o.walk.Rounds, "rounds", 300, "number of rounds, of one second each")
	f.Float64Var(&o.walk.Side, "side", 1000, "side length of the field, in blocks")
	f.Float64Var(&o.walk.Vision, "vision", 100, "vision range, in blocks")
	f.Float64Var(&o.walk.Rate, "rate", 0.05, "events per player and round")
	f.IntVar(&o.walk.Linger, "linger", 0, "rounds for which a player out of sight stays relevant")
	f.IntVar(&o.walk.Limit, "limit", 0, "maximum number of entries of a clock, the most recent ones; 0 for no limit")
	f.IntVar(&o.walk.Nearest, "nearest", 0, "number of nearest players in sight that are relevant; 0 for all in sight")
	return c
}

// one runs one walk and prints its results.
func (o *vclockOptions) one(ctx context.Context, w io.Writer) error {
	results, err := o.runWalks(ctx, []clocks.Setting{{Name: "walk", Config: o.walk}})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n%s", sizesText(results[0]), comparisonsText(results[0]))
	return nil
}

// printFigures prints the chosen figures. The first setting is the reference.
func (o *vclockOptions) printFigures(ctx context.Context, w io.Writer) error {
	names, err := o.chosen(vclockFigures)
	if err != nil {
		return err
	}
	settings := clocks.Settings(o.walk)
	if !slices.Contains(names, "settings") {
		settings = settings[:1]
	}
	results, err := o.runWalks(ctx, settings)
	if err != nil {
		return err
	}
	for _, name := range names {
		var text string
		var tables []figure.Table
		switch r := results[0]; name {
		case "sizes":
			text, tables = sizesText(r), []figure.Table{r.SizeTable()}
		case "comparisons":
			text, tables = comparisonsText(r), []figure.Table{r.Received.Table(), r.Facing.Table()}
		default:
			tables = []figure.Table{clocks.SettingsTable(settings, results)}
			text = tables[0].Markdown()
		}
		if err := o.write(w, "vclock-"+name, "vclock, "+name, text, figureData{tables: tables}); err != nil {
			return err
		}
	}
	return nil
}

// runWalks runs each setting with each seed, and merges the seeds.
func (o *vclockOptions) runWalks(ctx context.Context, settings []clocks.Setting) ([]clocks.Result, error) {
	results, err := runAll(ctx, settings, o.seeds, func(s clocks.Setting, seed uint64) (clocks.Result, error) {
		s.Config.Seed += seed
		return clocks.Walk(s.Config)
	})
	if err != nil {
		return nil, err
	}
	merged := make([]clocks.Result, len(settings))
	for i := range merged {
		merged[i] = clocks.Merge(results[i])
		if wrong := merged[i].Unsound(); len(wrong) > 0 {
			return nil, fmt.Errorf("walk %q: comparisons that must never be wrong were wrong: %v", settings[i].Name, wrong)
		}
	}
	return merged, nil
}
