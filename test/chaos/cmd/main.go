// Command chaos injects faults into a cluster of real daemons while players edit, and checks whether any acknowledged
// edit was lost. See package chaos, and docs/reliability.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/voxelpopuli/voxeld/test/chaos"
)

// Exit codes: 0 if the run found no violation.
const (
	exitFound = 1 // a violation was found, or the run failed
	exitUsage = 2
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := pflag.NewFlagSet("chaos", pflag.ContinueOnError)
	o := chaos.Options{}
	flags.IntVar(&o.Events, "events", 0, "number of faults (default: the scenario's)")
	flags.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "seed of the driver's random choices")
	flags.IntVar(&o.Nodes, "nodes", 5, "number of daemons")
	flags.Float64Var(&o.Rate, "rate", 200, "edits a second")
	flags.StringVar(&o.Binary, "voxeld", "bin/voxeld", "the daemon's binary")
	flags.StringVar(&o.Out, "out", "", "directory for ledger, logs, report and histories (default: one in the system's temporary directory)")
	flags.BoolVar(&o.Divide, "divide", false, "split and merge regions during the whole run, by command and by load")
	verbose := flags.BoolP("verbose", "v", false, "log what every player does")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: chaos [scenario…] [flags]\n\nscenarios (default: all), or strikes with + between them, as kill+hang+partial:\n%s\n%s", chaos.About(), flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return exitUsage
	}
	names := flags.Args()
	if len(names) == 0 {
		names = chaos.Scenarios()
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	code := 0
	for _, name := range names {
		if !runOne(ctx, name, o, logger) {
			code = exitFound
		}
		if ctx.Err() != nil {
			return exitFound
		}
	}
	return code
}

// runOne makes one run, and reports whether it passed.
func runOne(ctx context.Context, name string, o chaos.Options, logger *slog.Logger) bool {
	o.Scenario = name
	if o.Out == "" {
		o.Out = filepath.Join(os.TempDir(), "voxeld-chaos", fmt.Sprintf("%s-%d-%s", name, o.Seed, time.Now().Format("150405")))
	} else {
		o.Out = filepath.Join(o.Out, name)
	}
	o.Command = again(name, o)
	report, err := chaos.Run(ctx, o, logger)
	if report != nil {
		if err := report.WriteTable(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			return false
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return false
	}
	return !report.Failed
}

// again returns the command that repeats the run.
func again(name string, o chaos.Options) string {
	words := []string{name}
	if o.Events > 0 {
		words = append(words, fmt.Sprintf("--events %d", o.Events))
	}
	words = append(words, fmt.Sprintf("--seed %d --nodes %d --rate %g", o.Seed, o.Nodes, o.Rate))
	if o.Divide {
		words = append(words, "--divide")
	}
	return fmt.Sprintf("make chaos CHAOS=%q", strings.Join(words, " "))
}
