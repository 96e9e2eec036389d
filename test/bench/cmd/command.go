package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// command returns the command of one figure. It calls run after all preparations.
func (b *bench) command(use, short, long string, run func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains([]string{carrierWebSocket, carrierTLS, carrierTCP}, b.carrier) {
				return fmt.Errorf("--carrier %s: want %s, %s or %s", b.carrier, carrierWebSocket, carrierTLS, carrierTCP)
			}
			if ran, err := netns.OwnNetwork(c.Context()); ran || err != nil {
				return err
			}
			return b.prepared(c.Context(), run)
		},
	}
}

// prepared pins this program, builds voxeld, and cleans up after run.
func (b *bench) prepared(ctx context.Context, run func(context.Context) error) (err error) {
	if b.dir, err = os.MkdirTemp("", "voxeld-bench-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.binary == "" {
		if b.binary, err = daemon.Build(ctx, b.dir); err != nil {
			return err
		}
		defer func() { b.binary = "" }()
	}
	if err := process.PinSelf(b.cores.Players, b.nice); err != nil {
		return err
	}
	runtime.GOMAXPROCS(len(b.cores.Players))
	return run(ctx)
}
