package dht

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/grid"
)

const (
	benchCells   = 96  // founded, led by random nodes
	benchLookups = 300 // at least, in each row of the table
)

// spread is the distribution of contacted nodes over lookups.
type spread []float64

func (s spread) mean() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

func (s spread) percentile(p float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// BenchmarkLookup counts the nodes that one lookup contacts in networks of 10 to 60 daemons, as figure 4.2 of the
// VoxelPopuli dissertation does, and prints a table in markdown (research/measured.md). All daemons run in this
// process, over TCP on loopback, each on an address of its own.
func BenchmarkLookup(b *testing.B) {
	sizes := []int{10, 20, 30, 40, 50, 60}
	rows := make(map[int][]string)
	for _, k := range []int{20, 4} {
		var nodes []*node
		s := setup{options: Options{BucketSize: k, Placement: grid.PlacementWalkad, RedialEvery: time.Second}}
		for _, size := range sizes {
			for len(nodes) < size {
				nodes = append(nodes, startNode(b, len(nodes)+1, s))
				s.bootstrap = nodes[0].host.Addrs()[:1]
			}
			settle(b, nodes)
			found(b, nodes, uint64(size))
			for _, kind := range []string{kindRegion, kindNearest} {
				b.Run(fmt.Sprintf("k=%d/nodes=%d/%s", k, size, kind), func(b *testing.B) {
					contacted := lookups(b, nodes, kind)
					b.ReportMetric(contacted.mean(), "contacted/op")
					b.ReportMetric(contacted.percentile(0.95), "contacted-p95")
					// Every lookup asks the k nearest nodes at the end or stops at the first copies; what
					// comes before must not grow faster than log n.
					if most := float64(k) + 2*math.Log2(float64(size)); contacted.mean() > most {
						b.Errorf("%.1f nodes contacted on average, more than k + 2 log2 n = %.1f", contacted.mean(), most)
					}
					rows[size] = append(rows[size], fmt.Sprintf("%.1f / %.0f", contacted.mean(), contacted.percentile(0.95)))
				})
			}
		}
		for _, n := range nodes {
			n.stop()
		}
	}
	fmt.Fprintln(os.Stdout, "\n| nodes | log2 n | region, k=20 | nearest, k=20 | region, k=4 | nearest, k=4 |\n|---|---|---|---|---|---|")
	for _, size := range sizes {
		fmt.Fprintf(os.Stdout, "| %d | %.1f | %s |\n", size, math.Log2(float64(size)), strings.Join(rows[size], " | "))
	}
}

// settle waits until all nodes have refreshed their routing tables.
func settle(b *testing.B, nodes []*node) {
	awaitTables(b, nodes, 1)
	for range 2 {
		for _, n := range nodes {
			if err := <-n.kad.ForceRefresh(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// found publishes a region for each cell, led by a random node.
func found(b *testing.B, nodes []*node, epoch uint64) {
	for i := range benchCells {
		leader := nodes[rand.IntN(len(nodes))]
		if err := leader.PutRegion(nettest.Context(b), leader.led(cellOf(i), epoch, 1)); err != nil {
			b.Fatal(err)
		}
	}
}

// lookups runs lookups from random nodes, and returns how many nodes each contacted.
func lookups(b *testing.B, nodes []*node, kind string) (contacted spread) {
	ctx := nettest.Context(b)
	once := func() {
		n, cell := nodes[rand.IntN(len(nodes))], cellOf(rand.IntN(benchCells))
		before := n.contacted(b, kind)
		var err error
		if kind == kindRegion {
			_, err = n.Region(ctx, cell)
		} else {
			_, err = n.Nearest(ctx, n.regions.Key(cell), 3)
		}
		if err != nil {
			b.Fatal(err)
		}
		contacted = append(contacted, n.contacted(b, kind)-before)
	}
	for b.Loop() {
		once()
	}
	for len(contacted) < benchLookups {
		once()
	}
	return contacted
}

// contacted returns how many nodes this node's lookups have contacted so far.
func (n *node) contacted(b *testing.B, kind string) float64 {
	var m dto.Metric
	if err := n.DHT.metrics.contacted.WithLabelValues(kind).(prometheus.Histogram).Write(&m); err != nil {
		b.Fatal(err)
	}
	return m.GetHistogram().GetSampleSum()
}
