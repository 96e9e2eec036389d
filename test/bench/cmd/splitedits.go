package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// goal is what the edits' p99 should be at most.
const goal = 100 * time.Millisecond

const (
	// rate is the number of edits a second that players try; some find no place to build.
	rate = 220
	// every is the time between a split and a merge.
	every = 2 * time.Second
)

// settle is how long before a change, and after its end, edits count as affected by it.
const settle = 500 * time.Millisecond

// splitEdits has players edit while their region is split and merged.
type splitEdits struct {
	*bench
	changes int
}

func newSplitEdits(b *bench) *cobra.Command {
	s := &splitEdits{bench: b}
	c := b.command("split-edits", "How long edits take while their region is split and merged",
		"Players edit through three daemons at a steady rate while their region is split and merged by hand, over and over. It fails if\n"+
			"an acknowledged edit is lost, or the 99th percentile of the times from an edit to its acknowledgement is above 100 ms.", s.run)
	c.Flags().IntVar(&s.changes, "changes", 50, "how often the region is split and merged")
	return c
}

func (o *splitEdits) run(ctx context.Context) error {
	daemons, err := o.daemons(ctx, 3, "--split=false")
	if err != nil {
		return err
	}
	defer daemon.KillAll(daemons)
	spawn, err := crowd.NewHeightMap().Fetch(ctx, o.address(daemons[0]), 1)
	if err != nil {
		return err
	}
	cell := grid.CellAt(spawn, grid.FoundingLabel)
	area := cell.Area()
	middle := grid.ChunkPos{X: (area.MinX + area.MaxX) / 2, Z: (area.MinZ + area.MaxZ) / 2}
	e := startEditors(ctx, o.addresses(daemons), rate, middle)
	defer e.stop()
	if err := e.awaitRate(ctx, rate, cell); err != nil {
		return err
	}
	logf("editors edit in %v", cell)
	calm := time.Now()
	if err := process.Pause(ctx, 10*time.Second); err != nil {
		return err
	}
	start := time.Now()
	var pauses [2]histogram.Histogram // the longest edit of each change
	for i := range 2 * o.changes {
		d, began := daemons[i/2%len(daemons)], time.Now()
		change := d.Split
		if i%2 == 1 {
			change = d.Merge
		}
		if err := change(ctx, cell.String()); err != nil {
			return err
		}
		answered := time.Since(began)
		if err := process.Pause(ctx, every); err != nil {
			return err
		}
		longest := latencies(e.between(began.Add(-settle), began.Add(answered+settle))).Max()
		pauses[i%2].Add(longest)
		logf("%3d %s answered after %4d ms; longest edit %4.0f ms", i+1, [2]string{"split", "merge"}[i%2], answered.Milliseconds(), 1000*longest)
	}
	end := time.Now()
	if err := e.end(); err != nil {
		return err
	}
	during := latencies(e.between(start, end))
	gone, err := e.verify(ctx, daemons[len(daemons)-1])
	text := fmt.Sprintf("%.0f edits a second through %d splits and %d merges, one every %v. Edit to acknowledgement before: %s; during: %s. "+
		"Longest edit of each split: %s; of each merge: %s. %d acknowledged edits lost.",
		float64(during.Count())/end.Sub(start).Seconds(), o.changes, o.changes, every, summary(latencies(e.between(calm, start))), summary(during),
		summary(pauses[0]), summary(pauses[1]), gone)
	if err = errors.Join(err, o.publishIn("scale.md", "split-edits", text)); err != nil {
		return err
	}
	if during.Quantile(.99) > goal.Seconds() {
		return errors.New("the p99 is above the goal of 100 ms")
	}
	return nil
}
