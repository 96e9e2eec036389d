package chaos

import (
	"context"
	"errors"
	"time"
)

// This file stops nodes in various ways, and restarts them a moment later.

// kills kills nodes, and starts them again.
func (d *driver) kills(ctx context.Context) error { return d.each(ctx, d.kill) }

// cuts cuts the power of machines.
func (d *driver) cuts(ctx context.Context) error { return d.each(ctx, d.cutPower) }

// pauses pauses nodes, also for longer than an election takes: a paused leader continues with an outdated term.
func (d *driver) pauses(ctx context.Context) error { return d.each(ctx, d.pause) }

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
			if err := d.waitRecovered(ctx, healLimit); err != nil {
				return err
			}
			d.readNow(ctx)
		}
	}
	return ctx.Err()
}

// victims draws the affected nodes: mostly one.
func (d *driver) victims(ctx context.Context) (kind string, nodes []*Node) {
	switch p := d.rng.Float64(); {
	case p < .65:
		return "one", d.drawNodes(1)
	case p < .8:
		return "two", d.drawNodes(2)
	case p < .9:
		return "all replicas of a region", d.replicas(ctx)
	default:
		return "all nodes", d.Nodes
	}
}

func (d *driver) kill(ctx context.Context) error {
	kind, victims := d.victims(ctx)
	return d.takeDown(ctx, "kill -9: "+kind, victims, killAll)
}

// takeDown takes nodes down with blow, and starts them again a moment later.
func (d *driver) takeDown(ctx context.Context, kind string, victims []*Node, fault func([]*Node) error) error {
	down := d.between(0, 1500*time.Millisecond)
	d.log(kind, victims, "down", ms(down))
	d.report.fault(kind)
	if err := fault(victims); err != nil {
		return err
	}
	d.report.count("nodes struck", "", len(victims))
	pause(ctx, down)
	for _, n := range victims {
		if err := n.powerUp(); err != nil {
			return err
		}
	}
	return d.startAll(ctx, victims)
}

func (d *driver) cutPower(ctx context.Context) error {
	kind, victims := d.victims(ctx)
	return d.takeDown(ctx, "power cut: "+kind, victims, cutPowerAll)
}

func (d *driver) pause(ctx context.Context) error {
	kind, victims := d.victims(ctx)
	stopped := d.between(200*time.Millisecond, 6*time.Second)
	d.log("SIGSTOP: "+kind, victims, "for", ms(stopped))
	d.report.fault("SIGSTOP: " + kind)
	for _, n := range victims {
		if err := n.suspend(); err != nil {
			return err
		}
	}
	pause(ctx, stopped)
	var errs []error
	for _, n := range victims {
		errs = append(errs, n.resume())
	}
	return errors.Join(errs...)
}

// terminate stops a node as an operator would, and starts it again.
func (d *driver) terminate(ctx context.Context) error {
	n := d.drawNodes(1)[0]
	d.log("SIGTERM", []*Node{n})
	d.report.fault("SIGTERM")
	if err := d.stopNode(ctx, n); err != nil {
		return err
	}
	return d.startAll(ctx, []*Node{n})
}

// stopLimit is the time limit for a node to stop.
const stopLimit = 40 * time.Second

func (d *driver) stopNode(ctx context.Context, n *Node) error {
	code, took, err := n.terminate(ctx, stopLimit)
	if err != nil {
		return err
	}
	d.report.time("SIGTERM to exit", "", took)
	if code != 0 {
		d.report.problem("node %d exited with code %d after SIGTERM: %s", n.Number, code, n.logTail())
	}
	return nil
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

// short makes one fault of each kind.
func (d *driver) short(ctx context.Context) error {
	leader, _, err := d.leader(ctx)
	if err != nil {
		return err
	}
	kinds := []func(context.Context) error{
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

func (d *driver) hasDisks() bool { return d.Nodes[0].disk != nil }

// healLimit is the time limit for a cluster to recover after the last fault.
const healLimit = 60 * time.Second

// waitRecovered waits until the cluster is healthy again.
func (d *driver) waitRecovered(ctx context.Context, limit time.Duration) error {
	if _, err := eventually(ctx, limit, func() string { return d.missing(ctx) }); err != nil {
		if ctx.Err() == nil {
			d.report.problem("event %d: cluster did not recover: %v", d.report.Events, err)
		}
	}
	return ctx.Err()
}

// readNow reads the land during edits. The cluster must be healthy.
func (d *driver) readNow(ctx context.Context) {
	readings, err := readAll(ctx, d.Nodes, d.ledger, readLimit)
	if err != nil && ctx.Err() == nil {
		d.report.problem("event %d: %v", d.report.Events, err)
	}
	d.readings = append(d.readings, readings...)
}
