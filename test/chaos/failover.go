package chaos

import (
	"context"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/workarea"
)

// This file measures what happens to edits when a leader is killed or shut down.

// failover kills a leader, and measures how long it takes until its regions accept edits again: from the kill to the
// first acknowledgement of an edit that was asked for after it.
func (d *driver) failover(ctx context.Context) error {
	n, cells, err := d.leader(ctx)
	if err != nil {
		return err
	}
	d.log("kill -9: leader", []*Node{n}, "leads", len(cells))
	d.report.Fault("kill -9: leader")
	mark, killed := d.ledger.Count(), d.ledger.Now()
	if err := n.kill(); err != nil {
		return err
	}
	dead := d.ledger.Now()
	for cell, at := range d.accepted(ctx, mark, dead, cells) {
		if slices.Contains(cells, cell) {
			d.report.Time("leader killed: edits accepted again", "p50 ≤ 1.5 s, p99 ≤ 3 s", at-killed)
		}
	}
	return d.startAll(ctx, []*Node{n})
}

// stop shuts a leader down, and examines the edits of that time in its regions: those of players on other nodes, and
// those of players on the stopped node, who have to move.
func (d *driver) stop(ctx context.Context) error {
	const around = 500 * time.Millisecond
	n, cells, err := d.leader(ctx)
	if err != nil {
		return err
	}
	d.log("SIGTERM: leader", []*Node{n}, "leads", len(cells))
	d.report.Fault("SIGTERM: leader")
	mark, lost := d.ledger.Count(), d.writers.Unavailable.Load()
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
		if !slices.Contains(cells, workarea.CellOf(e.Pos)) {
			continue
		}
		if e.First == n.Number {
			moved = max(moved, e.Returned-e.Invoked)
		} else {
			others = max(others, e.Returned-e.Invoked)
		}
	}
	d.report.Time("SIGTERM: slowest edit, of players on other nodes", "≤ 300 ms", others)
	d.report.Time("SIGTERM: slowest edit, of players on the node that stops", "≤ 300 ms", moved)
	d.report.Count("SIGTERM: edits that failed", "0", failed)
	d.report.Count("SIGTERM: answers “unavailable, try again”", "0", int(d.writers.Unavailable.Load()-lost))
	return d.startAll(ctx, []*Node{n})
}
