package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chaos/history"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
)

// This file measures what happens to edits when a leader is killed or shut down.

// acceptedLimit is the time within which regions must accept edits again.
const acceptedLimit = 30 * time.Second

// leader draws a region, and returns the node that leads it and all regions that this node leads.
func (d *driver) leader(ctx context.Context) (*Node, []string, error) {
	cells := d.writers.Cells()
	var n *Node
	var led map[string]daemon.Region
	_, err := eventually(ctx, healLimit, func() string {
		led = d.leading(ctx)
		cell := cells[d.rng.IntN(len(cells))]
		if n = d.peer(led[cell].Leader); led[cell].Leader == "" || n == nil {
			return "no leader of region " + cell
		}
		return ""
	})
	if err != nil {
		return nil, nil, err
	}
	var its []string
	for _, cell := range cells {
		if led[cell].Leader == n.peer {
			its = append(its, cell)
		}
	}
	return n, its, nil
}

// accepted waits until each of the cells has acknowledged an edit that was asked for after the mark, and not before
// since. It returns the times by cell. A cell that takes longer than the limit is a problem, and not in the map.
func (d *driver) accepted(ctx context.Context, mark int, since time.Duration, cells []string, among func(history.Edit) bool) map[string]time.Duration {
	first := make(map[string]time.Duration)
	_, err := eventually(ctx, acceptedLimit, func() string {
		clear(first)
		for _, e := range d.ledger.Since(mark) {
			cell := cellOf(e.Pos)
			if e.Outcome != history.Acknowledged || e.Invoked < since || among != nil && !among(e) {
				continue
			}
			if t, ok := first[cell]; !ok || e.Returned < t {
				first[cell] = e.Returned
			}
		}
		for _, cell := range cells {
			if _, ok := first[cell]; !ok {
				return "no edit is acknowledged in region " + cell
			}
		}
		return ""
	})
	if err != nil && ctx.Err() == nil {
		d.report.problem("event %d: %v", d.report.Events, err)
	}
	return first
}

// failovers kills leaders, and measures how long it takes until their regions accept edits again: from the kill to
// the first acknowledgement of an edit that was asked for after it.
func (d *driver) failovers(ctx context.Context) error {
	for i := 0; d.more(ctx, i); i++ {
		n, cells, err := d.leader(ctx)
		if err != nil {
			return err
		}
		d.log("kill -9: leader", []*Node{n}, "leads", len(cells))
		d.report.fault("kill -9: leader")
		mark, killed := d.ledger.Count(), d.ledger.Now()
		if err := n.kill(); err != nil {
			return err
		}
		dead := d.ledger.Now()
		for cell, at := range d.accepted(ctx, mark, dead, cells, nil) {
			if slices.Contains(cells, cell) {
				d.report.time("leader killed: edits accepted again", "p50 ≤ 1.5 s, p99 ≤ 3 s", at-killed)
			}
		}
		if err := d.startAll(ctx, []*Node{n}); err != nil {
			return err
		}
		if err := d.waitHealthy(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// waitHealthy waits until the cluster is healthy and players edit everywhere.
func (d *driver) waitHealthy(ctx context.Context) error {
	if err := d.waitRecovered(ctx, healLimit); err != nil {
		return err
	}
	mark := d.ledger.Count()
	if _, err := eventually(ctx, healLimit, func() string { return d.missingEdits(mark) }); err != nil && ctx.Err() == nil {
		d.report.problem("event %d: %v", d.report.Events, err)
	}
	return ctx.Err()
}

// stops shuts leaders down, and examines the edits of that time in their regions: those of players on other nodes,
// and those of players on the stopped node, who have to move.
func (d *driver) stops(ctx context.Context) error {
	const around = 500 * time.Millisecond
	for i := 0; d.more(ctx, i); i++ {
		n, cells, err := d.leader(ctx)
		if err != nil {
			return err
		}
		d.log("SIGTERM: leader", []*Node{n}, "leads", len(cells))
		d.report.fault("SIGTERM: leader")
		mark, lost := d.ledger.Count(), d.writers.unavailable.Load()
		pause(ctx, around)
		if err := d.stopNode(ctx, n); err != nil {
			return err
		}
		pause(ctx, around)
		last := d.ledger.Now()
		edits, err := d.answered(ctx, mark, last)
		if err != nil {
			return err
		}
		var others, moved time.Duration
		failed := 0
		for _, e := range edits {
			if e.Outcome != history.Acknowledged {
				failed++
			}
			if !slices.Contains(cells, cellOf(e.Pos)) {
				continue
			}
			if e.First == n.Number {
				moved = max(moved, e.Returned-e.Invoked)
			} else {
				others = max(others, e.Returned-e.Invoked)
			}
		}
		d.report.time("SIGTERM: slowest edit, of players on other nodes", "≤ 300 ms", others)
		d.report.time("SIGTERM: slowest edit, of players on the node that stops", "≤ 300 ms", moved)
		d.report.count("SIGTERM: edits that failed", "0", failed)
		d.report.count("SIGTERM: answers “unavailable, try again”", "0", int(d.writers.unavailable.Load()-lost))
		if err := d.startAll(ctx, []*Node{n}); err != nil {
			return err
		}
		if err := d.waitHealthy(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// answered returns the edits that were asked for after the mark and until last, once all are answered.
func (d *driver) answered(ctx context.Context, mark int, last time.Duration) (edits []history.Edit, err error) {
	_, err = eventually(ctx, acceptedLimit, func() string {
		edits = edits[:0]
		for _, e := range d.ledger.Since(mark) {
			if e.Invoked > last {
				break
			}
			if e.Open() {
				return fmt.Sprintf("edit %d is not answered", e.Number)
			}
			edits = append(edits, e)
		}
		return ""
	})
	if err != nil && ctx.Err() == nil {
		d.report.problem("event %d: %v", d.report.Events, err)
		err = nil
	}
	return edits, err
}
