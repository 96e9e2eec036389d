package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/vclock/walk"
)

// vclockFigures are the tables of docs/causality.md.
var vclockFigures = []string{"sizes", "comparisons", "settings"}

// vclockOptions are the flags of `voxeld sim vclock`.
type vclockOptions struct {
	figure, out, page string
	seeds             int
	walk              walk.Config
}

// newSimVclock returns the command `voxeld sim vclock`.
func newSimVclock() *cobra.Command {
	var o vclockOptions
	c := &cobra.Command{
		Use: "vclock", Short: "Simulate pruned vector clocks",
		Long: "Simulates players who walk and act (docs/causality.md). It measures the size of their vector clocks, and\n" +
			"compares how each method orders pairs of events with the order of full vector clocks. The methods are\n" +
			"Algorithm 2 as printed, common components, the authors' own components, and these with chains, which the\n" +
			"daemon uses. With --figure it prints the page's tables, without it the results of one walk. It fails if a\n" +
			"method that must never be wrong is.",
		Example: "  voxeld sim vclock --figure all --page docs/causality.md --out out\n  voxeld sim vclock --players 200 --side 450 --linger 10",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.seeds < 1 {
				return usageError{errors.New("--seeds must be 1 or more")}
			}
			if err := o.walk.Validate(); err != nil {
				return usageError{err}
			}
			if o.figure == "" {
				return o.one(c.Context(), c.OutOrStdout())
			}
			return o.figures(c.Context(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.figure, "figure", "", "figures to print: all, or some of "+strings.Join(vclockFigures, ","))
	f.StringVar(&o.out, "out", "", "directory to write each figure's CSV and SVG to; empty writes none")
	f.StringVar(&o.page, "page", "", "markdown page to insert the figures' tables into")
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
	results, err := o.runWalks(ctx, []walk.Setting{{Name: "walk", Config: o.walk}})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n%s", sizesText(results[0]), comparisonsText(results[0]))
	return nil
}

// figures prints the chosen figures.
func (o *vclockOptions) figures(ctx context.Context, w io.Writer) error {
	wanted := strings.Split(o.figure, ",")
	for _, name := range wanted {
		if name != "all" && !slices.Contains(vclockFigures, name) {
			return usageError{fmt.Errorf("--figure: there is no %q; choose all, or some of %s", name, strings.Join(vclockFigures, ","))}
		}
	}
	settings := walk.Settings(o.walk)
	asked := func(name string) bool { return slices.Contains(wanted, name) || slices.Contains(wanted, "all") }
	if !asked("settings") {
		settings = settings[:1] // the reference
	}
	results, err := o.runWalks(ctx, settings)
	if err != nil {
		return err
	}
	for _, name := range vclockFigures {
		if !asked(name) {
			continue
		}
		if err := o.show(w, name, settings, results); err != nil {
			return err
		}
	}
	return nil
}

// show prints and writes a figure. The first setting is the reference.
func (o *vclockOptions) show(w io.Writer, name string, settings []walk.Setting, results []walk.Result) error {
	var text string
	var csv figureData
	switch name {
	case "sizes":
		text, csv = sizesText(results[0]), sizesData(results[0])
	case "comparisons":
		text, csv = comparisonsText(results[0]), comparisonsData(results[0])
	default:
		text, csv = settingsText(settings, results), settingsData(results)
	}
	fmt.Fprintf(w, "### vclock, %s\n\n%s\n", name, text)
	if o.page != "" {
		if err := figure.Insert(o.page, "vclock-"+name, text); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	path := filepath.Join(o.out, "vclock-"+name)
	if err := figure.WriteCSV(path+".csv", csv.head, csv.rows); err != nil {
		return err
	}
	return figure.WriteSVG(path+".svg", csv.plots...)
}

// runWalks runs each setting with each seed, on all processors, and merges the seeds. A walk is a pure function; the
// goroutines are started here, because floor 0 starts none.
func (o *vclockOptions) runWalks(ctx context.Context, settings []walk.Setting) ([]walk.Result, error) {
	results := make([][]walk.Result, len(settings))
	errs := make([]error, len(settings)*o.seeds)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, s := range settings {
		results[i] = make([]walk.Result, o.seeds)
		for n := range o.seeds {
			slots <- struct{}{}
			if ctx.Err() != nil {
				all.Wait()
				return nil, ctx.Err()
			}
			cfg := s.Config
			cfg.Seed += uint64(n)
			all.Go(func() {
				defer func() { <-slots }()
				results[i][n], errs[i*o.seeds+n] = walk.Walk(cfg)
			})
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	merged := make([]walk.Result, len(settings))
	for i := range merged {
		merged[i] = walk.Merge(results[i])
		if wrong := merged[i].Unsound(); len(wrong) > 0 {
			return nil, fmt.Errorf("walk %q: comparisons that must never be wrong were wrong: %v", settings[i].Name, wrong)
		}
	}
	return merged, nil
}
