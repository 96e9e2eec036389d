package chaos

import (
	"context"
	"fmt"
	"time"
)

// This file adds nodes, and removes nodes for good.

// grow begins with one node on which players edit, starts the others, and measures how long it takes until every
// region has three replicas.
func (d *driver) grow(ctx context.Context) error {
	d.more(ctx, 0)
	if _, err := eventually(ctx, healLimit, func() string { return d.missingEdits(0) }); err != nil {
		return fmt.Errorf("wait for edits on the first node: %w", err)
	}
	newcomers := d.Nodes[1:]
	d.log("start", newcomers)
	d.report.Fault("nodes that join")
	start := time.Now()
	if err := d.startAll(ctx, newcomers); err != nil {
		return err
	}
	up := time.Since(start)
	took, _ := d.expect(ctx, healLimit, func() string { return d.missing(ctx) })
	d.report.Time("one node becomes five: all are up", "", up)
	d.report.Time("one node becomes five: every region has three members, since all are up", "≤ 30 s", took)
	return d.waitHealthy(ctx)
}

// goneAfter is the daemons' --replace-after in the scenario that loses nodes for good.
const goneAfter = 10 * time.Second

// gone loses a node for good, and measures how long it takes, from the end of the grace period, until every region
// has three running replicas again. Then a new node replaces it.
func (d *driver) gone(ctx context.Context) error {
	n, cells, err := d.leader(ctx)
	if err != nil {
		return err
	}
	d.log("gone for good", []*Node{n}, "leads", len(cells))
	d.report.Fault("node gone for good")
	if err := n.kill(); err != nil {
		return err
	}
	took, _ := d.expect(ctx, goneAfter+2*healLimit, func() string {
		return d.missingMembers(ctx, d.writers.Chunks(), 3, len(d.Nodes)-2)
	})
	d.report.Time("node gone: every region has three members that run, since the grace period ended", "≤ 30 s", max(0, took-goneAfter))
	if err := n.wipe(); err != nil {
		return err
	}
	if err := d.startAll(ctx, []*Node{n}); err != nil {
		return err
	}
	if _, err := d.expect(ctx, healLimit, func() string { return d.missing(ctx) }); err != nil {
		return errHurt
	}
	return nil
}
