package main

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/testkit/process"
)

// moment is one reading of the usage in a series.
type moment struct {
	at      float64 // seconds from the start of the series to the end of the moment
	players int
	cpu     []float64 // of each daemon since the moment before, as a share of one core
	rss     []int64
}

func (m moment) total() (cpu float64, rss int64) {
	for i := range m.cpu {
		cpu += m.cpu[i]
		rss += m.rss[i]
	}
	return cpu, rss
}

// recorder reads the usage at equal intervals, until it is stopped.
type recorder struct {
	each   func(moment) // called with each moment, if not nil
	series []moment
	err    error
	end    context.CancelFunc
	done   chan struct{}
}

// record starts a series. It calls each, if not nil, with every moment, in the series' own goroutine.
func record(ctx context.Context, targets []measure.Target, c *crowd.Crowd, every time.Duration, each func(moment)) *recorder {
	ctx, end := context.WithCancel(ctx)
	r := &recorder{each: each, end: end, done: make(chan struct{})}
	go func() { // awaited by stop
		defer close(r.done)
		r.err = r.run(ctx, targets, c, every)
	}()
	return r
}

// stop ends the series and returns it.
func (r *recorder) stop() ([]moment, error) {
	r.end()
	<-r.done
	return r.series, r.err
}

func (r *recorder) run(ctx context.Context, targets []measure.Target, c *crowd.Crowd, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	last, lastAt, err := usages(targets), began, error(nil)
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, at := usages(targets), time.Now()
		m := moment{at: at.Sub(began).Seconds(), players: c.Counts().Players}
		for i := range now {
			m.cpu = append(m.cpu, (now[i].CPU-last[i].CPU).Seconds()/at.Sub(lastAt).Seconds())
			m.rss = append(m.rss, now[i].RSS)
		}
		r.series = append(r.series, m)
		if r.each != nil {
			r.each(m)
		}
		last, lastAt = now, at
	}
	return err
}

// usages reads the usage of all targets. It is zero for one that has ended.
func usages(targets []measure.Target) []process.Usage {
	all := make([]process.Usage, len(targets))
	for i, t := range targets {
		if u, err := t.Usage(); err == nil {
			all[i] = u
		}
	}
	return all
}

// smooth returns the mean over five moments around each, to smooth out the coarse CPU clock.
func smooth(points []figure.Point) []figure.Point {
	const around = 5
	out := make([]figure.Point, len(points))
	for i, p := range points {
		from, to := max(0, i-around/2), min(len(points), i+around/2+1)
		sum := 0.0
		for _, q := range points[from:to] {
			sum += q.Y
		}
		out[i] = figure.Point{X: p.X, Y: sum / float64(to-from)}
	}
	return out
}

// utilisation plots CPU and memory over time, as figure 4.3 of the dissertation does.
func utilisation(title string, series []moment) figure.Plot {
	var cpu, rss []figure.Point
	for _, m := range series {
		c, r := m.total()
		cpu = append(cpu, figure.Point{X: m.at, Y: percent(c)})
		rss = append(rss, figure.Point{X: m.at, Y: float64(r) / (1 << 20)})
	}
	return figure.Plot{
		Title: title, X: figure.Axis{Label: "time, s"}, Y: figure.Axis{Label: "CPU, % of one core"},
		Y2:    figure.Axis{Label: "resident memory, MiB"},
		Lines: []figure.Line{{Name: "CPU", Points: smooth(cpu)}, {Name: "memory", Points: rss, Right: true}},
	}
}

// writeSeries writes a series as CSV: for each moment the sums over all daemons, and the busiest of them.
func (b *bench) writeSeries(name string, series []moment) error {
	var rows [][]float64
	for _, m := range series {
		cpu, rss := m.total()
		most := 0.0
		for _, v := range m.cpu {
			most = max(most, v)
		}
		rows = append(rows, []float64{
			m.at, float64(m.players), percent(cpu), percent(cpu) / float64(max(1, len(m.cpu))), percent(most), float64(rss),
		})
	}
	return figure.WriteCSV(b.file(name), []string{
		"seconds", "players", "cpu_percent_all", "cpu_percent_mean", "cpu_percent_max", "rss_bytes_all",
	}, rows)
}

// meanOver returns the mean CPU share and the mean memory of all daemons together, from that time on.
func meanOver(series []moment, from float64) (cpu, rss float64) {
	n := 0.0
	for _, m := range series {
		if m.at < from {
			continue
		}
		c, r := m.total()
		cpu, rss, n = cpu+c, rss+float64(r), n+1
	}
	return ratio(cpu, n), ratio(rss, n)
}
