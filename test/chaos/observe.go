package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
)

// This file watches a cluster while players edit: what is missing until it is healthy, what was acknowledged, what
// gateways show. What does not come in time is reported as a problem.

// missingEdits returns what is missing until edits were acknowledged in every region since the mark.
func (d *driver) missingEdits(mark int) string {
	done := make(map[string]int)
	for _, e := range d.ledger.Since(mark) {
		if e.Outcome == history.Acknowledged {
			done[players.CellOf(e.Pos)]++
		}
	}
	for _, cell := range d.writers.Cells() {
		if done[cell] < 10 {
			return fmt.Sprintf("region %s acknowledged %d edits", cell, done[cell])
		}
	}
	return ""
}

// missing returns what is missing until the cluster is healthy: all nodes connected, all regions with all members.
func (d *driver) missing(ctx context.Context) string {
	return d.missingMembers(ctx, d.writers.Chunks(), min(d.copies, len(d.Nodes)), len(d.Nodes)-1)
}

// log logs a fault that begins.
func (d *driver) log(kind string, nodes []*Node, more ...any) {
	d.ledger.NoteFault()
	numbers := make([]string, len(nodes))
	for i, n := range nodes {
		numbers[i] = fmt.Sprint(n.Number)
	}
	d.logger.Info("fault", append([]any{"at", d.ledger.Now().Round(time.Millisecond), "event", d.report.Events, "kind", kind, "nodes", strings.Join(numbers, ",")}, more...)...)
}

// healLimit is the time limit for a cluster to recover after a fault.
const healLimit = 60 * time.Second

// expect waits until nothing is missing, and returns how long that took. It reports a problem if that is not within the
// limit.
func (d *driver) expect(ctx context.Context, limit time.Duration, missing func() string) (took time.Duration, err error) {
	if took, err = eventually(ctx, limit, missing); err != nil && ctx.Err() == nil {
		d.report.Problem("event %d: %v", d.report.Events, err)
	}
	return took, err
}

// waitRecovered waits until the cluster is healthy again.
func (d *driver) waitRecovered(ctx context.Context) error {
	d.calm.Lock()
	defer d.calm.Unlock()
	d.expect(ctx, healLimit, func() string { return d.missing(ctx) }) //nolint:errcheck // it is reported
	return ctx.Err()
}

// readNow reads the land during edits. The cluster must be healthy.
func (d *driver) readNow(ctx context.Context) {
	readings, err := players.ReadAll(ctx, gatewaysOf(d.Nodes), d.ledger, players.ReadLimit)
	if err != nil && ctx.Err() == nil {
		d.report.Problem("event %d: %v", d.report.Events, err)
	}
	d.readings = append(d.readings, readings...)
}

// acceptedLimit is the time within which regions must accept edits again.
const acceptedLimit = 30 * time.Second

// accepted waits until each of the cells has acknowledged an edit that was asked for after the mark, and not before
// since. It returns the times by cell. A cell that takes longer than the limit is a problem, and not in the map.
func (d *driver) accepted(ctx context.Context, mark int, since time.Duration, cells []string) map[string]time.Duration {
	first := make(map[string]time.Duration)
	d.expect(ctx, acceptedLimit, func() string { //nolint:errcheck // it is reported
		clear(first)
		for _, e := range d.ledger.Since(mark) {
			cell := players.CellOf(e.Pos)
			if e.Outcome != history.Acknowledged || e.Invoked < since {
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
	return first
}

// waitHealthy waits until the cluster is healthy and players edit everywhere.
func (d *driver) waitHealthy(ctx context.Context) error {
	if err := d.waitRecovered(ctx); err != nil {
		return err
	}
	mark := d.ledger.Count()
	d.expect(ctx, healLimit, func() string { return d.missingEdits(mark) }) //nolint:errcheck // it is reported
	return ctx.Err()
}

// answered returns the edits that were asked for after the mark and until last, once all are answered.
func (d *driver) answered(ctx context.Context, mark int, last time.Duration) (edits []history.Edit, err error) {
	d.expect(ctx, acceptedLimit, func() string { //nolint:errcheck // it is reported
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
	return edits, ctx.Err()
}

// welcome is how long a player may wait for a welcome. It is judged as elsewhere is, but on all nodes: nothing that a
// join waits for needs the disk.
const welcome = 3 * time.Second

// joinRepeatedly has players join at a gateway during the whole run.
func (d *driver) joinRepeatedly(ctx context.Context, g *players.Gateway, judged bool) {
	late := func(format string, args ...any) {
		if judged {
			d.report.Problem(format, args...)
		}
	}
	players.JoinRepeatedly(ctx, g, d.ledger, players.Joins{
		Welcomed: func(took time.Duration) {
			d.report.Time("join to the welcome", fmt.Sprintf("≤ %v", welcome), took)
			if took > welcome {
				late("at %v: a join at node %d was welcomed after %v", d.ledger.Now().Round(time.Millisecond), g.Number, took.Round(time.Millisecond))
			}
		},
		Whole:     func(took time.Duration) { d.report.Time("join to the whole area", "", took) },
		Elsewhere: func() { d.report.Count("joins that were redirected to another node, without a welcome", "", 1) },
		Part:      func() { d.report.Count("joins that were not shown the whole area", "", 1) },
		None: func(err error) {
			d.report.Count("joins that failed", "", 1)
			late("at %v: %v", d.ledger.Now().Round(time.Millisecond), err)
			d.logger.Info("join failed", "error", err)
		},
	})
}
