package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
	"github.com/voxelpopuli/voxeld/test/testkit/clockstep"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// This file makes disks hang, slow or full, changes what is on them, and sets clocks wrongly.

// hang makes a disk hang, as a broken disk or controller does.
func (d *driver) hang(ctx context.Context) (fault, error) {
	hold := d.lasting(5*time.Second, 60*time.Second)
	kind, n, err := d.victim(ctx)
	if err != nil {
		return fault{}, err
	}
	return fault{kind: "disk hangs: " + kind, faulty: []*Node{n}, hold: hold, do: n.disk.Hang, undo: n.disk.Resume, lasts: true}, nil
}

// slow makes a disk slow, as a worn or overloaded one is.
func (d *driver) slow(ctx context.Context) (fault, error) {
	stall, hold := d.between(100*time.Millisecond, 800*time.Millisecond), d.lasting(10*time.Second, 30*time.Second)
	kind, n, err := d.victim(ctx)
	if err != nil {
		return fault{}, err
	}
	slow, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	return fault{
		kind: "disk is slow: " + kind, faulty: []*Node{n}, more: []any{"stalls", stall}, hold: hold, lasts: true,
		do: func() error {
			go func() { ended <- n.disk.Slow(slow, stall) }()
			return nil
		},
		undo: func() error {
			stop()
			return <-ended
		},
	}, nil
}

// offsets are how far clocks are off, in either direction.
var offsets = []time.Duration{30 * time.Second, time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour}

// step steps the wall clocks of nodes, and corrects them a minute or two later.
func (d *driver) step(ctx context.Context) (fault, error) {
	offset := offsets[d.rng.IntN(len(offsets))]
	if d.rng.IntN(2) == 0 {
		offset = -offset
	}
	hold := d.lasting(40*time.Second, 130*time.Second)
	kind, n, err := d.victim(ctx)
	if err != nil {
		return fault{}, err
	}
	faulty := []*Node{n}
	switch d.rng.IntN(4) {
	case 0:
		kind, faulty = "a majority", d.drawNodes(len(d.Nodes)/2+1)
	case 1:
		kind, faulty = "all nodes", d.Nodes
	}
	set := func(to time.Duration) func() error {
		return func() (err error) {
			for _, n := range faulty {
				if p := n.running(); p != nil && p.Running() {
					err = errors.Join(err, clockstep.Step(p.PID(), to))
				}
			}
			return err
		}
	}
	return fault{
		kind: "clocks are off: " + kind, faulty: faulty, more: []any{"by", offset}, hold: hold, do: set(offset), undo: set(0), lasts: true,
	}, nil
}

// fill fills the disk of one node, or in every third event of all, and frees it again.
func (d *driver) fill(ctx context.Context) (fault, error) {
	kind, victims := "disk full: one node", d.drawNodes(1)
	if d.report.Events%3 == 0 {
		kind, victims = "disk full: all nodes", d.Nodes
	}
	each := func(what func(*machine.Disk) error) func() error {
		return func() (err error) {
			for _, n := range victims {
				err = errors.Join(err, what(n.disk))
			}
			return err
		}
	}
	f := fault{kind: kind, faulty: victims, hold: d.lasting(10*time.Second, 10*time.Second), do: each((*machine.Disk).Fill), undo: each((*machine.Disk).MakeRoom)}
	unavailable := d.writers.Unavailable.Load()
	f.during = func(ctx context.Context) error {
		pause(ctx, f.hold/2)
		mark, full := d.ledger.Count(), d.ledger.Now()
		if _, err := players.ReadAll(ctx, gatewaysOf(victims), d.ledger, players.ReadLimit/4); err != nil && ctx.Err() == nil {
			d.report.Problem("event %d, %s: reads stopped: %v", d.report.Events, kind, err)
		}
		pause(ctx, f.hold/2)
		acked := 0
		for _, e := range d.ledger.Since(mark) {
			if e.Outcome == history.Acknowledged && e.Invoked > full {
				acked++
			}
		}
		d.report.Count(kind+": edits accepted while it was", "", acked)
		d.report.Count(kind+": answers “unavailable, try again”", "", int(d.writers.Unavailable.Load()-unavailable))
		return nil
	}
	f.after = func(ctx context.Context) error {
		room, mark := d.ledger.Now(), d.ledger.Count()
		slowest := time.Duration(0)
		for _, at := range d.accepted(ctx, mark, room, d.writers.Cells()) {
			slowest = max(slowest, at-room)
		}
		d.report.Time(kind+": all regions accept edits, since there is room", "", slowest)
		return ctx.Err()
	}
	return f, nil
}

