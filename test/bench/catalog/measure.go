package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

type options struct {
	length time.Duration // of each measurement
}

// result is what was measured at one number of regions.
type result struct {
	opened, counted time.Duration // until lookups are answered; until all regions are counted
	heap, file      float64       // bytes a region, on one member
	lookups         float64       // a second
	foundings       float64       // a second
	slowest         float64       // seconds, 99 %
	joined          time.Duration // of a new member; 0 if it could not join
}

const (
	groupSize = 3   // members of the group
	writers   = 256 // foundings under way at a time
	nodes     = 100 // that regions are spread over
	side      = 16  // founded cells of a domain
	deadline  = time.Hour
)

func measure(ctx context.Context, dir string, rows int, o options) (r result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	n := &network{ctx: ctx, dir: dir, members: make(map[string]*member)}
	var members []*member
	defer func() {
		for _, m := range n.members {
			members = append(members, m)
		}
		for _, m := range members {
			m.stop()
		}
		cancel()
		n.tasks.Wait()
	}()
	var peers []string
	for i := range groupSize {
		peers = append(peers, peerNamed(i))
	}
	for _, peer := range peers {
		if err := fill(n.path(peer), rows); err != nil {
			return r, err
		}
	}
	before := heap()
	for _, peer := range peers {
		began := time.Now()
		m, err := n.start(peer)
		if err != nil {
			return r, err
		}
		g, err := m.host.Open(ctx, replica.Founding{Group: world.CatalogID, Members: peers, Tables: actor.CatalogTables})
		if err != nil {
			return r, err
		}
		if err := m.run(g); err != nil {
			return r, err
		}
		if _, err := m.catalog.Info(ctx); err != nil {
			return r, err
		}
		r.opened = max(r.opened, time.Since(began))
		if err := await(ctx, func() bool { return m.catalog.Regions.Len() >= rows }); err != nil {
			return r, err
		}
		r.counted = max(r.counted, time.Since(began))
	}
	r.heap = max(0, float64(heap())-float64(before)) / float64(groupSize) / float64(rows)
	info, err := os.Stat(n.path(peers[0]))
	if err != nil {
		return r, err
	}
	r.file = float64(info.Size()) / float64(rows)
	var leader *member
	if err := await(ctx, func() bool {
		for _, m := range n.members {
			if m.catalog.Raft().Status().Self {
				leader = m
			}
		}
		return leader != nil
	}); err != nil {
		return r, err
	}
	if r.lookups, err = lookups(ctx, leader.catalog, rows, o); err != nil {
		return r, err
	}
	took, foundings, err := foundings(ctx, leader.catalog, o)
	if err != nil {
		return r, err
	}
	r.foundings, r.slowest = foundings, took.Quantile(.99)
	r.joined, err = join(ctx, n, leader)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no new member:", err)
		err = nil
	}
	return r, err
}

// domains lists n domains in the order of their texts, in which the store has them.
func domains(n int) []grid.Domain {
	width := int32(1)
	for int(width)*int(width) < n {
		width++
	}
	all := make([]grid.Domain, 0, n)
	for x := range width {
		for z := range width {
			if len(all) < n {
				all = append(all, grid.Domain{X: x, Z: z})
			}
		}
	}
	text := func(v int32) string { return strconv.Itoa(int(v)) }
	slices.SortFunc(all, func(a, b grid.Domain) int {
		return cmp.Or(cmp.Compare(text(a.X)+",", text(b.X)+","), cmp.Compare(text(a.Z)+"/", text(b.Z)+"/"))
	})
	return all
}

// cellOf returns the i-th founded cell of a domain.
func cellOf(d grid.Domain, i int) grid.Cell {
	return grid.CellAt(grid.ChunkPos{X: d.X*grid.DomainSize + int32(i%4)*16, Z: d.Z*grid.DomainSize + int32(i/4)*16}, grid.FoundingLabel)
}

func membersOf(i int) (all []nodemsg.Member) {
	for j := range 3 {
		m := nodeNamed(peerNamed((i + j) % nodes))
		m.Replica = uint64(j) + 1
		all = append(all, m)
	}
	return all
}

