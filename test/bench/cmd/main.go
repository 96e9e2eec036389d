// Command cmd measures voxeld under load, against real daemons in processes of their own, and writes the results into
// docs/performance.md and docs/scale.md: `go run ./test/bench/cmd --help`, or `make bench`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/testkit/netns"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		if _, reported := err.(*exec.ExitError); !reported { //nolint:errorlint // compared bare: it comes from this program, run in its own network, which has printed the reason
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	b := &bench{docs: "docs"}
	root := &cobra.Command{
		Use: "bench", Short: "Measure voxeld under load",
		Long: "Measures voxeld under load: real daemons, real sockets, thousands of lightweight players. Each command is one table\n" +
			"of docs/performance.md or docs/scale.md: it prints it, and with --write puts it there, with CSV files and plots. Linux only. As root it runs in a network namespace of its own.",
		SilenceUsage: true, SilenceErrors: true,
	}
	f := root.PersistentFlags()
	f.StringVar(&b.binary, "binary", "", "voxeld binary to measure (default: built from this source)")
	f.IntSliceVar(&b.cores.Servers, "server-cpus", []int{0}, "cores of the daemons")
	f.IntSliceVar(&b.cores.Players, "bot-cpus", []int{1}, "cores of the players")
	f.DurationVar(&b.warm, "warm", b.warm, "time between the last join and the measurement (default: the figure's)")
	f.DurationVar(&b.length, "duration", b.length, "length of one measurement (default: the figure's)")
	f.BoolVar(&b.write, "write", false, "update the page of docs, and the CSV files and plots beside it")
	f.Int64Var(&b.memory, "memory", 12<<10, "memory limit of all daemons together in MiB; beyond it a measurement is cancelled")
	f.StringVar(&b.carrier, "carrier", carrierWebSocket, "what carries the players' sessions: websocket, as for pages, tls (the same over https), or tcp")
	f.IntVar(&b.nice, "nice", 0, "niceness of daemons and players; a negative one takes priority over other programs (requires root)")
	figures := []*cobra.Command{
		newOneChunk(b), newManyChunks(b), newJoins(b), newHTTPS(b), newNetwork(b), newGateways(b), newLand(b), newMemory(b), newLookup(b), newCrossings(b), newSplitEdits(b),
	}
	root.AddCommand(figures...)
	root.AddCommand(newAll(figures), newFloorServer())
	return root
}

// newAll returns the command that measures everything. If one figure fails, the others are still measured.
func newAll(figures []*cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "all", Short: "Measure all figures, one after another, in about an hour", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if ran, err := netns.OwnNetwork(c.Context()); ran || err != nil {
				return err
			}
			for _, f := range figures {
				if c.Context().Err() != nil {
					return errors.Join(err, c.Context().Err())
				}
				f.SetContext(c.Context())
				if failed := f.RunE(f, nil); failed != nil {
					err = errors.Join(err, fmt.Errorf("%s: %w", f.Name(), failed))
				}
			}
			return err
		},
	}
}
