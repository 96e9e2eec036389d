package chaos

import (
	"context"
	"errors"
	"time"
)

// This file stops nodes in various ways, and restarts them a moment later.

// repeated returns a scenario of one event after another.
func repeated(event func(*driver, context.Context) error) func(*driver, context.Context) error {
	return func(d *driver, ctx context.Context) error {
		return d.each(ctx, func(ctx context.Context) error { return event(d, ctx) })
	}
}

// readEvery is the number of events between two intermediate readings.
const readEvery = 25

// each makes one event after another. Between some of them, when the cluster is healthy, it reads the land.
func (d *driver) each(ctx context.Context, event func(context.Context) error) error {
	for i := 0; d.more(ctx, i); i++ {
		if err := event(ctx); err != nil {
			return err
		}
		pause(ctx, d.between(300*time.Millisecond, 2500*time.Millisecond))
		if (i+1)%readEvery == 0 {
			if err := d.waitRecovered(ctx); err != nil {
				return err
			}
			d.readNow(ctx)
		}
	}
	return ctx.Err()
}

// mix makes all of these faults, and those of the network and of disks if available, in random order.
func (d *driver) mix(ctx context.Context) error {
	kinds := []func(context.Context) error{d.kill, d.pause, d.terminate}
	if d.hasDisks() {
		kinds = append(kinds, d.cutPower, d.shortFill)
	}
	if d.network != nil {
		kinds = append(kinds, d.shortCut)
	}
	return d.each(ctx, func(ctx context.Context) error { return kinds[d.rng.IntN(len(kinds))](ctx) })
}

// short splits a region, merges it again, and makes one fault of each kind.
func (d *driver) short(ctx context.Context) error {
	v, found := d.drawDivision(ctx, d.writers.Chunks(), d.rng)
	if !found {
		return errors.New("no region can be split")
	}
	leader := d.peer(v.regions[0].Leader)
	if leader == nil {
		return errors.New("no leader of any region")
	}
	kinds := []func(context.Context) error{
		func(ctx context.Context) error { return d.divideInPeace(ctx, v) },
		func(ctx context.Context) error {
			return d.divideInPeace(ctx, division{"merge", v.cell, v.regions})
		},
		func(ctx context.Context) error {
			return d.takeDown(ctx, "kill -9: leader", []*Node{leader}, killAll)
		},
		func(ctx context.Context) error { return d.takeDown(ctx, "kill -9: all nodes", d.Nodes, killAll) },
		d.pause, d.terminate,
	}
	if d.hasDisks() {
		kinds = append(kinds, func(ctx context.Context) error {
			return d.takeDown(ctx, "power cut: all nodes", d.Nodes, cutPowerAll)
		}, d.shortFill)
	}
	if d.network != nil {
		kinds = append(kinds, d.shortCut)
	}
	for i := 0; i < len(kinds) && d.more(ctx, i); i++ {
		if err := kinds[i](ctx); err != nil {
			return err
		}
		if err := d.waitHealthy(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
