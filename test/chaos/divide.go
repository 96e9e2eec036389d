package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
)

// This file splits regions, and merges them again (docs/adr/0031-cells-that-split.md).

// divideLimit is the time limit for the answer to a command that splits or merges.
const divideLimit = 15 * time.Second

// division is a split of a region, or the merge of its halves.
type division struct {
	kind    string // "split" or "merge"
	cell    grid.Cell
	regions []openRegion // the region, or both halves
}

// drawDivision draws a split or a merge of regions that players edit.
func (c *Cluster) drawDivision(ctx context.Context, chunks []grid.ChunkPos, rng *rand.Rand) (division, bool) {
	all := c.openRegions(ctx)
	var splits, merges []division
	for _, r := range all {
		if !slices.ContainsFunc(chunks, r.area.Contains) || r.Leader == "" || divided(all, r.area) {
			continue
		}
		if r.area.Label.Len() < grid.MaxLabel {
			splits = append(splits, division{"split", r.area, []openRegion{r}})
		}
		for _, other := range all {
			siblings := other.area != r.area && other.area.Parent() == r.area.Parent() && r.area.Label.Len() > grid.FoundingLabel
			if siblings && other.Leader != "" && !divided(all, other.area) {
				merges = append(merges, division{"merge", r.area.Parent(), []openRegion{r, other}})
			}
		}
	}
	if len(splits) == 0 || len(merges) > 0 && rng.IntN(2) == 0 {
		splits = merges
	}
	if len(splits) == 0 {
		return division{}, false
	}
	slices.SortFunc(splits, func(a, b division) int { return cmp.Compare(a.regions[0].ID, b.regions[0].ID) })
	return splits[rng.IntN(len(splits))], true
}

// divided reports whether a part of the cell is led as a region of its own.
func divided(all map[string]openRegion, cell grid.Cell) bool {
	for _, r := range all {
		if r.Leader != "" && r.area != cell && cell.Covers(r.area) {
			return true
		}
	}
	return false
}

// command asks the node to split or merge.
func (v division) command(ctx context.Context, n *Node) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, divideLimit)
	defer cancel()
	start, ask := time.Now(), n.Split
	if v.kind == "merge" {
		ask = n.Merge
	}
	err := ask(ctx, v.cell.String())
	return time.Since(start), err
}

// happened reports whether the regions are as they should be after the split or merge.
func (v division) happened(ctx context.Context, c *Cluster) bool {
	return divided(c.openRegions(ctx), v.cell) == (v.kind == "split")
}

// leaderOf returns the node that leads the region of exactly that cell at the moment; nil if none does.
func (c *Cluster) leaderOf(ctx context.Context, cell grid.Cell) *Node {
	for _, r := range c.openRegions(ctx) {
		if r.area == cell && r.Leader != "" {
			return c.peer(r.Leader)
		}
	}
	return nil
}

// divide splits a region, or merges two, down to single chunks. In most events nodes are taken down or cut off up to
// 300 ms before or after the command.
func (d *driver) divide(ctx context.Context) (fault, error) {
	var v division
	if _, err := d.expect(ctx, healLimit, func() string {
		var found bool
		if v, found = d.drawDivision(ctx, d.writers.Chunks(), d.rng); !found {
			return "no region can be split or merged"
		}
		return ""
	}); err != nil {
		return fault{}, fmt.Errorf("%w: %w", errHurt, err)
	}
	asked := d.drawNodes(1)
	amid, err := d.amid(ctx, v)
	if err != nil || amid == nil {
		return d.divideInPeace(ctx, v, asked), err
	}
	return d.divideWhile(ctx, v, asked[0], *amid), nil
}

// amid draws the fault: in most events the death of a leader; nil for none.
func (d *driver) amid(ctx context.Context, v division) (*fault, error) {
	r := v.regions[d.rng.IntN(len(v.regions))] // the parent, or one of its halves
	leader := d.peer(r.Leader)
	members := without(d.membersOf(r), leader)
	kill := func(kind string, victims ...*Node) (*fault, error) {
		f := d.down(ctx, v.kind+", kill -9: "+kind, victims, killAll)
		return &f, nil
	}
	switch k := d.rng.IntN(20); {
	case k == 0 || leader == nil || len(members) == 0:
		return nil, nil
	case k == 1:
		return kill("another member", members[0])
	case k == 2:
		return kill("all members", append(members, leader)...)
	case k == 3:
		return kill("all nodes", d.Nodes...)
	case k == 4:
		f := d.down(ctx, v.kind+", SIGTERM: leader", []*Node{leader}, func([]*Node) error { return d.stopNode(ctx, leader) })
		return &f, nil
	case k == 5 && d.network != nil:
		f, err := cutFor(500*time.Millisecond, 8*time.Second)(d, ctx)
		return &f, err
	case k <= 9 && v.kind == "merge": // the parent's leader drives the merge
		return kill("leader of the parent", cmp.Or(d.leaderOf(ctx, v.cell), leader))
	default:
		return kill("leader", leader)
	}
}

