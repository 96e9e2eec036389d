package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// strike is a kind of fault. Scenarios, and those who name some with + between them, combine them as they like.
type strike struct {
	name  string
	needs need
	takes time.Duration // on average, until the cluster has recovered; it determines nothing
	draw  func(d *driver, ctx context.Context) (fault, error)
	args  []string // flags with which the daemons run
}

// strikes are all kinds of faults.
var strikes = []strike{
	{name: "kill", takes: 2 * time.Second, draw: (*driver).kill},
	{name: "power", needs: disks, takes: 2 * time.Second, draw: (*driver).cutPower},
	{name: "pause", takes: 3 * time.Second, draw: (*driver).pause},
	{name: "hang", needs: disks, takes: 35 * time.Second, draw: (*driver).hang},
	{name: "slow", needs: disks, takes: 21 * time.Second, draw: (*driver).slow},
	{name: "partial", needs: networks, takes: 12 * time.Second, draw: (*driver).cutPartly},
	{name: "step", needs: clocks, takes: 90 * time.Second, draw: (*driver).step},
	// What is measured besides.
	{name: "failover", takes: 6 * time.Second, draw: (*driver).failover},
	{name: "stop", takes: 5 * time.Second, draw: (*driver).stop},
	{name: "partition", needs: networks, takes: 15 * time.Second, draw: cutFor(6*time.Second, 15*time.Second)},
	// By then TCP retransmits rarely, and redial backoffs have grown.
	{name: "severed", needs: networks, takes: 33 * time.Second, draw: cutFor(15*time.Second, 40*time.Second)},
	{name: "islands", needs: networks, takes: 100 * time.Second, draw: (*driver).islands},
	{name: "full", needs: disks, takes: 15 * time.Second, draw: (*driver).fill},
	{name: "flip", takes: 15 * time.Second, draw: (*driver).flip, args: replaceSoon},
	{name: "rollback", takes: 25 * time.Second, draw: (*driver).rollback},
	{name: "gone", takes: 30 * time.Second, draw: (*driver).gone, args: replaceSoon},
	{name: "grow", takes: 30 * time.Second, draw: (*driver).grow},
	{name: "divide", takes: 6 * time.Second, draw: (*driver).divide},
}

// goneAfter is the daemons' --replace-after where nodes are lost for good.
const goneAfter = 10 * time.Second

var replaceSoon = []string{"--replace-after", goneAfter.String()}

// fault is one strike as it was drawn.
type fault struct {
	kind   string
	faulty []*Node
	more   []any // for the log
	do     func() error
	hold   time.Duration // from do to undo
	// during, if not nil, observes the cluster in place of waiting for hold.
	during func(ctx context.Context) error
	undo   func() error // is called whatever happened before; nil: nothing
	// after, if not nil, examines what players noticed.
	after func(ctx context.Context) error
	lasts bool // how long edits wait meanwhile is measured: see judgeWaits
}

// span is the time of a fault that lasted.
type span struct {
	event    int
	kind     string
	from, to time.Duration // of the ledger
	faulty   []*Node
}

// inflict injects a fault, and removes it.
func (d *driver) inflict(ctx context.Context, f fault) error {
	if f.hold > 0 {
		f.more = append(f.more, "for", f.hold.Round(time.Millisecond))
	}
	d.log(f.kind, f.faulty, f.more...)
	d.report.Fault(f.kind)
	from, err := d.ledger.Now(), f.do()
	switch {
	case err != nil:
	case f.during != nil:
		err = f.during(ctx)
	default:
		pause(ctx, f.hold)
	}
	if f.undo != nil {
		err = errors.Join(err, f.undo())
	}
	if f.lasts {
		d.spans = append(d.spans, span{d.report.Events, f.kind, from, d.ledger.Now(), f.faulty})
	}
	if err == nil && f.after != nil {
		err = f.after(ctx)
	}
	return err
}

// errHurt ends the events: after another strike, what is then lost would be lost to two at once. What is wrong is
// reported.
var errHurt = errors.New("the cluster has not recovered from an event")

