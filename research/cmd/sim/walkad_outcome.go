package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/research/walkad"
)

// trial is a network and what happens in it.
type trial struct {
	name    string
	network walkad.Config
	run     func(*walkad.Network) []walkad.Answer
}

// outcome is what the queries of a trial needed, over all seeds.
type outcome struct {
	name         string
	network      walkad.Config
	perRegion    float64 // cells, mean
	failed       int
	hops, millis []float64 // ascending
	asked        float64   // peers, mean
}

// move returns a trial in which avatars move.
func (o *walkadOptions) move(name string, c walkad.Config, speed float64, how walkad.Approach) trial {
	return trial{name, c, func(n *walkad.Network) []walkad.Answer { return n.Move(speed, o.avatars, o.seconds, how) }}
}

// everyMove returns the trials of each gait when walking, and of the other approaches.
func (o *walkadOptions) everyMove(c walkad.Config) (trials []trial) {
	for _, g := range walkad.Gaits() {
		trials = append(trials, o.move("Walkad, "+g.Name, c, g.Speed, walkad.Walking))
	}
	walking := walkad.Gaits()[0].Speed
	return append(trials, o.move("simple approach", c, walking, walkad.SimpleApproach),
		o.move("plain Kademlia", c, walking, walkad.PlainKademlia))
}

// run runs trials with each seed.
func (o *walkadOptions) run(ctx context.Context, trials []trial) ([]outcome, error) {
	type one struct {
		perRegion float64
		answers   []walkad.Answer
	}
	results, err := runAll(ctx, trials, o.seeds, func(t trial, seed uint64) (one, error) {
		t.network.Seed += seed
		n := walkad.New(t.network)
		return one{float64(n.Cells()) / float64(n.Regions), t.run(n)}, nil
	})
	if err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(trials))
	for i, t := range trials {
		out := outcome{name: t.name, network: t.network}
		for _, r := range results[i] {
			out.perRegion += r.perRegion / float64(o.seeds)
			for _, a := range r.answers {
				if a.Failed {
					out.failed++
					continue
				}
				out.hops, out.millis = append(out.hops, float64(a.Hops)), append(out.millis, a.Millis)
				out.asked += float64(a.Asked)
			}
		}
		out.asked /= float64(len(out.hops))
		slices.Sort(out.hops)
		slices.Sort(out.millis)
		outcomes[i] = out
	}
	return outcomes, nil
}

var outcomeHead = []string{"queries", "hops", "99 %", "most", "≤ 2 hops, %", "asked", "ms", "75 %", "99 %", "most", "failed"}

// cells returns the outcome as cells of a table, below outcomeHead.
func (out outcome) cells() []any {
	return []any{
		fmt.Sprint(len(out.hops) + out.failed), fmt.Sprintf("%.3f", mean(out.hops)), quantile(out.hops, .99), quantile(out.hops, 1), fmt.Sprintf("%.2f", out.within(2)),
		fmt.Sprintf("%.2f", out.asked), mean(out.millis), quantile(out.millis, .75), quantile(out.millis, .99), quantile(out.millis, 1), out.failed,
	}
}

// within returns the share of queries that needed so many hops at most, in percent.
func (out outcome) within(hops int) float64 {
	below, _ := slices.BinarySearch(out.hops, float64(hops)+.5)
	return 100 * float64(below) / float64(len(out.hops)+out.failed)
}

// mean returns the mean, or NaN of nothing.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// quantile returns the value that a share of the ascending values does not exceed, or NaN of nothing.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return values[max(0, int(math.Ceil(share*float64(len(values))))-1)]
}
