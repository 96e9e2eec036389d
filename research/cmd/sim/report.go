package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"golang.org/x/sync/errgroup"
)

// report is which figures a command prints, and where it writes them.
type report struct{ figures, out string }

// flags declares the flags of a report. other is what else counts with --figure.
func (r *report) flags(f *pflag.FlagSet, names []string, other string) {
	f.StringVar(&r.figures, "figure", "", "figures to print, separated by commas: all, "+strings.Join(names, ", ")+other)
	f.StringVar(&r.out, "out", "", "directory to write each figure's table and plot to, as NAME.csv and NAME.svg; empty writes none")
}

// chosen returns the names that --figure selects, in the order of names.
func (r *report) chosen(names []string) ([]string, error) {
	wanted := strings.Split(r.figures, ",")
	for _, name := range wanted {
		if name != "all" && !slices.Contains(names, name) {
			return nil, fmt.Errorf("--figure: there is no %q; choose all, or some of %s", name, strings.Join(names, ","))
		}
	}
	if slices.Contains(wanted, "all") {
		return names, nil
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(wanted, name) }), nil
}

// figureData is a figure as tables and plots.
type figureData struct {
	tables []figure.Table
	plots  []figure.Plot // may be none
}

// write prints a figure under its heading, and writes its files.
func (r *report) write(w io.Writer, name, heading, text string, data figureData) error {
	if heading != "" {
		text = "### " + heading + "\n\n" + text
	}
	fmt.Fprintln(w, text)
	if r.out == "" {
		return nil
	}
	path := filepath.Join(r.out, name)
	if err := figure.WriteTables(path+".csv", data.tables...); err != nil || len(data.plots) == 0 {
		return err
	}
	return figure.WriteSVG(path+".svg", data.plots...)
}

// runAll runs each of the settings with each of the seeds, counted from 0, on all processors. A run is a pure function:
// the goroutines are started here, because the simulators start none.
func runAll[S, R any](ctx context.Context, settings []S, seeds int, run func(setting S, seed uint64) (R, error)) ([][]R, error) {
	results := make([][]R, len(settings))
	group, failed := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, setting := range settings {
		results[i] = make([]R, seeds)
		for seed := range seeds {
			group.Go(func() (err error) {
				if failed.Err() == nil {
					results[i][seed], err = run(setting, uint64(seed))
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, ctx.Err()
}
