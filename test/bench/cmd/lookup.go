package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
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

// sources are what tells a node where the region of a chunk is while the catalog answers.
var sources = []string{"cache", "catalog", "founded"}

func (b *lookup) run(ctx context.Context) error {
	nodes, cells := b.nodes, b.cells
	const questions = 1000
	logf("starting %d daemons", nodes)
	daemons, err := b.daemons(ctx, nodes)
	if err != nil {
		return err
	}
	defer daemon.KillAll(daemons)
	kad, stop, err := ownNode(ctx, daemons[0], b.dir)
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
	if err := process.Pause(ctx, 5*time.Second); err != nil { // until the records are published
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
	l.table.Add("a kad-dht Get of the record", fmt.Sprint(got.Count()), 1000*got.Quantile(.5), 1000*got.Quantile(.99), "", "", "")
	text := l.table.Markdown() + fmt.Sprintf(
		"\nTimes of a client over TCP; the last columns count where the daemons found the answer. Finding cached land takes **%s** (p50) and\n"+
			"**%s** (p99) of the time of a Get.\n",
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
	before, err := countSources(ctx, l.daemons)
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
	after, err := countSources(ctx, l.daemons)
	row := []any{name, fmt.Sprint(n), 1000 * took.Quantile(.5), 1000 * took.Quantile(.99)}
	for _, source := range sources {
		row = append(row, fmt.Sprintf("%.0f", after[source]-before[source]))
	}
	l.table.Add(row...)
	return &took, err
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
