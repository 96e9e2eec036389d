package replica_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
)

// BenchmarkPropose: entries of 100 bytes, committed with fsync on a real store, applied with one row each. At most 64
// entries are in flight per group.
func BenchmarkPropose(b *testing.B) {
	for _, groups := range []int{1, 100} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) { benchmarkPropose(b, groups, 64) })
	}
	b.Run("groups=1,one-by-one", func(b *testing.B) { benchmarkPropose(b, 1, 1) })
}

func benchmarkPropose(b *testing.B, groups, window int) {
	n, err := start(filepath.Join(b.TempDir(), "node.db"))
	if err != nil {
		b.Fatal(err)
	}
	var all []*replica.Group
	for id := range uint64(groups) {
		g, err := n.Open(context.Background(), replica.Founding{Group: id + 1, Members: []string{"me"}})
		if err != nil {
			b.Fatal(err)
		}
		for leading := false; !leading; {
			<-g.Ready()
			for _, d := range g.Dequeue() {
				l, ok := d.(replica.Leadership)
				leading = leading || ok && l.Self
			}
		}
		all = append(all, g)
	}
	share := (b.N + groups - 1) / groups
	b.ResetTimer()
	done := make(chan error, groups)
	for _, g := range all {
		go func() { done <- proposeAndApply(g, share, window) }()
	}
	for range all {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(share*groups)/b.Elapsed().Seconds(), "entries/s")
	if err := n.end(); err != nil {
		b.Fatal(err)
	}
}

// proposeAndApply acts as a region: it has n entries committed, window at a time.
func proposeAndApply(g *replica.Group, n, window int) error {
	proposed, committed := 0, 0
	for committed < n {
		for ; proposed < n && proposed < committed+window; proposed++ {
			if err := g.Propose(make([]byte, 100)); err != nil {
				return err
			}
		}
		<-g.Ready()
		var writes []kv.Write
		index := uint64(0)
		for _, d := range g.Dequeue() {
			switch d := d.(type) {
			case replica.Committed:
				committed++
				index = d.Index
				key := fmt.Appendf(nil, "%d/%d", g.ID(), d.Index%1000)
				writes = append(writes, kv.Write{Table: "world", Key: key, Value: d.Entry})
			case replica.Failed:
				return d.Err
			}
		}
		if index > 0 {
			g.ReportApplied(index, writes)
		}
	}
	return nil
}

// BenchmarkWake: a group of three that is closed on all nodes is opened, elects a leader, and commits an entry. Three
// real stores share one disk.
func BenchmarkWake(b *testing.B) {
	s := &testCluster{nodes: make(map[string]*testNode)}
	dir := b.TempDir()
	f := replica.Founding{Group: 1, Members: []string{"a", "b", "c"}, Tables: streetTables}
	var all []*replica.Group
	for _, peer := range f.Members {
		s.addNode(b, peer, filepath.Join(dir, peer+".db"))
	}
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		all = all[:0]
		began := time.Now()
		for _, peer := range []string{"b", "c", "a"} {
			g, err := s.find(peer).host.Open(context.Background(), f)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, g)
		}
		g := all[2]
		g.Campaign()
		for done := false; !done; {
			<-g.Ready()
			for _, d := range g.Dequeue() {
				switch d := d.(type) {
				case replica.Leadership:
					if d.Self {
						if err := g.Propose([]byte("edit")); err != nil {
							b.Fatal(err)
						}
					}
				case replica.Committed:
					done = true
					g.ReportApplied(d.Index, nil)
				case replica.Failed:
					b.Fatal(d.Err)
				}
			}
		}
		took = append(took, time.Since(began))
		for _, g := range all {
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
