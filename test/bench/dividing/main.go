// Command dividing measures regions that split and merge, on three real daemons:
//
//   - edits: players edit at a steady rate while their region is split and merged by hand, over and over. It prints how long edits took from
//     the editor's sending them to their acknowledgement.
//   - crowd: players walk into one spot, and leave again. The cell splits and merges by itself meanwhile. It fails if a player loses
//     the session, an acknowledged edit is lost, or frames or ticks are too late.
//
// Linux only. As root it runs in a network namespace of its own. `make split-edits` and `make split-crowd` run it; docs/scale.md has results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if _, reported := err.(*exec.ExitError); !reported { //nolint:errorlint // bare, it comes from this program in its own network, which has printed the reason
			fmt.Fprintln(os.Stderr, "dividing:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	var o options
	f := flag.NewFlagSet("dividing edits|crowd", flag.ExitOnError)
	f.StringVar(&o.docs, "docs", "", "directory of the documentation, into which plots and tables are written (default: none)")
	f.IntVar(&o.changes, "changes", 50, "edits: how often the region is split and merged")
	f.IntVar(&o.players, "players", 600, "crowd: players")
	f.IntVar(&o.limit, "limit", 100, "crowd: players above which a region is split")
	f.DurationVar(&o.stay, "stay", 40*time.Second, "crowd: how long the players stay")
	f.IntVar(&o.kills, "kills", 0, "crowd: how often the process that leads the region is killed while it splits")
	if len(args) == 0 {
		f.Usage()
		return errors.New("say what to measure: edits or crowd")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if ran, err := netns.OwnNetwork(ctx); ran || err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "voxeld-dividing-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if o.binary, err = daemon.Build(ctx, o.dir); err != nil {
		return err
	}
	switch args[0] {
	case "edits":
		return measureEdits(ctx, o)
	case "crowd":
		return measureCrowd(ctx, o)
	}
	return fmt.Errorf("%q is unknown: say edits or crowd", args[0])
}
