package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// faults draws victims, and injects single faults.
type faults struct {
	*observer
	rng   *rand.Rand
	spans []span // of the faults that lasted
}

// drawNodes draws that many nodes.
func (f *faults) drawNodes(n int) []*Node {
	all := slices.Clone(f.Nodes)
	f.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// replicas returns the nodes that keep one of the regions; all nodes, if it has no leader at the moment.
func (f *faults) replicas(ctx context.Context) []*Node {
	chunks := f.writers.Chunks()
	r, _ := regionAt(f.openRegions(ctx), chunks[f.rng.IntN(len(chunks))])
	var all []*Node
	for _, m := range r.Members {
		if n := f.peer(m); n != nil {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return f.Nodes
	}
	return all
}

// between draws a duration.
func (f *faults) between(low, high time.Duration) time.Duration {
	return low + time.Duration(f.rng.Int64N(int64(high-low)+1))
}

// leader draws a region, and returns the node that leads it and all regions that this node leads.
func (f *faults) leader(ctx context.Context) (*Node, []string, error) {
	var n *Node
	var all map[string]openRegion
	_, err := eventually(ctx, healLimit, func() string {
		all = f.openRegions(ctx)
		chunks := f.writers.Chunks()
		r, wrong := regionAt(all, chunks[f.rng.IntN(len(chunks))])
		if n = f.peer(r.Leader); wrong == "" && n == nil {
			wrong = "no node with the id " + r.Leader
		}
		return wrong
	})
	if err != nil {
		return nil, nil, err
	}
	var its []string
	for _, s := range f.writers.Areas {
		if r, wrong := regionAt(all, s.Origin().Chunk()); wrong == "" && r.Leader == n.peer() {
			its = append(its, s.Cell())
		}
	}
	return n, its, nil
}

// victims draws the affected nodes: mostly one.
func (f *faults) victims(ctx context.Context) (kind string, nodes []*Node) {
	switch p := f.rng.Float64(); {
	case p < .65:
		return "one", f.drawNodes(1)
	case p < .8:
		return "two", f.drawNodes(2)
	case p < .9:
		return "all replicas of a region", f.replicas(ctx)
	default:
		return "all nodes", f.Nodes
	}
}

func (f *faults) kill(ctx context.Context) error {
	kind, victims := f.victims(ctx)
	return f.takeDown(ctx, "kill -9: "+kind, victims, killAll)
}

// takeDown takes nodes down with blow, and starts them again a moment later.
func (f *faults) takeDown(ctx context.Context, kind string, victims []*Node, fault func([]*Node) error) error {
	down := f.between(0, 1500*time.Millisecond)
	f.log(kind, victims, "down", down.Round(time.Millisecond))
	f.report.Fault(kind)
	if err := fault(victims); err != nil {
		return err
	}
	f.report.Count("nodes struck", "", len(victims))
	pause(ctx, down)
	for _, n := range victims {
		if err := n.powerUp(); err != nil {
			return err
		}
	}
	return f.startAll(ctx, victims)
}

func (f *faults) cutPower(ctx context.Context) error {
	kind, victims := f.victims(ctx)
	return f.takeDown(ctx, "power cut: "+kind, victims, cutPowerAll)
}

// pause pauses nodes, also for longer than an election takes: a paused leader continues with an outdated term.
func (f *faults) pause(ctx context.Context) error {
	kind, victims := f.victims(ctx)
	stopped := f.between(200*time.Millisecond, 6*time.Second)
	f.log("SIGSTOP: "+kind, victims, "for", stopped.Round(time.Millisecond))
	f.report.Fault("SIGSTOP: " + kind)
	for _, n := range victims {
		if err := n.suspend(); err != nil {
			return err
		}
	}
	pause(ctx, stopped)
	var errs []error
	for _, n := range victims {
		errs = append(errs, n.resume())
	}
	return errors.Join(errs...)
}

// terminate stops a node as an operator would, and starts it again.
func (f *faults) terminate(ctx context.Context) error {
	n := f.drawNodes(1)[0]
	f.log("SIGTERM", []*Node{n})
	f.report.Fault("SIGTERM")
	if err := f.stopNode(ctx, n); err != nil {
		return err
	}
	return f.startAll(ctx, []*Node{n})
}

// stopLimit is the time limit for a node to stop.
const stopLimit = 40 * time.Second

func (f *faults) stopNode(ctx context.Context, n *Node) error {
	code, took, err := n.terminate(ctx, stopLimit)
	if err != nil {
		return err
	}
	f.report.Time("SIGTERM to exit", "", took)
	if code != 0 {
		f.report.Problem("node %d exited with code %d after SIGTERM: %s", n.Number, code, n.logTail())
	}
	return nil
}

// drawCut draws a way to cut nodes off.
func (f *faults) drawCut(ctx context.Context) (cutOff, error) {
	all := f.drawNodes(len(f.Nodes))
	leader, _, err := f.leader(ctx)
	if err != nil {
		return cutOff{}, err
	}
	others := slices.DeleteFunc(slices.Clone(all), func(n *Node) bool { return n == leader })
	switch f.rng.IntN(6) {
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

// shortCut cuts nodes off for a moment, without measurements.
func (f *faults) shortCut(ctx context.Context) error {
	c, err := f.drawCut(ctx)
	if err != nil {
		return err
	}
	f.log("partition: "+c.kind, f.cutNodes(c))
	f.report.Fault("partition: " + c.kind)
	if err := f.apply(c); err != nil {
		return err
	}
	pause(ctx, f.between(500*time.Millisecond, 8*time.Second))
	return f.heal()
}

// cutNodes returns the smaller group, or the nodes that receive nothing.
func (f *faults) cutNodes(c cutOff) []*Node {
	if len(c.sides) > 0 {
		return c.sides[0]
	}
	var all []*Node
	for _, n := range f.Nodes {
		if c.blocked[n] != nil {
			all = append(all, n)
		}
	}
	return all
}

// shortFill fills a disk for a moment, without measurements.
func (f *faults) shortFill(ctx context.Context) error {
	victims := f.drawNodes(1)
	f.log("disk full", victims)
	f.report.Fault("disk full")
	if err := victims[0].disk.Fill(); err != nil {
		return err
	}
	pause(ctx, f.between(time.Second, 4*time.Second))
	return victims[0].disk.MakeRoom()
}