// flip flips bits in the database of one node while it is stopped. The node may refuse the database, at once or later:
// then it is wiped, as an operator would, and joins as a new node. Or it continues, because no used page was hit, or
// because it repairs itself. It must not show wrong blocks: it is read when it is back, and all nodes are read at the
// end.
func (d *driver) flip(ctx context.Context) (fault, error) {
	n := d.drawNodes(1)[0]
	bits := []int{1, 8, 64}[d.rng.IntN(3)]
	refused := func(when, words string) error {
		d.report.Count("flips: database refused "+when, "", 1)
		return d.replace(ctx, n, words)
	}
	return fault{
		kind: fmt.Sprintf("bits flipped: %d", bits), faulty: []*Node{n},
		do: func() error {
			d.mayDie.Store(n)
			return errors.Join(n.kill(), machine.FlipBits(filepath.Join(n.dir, "voxeld.db"), bits, d.rng))
		},
		during: func(ctx context.Context) error {
			switch err := d.startAll(ctx, []*Node{n}); {
			case err == nil:
				d.report.Count("flips: node started", "", 1)
			case !errors.Is(err, process.ErrEnded):
				return err
			default:
				if err := refused("at the start", err.Error()); err != nil {
					return err
				}
			}
			pause(ctx, 2*time.Second)
			if _, died := n.exitedUnexpectedly(); died || !n.Serves() {
				if err := refused("while the node ran", n.logTail()); err != nil {
					return err
				}
			}
			if err := d.waitHealthy(ctx); err != nil || n.Serves() {
				return err
			}
			return refused("while the node ran", n.logTail())
		},
		undo: func() error {
			d.mayDie.Store(nil)
			return nil
		},
		after: d.mustHeal,
	}, nil
}

// exitData is voxeld's exit code for an unusable data directory.
const exitData = 3

// replace wipes a node that refused its database, and starts it as a new one. The end of its log must state the
// reason.
func (d *driver) replace(ctx context.Context, n *Node, words string) error {
	if code, _ := n.exitCode(); code != exitData || !strings.Contains(words, "damaged") {
		d.report.Problem("event %d: node %d did not report a damaged database: exit code %d, %s", d.report.Events, n.Number, code, words)
	}
	if err := errors.Join(n.kill(), n.wipe()); err != nil {
		return err
	}
	return d.startAll(ctx, []*Node{n})
}

// announced is how long a node must run on after a snapshot of its disk until other nodes can know: it counts its
// promises every 10 s.
const announced = 21 * time.Second

// rollback puts an old copy of the data of one node or two back, while others go on
// (docs/adr/0024-no-way-back-in-time.md). In a world that has not become healthy, another copy could cost a majority
// what it has promised.
func (d *driver) rollback(ctx context.Context) (fault, error) {
	if len(d.report.Problems) > 0 {
		return fault{}, errHurt
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
	down := []*Node{victim}
	return fault{
		kind: kind, faulty: []*Node{victim, witness},
		do: func() error {
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
			return d.waitHealthy(ctx)
		},
		during: func(ctx context.Context) error {
			// What the others acknowledge together with the victim, the witness does not have.
			if err := witness.kill(); err != nil {
				return err
			}
			pause(ctx, d.between(500*time.Millisecond, 4*time.Second))
			if d.rng.IntN(2) == 0 {
				down = without(d.Nodes, witness)
			}
			if err := errors.Join(killAll(down), machine.CopyDir(d.copyOf(victim), victim.dir)); err != nil {
				return err
			}
			if err := d.startAll(ctx, []*Node{victim, witness}); err != nil {
				return err
			}
			pause(ctx, d.between(500*time.Millisecond, 6*time.Second)) // a majority with the copy would acknowledge edits now
			return d.startAll(ctx, without(down, victim))
		},
		after: func(ctx context.Context) error {
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
		},
	}, nil
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
