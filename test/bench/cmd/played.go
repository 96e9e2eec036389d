package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/sim"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// played is one measurement of an overlay.
type played struct {
	overlay, game, phase string

	players int
	result  *sim.Result
	from    int // the first measured round
	seen    *crowd.GameResult
	seconds float64   // of the measured rounds
	cpu     float64   // of all daemons, as a share of one core
	out     []float64 // bytes/s that each gateway sent to other nodes
	packets []float64 // likewise, of the overlay alone
	refused float64
}

// account computes the traffic and the processor time of the measured rounds.
func (p *played) account(first, last entry) {
	p.seconds = last.at.Sub(first.at).Seconds()
	p.cpu = (last.cpu - first.cpu).Seconds() / p.seconds
	p.refused = last.refused - first.refused
	for i := range last.out {
		p.out = append(p.out, (last.out[i]-first.out[i])/p.seconds)
		p.packets = append(p.packets, (last.packets[i]-first.packets[i])/p.seconds)
	}
}

// mean returns the mean of a measure over the measured rounds.
func (p played) mean(of func(sim.Round) float64) float64 { return p.result.Mean(p.from, of) }

func (p played) pq() float64 { return p.result.PQ(p.from) }

func (p played) age() float64 { return p.mean(func(r sim.Round) float64 { return r.Age }) }

func (p played) fresh() float64 { return p.mean(func(r sim.Round) float64 { return r.Fresh }) }

func (p played) known() float64 { return p.mean(func(r sim.Round) float64 { return r.Known }) }

func (p played) neighbors() float64 { return p.mean(func(r sim.Round) float64 { return r.Neighbors }) }

// toEach returns the bytes a second that a player received from their gateway.
func (p played) toEach() float64 {
	sum := 0.0
	for _, rounds := range p.seen.In {
		for _, n := range rounds[p.from:] {
			sum += float64(n)
		}
	}
	return sum / float64(p.players) / p.seconds
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// line returns a summary of one measurement.
func (p played) line() string {
	text := fmt.Sprintf("%s, %s, %d players, %s: PQ %.4f, age %.3f, %.1f %% fresh, %.2f %% known of %.1f in vision; seen p50 %.0f p90 %.0f p99 %.0f ms; a gateway %s B/s out; daemons %.0f %% of a core",
		p.overlay, p.game, p.players, p.phase, p.pq(), p.age(), percent(p.fresh()), percent(p.known()), p.neighbors(),
		1000*p.seen.Delay.Quantile(.5), 1000*p.seen.Delay.Quantile(.9), 1000*p.seen.Delay.Quantile(.99), figure.Number(meanOf(p.out)), percent(p.cpu))
	if !p.seen.First {
		text += "; players without priority"
	}
	if why := p.caveat(); why != "" {
		text += "; DOUBTFUL: " + why
	}
	return text
}

// caveat returns why the measurement may be unreliable; "" if it is reliable.
func (p played) caveat() string {
	var why []string
	if share := p.seen.Late / p.seconds; share > .02 {
		why = append(why, fmt.Sprintf("the players' moves were late, by %.1f %% of a round on average", percent(share)))
	}
	if p.seen.Corrections > 0 {
		why = append(why, fmt.Sprintf("%d moves were refused", p.seen.Corrections))
	}
	if p.refused > 0 {
		why = append(why, fmt.Sprintf("gateways refused %.0f updates of other gateways", p.refused))
	}
	return strings.Join(why, "; ")
}

// write writes a game as CSV: the movement, deliveries and traffic, in the simulator's formats. Gateways appear in
// traffic as servers do, numbered from -1 down, once a second with the bytes since the last row.
func (p played) write(dir string, moves *sim.Recorded, l *usageLog) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	var files [3]*os.File
	for i, name := range []string{"deliveries.csv", "traffic.csv", "moves.csv"} {
		if files[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("make log: %w", err)
		}
		defer func() { err = errors.Join(err, files[i].Close()) }()
	}
	log := sim.NewCSVLog(files[0], files[1], moves)
	for _, t := range p.seen.Updates {
		log.Delivered(int(t.Round), overlay.ID(t.Receiver), overlay.ID(t.Origin), int(t.Of))
	}
	entries := l.mu.entries
	for round := range moves.Rounds() + 1 {
		for i := range p.seen.In {
			log.Traffic(round, overlay.ID(i), int(p.seen.Out[i][round]), int(p.seen.In[i][round]))
		}
		if len(entries) < 2 || entries[1].round != round {
			continue
		}
		for i := range entries[1].out {
			log.Traffic(round, overlay.FirstServer+overlay.ID(i), int(entries[1].out[i]-entries[0].out[i]), int(entries[1].in[i]-entries[0].in[i]))
		}
		entries = entries[1:]
	}
	return errors.Join(log.Flush(), sim.WriteMoves(files[2], moves, moves.Rounds()))
}
