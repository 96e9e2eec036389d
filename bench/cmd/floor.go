package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/floor"
	"github.com/voxelpopuli/voxeld/bench/rig"
)

// newFloorServer returns the command with which this program starts itself as a floor server.
func newFloorServer() *cobra.Command {
	var o floor.Options
	c := &cobra.Command{
		Use: "floor-server", Short: "Serve as the floor program (the other commands start it)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return floor.Run(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:4002", "host:port for players")
	f.StringVar(&o.Metrics, "metrics", "127.0.0.1:9102", "host:port of /metrics")
	f.IntVar(&o.Frame, "frame", 1024, "bytes of a frame")
	f.BoolVar(&o.Readers, "readers", false, "read moves as they arrive, with a goroutine for each player")
	return c
}

// load is the size of frames and moves of one player in a measurement, in bytes, for the floor to reproduce.
type load struct{ frame, move int }

// floorReading measures the floor program with n players and that load.
func (b *bench) floorReading(ctx context.Context, n int, l load, readers bool, warm, length time.Duration) (r reading, err error) {
	const game, metrics = "127.100.0.1:4002", "127.100.0.1:9102"
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	b.run++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.run))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, fmt.Errorf("make directory: %w", err)
	}
	p, err := rig.Start(ctx, b.rigOptions(dir), metrics, self, "floor-server", "--listen", game, "--metrics", metrics,
		"--frame", strconv.Itoa(l.frame), "--readers="+strconv.FormatBool(readers))
	if err != nil {
		return r, err
	}
	defer p.Stop()
	o := crowd.Options{Targets: []string{game}, FloorMove: make([]byte, max(1, l.move)), JoinRate: 1000}
	err = b.play(ctx, o, n, []target{p}, func(ctx context.Context, c *crowd.Crowd) error {
		if err := pause(ctx, warm); err != nil {
			return err
		}
		r, err = b.measure(ctx, []target{p}, c, length)
		return err
	})
	return r, err
}
