package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// newOneChunk returns the command that finds how many players one chunk supports.
func newOneChunk(b *bench) *cobra.Command {
	var players []int
	var withFloor bool
	c := b.command("one-chunk", "How many players one chunk supports",
		"All players walk about in one 32×32 area, each of them sending 20 moves a second, all of which are checked. One\n"+
			"daemon has one core, the players have another. Without --players it looks for the largest number that meets\n"+
			"the rule: players receive 20 frames a second, and the 99th percentile of the tick is below 50 ms. Then it\n"+
			"measures the floor program with the same bytes, under the same rule.",
		func(ctx context.Context) error { return b.oneChunk(ctx, players, withFloor) })
	c.Flags().IntSliceVar(&players, "players", nil, "numbers of players to measure (default: search for the largest)")
	c.Flags().BoolVar(&withFloor, "floor", true, "measure the floor program too")
	return c
}

// crowdRow is one row of the figure.
type crowdRow struct {
	measure.Reading
	wanted int
	failed error // the measurement ended early
}

func (c crowdRow) missed() string {
	if c.failed != nil {
		return c.failed.Error()
	}
	return c.Reading.Missed(c.wanted)
}

func (b *bench) oneChunk(ctx context.Context, players []int, withFloor bool) error {
	var rows []crowdRow
	most, err := search(players, 100, func(n int) (bool, error) {
		row, err := retryUnreliable(func() (crowdRow, error) { return b.crowdOf(ctx, n) })
		rows = append(rows, row)
		return row.missed() == "", err
	})
	if err != nil {
		return err
	}
	var floors []crowdRow
	floorMost := 0
	if withFloor && most > 0 {
		floorMost, err = search(players, max(most, 400), func(n int) (bool, error) {
			row, err := retryUnreliable(func() (crowdRow, error) { return b.floorOf(ctx, n, rows) })
			floors = append(floors, row)
			return row.missed() == "", err
		})
		if err != nil {
			return err
		}
	}
	return b.reportOneChunk(rows, floors, most, floorMost)
}

// retryUnreliable repeats a measurement that failed the rule and is in doubt: on a shared machine other programs may have
// slowed it down.
func retryUnreliable(measure func() (crowdRow, error)) (row crowdRow, err error) {
	for range 2 {
		row, err = measure()
		if err != nil || row.missed() == "" || row.failed != nil || row.Caveat() == "" {
			break
		}
	}
	return row, err
}

// search tries the given numbers. Without any it looks for the largest that meets the rule, to 5 %.
func search(counts []int, first int, try func(n int) (bool, error)) (most int, err error) {
	if len(counts) > 0 {
		for _, n := range counts {
			ok, err := try(n)
			if err != nil {
				return most, err
			}
			if ok {
				most = max(most, n)
			}
		}
		return most, nil
	}
	least := 0 // the smallest that fails; 0: none yet
	for n := first; least == 0 || float64(least-most) > .05*float64(least); {
		ok, err := try(n)
		if err != nil {
			return most, err
		}
		if ok {
			most = n
		} else {
			least = n
		}
		switch {
		case least == 0:
			n = n * 8 / 5
		case most == 0 && least < 10:
			return 0, nil
		default:
			n = (most + least) / 2
		}
	}
	return most, nil
}

// crowdOf measures a fresh daemon with n players in the chunk where players enter the world.
func (b *bench) crowdOf(ctx context.Context, n int) (row crowdRow, err error) {
	warm, length := b.times(seconds{8, 15}, seconds{8, 10})
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return row, err
	}
	defer d.Kill()
	row, err = b.crowdOn(ctx, d, o, n, fmt.Sprintf("one-chunk-%d", n), warm, length)
	if err == nil {
		logf("%s", row.line("voxeld"))
	}
	return row, err
}

