package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// memory measures the memory of a daemon.
type memory struct{ *bench }

func newMemory(b *bench) *cobra.Command {
	return b.command("memory", "Memory per loaded section, per player, and per unloaded chunk",
		"Compares the heap after garbage collections: one player who sees 625 chunks against one who sees 9; a thousand\n"+
			"players who stand still against none; and the land of a long flight after it is out of all players' view.",
		memory{b}.run)
}

// memoryUse is the memory of a daemon after a garbage collection.
type memoryUse struct{ heap, stack, rss float64 }

func memoryOf(ctx context.Context, d *daemon.Daemon) (h memoryUse, err error) {
	for range 2 { // what finalizers held is garbage only the second time
		if err := d.Collect(ctx); err != nil {
			return h, err
		}
	}
	m, err := d.Scrape(ctx)
	if err != nil {
		return h, err
	}
	return memoryUse{m.Value("go_memstats_heap_alloc_bytes"), m.Value("go_memstats_stack_inuse_bytes"), m.Value("process_resident_memory_bytes")}, nil
}

func (h memoryUse) since(earlier memoryUse, n float64) memoryUse {
	return memoryUse{(h.heap - earlier.heap) / n, (h.stack - earlier.stack) / n, (h.rss - earlier.rss) / n}
}

func (b memory) run(ctx context.Context) error {
	table := figure.Table{Head: []string{"bytes of", "heap", "goroutines' stacks", "resident, garbage included"}}
	add := func(name string, h memoryUse) {
		table.Add(name, fmt.Sprintf("%.0f", h.heap), fmt.Sprintf("%.0f", h.stack), fmt.Sprintf("%.0f", h.rss))
	}
	daemons, err := b.daemons(ctx, 1)
	if err != nil {
		return err
	}
	d := daemons[0]
	defer d.Kill()
	empty, err := memoryOf(ctx, d)
	if err != nil {
		return err
	}
	add("an empty daemon", empty)
	const near, far = 1, 12
	chunks := float64((2*far+1)*(2*far+1) - (2*near+1)*(2*near+1))
	few, err := b.memoryWithView(ctx, d, near)
	if err != nil {
		return err
	}
	many, err := b.memoryWithView(ctx, d, far)
	if err != nil {
		return err
	}
	add("a loaded chunk of 4 sections", many.since(few, chunks))
	flown, gone, err := b.afterFlight(ctx, d)
	if err != nil {
		return err
	}
	add(fmt.Sprintf("a chunk that was seen once (of %.0f)", flown), gone.since(empty, flown))
	d.Kill() // the next one uses its address
	player, err := b.ofPlayer(ctx)
	if err != nil {
		return err
	}
	add("a player who stands still", player)
	return b.publish("memory", table.Markdown())
}

// memoryWithView returns the daemon's memory while one player has that view distance.
func (b memory) memoryWithView(ctx context.Context, d *daemon.Daemon, view int) (h memoryUse, err error) {
	p, err := crowd.StartProbe(ctx, b.address(d), fmt.Sprint("seer-", view), view)
	if err != nil {
		return h, err
	}
	defer p.Close()
	if err := p.Settle(ctx); err != nil {
		return h, err
	}
	return memoryOf(ctx, d)
}

// afterFlight lets probes load much land, and returns the daemon's memory after they have left and their land is
// unloaded.
func (b memory) afterFlight(ctx context.Context, d *daemon.Daemon) (chunks float64, h memoryUse, err error) {
	for i, goal := range [][2]float64{{1500, 0}, {-1500, 0}, {0, 1500}, {0, -1500}} {
		p, err := crowd.StartProbe(ctx, b.address(d), fmt.Sprint("flyer-", i), 12)
		if err != nil {
			return 0, h, err
		}
		err = p.Settle(ctx)
		if err == nil {
			err = p.Fly(ctx, goal[0]/4, goal[1]/4)
		}
		p.Close()
		if err != nil {
			return 0, h, err
		}
	}
	if err := process.Pause(ctx, 15*time.Second); err != nil { // regions stay loaded for 10 s
		return 0, h, err
	}
	m, err := d.Scrape(ctx)
	if err != nil {
		return 0, h, err
	}
	h, err = memoryOf(ctx, d)
	return m.Value("voxeld_chunks_generated_total"), h, err
}

// ofPlayer returns the memory that a standing player costs.
func (b memory) ofPlayer(ctx context.Context) (each memoryUse, err error) {
	const players = 1000
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return each, err
	}
	defer d.Kill()
	o.Still = true
	var before memoryUse
	err = b.play(ctx, o, 1, []target{d}, func(ctx context.Context, c *crowd.Crowd) (err error) {
		if before, err = memoryOf(ctx, d); err != nil {
			return err
		}
		if err := c.Add(ctx, players); err != nil {
			return err
		}
		if err := process.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
		after, err := memoryOf(ctx, d)
		each = after.since(before, players)
		return err
	})
	return each, err
}
