package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/machine"
)

// This file puts nodes' data back to earlier copies (docs/adr/0024-no-way-back-in-time.md).

// announced is how long a node must run on after a snapshot of its disk until other nodes can know: it counts its promises every 10 s.
const announced = 21 * time.Second

// rollback puts an old copy of the data of one node or two back, while others go on. In a world that has not become healthy,
// another copy could cost a majority what it has promised.
func (d *driver) rollback(ctx context.Context) error {
	if len(d.report.Problems) > 0 {
		return errHurt
	}
	members := slices.Clone(d.replicas(ctx))
	d.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	victim, witness := members[0], members[1]
	running, second := d.rng.IntN(3) == 0, d.rng.IntN(3)
	kind := "old copy of a stopped node"
	if running {
		kind = "snapshot of a running node's disk"
	}
	kind += []string{"", ", put back twice", ", then another node's"}[second]
	d.log(kind, []*Node{victim, witness})
	d.report.Fault(kind)
	if err := d.keepCopy(ctx, victim, running); err != nil {
		return err
	}
	if second == 2 {
		if err := d.keepCopy(ctx, witness, running); err != nil {
			return err
		}
	}
	if running {
		pause(ctx, announced)
	}
	if err := d.waitHealthy(ctx); err != nil {
		return err
	}
	// What the others acknowledge together with the victim, the witness does not have.
	if err := witness.kill(); err != nil {
		return err
	}
	pause(ctx, d.between(500*time.Millisecond, 4*time.Second))
	down := []*Node{victim}
	if d.rng.IntN(2) == 0 {
		down = slices.DeleteFunc(slices.Clone(d.Nodes), func(n *Node) bool { return n == witness })
	}
	if err := errors.Join(killAll(down), machine.CopyDir(d.copyOf(victim), victim.dir)); err != nil {
		return err
	}
	if err := d.startAll(ctx, []*Node{victim, witness}); err != nil {
		return err
	}
	pause(ctx, d.between(500*time.Millisecond, 6*time.Second)) // a majority with the copy would acknowledge edits now
	rest := slices.DeleteFunc(down, func(n *Node) bool { return n == victim })
	if err := d.startAll(ctx, rest); err != nil {
		return err
	}
	if err := d.waitHealthy(ctx); err != nil || second == 0 {
		return err
	}
	if second == 2 {
		victim = witness
	}
	if err := errors.Join(victim.kill(), machine.CopyDir(d.copyOf(victim), victim.dir)); err != nil {
		return err
	}
	return d.startAll(ctx, []*Node{victim})
}

func (d *driver) copyOf(n *Node) string {
	return filepath.Join(d.slot.Dir, fmt.Sprintf("n%d.old", n.Number))
}

// keepCopy copies the data of a node, which is stopped for that, or paused as by a snapshot of its disk.
func (d *driver) keepCopy(ctx context.Context, n *Node, running bool) error {
	if running {
		if err := n.suspend(); err != nil {
			return err
		}
		return errors.Join(machine.CopyDir(n.dir, d.copyOf(n)), n.resume())
	}
	if err := d.stopNode(ctx, n); err != nil {
		return err
	}
	if err := machine.CopyDir(n.dir, d.copyOf(n)); err != nil {
		return err
	}
	return d.startAll(ctx, []*Node{n})
}
