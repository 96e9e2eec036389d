package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/ledger"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// perEditor is the number of edits a second of one player.
const perEditor = 10

// editors are players who edit around a place, equally many through each daemon.
type editors struct {
	ledger ledger.Ledger
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu struct {
		sync.Mutex
		edits []edit
		lost  int // sessions
		open  int // edits that were never answered
		err   error
	}
}

// edit is an edit that was acknowledged.
type edit struct {
	chunk          grid.ChunkPos
	sent, answered time.Time
}

// startEditors starts players who edit at a rate, all together, in the four by four chunks around the middle.
func startEditors(ctx context.Context, addresses []string, rate float64, middle grid.ChunkPos) *editors {
	e := &editors{}
	ctx, e.stop = context.WithCancel(ctx)
	each := max(1, int(rate/perEditor/float64(len(addresses))+.5))
	for i, address := range addresses {
		e.ended.Go(func() {
			report, err := bot.Run(ctx, bot.Options{
				Target: address, Mode: bot.ManyChunks, Chunk: middle, Chunks: 16, Players: each, Rate: 4, Speed: 15,
				Edits: rate / float64(each*len(addresses)), Duration: 24 * time.Hour, Seed: uint64(i) + 1, View: 1,
				Acked: e.ledger.Acked,
				Timed: func(pos grid.Pos, sent, answered time.Time) {
					e.mu.Lock()
					defer e.mu.Unlock()
					e.mu.edits = append(e.mu.edits, edit{pos.Chunk(), sent, answered})
				},
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			e.mu.lost += report.Lost
			e.mu.open += report.EditsLost
			e.mu.err = errors.Join(e.mu.err, err)
		})
	}
	return e
}

// end ends the editors, and returns an error if one lost the session, or an edit was not answered.
func (e *editors) end() error {
	e.stop()
	e.ended.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.mu.err
	if e.mu.lost > 0 || e.mu.open > 0 {
		err = errors.Join(err, fmt.Errorf("%d editors lost their sessions, and %d edits were never answered", e.mu.lost, e.mu.open))
	}
	return err
}

// between returns the edits that were sent within a time.
func (e *editors) between(from, to time.Time) []edit {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []edit
	for _, one := range e.mu.edits {
		if !one.sent.Before(from) && one.sent.Before(to) {
			all = append(all, one)
		}
	}
	return all
}

// awaitRate waits until the editors have come to the region and edit.
func (e *editors) awaitRate(ctx context.Context, rate float64, cell grid.Cell) error {
	const window = 2 * time.Second
	for range 60 {
		if err := process.Pause(ctx, window); err != nil {
			return err
		}
		inside := 0
		for _, one := range e.between(time.Now().Add(-window), time.Now()) {
			if cell.Contains(one.chunk) {
				inside++
			}
		}
		if float64(inside) > .8*rate*window.Seconds() {
			return nil
		}
	}
	return errors.New("the editors have not come to the region within two minutes")
}

// verify reads the land through a daemon, and returns at how many places an acknowledged edit is lost, and an error if there are any.
func (e *editors) verify(ctx context.Context, d *daemon.Daemon) (int, error) {
	lost, err := e.ledger.Lost(ctx, d.Game, time.Minute)
	if err != nil {
		return 0, err
	}
	if len(lost) > 0 {
		return len(lost), fmt.Errorf("%d places do not have the block that was acknowledged last, such as: %s", len(lost), lost[0])
	}
	logf("all %d acknowledged edits are there", e.ledger.Edits())
	return 0, nil
}

// latencies returns how long edits took, in seconds.
func latencies(edits []edit) (all histogram.Histogram) {
	for _, e := range edits {
		all.Add(e.answered.Sub(e.sent).Seconds())
	}
	return all
}

func summary(h histogram.Histogram) string {
	return fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, longest %.1f ms", 1000*h.Quantile(.5), 1000*h.Quantile(.9), 1000*h.Quantile(.99), 1000*h.Max())
}