// divideInPeace splits or merges while all nodes run, and examines the edits of that time.
func (d *driver) divideInPeace(ctx context.Context, v division, asked []*Node) fault {
	const around = 500 * time.Millisecond
	mark := 0
	return fault{
		kind: v.kind + ", no fault", faulty: asked, more: []any{"cell", v.cell},
		do: func() error {
			mark = d.ledger.Count()
			pause(ctx, around)
			took, err := v.command(ctx, asked[0])
			if err != nil {
				d.report.Problem("event %d: %v", d.report.Events, err)
				return ctx.Err()
			}
			d.report.Time(v.kind+": command to answer, all nodes run", "", took)
			d.report.Count(v.kind+"s", "", 1)
			return nil
		},
		hold: around,
		after: func(ctx context.Context) error {
			edits, err := d.answered(ctx, mark, d.ledger.Now())
			var here, elsewhere time.Duration
			for _, e := range edits {
				if slowest := &elsewhere; e.Outcome == history.Acknowledged {
					if v.cell.Contains(e.Pos.Chunk()) {
						slowest = &here
					}
					*slowest = max(*slowest, e.Returned-e.Invoked)
				}
			}
			d.report.Time(v.kind+", no fault: slowest edit in the region", "", here)
			d.report.Time(v.kind+", no fault: slowest edit elsewhere", "", elsewhere)
			return cmp.Or(err, d.waitHealthy(ctx))
		},
	}
}

// divideWhile splits or merges, with another fault up to 300 ms before or after the command.
func (d *driver) divideWhile(ctx context.Context, v division, asked *Node, amid fault) fault {
	after := d.between(0, []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond}[d.rng.IntN(3)])
	if d.rng.IntN(4) == 0 {
		after = -after
	}
	do := func() error {
		var took time.Duration
		var refused error
		var command sync.WaitGroup
		command.Go(func() {
			pause(ctx, -after)
			took, refused = v.command(ctx, asked)
		})
		pause(ctx, after)
		err := d.inflict(ctx, amid)
		command.Wait()
		if err != nil {
			return err
		}
		d.logger.Info("answer", "to", v.kind, "cell", v.cell, "took", took.Round(time.Millisecond), "error", refused)
		switch {
		case refused == nil:
			d.report.Time(v.kind+": command to answer, nodes go down", "", took)
			d.report.Count(v.kind+"s", "", 1)
		case d.waitRecovered(ctx) != nil:
		case v.happened(ctx, d.Cluster):
			d.report.Count(v.kind+"s", "", 1)
			d.report.Count(v.kind+"s without an answer", "", 1)
		default:
			d.report.Count(v.kind+"s that did not happen", "", 1)
		}
		return ctx.Err()
	}
	return fault{kind: v.kind, faulty: []*Node{asked}, more: []any{"cell", v.cell, "fault_after", after.Round(time.Millisecond)}, do: do, after: d.waitHealthy}
}

// examine waits until every chunk of the work areas is in exactly one region, and a node finds nothing wrong with any
// region.
func (d *driver) examine(ctx context.Context) error {
	if err := d.waitRecovered(ctx); err != nil {
		return err
	}
	d.readNow(ctx)                           // opens the regions
	d.expect(ctx, healLimit, func() string { //nolint:errcheck // it is reported
		all := d.openRegions(ctx)
		for _, r := range all {
			if divided(all, r.area) {
				return fmt.Sprintf("region %v and parts of it are led", r.area)
			}
		}
		for x := players.Low; x < players.High; x += grid.ChunkSize {
			for z := players.Low; z < players.High; z += grid.ChunkSize {
				if _, wrong := regionAt(all, grid.Pos{X: int32(x), Z: int32(z)}.Chunk()); wrong != "" {
					return wrong
				}
			}
		}
		return ""
	})
	d.expect(ctx, healLimit, func() string { //nolint:errcheck // it is reported
		var health struct {
			Findings []struct{ Kind, Subject, What string }
		}
		if err := d.Nodes[0].Ask(ctx, "/doctor", &health); err != nil {
			return err.Error()
		}
		if len(health.Findings) == 0 {
			return ""
		}
		return fmt.Sprintf("doctor: %v", health.Findings)
	})
	return ctx.Err()
}

// divideArgs make the daemons themselves split the regions that players edit, and merge those that they have left.
var divideArgs = []string{"--split-edits", "20", "--merge-after", "2s"}

// keepDividing splits and merges regions until ctx ends, except while the driver waits for a healthy cluster.
func (d *driver) keepDividing(ctx context.Context) {
	rng := rand.New(rand.NewPCG(d.o.Seed, 8))
	for ctx.Err() == nil {
		pause(ctx, time.Duration(500+rng.IntN(1500))*time.Millisecond)
		n := d.Nodes[rng.IntN(len(d.Nodes))]
		if !n.Serves() {
			continue
		}
		d.calm.Lock()
		if v, found := d.drawDivision(ctx, d.writers.Chunks(), rng); found {
			outcome := "s amid other faults"
			if _, err := v.command(ctx, n); err != nil {
				outcome += ", refused or without an answer"
				d.logger.Info("refused or without an answer", "to", v.kind, "cell", v.cell, "error", err)
			}
			d.report.Count(v.kind+outcome, "", 1)
		}
		d.calm.Unlock()
	}
}
