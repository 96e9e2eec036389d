package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	watchFor = time.Minute // how long the sleeping nodes are watched
	wakes    = 500         // regions that are woken
)

// runIdle founds regions, puts a block in each, lets all of them hibernate, and prints what they cost then: the
// processor over a minute, memory beyond what the node had with a few of them, and the bytes that the nodes write.
// Then it wakes some at random, one after another, and prints how long it takes until a block is put.
func runIdle(args []string) error {
	flags := flag.NewFlagSet("idle", flag.ContinueOnError)
	regions := flags.Int("regions", 10_000, "regions")
	nodes := flags.Int("nodes", 1, "nodes, 1 or 3; all regions are on all of them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, remove, err := workDir("idle")
	if err != nil {
		return err
	}
	defer remove()
	ctx := context.Background()
	f, err := startNodes(ctx, options{dir: dir}, 200, *nodes)
	if err != nil {
		return err
	}
	defer f.stop()
	all := regionsAt(*regions)
	few := len(all) / 20 // the fixed cost of the first regions does not count for all
	if err := f.visitAndSleep(ctx, all[:few]); err != nil {
		return err
	}
	before, err := f.memory()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.visitAndSleep(ctx, all[few:]); err != nil {
		return err
	}
	fmt.Printf("%d regions were founded and edited, and fell asleep, in %.0f s\n", len(all)-few, time.Since(began).Seconds())
	if err := f.watch(before, len(all)-few); err != nil {
		return err
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var took []time.Duration
	if err := f.nodes[0].Call("Node.Visit", Visiting{all[:min(wakes, len(all))], 1}, &took); err != nil {
		return fmt.Errorf("wake regions: %w", err)
	}
	r := percentiles(took, time.Second)
	fmt.Printf("%d were woken: p50 %.2f ms, p99 %.2f ms, slowest %.2f ms until a block was put\n",
		min(wakes, len(all)), float64(r.P50)/1000, float64(r.P99)/1000, float64(slices.Max(took).Microseconds())/1000)
	return nil
}

// visitAndSleep lets the first node visit the regions, and waits until all hibernate on all nodes.
func (f *regionSystem) visitAndSleep(ctx context.Context, regions []grid.ChunkPos) error {
	for part := range slices.Chunk(regions, 500) {
		if err := f.nodes[0].Call("Node.Visit", Visiting{part, 32}, new([]time.Duration)); err != nil {
			return fmt.Errorf("visit regions: %w", err)
		}
	}
	for _, n := range f.nodes {
		err := process.Until(ctx, "all regions sleep", 50*time.Millisecond, 10*time.Minute, func() bool {
			loaded, err := metric(ctx, n.metrics, "voxeld_regions_loaded")
			return err == nil && loaded == 0
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// watch prints what the hibernating nodes cost.
func (f *regionSystem) watch(before []memoryUse, regions int) error {
	type account struct {
		cpu     time.Duration
		written int
	}
	read := func(n *nodeProcess) (a account, err error) {
		u, err := n.Usage()
		if err == nil {
			a.written, err = field(n.Process, "io", "wchar")
		}
		a.cpu = u.CPU
		return a, err
	}
	first := make([]account, len(f.nodes))
	for i, n := range f.nodes {
		var err error
		if first[i], err = read(n); err != nil {
			return err
		}
	}
	<-time.After(watchFor)
	after, err := f.memory()
	if err != nil {
		return err
	}
	for i, n := range f.nodes {
		last, err := read(n)
		if err != nil {
			return err
		}
		each := func(a, b int) float64 { return float64(b-a) / float64(regions) / 1024 }
		fmt.Printf("node %d: %.2f %% of a core, %d bytes/s written; per region %.2f KiB resident, %.2f KiB of it heap; the file grew by %.2f KiB\n",
			i, 100*(last.cpu-first[i].cpu).Seconds()/watchFor.Seconds(), int(float64(last.written-first[i].written)/watchFor.Seconds()),
			each(before[i].resident, after[i].resident), each(before[i].heap, after[i].heap), each(before[i].file, after[i].file))
	}
	return nil
}

// memoryUse of a node, in bytes. The mapped file does not count as the node's own: the system reclaims it at will.
type memoryUse struct{ resident, heap, file int }

// memory measures the nodes after a garbage collection.
func (f *regionSystem) memory() ([]memoryUse, error) {
	all := make([]memoryUse, len(f.nodes))
	for i, n := range f.nodes {
		if err := n.Call("Node.Collect", true, new(bool)); err != nil {
			return nil, err
		}
		kib, err := field(n.Process, "status", "RssAnon")
		if err != nil {
			return nil, err
		}
		heap, err := metric(context.Background(), n.metrics, "voxeld_bench_heap_bytes")
		if err != nil {
			return nil, err
		}
		file, err := metric(context.Background(), n.metrics, "voxeld_store_size_bytes")
		if err != nil {
			return nil, err
		}
		all[i] = memoryUse{resident: kib * 1024, heap: int(heap), file: int(file)}
	}
	return all, nil
}

// field reads a number from one of the process's files in /proc.
func field(p *process.Process, file, name string) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strconv.Atoi(strings.Fields(value)[0])
		}
	}
	return 0, fmt.Errorf("no field %s in %s", name, file)
}

// Visit visits regions, and returns how long each visit took.
func (n *benchNode) Visit(v Visiting, took *[]time.Duration) error {
	*took = make([]time.Duration, len(v.Regions))
	var visits errgroup.Group
	visits.SetLimit(v.Together)
	for i, pos := range v.Regions {
		visits.Go(func() error {
			began := time.Now()
			if err := n.visitOne(n.ctx, pos); err != nil {
				return fmt.Errorf("region of %v: %w", pos, err)
			}
			(*took)[i] = time.Since(began)
			return nil
		})
	}
	return visits.Wait()
}

func (n *benchNode) visitOne(ctx context.Context, pos grid.ChunkPos) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	link, _, err := n.regions.Follow(ctx, pos)
	if err != nil {
		return err
	}
	defer link.Close() //nolint:errcheck // never fails
	c, err := newRegionClient(ctx, link, pos)
	if err != nil {
		return err
	}
	edit := nodemsg.Intent{
		Player: player.GuestID("visitor"), Seq: uint64(time.Now().UnixMicro()),
		Pos: grid.Pos{X: pos.X * grid.ChunkSize, Y: 100, Z: pos.Z * grid.ChunkSize}, Block: chunk.Brick, Proof: nodemsg.Proof{Name: "visitor"},
	}
	answers, err := c.answers(edit.Player)
	if err != nil {
		return err
	}
	return c.commit(edit, answers)
}
