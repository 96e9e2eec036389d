package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// killer splits regions of a cell by hand, and kills the daemon that leads them while they split. Daemons with players are spared:
// their sessions would end.
type killer struct {
	daemons []*daemon.Daemon
	spared  int // so many of the first ones
	cell    grid.Cell
	rng     *rand.Rand
	kills   int // so far
	done    int // splits that were made in spite of it
}

// recoverTime is the time limit for a killed daemon to come back, and for all regions to be healthy again.
const recoverTime = 2 * time.Minute

// kill kills once. If no region is led by a daemon that may be killed, it merges some of them, and does not count.
func (k *killer) kill(ctx context.Context) error {
	leaves, err := k.leaves(ctx)
	if err != nil {
		return err
	}
	for _, i := range k.rng.Perm(len(leaves)) {
		leaf := leaves[i]
		if leaf.leader < k.spared || leaf.cell.Label.Len() == grid.MaxLabel {
			continue
		}
		split := make(chan error, 1)
		go func() { split <- k.daemons[0].Split(ctx, leaf.cell.String()) }() // awaited below
		process.Pause(ctx, time.Duration(k.rng.IntN(25))*time.Millisecond)   //nolint:errcheck // what follows reports it
		victim := k.daemons[leaf.leader]
		victim.Kill()
		k.kills++
		if <-split == nil {
			k.done++
		}
		if err := victim.Start(ctx, ""); err != nil {
			return err
		}
		return k.awaitHealthy(ctx)
	}
	for _, i := range k.rng.Perm(len(leaves)) {
		if leaf := leaves[i]; leaf.cell.Label.Len() > grid.FoundingLabel {
			if err := k.daemons[0].Merge(ctx, leaf.cell.Parent().String()); err == nil {
				return nil
			}
		}
	}
	return nil
}

type leaf struct {
	cell   grid.Cell
	leader int // index of the daemon
}

// leaves lists the regions in the cell that are not split, with their leaders.
func (k *killer) leaves(ctx context.Context) (all []leaf, err error) {
	found := make(map[grid.Cell]int)
	for i, d := range k.daemons {
		status, err := d.Status(ctx)
		if err != nil {
			return nil, err
		}
		regions, err := d.Regions(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range regions {
			if cell, err := grid.ParseCell(r.Cell); err == nil && k.cell.Covers(cell) && r.Leader == status.Peer {
				found[cell] = i
			}
		}
	}
	for cell, leader := range found {
		divided := false
		for other := range found {
			divided = divided || other != cell && cell.Covers(other)
		}
		if !divided {
			all = append(all, leaf{cell, leader})
		}
	}
	return all, nil
}

// awaitHealthy waits until all daemons see only healthy regions.
func (k *killer) awaitHealthy(ctx context.Context) (err error) {
	failed := process.Until(ctx, "all regions are healthy", time.Second, recoverTime, func() bool {
		ill := 0
		for _, d := range k.daemons {
			var status daemon.Status
			if status, err = d.Status(ctx); err != nil {
				return true
			}
			for state, n := range status.NodeRegions {
				if state != "healthy" {
					ill += n
				}
			}
		}
		return ill == 0
	})
	return errors.Join(failed, err)
}
