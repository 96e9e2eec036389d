package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crossings"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/testkit/histogram"
	"github.com/voxelpopuli/voxeld/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// lookup measures how a chunk's server is found.
type lookup struct {
	*bench
	nodes, cells int
}

func newLookup(b *bench) *cobra.Command {
	l := &lookup{bench: b}
	c := b.command("lookup", "Finding a chunk's server among 100 nodes, against a kad-dht Get",
		"Asks daemons over their game ports where chunks are, as original clients do: for land that is not founded yet, for\n"+
			"land that is new to the asked daemon, and again for land that it has cached. A node in this program, in the same\n"+
			"network, gets the same cells' records with kad-dht's GetValue, which ends at the third copy.",
		l.run)
	c.Flags().IntVar(&l.nodes, "nodes", 100, "daemons")
	c.Flags().IntVar(&l.cells, "cells", 64, "number of cells")
	return c
}

// sources are where a node can find the region of a chunk: from its own memory, by asking another node, or by
// founding it.
var sources = []string{"cache", "neighbour", "dht", "catalog", "founded"}

func (b *lookup) run(ctx context.Context) error {
	nodes, cells := b.nodes, b.cells
	const questions = 1000
	logf("starting %d daemons", nodes)
	daemons, err := b.daemons(ctx, nodes)
	if err != nil {
		return err
	}
	defer daemon.KillAll(daemons)
	kad, stop, err := b.ownNode(ctx, daemons[0])
	if err != nil {
		return err
	}
	defer stop()
	land := make([]grid.ChunkPos, cells)
	for i := range land { // cells of 16 chunks, in a square
		land[i] = grid.ChunkPos{X: int32(16*(i%8) + 8), Z: int32(16*(i/8) + 8)}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	l := &lookups{daemons: daemons, table: figure.Table{Head: append([]string{"asked for", "questions", "p50, ms", "p99, ms"}, sources...)}}
	asked := make(map[[2]int]bool)
	l.visit = true // land is opened when it is founded
	if _, err := l.phase(ctx, "land that is not founded", cells, func(i int) (*daemon.Daemon, grid.ChunkPos) {
		asked[[2]int{i % nodes, i}] = true
		return daemons[i%nodes], land[i]
	}); err != nil {
		return err
	}
	l.visit = false
	if err := measure.Pause(ctx, 5*time.Second); err != nil { // until the records are published
		return err
	}
	var known [][2]int
	if _, err := l.phase(ctx, "land that is new to this daemon", min(questions, nodes*cells/2), func(int) (*daemon.Daemon, grid.ChunkPos) {
		for {
			pair := [2]int{rng.IntN(nodes), rng.IntN(cells)}
			if !asked[pair] {
				asked[pair] = true
				known = append(known, pair)
				return daemons[pair[0]], land[pair[1]]
			}
		}
	}); err != nil {
		return err
	}
	warm, err := l.phase(ctx, "land that this daemon has cached", questions, func(i int) (*daemon.Daemon, grid.ChunkPos) {
		pair := known[i%len(known)]
		return daemons[pair[0]], land[pair[1]]
	})
	if err != nil {
		return err
	}
	got, err := plainGets(ctx, kad, land)
	if err != nil {
		return err
	}
	l.table.Add("a kad-dht Get of the record", fmt.Sprint(got.Count()), 1000*got.Quantile(.5), 1000*got.Quantile(.99), "", "", "", "", "")
	text := l.table.Markdown() + fmt.Sprintf(
		"\nThe first three rows are times that a client measures, over TCP. The last columns count where the daemons found the answer.\n"+
			"Finding cached land takes **%s** (p50) and **%s** (p99) of the time of a Get.\n",
		figure.Number(ratio(warm.Quantile(.5), got.Quantile(.5))), figure.Number(ratio(warm.Quantile(.99), got.Quantile(.99))))
	return b.publish("lookup", text)
}

// lookups asks daemons for chunks, and keeps a row for each kind of lookup.
type lookups struct {
	daemons []*daemon.Daemon
	visit   bool // visit the chunks after they are found
	table   figure.Table
}

// phase makes n lookups of one kind.
func (l *lookups) phase(ctx context.Context, name string, n int, each func(i int) (*daemon.Daemon, grid.ChunkPos)) (*histogram.Histogram, error) {
	before, err := sourcesOf(ctx, l.daemons)
	if err != nil {
		return nil, err
	}
	var took histogram.Histogram
	for i := range n {
		d, at := each(i)
		t, server, err := ask(ctx, d.Game, at)
		if err == nil && l.visit {
			err = visit(ctx, server, at)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		took.Add(t.Seconds())
	}
	after, err := sourcesOf(ctx, l.daemons)
	row := []any{name, fmt.Sprint(n), 1000 * took.Quantile(.5), 1000 * took.Quantile(.99)}
	for i := range sources {
		row = append(row, fmt.Sprintf("%.0f", after[i]-before[i]))
	}
	l.table.Add(row...)
	return &took, err
}

// sourcesOf returns how often the daemons found a region, by source.
func sourcesOf(ctx context.Context, daemons []*daemon.Daemon) (sums []float64, err error) {
	sums = make([]float64, len(sources))
	for _, d := range daemons {
		m, err := d.Scrape(ctx)
		if err != nil {
			return sums, err
		}
		for i, source := range sources {
			sums[i] += m.Value("voxeld_region_lookups_total", "source", source)
		}
	}
	return sums, nil
}

// ask asks a game server for a chunk's server, over an open connection.
func ask(ctx context.Context, game string, at grid.ChunkPos) (took time.Duration, server string, err error) {
	c, err := openOriginal(ctx, game, legacymsg.Handshake{Purpose: legacymsg.PurposeDHT})
	if err != nil {
		return 0, "", err
	}
	defer c.Close() //nolint:errcheck // the answer has been read
	began := time.Now()
	where, err := c.WhereIsChunk(at)
	return time.Since(began), where.String(), err
}

// visit connects to a chunk as an original client, so that its region is opened and published.
func visit(ctx context.Context, server string, at grid.ChunkPos) error {
	c, err := openOriginal(ctx, server, legacymsg.Handshake{Purpose: legacymsg.PurposeConnect, Chunk: at, Player: "visitor"})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing was written
	if _, err := c.ReadLine(); err != nil {
		return fmt.Errorf("visit chunk %v: %w", at, err)
	}
	return nil
}

// openOriginal opens a connection of the original protocol that lasts for a short while.
func openOriginal(ctx context.Context, game string, h legacymsg.Handshake) (*legacyclient.Conn, error) {
	c, err := legacyclient.Dial(ctx, game, h)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(30 * time.Second))
}

// ownNode makes this program a node of the daemons' DHT. stop removes it again.
func (b *lookup) ownNode(ctx context.Context, d *daemon.Daemon) (node *dht.DHT, stop func(), err error) {
	invite, err := d.Invite(ctx)
	if err != nil {
		return nil, nil, err
	}
	token, err := config.ParseToken(invite)
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(store.Options{Path: filepath.Join(b.dir, "own.db")})
	if err != nil {
		return nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { db.Run(ctx) }) //nolint:errcheck // errors show in the measurement
	stop = func() {
		end()
		wg.Wait()
		db.Close() //nolint:errcheck // its contents are not needed
	}
	host, err := transport.NewHost(transport.Options{Storage: db, Listen: []string{"/ip4/127.100.0.1/tcp/4001"}, Bootstrap: token.Addrs})
	if err != nil {
		stop()
		return nil, nil, err
	}
	node, err = dht.Join(host, dht.Options{World: token.World, Placement: grid.PlacementWalkad, Storage: db})
	if err != nil {
		stop()
		return nil, nil, err
	}
	wg.Go(func() { node.Run(ctx) }) //nolint:errcheck // errors show in the measurement
	inner := stop
	stop = func() {
		node.Close() //nolint:errcheck // its contents are not needed
		host.Close() //nolint:errcheck // its contents are not needed
		inner()
	}
	return node, stop, measure.Pause(ctx, 15*time.Second) // until its routing table is full
}

// plainGets gets the cells' records, each a few times.
func plainGets(ctx context.Context, node *dht.DHT, land []grid.ChunkPos) (took *histogram.Histogram, err error) {
	took = new(histogram.Histogram)
	for i := range 5 * len(land) {
		began := time.Now()
		if _, err := node.Region(ctx, grid.CellAt(land[i%len(land)], grid.FoundingLabel)); err != nil {
			return took, err
		}
		took.Add(time.Since(began).Seconds())
	}
	return took, nil
}

// crossing measures players who cross borders of regions.
type crossing struct {
	*bench
	nodes, side int
	placements  []string
}

func newCrossings(b *bench) *cobra.Command {
	l := &crossing{bench: b}
	c := b.command("crossings", "Lookups of players who cross borders on 30 nodes, and common leaders of neighbouring regions, by placement",
		"A fifth of the players, one on a node, found a square of cells, whose borders those on the other nodes then cross. The\n"+
			"daemons' metrics say where they found the regions; their admin sockets, where these are led.",
		l.run)
	c.Flags().IntVar(&l.nodes, "nodes", 30, "daemons")
	c.Flags().IntVar(&l.side, "side", 6, "founded cells along the square's side")
	c.Flags().StringSliceVar(&l.placements, "placement", []string{"walkad", "hash"}, "placements to compare")
	return c
}

func (b *crossing) run(ctx context.Context) error {
	_, length := b.times(seconds{0, 240}, seconds{0, 120})
	table := figure.Table{Head: []string{fmt.Sprintf("%d nodes, %d × %d cells", b.nodes, b.side, b.side)}}
	var columns [][]string
	rows := crossings.Result{}.Rows()
	for _, placement := range b.placements {
		logf("placement %s: starting %d daemons", placement, b.nodes)
		daemons, err := b.daemonsOf(ctx, b.nodes, daemon.Options{Init: []string{"--placement", placement}})
		if err != nil {
			return err
		}
		result, err := crossings.Run(ctx, crossings.Options{Daemons: daemons, Side: b.side, Length: length, Logf: logf})
		daemon.KillAll(daemons)
		if err != nil {
			return err
		}
		table.Head = append(table.Head, placement)
		var column []string
		for _, row := range result.Rows() {
			column = append(column, row.Value)
		}
		columns = append(columns, column)
	}
	for i, row := range rows {
		cells := []any{row.Name}
		for _, column := range columns {
			cells = append(cells, column[i])
		}
		table.Add(cells...)
	}
	return b.publishIn("scale.md", "crossings", table.Markdown())
}
