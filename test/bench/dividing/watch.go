package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// watch measures once a second.
type watch struct {
	daemons []*daemon.Daemon
	crowd   *crowd.Crowd
	cell    grid.Cell

	start  time.Time
	ticks  metrics.Histogram // so far
	first  metrics.Histogram // at the start
	events [2]float64        // splits and merges since the start
	last   map[*daemon.Daemon][2]float64
	rows   []second
}

// second is what was measured in a second.
type second struct {
	At      float64       // seconds since the start
	Inside  int           // players in the cell
	There   int           // of them, those who are at the spot
	Regions int           // into which the cell is divided
	Deepest int           // depth of the smallest of them
	Tick    time.Duration // p99
	Silence time.Duration // the longest
	Over    int           // silences that were too long
	Splits  float64       // since the start
	Merges  float64
}

// begin begins the record.
func (w *watch) begin() {
	w.start, w.rows, w.first = time.Now(), nil, w.ticks
	w.events = [2]float64{}
	w.crowd.TakeSilences()
}

// run measures for a time.
func (w *watch) run(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		if _, err := w.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// until measures until done returns true, or fails after the limit.
func (w *watch) until(ctx context.Context, limit time.Duration, done func(second) bool) error {
	end := time.Now().Add(limit)
	for {
		s, err := w.measure(ctx)
		if err != nil || done(s) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited for %v in vain: %+v", limit, s)
		}
	}
}

// measure waits for the next second, and measures it.
func (w *watch) measure(ctx context.Context) (s second, err error) {
	if err := process.Pause(ctx, time.Until(time.Now().Truncate(time.Second).Add(time.Second))); err != nil {
		return s, err
	}
	var ticks metrics.Histogram
	s = second{At: time.Since(w.start).Seconds(), Inside: w.crowd.Inside(w.cell)}
	for _, d := range w.daemons {
		m, failed := d.Scrape(ctx)
		if failed != nil {
			return s, failed
		}
		ticks = ticks.Plus(m.Histogram("voxeld_region_tick_seconds"))
		w.count(d, [2]float64{m.Value("voxeld_region_splits_total", "result", "done"), m.Value("voxeld_region_merges_total", "result", "done")})
	}
	if s.Regions, s.Deepest, err = w.divided(ctx); err != nil {
		return s, err
	}
	s.Splits, s.Merges = w.events[0], w.events[1]
	if w.ticks.Upper != nil {
		s.Tick = time.Duration(ticks.Since(w.ticks).Quantile(.99) * float64(time.Second))
	}
	w.ticks = ticks
	silences := w.crowd.TakeSilences()
	s.There, s.Silence, s.Over = silences.There, silences.Longest, silences.Over
	w.rows = append(w.rows, s)
	if len(w.rows)%5 == 0 {
		logf("%4.0f s: %3d in the cell, %3d there; %2d regions, depth %d; tick p99 %v; longest silence %v; %.0f splits, %.0f merges",
			s.At, s.Inside, s.There, s.Regions, s.Deepest, s.Tick.Round(100*time.Microsecond), s.Silence.Round(time.Millisecond), s.Splits, s.Merges)
	}
	return s, nil
}

// count adds what a daemon has counted since the last time. One that was killed counts from 0 again.
func (w *watch) count(d *daemon.Daemon, now [2]float64) {
	if w.last == nil {
		w.last = make(map[*daemon.Daemon][2]float64)
	}
	for i, before := range w.last[d] {
		if now[i] < before {
			before = 0
		}
		w.events[i] += now[i] - before
	}
	w.last[d] = now
}