// strikeAll makes one event after another. Between some of them, when the cluster is healthy, it reads the land.
func (d *driver) strikeAll(ctx context.Context) error {
	var deck []strike
	for i := 0; d.more(ctx, i); i++ {
		if len(deck) == 0 { // each kind in turn, in random order
			deck = append(deck, d.strikes...)
			d.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f, err := deck[0].draw(d, ctx)
		if err == nil {
			err = d.inflict(ctx, f)
		}
		if errors.Is(err, errHurt) {
			return ctx.Err()
		} else if err != nil {
			return err
		}
		deck = deck[1:]
		if d.s.settle {
			err = d.waitHealthy(ctx)
		} else {
			pause(ctx, d.between(300*time.Millisecond, 2500*time.Millisecond))
		}
		if err != nil {
			return err
		}
		if (i+1)%cmp.Or(d.s.reads, readEvery) != 0 {
			continue
		}
		if err := d.waitRecovered(ctx); err != nil {
			return err
		}
		d.readNow(ctx)
	}
	return ctx.Err()
}

// readEvery is the number of events between two intermediate readings.
const readEvery = 25

// drawNodes draws that many nodes.
func (d *driver) drawNodes(n int) []*Node {
	all := slices.Clone(d.Nodes)
	d.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// between draws a duration.
func (d *driver) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.rng.Int64N(int64(high-low)+1))
}

// briefly is how long a fault lasts in a brief scenario that otherwise lasts longer.
const briefly = 3 * time.Second

// lasting draws how long a fault lasts.
func (d *driver) lasting(low, high time.Duration) time.Duration {
	hold := d.between(low, high)
	if d.s.brief {
		hold = min(hold, briefly)
	}
	return hold
}

// replicas returns the nodes that keep one of the regions; all nodes, if it has no leader at the moment.
func (d *driver) replicas(ctx context.Context) []*Node {
	chunks := d.writers.Chunks()
	r, _ := regionAt(d.openRegions(ctx), chunks[d.rng.IntN(len(chunks))])
	if all := d.membersOf(r); len(all) > 0 {
		return all
	}
	return d.Nodes
}

// membersOf returns the nodes that are members of a region.
func (d *driver) membersOf(r openRegion) (all []*Node) {
	for _, m := range r.Members {
		if n := d.peer(m); n != nil {
			all = append(all, n)
		}
	}
	return all
}

// without returns the nodes but one.
func without(nodes []*Node, one *Node) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == one })
}

// leader draws a region, and returns the node that leads it and all regions that this node leads.
func (d *driver) leader(ctx context.Context) (*Node, []string, error) {
	var n *Node
	var all map[string]openRegion
	_, err := eventually(ctx, healLimit, func() string {
		all = d.openRegions(ctx)
		chunks := d.writers.Chunks()
		r, wrong := regionAt(all, chunks[d.rng.IntN(len(chunks))])
		if n = d.peer(r.Leader); wrong == "" && n == nil {
			wrong = "no node with the id " + r.Leader
		}
		return wrong
	})
	if err != nil {
		return nil, nil, err
	}
	var its []string
	for _, s := range d.writers.Areas {
		if r, wrong := regionAt(all, s.Origin().Chunk()); wrong == "" && r.Leader == n.peer() {
			its = append(its, s.Cell())
		}
	}
	return n, its, nil
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

// victim draws a node, mostly one that leads a region.
func (d *driver) victim(ctx context.Context) (kind string, n *Node, err error) {
	if d.rng.IntN(4) == 0 {
		return "one", d.drawNodes(1)[0], nil
	}
	n, _, err = d.leader(ctx)
	return "leader", n, err
}

// elsewhere is how long an edit may wait that a player makes through a node that is not faulty. It is judged if the
// cluster was healthy before.
const elsewhere = 3 * time.Second

// judgeWaits measures how long edits waited that were asked for, or under way, during the faults that lasted.
func (d *driver) judgeWaits() {
	edits := d.ledger.Since(0)
	for _, p := range d.spans {
		slowest, via := time.Duration(0), 0
		for _, e := range edits {
			if e.Invoked > p.to {
				break
			}
			if e.Open() || e.Returned < p.from {
				continue
			}
			wait := e.Returned - e.Invoked
			if slices.ContainsFunc(p.faulty, func(n *Node) bool { return n.Number == e.First }) {
				d.report.Time(p.kind+": edits through the faulty nodes", "", wait)
				continue
			}
			d.report.Time(p.kind+": edits elsewhere", fmt.Sprintf("≤ %v", elsewhere), wait)
			if wait > slowest {
				slowest, via = wait, e.First
			}
		}
		if d.s.judged() && slowest > elsewhere {
			d.report.Problem("event %d, %s: an edit through node %d waited %v", p.event, p.kind, via, slowest.Round(time.Millisecond))
		}
	}
}
