package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/hostile"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// This file attacks the nodes: with what an admitted node can say, and with a stranger's streams.

const (
	lieFor    = 10 * time.Second // how long the liar repeats a lie
	founding  = 300              // cells that it founds in an event, or tries to
	revokedIn = 5 * time.Second  // how long nodes may listen to a revoked one
)

// attack is a run of the scenario.
type attack struct {
	*driver
	liar   *hostile.Liar
	honest []*Node
}

// attacks has the last node lie about everything, in turn, while a stranger floods another one with streams. Then it is
// revoked, and a new node takes its place.
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
	a := attack{d, liar, honest}
	if err := errors.Join(a.run(ctx, victims[0]), liar.Close()); err != nil {
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

// run attacks, and has the liar revoked.
func (a *attack) run(ctx context.Context, flooded string) error {
	flooding, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.flood(flooding, flooded) }()
	err := a.lie(ctx)
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	return a.revoke(ctx)
}

// lie tells one lie after the other, each for some time, and counts how often they are believed, and how long edits
// take meanwhile.
func (a *attack) lie(ctx context.Context) error {
	for i := 0; a.more(ctx, i); i++ {
		lie := hostile.Lies[i%len(hostile.Lies)]
		_, member := a.liar.Regions(ctx)
		a.log("lie: "+lie.Name, a.honest, "member_of", member)
		a.report.Fault("lie: " + lie.Name)
		mark, told, believed := a.ledger.Count(), 0, 0
		for until := time.Now().Add(lieFor); time.Now().Before(until) && ctx.Err() == nil; told++ {
			believed += lie.Tell(a.liar, ctx)
		}
		a.report.Count("lies told", "", told*len(a.honest))
		if believed > 0 {
			a.report.Problem("event %d: %q was believed %d times", i, lie.Name, believed)
		}
		a.report.Count("land founded by the liar", "", a.liar.Found(ctx, founding, int32(10_000+16*i))) //nolint:gosec // few events
		if err := a.examine(ctx); err != nil {
			return err
		}
		edits, err := a.answered(ctx, mark, a.ledger.Now())
		if err != nil {
			return err
		}
		for _, e := range edits {
			if e.Outcome == history.Acknowledged {
				a.report.Time("edit asked to acknowledged, during attacks", "p99 ≤ 100 ms", e.Returned-e.Invoked)
			}
		}
	}
	if n := a.liar.Believed(); n > 0 {
		a.report.Problem("the liar was asked %d questions as the catalog", n)
	}
	return ctx.Err()
}

// examine reports regions that nodes have quarantined, and whether doctor names the liar on one of them.
func (a *attack) examine(ctx context.Context) error {
	named := false
	for _, n := range a.honest {
		var health struct {
			Findings []struct{ Kind, Subject, What string }
		}
		if err := n.Ask(ctx, "/doctor", &health); err != nil {
			return err
		}
		for _, f := range health.Findings {
			named = named || f.Kind == "contradicted" && f.Subject == a.liar.Self.Peer
			if f.Kind == "quarantined" {
				a.report.Problem("node %d: region %s is quarantined: %s", n.Number, f.Subject, f.What)
			}
		}
	}
	if !named {
		a.report.Problem("voxeld doctor names the liar on no node")
	}
	return nil
}

// flood has a stranger open streams to a node until ctx ends.
func (a *attack) flood(ctx context.Context, victim string) error {
	listen, err := daemon.TakeAddress()
	if err != nil {
		return err
	}
	stranger, err := hostile.NewStranger(ctx, "/ip4/"+listen+"/tcp/4001", victim)
	if err != nil {
		return fmt.Errorf("connect a stranger: %w", err)
	}
	opened := stranger.Flood(ctx, a.liar.World())
	a.report.Count("streams opened by a stranger", "", int(opened))
	return stranger.Close()
}

// revoke revokes the liar, and measures how long nodes still listen to it.
func (a *attack) revoke(ctx context.Context) error {
	if err := a.honest[0].Revoke(ctx, a.liar.Self.Peer, "it lies"); err != nil {
		return err
	}
	took, err := a.expect(ctx, revokedIn, func() string {
		var listening []string
		for _, n := range a.honest {
			if a.liar.Heard(ctx, n.peer()) {
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
	a.report.Time("revoked: nobody listens", "≤ 5 s", took)
	return nil
}
