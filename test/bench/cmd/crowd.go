package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// square returns n chunks in a square around the middle.
func square(middle grid.ChunkPos, n int) (all []grid.ChunkPos, radius int) {
	side := 1
	for side*side < n {
		side++
	}
	for i := range n {
		all = append(all, grid.ChunkPos{X: middle.X + int32(i%side-side/2), Z: middle.Z + int32(i/side-side/2)})
	}
	return all, side/2 + 1
}

// startSpreadCrowd starts one daemon, and returns the options of a crowd that is spread evenly over so many chunks of it.
func (b *bench) startSpreadCrowd(ctx context.Context, chunks int) (*daemon.Daemon, crowd.Options, error) {
	daemons, err := b.daemons(ctx, 1)
	if err != nil {
		return nil, crowd.Options{}, err
	}
	d := daemons[0]
	heights := crowd.NewHeightMap()
	_, radius := square(grid.ChunkPos{}, chunks)
	spawn, err := heights.Fetch(ctx, b.address(d), radius)
	if err != nil {
		d.Kill()
		return nil, crowd.Options{}, err
	}
	homes, _ := square(spawn, chunks)
	return d, crowd.Options{Targets: []string{b.address(d)}, Heights: heights, Homes: homes}, nil
}

// play runs a crowd of n players, calls during when all have joined, and ends the crowd. It returns an error if they
// cannot all join in time.
func (b *bench) play(ctx context.Context, o crowd.Options, n int, targets []target, during func(ctx context.Context, c *crowd.Crowd) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := crowd.New(o)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() { c.Run(ctx) })
	wg.Go(func() { b.guard(ctx, targets, cancel) })
	joinRate := o.JoinRate
	if joinRate == 0 {
		joinRate = 100
	}
	joining, stop := context.WithTimeout(ctx, time.Duration(float64(n)/joinRate*float64(time.Second))*2+30*time.Second)
	defer stop()
	if err := c.Add(joining, n); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("not all of %d players could join: %w", n, err)
	}
	return during(ctx, c)
}

// guard cancels the measurement when the daemons exceed their memory limit, to protect this machine.
func (b *bench) guard(ctx context.Context, targets []target, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		sum := int64(0)
		for _, t := range targets {
			if u, err := t.Usage(); err == nil {
				sum += u.RSS
			}
		}
		if sum > b.memory<<20 {
			for _, t := range targets {
				t.Kill()
			}
			cancel(fmt.Errorf("the daemons used %d MiB, more than the limit of %d: see --memory", sum>>20, b.memory))
			return
		}
	}
}

// measureCrowd lets n players play, and measures the targets once they have for the time of warm. begin, if not nil, is called
// before the measurement, and what it returns afterwards.
func (b *bench) measureCrowd(
	ctx context.Context, targets []target, o crowd.Options, n int, warm, length time.Duration, begin func(context.Context) (end func() error),
) (r reading, err error) {
	err = b.play(ctx, o, n, targets, func(ctx context.Context, c *crowd.Crowd) (err error) {
		if err := process.Pause(ctx, warm); err != nil {
			return err
		}
		end := func() error { return nil }
		if begin != nil {
			end = begin(ctx)
		}
		r, err = b.cores.Measure(ctx, targets, c, length)
		return errors.Join(err, end())
	})
	return r, err
}