// fill creates a store with rows.
func fill(path string, rows int) (err error) {
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // awaited below
		defer close(ended)
		db.Run(ctx) //nolint:errcheck // a commit fails then
	}()
	defer func() {
		cancel()
		<-ended
		err = errors.Join(err, db.Close())
	}()
	var batch []kv.Write
	i := 0
	for _, d := range domains((rows + side - 1) / side) {
		for j := range side {
			if i == rows {
				break
			}
			members := membersOf(i / side)
			region := nodemsg.Region{
				ID: 1<<32 + uint64(i)*2654435761, Cell: cellOf(d, j), Epoch: 7, Term: 3, Leader: members[0].Peer, Members: members,
			}
			value, err := nodemsg.EncodeRegion(region)
			if err != nil {
				return err
			}
			batch = append(batch, kv.Write{Table: world.CatalogTable, Key: []byte(region.Cell.String()), Value: value})
			i++
		}
		if len(batch) >= 10_000 || i == rows {
			if err := db.Commit(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// lookups returns how many lookups a second eight callers make.
func lookups(ctx context.Context, c *actor.Catalog, rows int, o options) (rate float64, err error) {
	all := domains((rows + side - 1) / side)
	var done atomic.Int64
	err = concurrently(8, o.length, func(rng *rand.Rand) error {
		cell := cellOf(all[rng.IntN(len(all)-1+min(1, 2-len(all)))], rng.IntN(side)).Area()
		_, err := c.Locate(ctx, grid.ChunkPos{X: cell.MinX, Z: cell.MinZ})
		done.Add(1)
		return err
	})
	return float64(done.Load()) / o.length.Seconds(), err
}

// foundings founds cells beside the others.
func foundings(ctx context.Context, c *actor.Catalog, o options) (took *histogram.Histogram, rate float64, err error) {
	took = new(histogram.Histogram)
	var mu sync.Mutex
	var next atomic.Int64
	err = concurrently(writers, o.length, func(*rand.Rand) error {
		i := int(next.Add(1))
		found := nodemsg.Found{Cell: cellOf(grid.Domain{X: -int32(i/side/1000) - 1, Z: int32(i / side % 1000)}, i%side), Members: membersOf(i)}
		began := time.Now()
		_, err := c.Found(ctx, found)
		mu.Lock()
		defer mu.Unlock()
		took.Add(time.Since(began).Seconds())
		return err
	})
	return took, float64(next.Load()) / o.length.Seconds(), err
}

// concurrently runs what in n goroutines, again and again, until the time is over or one of them fails.
func concurrently(n int, length time.Duration, what func(rng *rand.Rand) error) error {
	end := time.Now().Add(length)
	errs := make(chan error, n)
	for i := range n {
		go func() { // awaited below
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			var err error
			for err == nil && time.Now().Before(end) {
				err = what(rng)
			}
			errs <- err
		}()
	}
	var failed error
	for range n {
		failed = errors.Join(failed, <-errs)
	}
	return failed
}

// join adds a member, and returns how long it takes until it has everything.
func join(ctx context.Context, n *network, leader *member) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	peer := peerNamed(nodes)
	m, err := n.start(peer)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	g := leader.catalog.Raft()
	if err := g.AddLearner(peer); err != nil {
		return 0, err
	}
	var id uint64
	if err := await(ctx, func() bool {
		for _, each := range g.Configuration().Members {
			if each.Peer == peer {
				id = each.ID
			}
		}
		return id != 0
	}); err != nil {
		return 0, err
	}
	conf := g.Configuration()
	joined, err := m.host.Join(ctx, replica.JoinInfo{Group: world.CatalogID, ID: id, Members: conf.Members, Tables: actor.CatalogTables})
	if err != nil {
		return 0, err
	}
	if err := m.run(joined); err != nil {
		return 0, err
	}
	want := leader.catalog.Regions.Len()
	err = await(ctx, func() bool { return m.catalog.Regions.Len() == want })
	return time.Since(began), err
}

func await(ctx context.Context, done func() bool) error {
	return process.Until(ctx, "the members are ready", 10*time.Millisecond, deadline, done)
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
