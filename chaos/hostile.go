package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/chaos/history"
	"github.com/voxelpopuli/voxeld/chaos/hostile"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
)

// This file attacks the nodes: with what an admitted node can say, and with a stranger's streams.

const (
	lieFor    = 10 * time.Second // how long the liar repeats a lie
	founding  = 300              // cells that it founds in an event, or tries to
	revokedIn = 5 * time.Second  // how long nodes may listen to a revoked one
)

// attacks has the last node lie about everything, in turn, while a stranger floods the others with streams. Then it is revoked, and a new node takes
// its place.
func (d *driver) attacks(ctx context.Context) error {
	last := d.Nodes[len(d.Nodes)-1]
	honest := d.Nodes[:len(d.Nodes)-1]
	if err := d.stopNode(ctx, last); err != nil {
		return err
	}
	var victims []string
	for _, n := range honest {
		victims = append(victims, n.Listen)
	}
	listen, err := daemon.TakeAddress()
	if err != nil {
		return err
	}
	liar, err := hostile.Impersonate(ctx, filepath.Join(last.dir, "voxeld.db"), "/ip4/"+listen+"/tcp/4001", last.Game, victims)
	if err != nil {
		return err
	}
	attacking, stop := context.WithCancel(ctx)
	flooded := make(chan error, 1)
	go func() { flooded <- d.flood(attacking, victims[0], liar.World()) }()
	err = d.lie(ctx, liar, honest)
	stop()
	err = errors.Join(err, <-flooded)
	if err == nil {
		err = d.revoke(ctx, liar, honest)
	}
	if err = errors.Join(err, liar.Close()); err != nil {
		return err
	}
	if err := last.wipe(); err != nil {
		return err
	}
	if err := d.startAll(ctx, []*Node{last}); err != nil {
		return err
	}
	return d.waitHealthy(ctx)
}

// lie tells one lie after the other, each for some time, and counts how often they are believed, and how long edits take meanwhile.
func (d *driver) lie(ctx context.Context, liar *hostile.Liar, honest []*Node) error {
	for i := 0; d.more(ctx, i); i++ {
		lie := hostile.Lies[i%len(hostile.Lies)]
		_, member := liar.Regions(ctx)
		d.log("lie: "+lie.Name, honest, "member_of", member)
		d.report.Fault("lie: " + lie.Name)
		mark, told, believed := d.ledger.Count(), 0, 0
		for until := time.Now().Add(lieFor); time.Now().Before(until) && ctx.Err() == nil; told++ {
			believed += lie.Tell(liar, ctx)
		}
		d.report.Count("lies told", "", told*len(honest))
		if believed > 0 {
			d.report.Problem("event %d: %q was believed %d times", i, lie.Name, believed)
		}
		d.report.Count("land founded by the liar", "", liar.Found(ctx, founding, int32(10_000+16*i))) //nolint:gosec // few events
		if err := d.findQuarantined(ctx, honest); err != nil {
			return err
		}
		edits, err := d.answered(ctx, mark, d.ledger.Now())
		if err != nil {
			return err
		}
		for _, e := range edits {
			if e.Outcome == history.Acknowledged {
				d.report.Time("edit asked to acknowledged, during attacks", "p99 ≤ 100 ms", e.Returned-e.Invoked)
			}
		}
	}
	if n := liar.Believed(); n > 0 {
		d.report.Problem("the liar was asked %d questions as the catalog", n)
	}
	return ctx.Err()
}

// findQuarantined reports regions that nodes have quarantined.
func (d *driver) findQuarantined(ctx context.Context, honest []*Node) error {
	for _, n := range honest {
		var health struct {
			Findings []struct{ Kind, Subject, What string }
		}
		if err := n.Ask(ctx, "/doctor", &health); err != nil {
			return err
		}
		for _, f := range health.Findings {
			if f.Kind == "quarantined" {
				d.report.Problem("node %d: region %s is quarantined: %s", n.Number, f.Subject, f.What)
			}
		}
	}
	return nil
}

// flood has a stranger open streams to a node until ctx ends.
func (d *driver) flood(ctx context.Context, victim, world string) error {
	listen, err := daemon.TakeAddress()
	if err != nil {
		return err
	}
	stranger, err := hostile.NewStranger(ctx, "/ip4/"+listen+"/tcp/4001", victim)
	if err != nil {
		return fmt.Errorf("connect a stranger: %w", err)
	}
	opened := stranger.Flood(ctx, world)
	d.report.Count("streams opened by a stranger", "", int(opened))
	return stranger.Close()
}

// revoke revokes the liar, and measures how long nodes still listen to it.
func (d *driver) revoke(ctx context.Context, liar *hostile.Liar, honest []*Node) error {
	if err := honest[0].Revoke(ctx, liar.Self.Peer, "it lies"); err != nil {
		return err
	}
	took, err := d.expect(ctx, revokedIn, func() string {
		var listening []string
		for _, n := range honest {
			if liar.Heard(ctx, n.peer()) {
				listening = append(listening, fmt.Sprint(n.Number))
			}
		}
		if len(listening) > 0 {
			return "nodes that listen to the liar: " + strings.Join(listening, ", ")
		}
		return ""
	})
	if err != nil {
		return ctx.Err() // it is reported
	}
	d.report.Time("revoked: nobody listens", "≤ 5 s", took)
	return nil
}
