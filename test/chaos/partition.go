package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/workarea"
)

// This file measures what nodes do that are cut off from each other.

// partition cuts nodes off for a while, and heals.
func (d *driver) partition(ctx context.Context) error {
	return d.partitionFor(ctx, d.between(6*time.Second, 15*time.Second))
}

// longPartition cuts nodes off for longer: by then TCP retransmits rarely, and redial backoffs have grown.
func (d *driver) longPartition(ctx context.Context) error {
	return d.partitionFor(ctx, d.between(15*time.Second, 40*time.Second))
}

func (d *driver) partitionFor(ctx context.Context, hold time.Duration) error {
	c, err := d.drawCut(ctx)
	if err != nil {
		return err
	}
	return d.measureCut(ctx, c, hold, 10*time.Second)
}

// splitLong splits the nodes for longer than connections and their time-outs last.
func (d *driver) splitLong(ctx context.Context) error {
	all := d.drawNodes(len(d.Nodes))
	return d.measureCut(ctx, split("islands", all[:len(all)/2], all[len(all)/2:]), islandsFor, 30*time.Second)
}

// islandsFor is longer than libp2p keeps a connection whose other end is silent.
const islandsFor = 90 * time.Second

// measureCut makes one cut, holds it, heals it, and measures what the sides do.
func (d *driver) measureCut(ctx context.Context, c cutOff, hold, asked time.Duration) error {
	d.log("partition: "+c.kind, d.cutNodes(c), "for", hold.Round(time.Millisecond))
	d.report.Fault("partition: " + c.kind)
	before := d.openRegions(ctx)
	mark, begun := d.ledger.Count(), d.ledger.Now()
	if err := d.apply(c); err != nil {
		return err
	}
	cut := d.ledger.Now() // from now on all packets are dropped
	pause(ctx, hold)
	healing := d.ledger.Now()
	edits := d.ledger.Since(mark)
	if err := d.heal(); err != nil {
		return err
	}
	healed := d.ledger.Now()
	d.checkSides(c, before, edits, begun, cut, healing)
	return d.measureHealing(ctx, mark, healed, asked)
}

// checkSides checks what was acknowledged during a full split. A side without a majority of a region's members must
// not acknowledge any edit that was asked for after the cut; a side with one must continue.
func (d *driver) checkSides(c cutOff, before map[string]openRegion, edits []history.Edit, begun, cut, healing time.Duration) {
	for _, side := range c.sides {
		for _, area := range d.writers.Areas {
			cell := area.Cell()
			r, wrong := regionAt(before, area.Origin().Chunk())
			if wrong != "" {
				continue
			}
			here := 0
			for _, m := range r.Members {
				if slices.ContainsFunc(side, func(n *Node) bool { return n.peer() == m }) {
					here++
				}
			}
			majority := 2*here > r.Voters
			acked, first := 0, time.Duration(0)
			for _, e := range edits {
				if e.Outcome != history.Acknowledged || workarea.CellOf(e.Pos) != cell || e.Invoked < cut || e.Returned > healing || e.Moved() ||
					!slices.ContainsFunc(side, func(n *Node) bool { return n.Number == e.Via }) {
					continue
				}
				if acked++; first == 0 || e.Returned < first {
					first = e.Returned
				}
			}
			if !majority {
				d.report.Count("partition: edits acknowledged by a side without a majority", "0", acked)
				if acked > 0 {
					d.report.Problem("event %d: a side with %d of %d voters of region %s acknowledged %d edits", d.report.Events, here, r.Voters, cell, acked)
				}
				continue
			}
			if acked == 0 {
				d.report.Count("partition: regions that their majority's side did not serve", "", 1)
				continue
			}
			d.report.Time("partition: first edit accepted on the majority's side", "", first-begun)
		}
	}
}

// measureHealing waits until every gateway serves every region again.
func (d *driver) measureHealing(ctx context.Context, mark int, healed, asked time.Duration) error {
	type place struct {
		node int
		cell string
	}
	first := make(map[place]time.Duration)
	d.expect(ctx, healLimit, func() string { //nolint:errcheck // it is reported
		clear(first)
		for _, e := range d.ledger.Since(mark) {
			if e.Outcome != history.Acknowledged || e.Returned < healed {
				continue
			}
			p := place{e.Via, workarea.CellOf(e.Pos)}
			if t, ok := first[p]; !ok || e.Returned < t {
				first[p] = e.Returned
			}
		}
		for _, n := range d.Nodes {
			for _, cell := range d.writers.Cells() {
				if _, ok := first[place{n.Number, cell}]; !ok {
					return fmt.Sprintf("no edit is acknowledged through node %d in region %s", n.Number, cell)
				}
			}
		}
		return ""
	})
	slowest := time.Duration(0)
	for _, t := range first {
		slowest = max(slowest, t-healed)
	}
	d.report.Time("partition healed: every gateway serves every region", fmt.Sprintf("≤ %v", asked), slowest)
	d.expect(ctx, healLimit, func() string { return d.missingConnections(ctx) }) //nolint:errcheck // it is reported
	d.report.Time("partition healed: every node is connected with every other", fmt.Sprintf("≤ %v", 30*time.Second), d.ledger.Now()-healed)
	return ctx.Err()
}
