package chaos

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// strike is a kind of fault. Scenarios combine them.
type strike struct {
	name  string
	needs need
	takes time.Duration // on average, until the cluster has recovered; it determines nothing
	do    func(d *driver, ctx context.Context) error
}

// strikes are all kinds of faults. Those without measurements are short enough to follow each other before the cluster has recovered.
var strikes = []strike{
	{name: "kill", takes: 2 * time.Second, do: (*driver).kill},
	{name: "power", needs: disks, takes: 2 * time.Second, do: (*driver).cutPower},
	{name: "pause", takes: 3 * time.Second, do: (*driver).pause},
	{name: "terminate", takes: 2 * time.Second, do: (*driver).terminate},
	{name: "fill", needs: disks, takes: 3 * time.Second, do: (*driver).shortFill},
	{name: "cut", needs: networks, takes: 4 * time.Second, do: (*driver).shortCut},
	// What lasts, and is observed meanwhile.
	{name: "hang", needs: disks, takes: 35 * time.Second, do: (*driver).hang},
	{name: "slow", needs: disks, takes: 21 * time.Second, do: (*driver).slow},
	{name: "partial", needs: networks, takes: 12 * time.Second, do: (*driver).cutPartly},
	{name: "step", needs: clocks, takes: 90 * time.Second, do: (*driver).step},
	// What is measured.
	{name: "failover", takes: 6 * time.Second, do: (*driver).failover},
	{name: "stop", takes: 5 * time.Second, do: (*driver).stop},
	{name: "partition", needs: networks, takes: 15 * time.Second, do: (*driver).partition},
	{name: "severed", needs: networks, takes: 33 * time.Second, do: (*driver).longPartition},
	{name: "islands", needs: networks, takes: 100 * time.Second, do: (*driver).splitLong},
	{name: "gone", takes: 30 * time.Second, do: (*driver).gone},
	{name: "full", needs: disks, takes: 15 * time.Second, do: (*driver).fill},
	{name: "flip", takes: 15 * time.Second, do: (*driver).flip},
	{name: "rollback", takes: 25 * time.Second, do: (*driver).rollback},
}

// errHurt ends the events: after another strike, what is then lost would be lost to two at once. What is wrong is reported.
var errHurt = errors.New("the cluster has not recovered from an event")

// strike makes one event after another. Between some of them, when the cluster is healthy, it reads the land.
func (d *driver) strike(ctx context.Context, s *scenario) error {
	var deck []strike
	for i := 0; d.more(ctx, i); i++ {
		if len(deck) == 0 { // each kind in turn, in random order
			deck = append(deck, d.kinds...)
			d.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		err := deck[0].do(d, ctx)
		if errors.Is(err, errHurt) {
			return ctx.Err()
		} else if err != nil {
			return err
		}
		deck = deck[1:]
		if s.settle {
			err = d.waitHealthy(ctx)
		} else {
			pause(ctx, d.between(300*time.Millisecond, 2500*time.Millisecond))
		}
		if err != nil {
			return err
		}
		if (i+1)%cmp.Or(s.reads, readEvery) != 0 {
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

// short splits a region, merges it again, and makes one fault of each kind.
func (d *driver) short(ctx context.Context) error {
	v, found := d.drawDivision(ctx, d.writers.Chunks(), d.rng)
	if !found {
		return errors.New("no region can be split")
	}
	leader := d.peer(v.regions[0].Leader)
	if leader == nil {
		return errors.New("no leader of any region")
	}
	kinds := []func(context.Context) error{
		func(ctx context.Context) error { return d.divideInPeace(ctx, v) },
		func(ctx context.Context) error {
			return d.divideInPeace(ctx, division{"merge", v.cell, v.regions})
		},
		func(ctx context.Context) error {
			return d.takeDown(ctx, "kill -9: leader", []*Node{leader}, killAll)
		},
		func(ctx context.Context) error { return d.takeDown(ctx, "kill -9: all nodes", d.Nodes, killAll) },
		d.pause, d.terminate,
	}
	if d.hasDisks() {
		kinds = append(kinds, func(ctx context.Context) error {
			return d.takeDown(ctx, "power cut: all nodes", d.Nodes, cutPowerAll)
		}, d.shortFill, func(ctx context.Context) error {
			return d.hangFor(ctx, 3*time.Second)
		}, func(ctx context.Context) error {
			return d.slowFor(ctx, 200*time.Millisecond, 2*time.Second)
		})
	}
	if d.network != nil {
		kinds = append(kinds, d.shortCut, func(ctx context.Context) error { return d.cutPartlyFor(ctx, 3*time.Second) })
	}
	for i := 0; i < len(kinds) && d.more(ctx, i); i++ {
		if err := kinds[i](ctx); err != nil {
			return err
		}
		if err := d.waitHealthy(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
