package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/clockstep"
)

// This file injects faults that last, and through which the cluster has to go on: disks that hang or are slow, cuts between two of
// several members, clocks that are wrong.

// span is the time of a fault that lasts.
type span struct {
	event    int
	kind     string
	from, to time.Duration // of the ledger
	struck   []*Node
}

// elsewhere is how long an edit may wait that a player makes through a node that is not struck. It is judged if the cluster was
// healthy before.
const elsewhere = 3 * time.Second

// last holds a fault for a while. end is called whatever happens; more is for the log.
func (f *faults) last(ctx context.Context, kind string, struck []*Node, hold time.Duration, begin, end func() error, more ...any) error {
	f.log(kind, struck, append(more, "for", hold.Round(time.Millisecond))...)
	f.report.Fault(kind)
	from := f.ledger.Now()
	err := begin()
	if err == nil {
		pause(ctx, hold)
	}
	err = errors.Join(err, end())
	f.spans = append(f.spans, span{f.report.Events, kind, from, f.ledger.Now(), struck})
	return err
}

// judgeWaits measures how long edits waited that were asked for, or under way, during the faults that lasted.
func (d *driver) judgeWaits(s *scenario) {
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
			if slices.ContainsFunc(p.struck, func(n *Node) bool { return n.Number == e.First }) {
				d.report.Time(p.kind+": edits through the struck nodes", "", wait)
				continue
			}
			d.report.Time(p.kind+": edits elsewhere", fmt.Sprintf("≤ %v", elsewhere), wait)
			if wait > slowest {
				slowest, via = wait, e.First
			}
		}
		if s.settle && slowest > elsewhere {
			d.report.Problem("event %d, %s: an edit through node %d waited %v", p.event, p.kind, via, slowest.Round(time.Millisecond))
		}
	}
}

// victim draws a node, mostly one that leads a region.
func (f *faults) victim(ctx context.Context) (kind string, n *Node, err error) {
	if f.rng.IntN(4) == 0 {
		return "one", f.drawNodes(1)[0], nil
	}
	n, _, err = f.leader(ctx)
	return "leader", n, err
}

// hang makes a disk hang, as a broken disk or controller does.
func (f *faults) hang(ctx context.Context) error {
	return f.hangFor(ctx, f.between(5*time.Second, 60*time.Second))
}

func (f *faults) hangFor(ctx context.Context, hold time.Duration) error {
	kind, n, err := f.victim(ctx)
	if err != nil {
		return err
	}
	return f.last(ctx, "disk hangs: "+kind, []*Node{n}, hold, n.disk.Hang, n.disk.Resume)
}

// slow makes a disk slow, as a worn or overloaded one is.
func (f *faults) slow(ctx context.Context) error {
	return f.slowFor(ctx, f.between(100*time.Millisecond, 800*time.Millisecond), f.between(10*time.Second, 30*time.Second))
}

func (f *faults) slowFor(ctx context.Context, stall, hold time.Duration) error {
	kind, n, err := f.victim(ctx)
	if err != nil {
		return err
	}
	slow, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	begin := func() error {
		go func() { ended <- n.disk.Slow(slow, stall) }()
		return nil
	}
	end := func() error {
		stop()
		return <-ended
	}
	return f.last(ctx, "disk is slow: "+kind, []*Node{n}, hold, begin, end, "stalls", stall)
}

// cutPartly cuts a leader off from one other member of its region. Both still reach all others.
func (f *faults) cutPartly(ctx context.Context) error {
	return f.cutPartlyFor(ctx, f.between(6*time.Second, 15*time.Second))
}

func (f *faults) cutPartlyFor(ctx context.Context, hold time.Duration) error {
	leader, cells, err := f.leader(ctx)
	if err != nil {
		return err
	}
	var members []*Node
	for _, r := range f.openRegions(ctx) {
		if r.Leader == leader.peer() && slices.Contains(cells, r.Cell) {
			for _, m := range r.Members {
				if n := f.peer(m); n != nil && n != leader {
					members = append(members, n)
				}
			}
		}
	}
	if len(members) == 0 {
		members = slices.DeleteFunc(slices.Clone(f.Nodes), func(n *Node) bool { return n == leader })
	}
	member := members[f.rng.IntN(len(members))]
	c := cutOff{blocked: make(map[*Node][]*Node)}
	switch f.rng.IntN(4) {
	case 0:
		c.kind, c.blocked[member] = "a member receives nothing from its leader", []*Node{leader}
	case 1:
		c.kind, c.blocked[leader] = "a leader receives nothing from a member", []*Node{member}
	default:
		c.kind = "a leader and a member, both reach the others"
		c.blocked[leader], c.blocked[member] = []*Node{member}, []*Node{leader}
	}
	return f.last(ctx, "cut: "+c.kind, []*Node{leader, member}, hold, func() error { return f.apply(c) }, f.heal)
}

// offsets are how far clocks are off, in either direction.
var offsets = []time.Duration{30 * time.Second, time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour}

// step steps the wall clocks of nodes, and corrects them a minute or two later.
func (f *faults) step(ctx context.Context) error {
	offset := offsets[f.rng.IntN(len(offsets))]
	if f.rng.IntN(2) == 0 {
		offset = -offset
	}
	return f.stepFor(ctx, offset, f.between(40*time.Second, 130*time.Second))
}

func (f *faults) stepFor(ctx context.Context, offset, hold time.Duration) error {
	kind, n, err := f.victim(ctx)
	if err != nil {
		return err
	}
	struck := []*Node{n}
	switch f.rng.IntN(4) {
	case 0:
		kind, struck = "a majority", f.drawNodes(len(f.Nodes)/2+1)
	case 1:
		kind, struck = "all nodes", f.Nodes
	}
	set := func(to time.Duration) error {
		var errs []error
		for _, n := range struck {
			if p := n.running(); p != nil && p.Running() {
				errs = append(errs, clockstep.Step(p.PID(), to))
			}
		}
		return errors.Join(errs...)
	}
	return f.last(ctx, "clocks are off: "+kind, struck, hold, func() error { return set(offset) }, func() error { return set(0) }, "by", offset)
}
