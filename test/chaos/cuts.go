package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
)

// This file cuts nodes off from each other, and measures what they do.

// cutOff is one way of cutting nodes off from each other.
type cutOff struct {
	kind    string
	blocked map[*Node][]*Node // the nodes from which each node receives nothing
	// The sides of a full split; empty otherwise.
	sides [][]*Node
}

// split blocks all packets between two groups of nodes.
func split(kind string, a, b []*Node) cutOff {
	c := cutOff{kind: kind, blocked: make(map[*Node][]*Node), sides: [][]*Node{a, b}}
	for _, n := range a {
		c.blocked[n] = b
	}
	for _, n := range b {
		c.blocked[n] = a
	}
	return c
}

// apply cuts nodes off.
func (c *Cluster) apply(cut cutOff) error {
	for n, whom := range cut.blocked {
		var numbers []int
		for _, o := range whom {
			numbers = append(numbers, o.Number)
		}
		if err := c.network.DropInbound(n.Number, numbers); err != nil {
			return err
		}
	}
	return nil
}

// heal removes all cuts.
func (c *Cluster) heal() error {
	for _, n := range c.Nodes {
		if err := c.network.Heal(n.Number); err != nil {
			return err
		}
	}
	return nil
}

// missingConnections returns what is missing until every node is connected with every other.
func (c *Cluster) missingConnections(ctx context.Context) string {
	for _, n := range c.Nodes {
		s, err := n.Status(ctx)
		if err != nil {
			return err.Error()
		}
		if s.Peers < len(c.Nodes)-1 {
			return fmt.Sprintf("node %d is connected with %d nodes", n.Number, s.Peers)
		}
	}
	return ""
}

// drawCut draws a way to cut nodes ofd.
func (d *driver) drawCut(ctx context.Context) (cutOff, error) {
	all := d.drawNodes(len(d.Nodes))
	leader, _, err := d.leader(ctx)
	if err != nil {
		return cutOff{}, err
	}
	others := without(all, leader)
	switch d.rng.IntN(6) {
	case 0, 1:
		return split("halves", all[:len(all)/2], all[len(all)/2:]), nil
	case 2:
		return split("one alone", all[:1], all[1:]), nil
	case 3:
		return split("leader alone", []*Node{leader}, others), nil
	case 4:
		return cutOff{kind: "leader receives from nobody, all receive from it", blocked: map[*Node][]*Node{leader: others}}, nil
	default:
		blocked := make(map[*Node][]*Node)
		for _, n := range others {
			blocked[n] = []*Node{leader}
		}
		return cutOff{kind: "nobody receives from the leader, it receives from all", blocked: blocked}, nil
	}
}

// cutNodes returns the smaller group, or the nodes that receive nothing.
func (d *driver) cutNodes(c cutOff) []*Node {
	if len(c.sides) > 0 {
		return c.sides[0]
	}
	var all []*Node
	for _, n := range d.Nodes {
		if c.blocked[n] != nil {
			all = append(all, n)
		}
	}
	return all
}

// cutFor returns a strike that draws a cut of that length.
func cutFor(low, high time.Duration) func(d *driver, ctx context.Context) (fault, error) {
	return func(d *driver, ctx context.Context) (fault, error) {
		hold := d.lasting(low, high)
		c, err := d.drawCut(ctx)
		return d.cut(ctx, c, hold, 10*time.Second), err
	}
}

// islands splits the nodes for longer than connections and their time-outs last: libp2p keeps a connection whose other
// end is silent for less than that.
func (d *driver) islands(ctx context.Context) (fault, error) {
	all := d.drawNodes(len(d.Nodes))
	return d.cut(ctx, split("islands", all[:len(all)/2], all[len(all)/2:]), 90*time.Second, 30*time.Second), nil
}

// cut makes a cut, heals it, and measures what the sides do, and whether all is as before in the time that is asked
// for.
func (d *driver) cut(ctx context.Context, c cutOff, hold, asked time.Duration) fault {
	var mark int
	var begun, cut, healing, healed time.Duration
	var edits []history.Edit
	before := d.openRegions(ctx)
	return fault{
		kind: "partition: " + c.kind, faulty: d.cutNodes(c), hold: hold,
		do: func() error {
			mark, begun = d.ledger.Count(), d.ledger.Now()
			err := d.apply(c)
			cut = d.ledger.Now() // from now on all packets are dropped
			return err
		},
		undo: func() error {
			healing, edits = d.ledger.Now(), d.ledger.Since(mark)
			err := d.heal()
			healed = d.ledger.Now()
			return err
		},
		after: func(ctx context.Context) error {
			d.checkSides(c, before, edits, begun, cut, healing)
			return d.measureHealing(ctx, mark, healed, asked)
		},
	}
}

// cutPartly cuts a leader off from one other member of its region. Both still reach all others.
func (d *driver) cutPartly(ctx context.Context) (fault, error) {
	hold := d.lasting(6*time.Second, 15*time.Second)
	leader, cells, err := d.leader(ctx)
	if err != nil {
		return fault{}, err
	}
	var members []*Node
	for _, r := range d.openRegions(ctx) {
		if r.Leader == leader.peer() && slices.Contains(cells, r.Cell) {
			members = append(members, without(d.membersOf(r), leader)...)
		}
	}
	if len(members) == 0 {
		members = without(d.Nodes, leader)
	}
	member := members[d.rng.IntN(len(members))]
	c := cutOff{blocked: make(map[*Node][]*Node)}
	switch d.rng.IntN(4) {
	case 0:
		c.kind, c.blocked[member] = "a member receives nothing from its leader", []*Node{leader}
	case 1:
		c.kind, c.blocked[leader] = "a leader receives nothing from a member", []*Node{member}
	default:
		c.kind = "a leader and a member, both reach the others"
		c.blocked[leader], c.blocked[member] = []*Node{member}, []*Node{leader}
	}
	return fault{
		kind: "cut: " + c.kind, faulty: []*Node{leader, member}, hold: hold, do: func() error { return d.apply(c) }, undo: d.heal, lasts: true,
	}, nil
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
			for _, n := range d.membersOf(r) {
				if slices.Contains(side, n) {
					here++
				}
			}
			majority := 2*here > r.Voters
			acked, first := 0, time.Duration(0)
			for _, e := range edits {
				if e.Outcome != history.Acknowledged || players.CellOf(e.Pos) != cell || e.Invoked < cut || e.Returned > healing || e.Moved() ||
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
			p := place{e.Via, players.CellOf(e.Pos)}
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