// divided returns the number of regions into which the cell is divided, as far as they run, and the depth of the smallest.
func (w *watch) divided(ctx context.Context) (regions, deepest int, err error) {
	cells := make(map[grid.Cell]bool)
	for _, d := range w.daemons {
		all, err := d.Regions(ctx)
		if err != nil {
			return 0, 0, err
		}
		for _, r := range all {
			if cell, err := grid.ParseCell(r.Cell); err == nil && w.cell.Covers(cell) {
				cells[cell] = true
			}
		}
	}
	for cell := range cells {
		deepest = max(deepest, cell.Label.Len()-grid.FoundingLabel)
		if cell.Label.Len() < grid.MaxLabel {
			lower, upper := cell.Children()
			if cells[lower] || cells[upper] {
				continue // it is divided
			}
		}
		regions++
	}
	return regions, deepest, nil
}

// worst returns the tick p99 of the whole record, that of its worst second, the longest silence, and how many were too long.
func (w *watch) worst() (tick, worstTick, silence time.Duration, over int) {
	for _, s := range w.rows {
		worstTick, silence, over = max(worstTick, s.Tick), max(silence, s.Silence), over+s.Over
	}
	return time.Duration(w.ticks.Since(w.first).Quantile(.99) * float64(time.Second)), worstTick, silence, over
}

func (w *watch) summary() string {
	tick, worstTick, silence, over := w.worst()
	regions, last := 0, w.rows[len(w.rows)-1]
	for _, s := range w.rows {
		regions = max(regions, s.Regions)
	}
	return fmt.Sprintf("%.0f splits, %.0f merges, up to %d regions in %.0f s; tick p99 %v (worst second %v); longest time without a frame %v (%d above %v)",
		last.Splits, last.Merges, regions, last.At, tick.Round(100*time.Microsecond), worstTick.Round(100*time.Microsecond), silence.Round(time.Millisecond), over, frameGap)
}

// judge returns an error if the goals were missed.
func (w *watch) judge() (err error) {
	tick, _, silence, _ := w.worst()
	last := w.rows[len(w.rows)-1]
	if last.Splits == 0 || last.Merges == 0 {
		err = errors.New("nothing was split and merged")
	}
	if tick >= tickBudget {
		err = errors.Join(err, fmt.Errorf("the ticks' p99 was %v: not below %v", tick, tickBudget))
	}
	if silence > frameGap {
		err = errors.Join(err, fmt.Errorf("a player got no frame for %v: above %v", silence, frameGap))
	}
	return err
}

// write writes the plot and the table.
func (w *watch) write(svg, csv string) error {
	lines := make(map[string][]figure.Point)
	var table [][]float64
	for _, s := range w.rows {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		for name, y := range map[string]float64{"players": float64(s.Inside), "regions": float64(s.Regions), "tick": ms(s.Tick), "silence": ms(s.Silence)} {
			lines[name] = append(lines[name], figure.Point{X: s.At, Y: y})
		}
		table = append(table, []float64{s.At, float64(s.Inside), float64(s.There), float64(s.Regions), float64(s.Deepest), ms(s.Tick), ms(s.Silence), s.Splits, s.Merges})
	}
	axis := figure.Axis{Label: "seconds"}
	err := figure.WriteSVG(svg, figure.Plot{
		Title: "A crowd comes and goes: players and regions", X: axis, Y: figure.Axis{Label: "players in the cell"}, Y2: figure.Axis{Label: "regions"},
		Lines: []figure.Line{{Name: "players", Points: lines["players"]}, {Name: "regions that run", Points: lines["regions"], Right: true}},
	}, figure.Plot{
		Title: "Ticks and frames meanwhile", X: axis, Y: figure.Axis{Label: "frames, ms"}, Y2: figure.Axis{Label: "ticks, ms"},
		Lines: []figure.Line{{Name: "longest time without a frame", Points: lines["silence"]}, {Name: "tick, p99", Points: lines["tick"], Right: true}},
	})
	return errors.Join(err, figure.WriteCSV(csv,
		[]string{"seconds", "players_in_cell", "players_at_spot", "regions", "depth", "tick_p99_ms", "longest_silence_ms", "splits", "merges"}, table))
}
