package chaos

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chaos/history"
	"github.com/voxelpopuli/voxeld/grid"
)

// This file splits regions (docs/adr/0031-cells-that-split.md).

// splitLimit is the time limit for the answer to a command that splits a region. The node answers within 8 s.
const splitLimit = 10 * time.Second

// splitRegions splits regions, down to single chunks, and often takes nodes down at the same time.
func (d *driver) splitRegions(ctx context.Context) error {
	for i := 0; d.more(ctx, i); i++ {
		r, found := d.drawRegion(ctx)
		if !found {
			d.report.Skip("further splits", "all regions are single chunks")
			return ctx.Err()
		}
		if err := d.splitAmidFault(ctx, r); err != nil {
			return err
		}
		if err := d.waitHealthy(ctx); err != nil {
			return err
		}
		if (i+1)%readEvery == 0 {
			d.readNow(ctx)
		}
	}
	return ctx.Err()
}

// drawRegion draws a region that can be split: one that players edit, if possible.
func (f *faults) drawRegion(ctx context.Context) (openRegion, bool) {
	all := f.openRegions(ctx)
	candidates := make(map[string]openRegion)
	add := func(r openRegion) {
		if r.Leader != "" && r.area.Label.Len() < grid.MaxLabel {
			candidates[r.ID] = r
		}
	}
	for _, chunk := range f.writers.Chunks() {
		if r, wrong := regionAt(all, chunk); wrong == "" {
			add(r)
		}
	}
	if len(candidates) == 0 {
		for _, r := range all {
			add(r)
		}
	}
	if len(candidates) == 0 {
		return openRegion{}, false
	}
	ids := slices.Sorted(maps.Keys(candidates))
	return candidates[ids[f.rng.IntN(len(ids))]], true
}

// splitAmidFault splits a region. In most events nodes are taken down shortly before or after the command.
func (d *driver) splitAmidFault(ctx context.Context, r openRegion) error {
	var members []*Node
	for _, m := range r.Members {
		if n := d.peer(m); n != nil && m != r.Leader {
			members = append(members, n)
		}
	}
	leader := d.peer(r.Leader)
	if leader == nil || len(members) == 0 {
		return d.splitInPeace(ctx, r)
	}
	stop := func(nodes []*Node) error { return d.stopNode(ctx, nodes[0]) }
	switch d.rng.IntN(7) {
	case 0, 1:
		return d.splitInPeace(ctx, r)
	case 2:
		return d.splitWhile(ctx, r, "kill -9: another member", members[:1], killAll)
	case 3:
		return d.splitWhile(ctx, r, "kill -9: all members", append(members, leader), killAll)
	case 4:
		return d.splitWhile(ctx, r, "kill -9: all nodes", d.Nodes, killAll)
	case 5:
		return d.splitWhile(ctx, r, "SIGTERM: leader", []*Node{leader}, stop)
	default:
		return d.splitWhile(ctx, r, "kill -9: leader", []*Node{leader}, killAll)
	}
}

// splitInPeace splits a region while all nodes run, and examines the edits of that time.
func (d *driver) splitInPeace(ctx context.Context, r openRegion) error {
	const around = 500 * time.Millisecond
	asked := d.drawNodes(1)
	d.log("split", asked, "cell", r.Cell)
	d.report.Fault("split, no fault")
	mark := d.ledger.Count()
	pause(ctx, around)
	took, err := d.split(ctx, asked[0], r)
	if err != nil {
		d.report.Problem("event %d: %v", d.report.Events, err)
		return ctx.Err()
	}
	d.report.Time("split: command to answer, all nodes run", "", took)
	d.report.Count("splits", "", 1)
	pause(ctx, around)
	edits, err := d.answered(ctx, mark, d.ledger.Now())
	var here, elsewhere time.Duration
	for _, e := range edits {
		if slowest := &elsewhere; e.Outcome == history.Acknowledged {
			if r.area.Contains(e.Pos.Chunk()) {
				slowest = &here
			}
			*slowest = max(*slowest, e.Returned-e.Invoked)
		}
	}
	d.report.Time("split, no fault: slowest edit in the region", "", here)
	d.report.Time("split, no fault: slowest edit elsewhere", "", elsewhere)
	return err
}

// splitWhile splits a region, and takes nodes down up to 300 ms before or after the command.
func (d *driver) splitWhile(ctx context.Context, r openRegion, kind string, victims []*Node, fault func([]*Node) error) error {
	asked := d.drawNodes(1)
	after := d.between(0, []time.Duration{60 * time.Millisecond, 300 * time.Millisecond}[d.rng.IntN(2)])
	if d.rng.IntN(4) == 0 {
		after = -after
	}
	d.log("split", asked, "cell", r.Cell, "fault_after", after.Round(time.Millisecond))
	var took time.Duration
	var refused error
	var command sync.WaitGroup
	command.Go(func() {
		pause(ctx, -after)
		took, refused = d.split(ctx, asked[0], r)
	})
	pause(ctx, after)
	err := d.takeDown(ctx, "split, "+kind, victims, fault)
	command.Wait()
	if err != nil {
		return err
	}
	switch {
	case refused == nil:
		d.report.Time("split: command to answer, nodes go down", "", took)
		d.report.Count("splits", "", 1)
	case d.waitRecovered(ctx) != nil:
	case d.isSplit(ctx, r):
		d.report.Count("splits", "", 1)
		d.report.Count("splits without an answer", "", 1)
	default:
		d.report.Count("splits that did not happen", "", 1)
	}
	d.logger.Info("split", "cell", r.Cell, "took", took.Round(time.Millisecond), "error", refused)
	return ctx.Err()
}

func (d *driver) split(ctx context.Context, n *Node, r openRegion) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, splitLimit)
	defer cancel()
	start := time.Now()
	err := n.Split(ctx, r.Cell)
	return time.Since(start), err
}

// isSplit reports whether a part of the region is open as a region of its own.
func (c *Cluster) isSplit(ctx context.Context, r openRegion) bool {
	for _, other := range c.openRegions(ctx) {
		low := other.area.Area()
		if other.area.Label.Len() > r.area.Label.Len() && r.area.Contains(grid.ChunkPos{X: low.MinX, Z: low.MinZ}) {
			return true
		}
	}
	return false
}