// crowdOn measures a daemon with n players, and takes its profile if that is wanted. An error is that of ctx: any other is
// in the row.
func (b *bench) crowdOn(ctx context.Context, d *daemon.Daemon, o crowd.Options, n int, label string, warm, length time.Duration) (row crowdRow, err error) {
	row.wanted = n
	row.Reading, row.failed = b.measureCrowd(ctx, []measure.Target{d}, o, n, warm, length, func(ctx context.Context) func() error {
		return b.startProfile(ctx, d, label, length)
	})
	return row, ctx.Err()
}

// measureCrowd lets n players play, and measures the targets once they have for the time of warm. begin, if not nil, is called
// before the measurement, and what it returns afterwards.
func (b *bench) measureCrowd(
	ctx context.Context, targets []measure.Target, o crowd.Options, n int, warm, length time.Duration, begin func(context.Context) (end func() error),
) (r measure.Reading, err error) {
	err = b.play(ctx, o, n, targets, func(ctx context.Context, c *crowd.Crowd) (err error) {
		if err := measure.Pause(ctx, warm); err != nil {
			return err
		}
		end := func() error { return nil }
		if begin != nil {
			end = begin(ctx)
		}
		r, err = b.cores.Measure(ctx, targets, c, length)
		return errors.Join(err, end())
	})
	return r, err
}

func (b *bench) floorOf(ctx context.Context, n int, rows []crowdRow) (row crowdRow, err error) {
	warm, length := b.times(seconds{3, 10}, seconds{3, 10})
	row.wanted = n
	row.Reading, err = b.floorReading(ctx, n, loadAt(rows, n), false, warm, length)
	if err != nil {
		if ctx.Err() != nil {
			return row, err
		}
		row.failed = err
	}
	logf("%s", row.line("floor"))
	return row, nil
}

// loadAt returns what a player of voxeld received and sent with n players. It interpolates linearly between
// measurements. Beyond the largest that met the rule it returns the load of that one, which favours the floor.
func loadAt(rows []crowdRow, n int) load {
	var below, above *crowdRow
	for i := range rows {
		r := &rows[i]
		if r.missed() != "" {
			continue
		}
		if r.wanted <= n && (below == nil || r.wanted > below.wanted) {
			below = r
		}
		if r.wanted >= n && (above == nil || r.wanted < above.wanted) {
			above = r
		}
	}
	bytes := func(r *crowdRow) (in, out float64) {
		return r.PerPlayer(r.Seen.BytesIn) / measure.TickRate, r.PerPlayer(r.Seen.BytesOut) / measure.TickRate
	}
	switch {
	case below == nil && above == nil:
		return load{frame: 1024, move: 32}
	case below == nil:
		below = above
	case above == nil || above == below:
		above = below
	}
	frame, move := bytes(below)
	if above != below {
		f2, m2 := bytes(above)
		t := float64(n-below.wanted) / float64(above.wanted-below.wanted)
		frame, move = frame+t*(f2-frame), move+t*(m2-move)
	}
	return load{frame: int(frame), move: int(move)}
}

// line returns a summary of one measurement.
func (c crowdRow) line(who string) string {
	if c.failed != nil {
		return fmt.Sprintf("%s, %d players: %v", who, c.wanted, c.failed)
	}
	p := c.Seen
	text := fmt.Sprintf("%s, %d players: %.1f %% of a core, %s B/s in per player, %.1f frames/s, tick p99 %.1f ms, seen p50 %.0f p99 %.0f ms, players' core %.0f %%",
		who, c.wanted, percent(c.TotalCPU()), figure.Number(c.PerPlayer(p.BytesIn)), c.FrameRate(), 1000*c.Tick99(),
		1000*p.Delay[0].Quantile(.5), 1000*p.Delay[0].Quantile(.99), percent(c.BotCPU))
	if why := c.missed(); why != "" {
		text += "; NOT HELD: " + why
	}
	if why := c.Caveat(); why != "" {
		text += "; DOUBTFUL: " + why
	}
	return text
}
