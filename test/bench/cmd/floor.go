package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/floor"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
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
	return c
}

// floorServer is a running floor program.
type floorServer struct {
	*process.Process
	metrics string // host:port
}

func (f floorServer) Scrape(ctx context.Context) (metrics.Metrics, error) {
	return metrics.Scrape(ctx, f.metrics)
}

// floorReading measures the floor program with n players, and frames and moves of that many bytes.
func (b *bench) floorReading(ctx context.Context, n, frame, move int, warm, length time.Duration) (r reading, err error) {
	const game, address = "127.100.0.1:4002", "127.100.0.1:9102"
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	dir, err := b.freshDir()
	if err != nil {
		return r, err
	}
	o := b.conditions()
	o.Log = filepath.Join(dir, "floor.log")
	p, err := process.Start(o, self, "floor-server", "--listen", game, "--metrics", address,
		"--frame", strconv.Itoa(frame))
	if err != nil {
		return r, err
	}
	defer p.Stop()
	server := floorServer{p, address}
	if err := p.Await(ctx, func() error { _, err := server.Scrape(ctx); return err }); err != nil {
		return r, err
	}
	players := crowd.Options{Targets: []string{game}, FloorMove: make([]byte, max(1, move)), JoinRate: 1000}
	return b.measureCrowd(ctx, []target{server}, players, n, warm, length, nil)
}
