package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// tickRate is the number of ticks a second of a region.
const tickRate = 20

// reading is the result of one measurement of daemons under load.
type reading struct {
	Players     int
	Seconds     float64
	CPU         []float64 // of each daemon, as a share of one core
	RSS         []int64   // of each daemon at the end, in bytes
	Ticks       metrics.Histogram
	Seen        crowd.Counts
	BotCPU      float64 // of this program, as a share of one core
	Others      float64 // used by other programs on the daemons' cores, as a share of one core
	OthersThere float64 // used by other programs on the players' cores, as a share of one core
	Before      []metrics.Metrics
	After       []metrics.Metrics
}

// target is a process under load: a daemon, or the floor.
type target interface {
	Usage() (process.Usage, error)
	Scrape(ctx context.Context) (metrics.Metrics, error)
	Running() bool
	Log() string
	Kill()
}

// cores are the cores of the servers, and those of the players.
type cores struct{ Servers, Players []int }

// Shared reports whether servers and players have a core in common.
func (o cores) Shared() bool {
	return slices.ContainsFunc(o.Players, func(cpu int) bool { return slices.Contains(o.Servers, cpu) })
}

// instant is everything that is read at one time.
type instant struct {
	at     time.Time
	usage  []process.Usage
	self   process.Usage
	busy   []time.Duration
	counts crowd.Counts
	scrape []metrics.Metrics
}

// readInstant reads everything now. It is an error if a target has ended.
func readInstant(ctx context.Context, targets []target, c *crowd.Crowd) (i instant, err error) {
	for n, t := range targets {
		if !t.Running() {
			return i, fmt.Errorf("daemon %d of %d has ended: %s", n+1, len(targets), t.Log())
		}
		m, err := t.Scrape(ctx)
		if err != nil {
			return i, fmt.Errorf("daemon %d of %d: %w", n+1, len(targets), err)
		}
		i.scrape = append(i.scrape, m)
	}
	for _, t := range targets {
		u, err := t.Usage()
		if err != nil {
			return i, err
		}
		i.usage = append(i.usage, u)
	}
	if i.self, err = process.UsageOf(os.Getpid()); err != nil {
		return i, err
	}
	if i.busy, err = process.Busy(); err != nil {
		return i, err
	}
	i.counts, i.at = c.Counts(), time.Now()
	return i, nil
}

// Measure measures the targets and the crowd for that long.
func (o cores) Measure(ctx context.Context, targets []target, c *crowd.Crowd, length time.Duration) (r reading, err error) {
	first, err := readInstant(ctx, targets, c)
	if err != nil {
		return r, err
	}
	if err := process.Pause(ctx, length); err != nil {
		return r, err
	}
	last, err := readInstant(ctx, targets, c)
	if err != nil {
		return r, err
	}
	return o.Between(first, last), nil
}

// Between returns the measurement between two instants.
func (o cores) Between(first, last instant) reading {
	r := reading{
		Seconds: last.at.Sub(first.at).Seconds(), Seen: last.counts.Since(first.counts), Players: last.counts.Players,
		Before: first.scrape, After: last.scrape,
	}
	share := func(d time.Duration) float64 { return d.Seconds() / r.Seconds }
	all := 0.0
	for i := range last.usage {
		r.CPU = append(r.CPU, share(last.usage[i].CPU-first.usage[i].CPU))
		r.RSS = append(r.RSS, last.usage[i].RSS)
		all += r.CPU[i]
		r.Ticks = r.Ticks.Plus(ticksOf(last.scrape[i]).Since(ticksOf(first.scrape[i])))
	}
	r.BotCPU = share(last.self.CPU - first.self.CPU)
	busy := func(cpus []int) (sum float64) {
		for _, cpu := range cpus {
			if cpu < len(last.busy) {
				sum += share(last.busy[cpu] - first.busy[cpu])
			}
		}
		return sum
	}
	if o.Shared() {
		cpus := slices.Concat(o.Servers, o.Players)
		slices.Sort(cpus)
		r.Others = max(0, busy(slices.Compact(cpus))-all-r.BotCPU)
		return r
	}
	r.Others, r.OthersThere = max(0, busy(o.Servers)-all), max(0, busy(o.Players)-r.BotCPU)
	return r
}

// ticksOf adds up a process's tick histograms: those of regions, and of other loops.
func ticksOf(m metrics.Metrics) metrics.Histogram {
	var h metrics.Histogram
	for name := range m {
		if strings.HasSuffix(name, "_tick_seconds") {
			h = h.Plus(m.Histogram(name))
		}
	}
	return h
}

// TotalCPU returns what all daemons used together, as a share of one core.
func (r reading) TotalCPU() float64 {
	sum := 0.0
	for _, v := range r.CPU {
		sum += v
	}
	return sum
}

// PerPlayer divides by players and seconds.
func (r reading) PerPlayer(v uint64) float64 { return float64(v) / r.Seconds / float64(r.Players) }

// FrameRate returns the frames with moves a second that a player received, measured by the samples.
func (r reading) FrameRate() float64 {
	return float64(r.Seen.Frames) / r.Seconds / float64(r.Seen.Samples)
}

// Tick99 returns the 99th percentile of the time that a tick of the busiest loop took, in seconds. Idle loops tick as
// often and would hide it: so it is the percentile above which as many ticks lie as one hundredth of the ticks of one
// loop.
func (r reading) Tick99() float64 {
	if r.Ticks.Count == 0 {
		return math.NaN()
	}
	one := min(r.Ticks.Count, tickRate*r.Seconds)
	return r.Ticks.Quantile(1 - .01*one/r.Ticks.Count)
}

// The rule that a number of players must meet: see docs/performance.md.
const (
	minFrameRate = 19.5 // frames a second that players receive
	maxTick99    = .05  // seconds, 99th percentile
)

// Missed returns which part of the rule was not met; "" if all was.
func (r reading) Missed(wanted int) string {
	switch {
	case r.Players < wanted:
		return fmt.Sprintf("%d of %d players lost", wanted-r.Players, wanted)
	case r.Seen.Samples > 0 && !(r.FrameRate() >= minFrameRate): // players of other games are no samples
		return fmt.Sprintf("%.1f frames/s", r.FrameRate())
	case !(r.Tick99() <= maxTick99):
		return fmt.Sprintf("tick p99 %.0f ms", 1000*r.Tick99())
	}
	return ""
}

// Caveat returns why the measurement itself may be unreliable; "" if it is reliable.
func (r reading) Caveat() string {
	var why []string
	p := r.Seen
	if left := 1 - float64(p.Sent+p.Blocked)/float64(p.Due); left > .02 || p.Late.Quantile(.99) > .025 {
		why = append(why, fmt.Sprintf("the players' core is saturated: moves came up to %.0f ms late (p99), %.1f %% were left out",
			1000*p.Late.Quantile(.99), 100*left))
	}
	if r.Others > .1 {
		why = append(why, fmt.Sprintf("other programs took %.0f %% of the daemons' core", 100*r.Others))
	}
	if r.OthersThere > .1 {
		why = append(why, fmt.Sprintf("other programs took %.0f %% of the players' core", 100*r.OthersThere))
	}
	return strings.Join(why, "; ")
}
