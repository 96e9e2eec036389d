package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
)

// This file kills, pauses and stops nodes, adds some, and loses some for good.

func (d *driver) kill(ctx context.Context) (fault, error) {
	kind, victims := d.victims(ctx)
	return d.down(ctx, "kill -9: "+kind, victims, killAll), nil
}

func (d *driver) cutPower(ctx context.Context) (fault, error) {
	kind, victims := d.victims(ctx)
	return d.down(ctx, "power cut: "+kind, victims, cutPowerAll), nil
}

// down takes nodes down, and starts them again a moment later.
func (d *driver) down(ctx context.Context, kind string, victims []*Node, blow func([]*Node) error) fault {
	return fault{
		kind: kind, faulty: victims, hold: d.between(0, 1500*time.Millisecond),
		do: func() error {
			d.report.Count("nodes faulty", "", len(victims))
			return blow(victims)
		},
		undo: func() error {
			for _, n := range victims {
				if err := n.powerUp(); err != nil {
					return err
				}
			}
			return d.startAll(ctx, victims)
		},
	}
}

// pause pauses nodes, also for longer than an election takes: a paused leader continues with an outdated term.
func (d *driver) pause(ctx context.Context) (fault, error) {
	kind, victims := d.victims(ctx)
	each := func(what func(*Node) error) func() error {
		return func() (err error) {
			for _, n := range victims {
				err = errors.Join(err, what(n))
			}
			return err
		}
	}
	return fault{
		kind: "SIGSTOP: " + kind, faulty: victims, hold: d.lasting(200*time.Millisecond, 6*time.Second),
		do: each((*Node).suspend), undo: each((*Node).resume),
	}, nil
}

// failover kills a leader, and measures how long it takes until its regions accept edits again: from the kill to the
// first acknowledgement of an edit that was asked for after it.
func (d *driver) failover(ctx context.Context) (fault, error) {
	n, cells, err := d.leader(ctx)
	if err != nil {
		return fault{}, err
	}
	var mark int
	var killed, dead time.Duration
	return fault{
		kind: "kill -9: leader", faulty: []*Node{n}, more: []any{"leads", len(cells)},
		do: func() error {
			mark, killed = d.ledger.Count(), d.ledger.Now()
			err := n.kill()
			dead = d.ledger.Now()
			return err
		},
		during: func(ctx context.Context) error {
			for cell, at := range d.accepted(ctx, mark, dead, cells) {
				if slices.Contains(cells, cell) {
					d.report.Time("leader killed: edits accepted again", "p50 ≤ 1.5 s, p99 ≤ 3 s", at-killed)
				}
			}
			return nil
		},
		undo: func() error { return d.startAll(ctx, []*Node{n}) },
	}, nil
}

// stop shuts a leader down, and examines the edits of that time in its regions: those of players on other nodes, and
// those of players on the stopped node, who have to move.
func (d *driver) stop(ctx context.Context) (fault, error) {
	const around = 500 * time.Millisecond
	n, cells, err := d.leader(ctx)
	if err != nil {
		return fault{}, err
	}
	mark, unavailable := 0, int64(0)
	return fault{
		kind: "SIGTERM: leader", faulty: []*Node{n}, more: []any{"leads", len(cells)},
		do: func() error {
			mark, unavailable = d.ledger.Count(), d.writers.Unavailable.Load()
			pause(ctx, around)
			return d.stopNode(ctx, n)
		},
		during: func(ctx context.Context) error {
			pause(ctx, around)
			edits, err := d.answered(ctx, mark, d.ledger.Now())
			var others, moved time.Duration
			failed := 0
			for _, e := range edits {
				if e.Outcome != history.Acknowledged {
					failed++
				}
				if !slices.Contains(cells, players.CellOf(e.Pos)) {
					continue
				}
				slowest := &others
				if e.First == n.Number {
					slowest = &moved
				}
				*slowest = max(*slowest, e.Returned-e.Invoked)
			}
			d.report.Time("SIGTERM: slowest edit, of players on other nodes", "≤ 300 ms", others)
			d.report.Time("SIGTERM: slowest edit, of players on the node that stops", "≤ 300 ms", moved)
			d.report.Count("SIGTERM: edits that failed", "0", failed)
			d.report.Count("SIGTERM: answers “unavailable, try again”", "0", int(d.writers.Unavailable.Load()-unavailable))
			return err
		},
		undo: func() error { return d.startAll(ctx, []*Node{n}) },
	}, nil
}

// stopLimit is the time limit for a node to stop.
const stopLimit = 40 * time.Second

func (d *driver) stopNode(ctx context.Context, n *Node) error {
	code, took, err := n.terminate(ctx, stopLimit)
	if err != nil {
		return err
	}
	d.report.Time("SIGTERM to exit", "", took)
	if code != 0 {
		d.report.Problem("node %d exited with code %d after SIGTERM: %s", n.Number, code, n.logTail())
	}
	return nil
}

// grow starts the other nodes of a cluster that began with one, on which players edit, and measures how long it takes
// until every region has three replicas.
func (d *driver) grow(ctx context.Context) (fault, error) {
	newcomers := d.Nodes[1:]
	return fault{
		kind: "nodes that join", faulty: newcomers,
		do: func() error {
			start := time.Now()
			err := d.startAll(ctx, newcomers)
			d.report.Time("one node becomes five: all are up", "", time.Since(start))
			return err
		},
		during: func(ctx context.Context) error {
			took, _ := d.expect(ctx, healLimit, func() string { return d.missing(ctx) })
			d.report.Time("one node becomes five: every region has three members, since all are up", "≤ 30 s", took)
			return ctx.Err()
		},
		after: d.waitHealthy,
	}, nil
}

// gone loses a node for good, and measures how long it takes, from the end of the grace period, until every region
// has three running replicas again. Then a new node replaces it.
func (d *driver) gone(ctx context.Context) (fault, error) {
	n, cells, err := d.leader(ctx)
	if err != nil {
		return fault{}, err
	}
	return fault{
		kind: "node gone for good", faulty: []*Node{n}, more: []any{"leads", len(cells)},
		do: n.kill,
		during: func(ctx context.Context) error {
			took, _ := d.expect(ctx, goneAfter+2*healLimit, func() string {
				return d.missingMembers(ctx, d.writers.Chunks(), 3, len(d.Nodes)-2)
			})
			d.report.Time("node gone: every region has three members that run, since the grace period ended", "≤ 30 s", max(0, took-goneAfter))
			return n.wipe()
		},
		undo:  func() error { return d.startAll(ctx, []*Node{n}) },
		after: d.mustHeal,
	}, nil
}

// mustHeal waits until the cluster is healthy. If it does not become so, no other node may be faulty: that would be
// more than a minority.
func (d *driver) mustHeal(ctx context.Context) error {
	if _, err := d.expect(ctx, healLimit, func() string { return d.missing(ctx) }); err != nil {
		return fmt.Errorf("%w: %w", errHurt, err)
	}
	return nil
}
