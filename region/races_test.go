package region

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	racesSeed  = flag.Int("races.seed", 0, "first seed of TestRaces")
	racesSeeds = flag.Int("races.seeds", 2, "runs of TestRaces, each with the next seed")
	racesEach  = flag.Int("races.each", 40, "races of each run")
	racesLog   = flag.Bool("races.log", false, "show what the nodes log")
)

// The world of the races: two cells that exist before them, and the column after these, where cells are founded.
var racers = []string{"A", "B", "C", "D", "E"}

const (
	cellChunks = 16 // of a cell as it is founded, in each direction
	raceChunks = 2 * cellChunks
	// maxFaulty is how many nodes may be down, drained or cut off at once: some regions then have no majority for a
	// while.
	maxFaulty = 2
)

// TestRaces has regions split and merged while their members change, are drained, killed and cut off, and while land
// beside them is founded and given up: two or three of these within some milliseconds of each other, while players
// build. Afterwards each block is in exactly one region with all its acknowledged edits, and no node has kept anything
// of a region that is gone. At no time did two regions serve a block.
func TestRaces(t *testing.T) {
	var mu sync.Mutex
	total := make(map[string]int)
	t.Run("seeds", func(t *testing.T) {
		for seed := *racesSeed; seed < *racesSeed+*racesSeeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRaces(t, seed)
					r.run()
					r.check()
					mu.Lock()
					defer mu.Unlock()
					for what, n := range r.counts {
						total[what] += n
					}
				})
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%8d %s", total[what], what)
	}
	for _, what := range []string{"split done", "merge done", "found done", "vacate done", "drain done", "kill done", "cut done", "edits"} {
		if total[what] == 0 {
			t.Errorf("none was counted: %s", what)
		}
	}
}

// races is a world in which races take place.
type races struct {
	*network
	t        *testing.T
	rng      *rand.Rand // of the driver, which draws races one after the other
	disks    map[string]*disk
	builders []*digger
	stop     func()
	building sync.WaitGroup
	running  sync.WaitGroup // steps that have not ended
	starting chan struct{}  // has room for the node that is started: one at a time waits for the others to be idle

	mu      sync.Mutex
	faulty  map[string]bool // nodes that are down, cut off or drained
	counts  map[string]int
	founded []grid.ChunkPos // chunks of cells that were founded during races
	served  []service
}

func newRaces(t *testing.T, seed int) *races {
	r := &races{
		network: newNetwork(t), t: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), disks: make(map[string]*disk),
		starting: make(chan struct{}, 1), faulty: make(map[string]bool), counts: make(map[string]int),
	}
	r.copies = 3
	r.near(racers...)
	if *racesLog {
		r.adjust = func(peer string, o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("at", peer)
		}
	}
	for _, peer := range racers {
		r.disks[peer] = newDisk()
		r.start(peer, r.disks[peer])
	}
	<-time.After(30 * time.Second)
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	for i := range 4 {
		b := &digger{races: r, number: i + 1, rng: rand.New(rand.NewPCG(uint64(seed), uint64(i+2))), done: make(map[grid.Pos]chunk.Block)}
		r.builders = append(r.builders, b)
		r.building.Go(func() { b.build(ctx) })
	}
	return r
}

// run draws races until there were enough, and lets the world recover.
func (r *races) run() {
	steps := map[string]func(pos grid.ChunkPos, rng *rand.Rand) error{
		"split": r.splitAt, "merge": r.mergeAt, "found": r.foundBeside, "vacate": r.vacateOne, "members": r.changeMembers, "drain": r.drainOne, "kill": r.killOne, "cut": r.cutOne,
	}
	kinds := []string{"split", "split", "split", "merge", "merge", "merge", "merge", "found", "vacate", "vacate", "members", "drain", "drain", "kill", "cut"}
	for range *racesEach {
		pos := grid.ChunkPos{X: int32(r.rng.IntN(raceChunks)), Z: int32(r.rng.IntN(cellChunks))}
		var race []string
		for range 2 + r.rng.IntN(2) {
			kind := kinds[r.rng.IntN(len(kinds))]
			race = append(race, kind)
			near := pos
			if r.rng.IntN(4) == 0 { // maybe in another region
				near.X = (near.X + 1 + int32(r.rng.IntN(8))) % raceChunks
			}
			rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
			r.running.Go(func() {
				if err := steps[kind](near, rng); err == nil {
					r.count(kind + " done")
				}
			})
			<-time.After(time.Duration(r.rng.IntN(30)) * time.Millisecond)
		}
		slices.Sort(race)
		r.count("races of " + strings.Join(race, ", "))
		r.count("races")
		<-time.After(time.Duration(r.rng.IntN(1500)) * time.Millisecond)
	}
	r.running.Wait()
	r.near(racers...)
	<-time.After(10 * time.Second)
	r.stop()
	r.building.Wait()
	<-time.After(12 * time.Minute) // copies of merged regions are looked for every 5 min
}

func (r *races) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// anyone returns a node that runs and is connected.
func (r *races) anyone() *node {
	r.network.mu.Lock()
	defer r.network.mu.Unlock()
	for _, i := range rand.Perm(len(racers)) {
		if it := r.network.mu.nodes[racers[i]]; it != nil && !r.network.mu.apart[racers[i]] {
			return it
		}
	}
	r.t.Fatal("no node is connected")
	return nil
}

var errNothing = errors.New("there is nothing to do")

func (r *races) splitAt(pos grid.ChunkPos, _ *rand.Rand) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	it := r.anyone()
	info, err := it.Locate(ctx, pos)
	if err != nil {
		return err
	}
	return it.Splitter.Split(ctx, info.Cell)
}

func (r *races) mergeAt(pos grid.ChunkPos, _ *rand.Rand) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	it := r.anyone()
	info, err := it.Locate(ctx, pos)
	if err == nil && info.Cell.Label.Len() == grid.FoundingLabel {
		err = errNothing
	}
	if err != nil {
		return err
	}
	return it.Splitter.Merge(ctx, info.Cell.Parent())
}

// foundBeside has two nodes found the next cell that does not exist yet at the same time.
func (r *races) foundBeside(pos grid.ChunkPos, _ *rand.Rand) error {
	r.mu.Lock()
	next := grid.ChunkPos{X: raceChunks + int32(len(r.founded))*cellChunks, Z: pos.Z}
	r.founded = append(r.founded, next)
	r.mu.Unlock()
	var by errgroup.Group
	for range 2 {
		by.Go(func() error {
			ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
			defer cancel()
			_, err := r.anyone().Locate(ctx, next)
			return err
		})
	}
	return by.Wait()
}

// vacateOne gives up a cell that was just founded. The entry is proposed whether somebody is about to build there or
// not, and however far the other members are: what it finds when it is applied must decide.
func (r *races) vacateOne(pos grid.ChunkPos, rng *rand.Rand) error {
	if err := r.foundBeside(pos, rng); err != nil {
		return err
	}
	r.mu.Lock()
	pos = r.founded[len(r.founded)-1]
	r.mu.Unlock()
	<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	info, err := r.anyone().Directory.FromCatalog(ctx, pos)
	if err != nil {
		return err
	}
	err = errNothing
	for _, m := range info.Members {
		it, gone := r.node(m.Peer)
		if gone != nil {
			continue
		}
		land, failed := it.regions.Open(ctx, info.ID, info.Cell)
		if failed == nil {
			land, failed = it.Splitter.Lead(ctx, info.ID)
		}
		if err = failed; err == nil {
			err = r.vacate(ctx, land)
		}
		if !errors.Is(err, ErrNotHere) {
			break
		}
	}
	return err
}

// vacate proposes to give up a region, and waits for what comes of that.
func (r *races) vacate(ctx context.Context, land *actor.Land) error {
	if err := land.Raft().Propose(world.EncodeVacate()); err != nil {
		return err
	}
	for range 20 {
		<-time.After(50 * time.Millisecond)
		if structure, err := land.StructureHere(ctx); err != nil || structure.Vacated != 0 {
			return err
		}
	}
	r.count("vacate too late")
	return errNothing
}

// changeMembers changes which nodes are the nearest to all keys. The members of all regions follow.
func (r *races) changeMembers(_ grid.ChunkPos, rng *rand.Rand) error {
	order := slices.Clone(racers)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	r.near(order...)
	return nil
}

// strike has something happen to a node to which nothing else happens.
func (r *races) strike(rng *rand.Rand, do func(it *node) error) error {
	r.mu.Lock()
	peer := racers[rng.IntN(len(racers))]
	free := !r.faulty[peer] && len(r.faulty) < maxFaulty
	if free {
		r.faulty[peer] = true
	}
	r.mu.Unlock()
	if !free {
		return errNothing
	}
	it, err := r.node(peer)
	if err == nil {
		err = do(it)
	}
	r.mu.Lock()
	delete(r.faulty, peer)
	r.mu.Unlock()
	return err
}

// startAgain starts a node again. The leader of the catalog must run, as far as the test's DHT knows; it is another one
// by then.
func (r *races) startAgain(peer string, d *disk) {
	for {
		catalog, err := r.Catalog(context.Background())
		if err != nil || catalog.Leader == peer {
			break
		}
		if _, err := r.node(catalog.Leader); err == nil {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	r.starting <- struct{}{}
	r.start(peer, d)
	<-r.starting
}

func (r *races) drainOne(_ grid.ChunkPos, rng *rand.Rand) error {
	return r.strike(rng, func(it *node) error {
		it.Drain(r.t.Context())
		it.stop()
		r.startAgain(it.peer, it.disk)
		return nil
	})
}

func (r *races) killOne(_ grid.ChunkPos, rng *rand.Rand) error {
	return r.strike(rng, func(it *node) error {
		left := r.kill(it)
		<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
		r.startAgain(it.peer, left)
		return nil
	})
}

func (r *races) cutOne(_ grid.ChunkPos, rng *rand.Rand) error {
	return r.strike(rng, func(it *node) error {
		r.cut(it.peer, true)
		<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
		r.cut(it.peer, false)
		return nil
	})
}

// service is an answer to an edit: the region served its cell at a moment between the two times.
type service struct {
	cell           grid.Cell
	id             uint64
	sent, answered time.Time
}

// check compares the world, as a node finds it and as it is on the disks, with what was built and answered.
func (r *races) check() {
	reader := r.anyone()
	leaves := make(map[uint64]nodemsg.Region)
	find := func(pos grid.ChunkPos) nodemsg.Region {
		for _, info := range leaves {
			if info.Cell.Contains(pos) {
				return info
			}
		}
		g := reader.reach(pos)
		g.Close()
		info := g.Link.(routedLink).info
		leaves[info.ID] = info
		return info
	}
	for x := range int32(raceChunks) {
		for z := range int32(cellChunks) {
			find(grid.ChunkPos{X: x, Z: z})
		}
	}
	for _, pos := range r.founded {
		find(pos)
	}
	for _, b := range r.builders {
		r.counts["edits"] += b.edits
		for pos, block := range b.done {
			got, info, err := reader.read(r.t.Context(), pos)
			if err != nil || got != block && (pos != b.last.Pos || got != b.last.Block) {
				r.t.Errorf("block %v of region %d, %v, is %d (%v), acknowledged was %d", pos, info.ID, info.Cell, got, err, block)
			}
		}
	}
	r.checkRegions(reader, slices.Collect(maps.Values(leaves)))
	r.checkServices()
}

// checkRegions checks that the nodes store no other regions than those that have land, those that are divided into
// them, and the catalog.
func (r *races) checkRegions(reader *node, leaves []nodemsg.Region) {
	exists := map[uint64]bool{world.CatalogID: true}
	for i, a := range leaves {
		for _, b := range leaves[i+1:] {
			if a.Cell.Area().Overlaps(b.Cell.Area()) {
				r.t.Errorf("regions %d of %v and %d of %v have land in common", a.ID, a.Cell, b.ID, b.Cell)
			}
		}
		for cell := a.Cell; ; cell = cell.Parent() {
			info, err := reader.Directory.Exactly(r.t.Context(), cell)
			if err != nil {
				r.t.Errorf("the catalog does not list %v: %v", cell, err)
				break
			}
			if (info.Split == 0) != (cell == a.Cell) || cell == a.Cell && info.ID != a.ID {
				r.t.Errorf("the catalog lists %v as region %d, split at %d; %v is region %d", cell, info.ID, info.Split, a.Cell, a.ID)
			}
			exists[info.ID] = true
			if cell.Label.Len() == grid.FoundingLabel {
				break
			}
		}
	}
	stored := make(map[uint64][]string) // where each region is
	for _, peer := range racers {
		it, err := r.node(peer)
		if err != nil {
			r.t.Error(err)
			continue
		}
		groups, err := it.Replicas.Groups()
		if err != nil {
			r.t.Error(err)
		}
		for _, id := range groups {
			stored[id] = append(stored[id], peer)
			if !exists[id] {
				info, err := it.regions.registry.Region(id)
				listed, unlisted := reader.Directory.ByID(r.t.Context(), id)
				r.t.Errorf("%s stores region %d of %v, which does not exist (%v); it is listed as %+v (%v)", peer, id, info.Cell, err, listed, unlisted)
			}
		}
	}
	for _, info := range r.listed() {
		if !exists[info.ID] {
			r.t.Errorf("the catalog lists region %d of %v, which does not exist", info.ID, info.Cell)
		}
		// The last report of a closed region's members may be lost. It is sent again when the region is opened, by way
		// of the others.
		if !slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return slices.Contains(stored[info.ID], m.Peer) }) {
			r.t.Errorf("the catalog lists region %d of %v, split at %d, on %v, and it is on %v", info.ID, info.Cell, info.Split, info.Members, stored[info.ID])
		}
	}
}

// listed returns what the catalog lists.
func (r *races) listed() (all []nodemsg.Region) {
	for _, peer := range racers {
		it, err := r.node(peer)
		if err != nil {
			continue
		}
		c := it.regions.Catalog()
		if c == nil || !c.Raft().Status().Self {
			continue
		}
		for after := uint64(0); ; after = all[len(all)-1].ID {
			page, err := c.Page(r.t.Context(), after)
			if err != nil {
				r.t.Error(err)
			}
			if len(page) == 0 {
				return all
			}
			all = append(all, page...)
		}
	}
	r.t.Error("nobody leads the catalog")
	return nil
}

// checkServices checks that no region served land between two moments at which another one did. Only a region that was
// merged again serves the land of its children after them.
func (r *races) checkServices() {
	type span struct {
		cell        grid.Cell
		first, last time.Time // answered first, and sent last
	}
	spans := make(map[uint64]span)
	for _, s := range r.served {
		of, known := spans[s.id]
		if !known || s.answered.Before(of.first) {
			of.first = s.answered
		}
		if s.sent.After(of.last) {
			of.last = s.sent
		}
		of.cell = s.cell
		spans[s.id] = of
	}
	for _, s := range r.served {
		for id, of := range spans {
			if id != s.id && s.sent.After(of.first) && s.answered.Before(of.last) && of.cell.Area().Overlaps(s.cell.Area()) &&
				of.cell.Label.Len() >= s.cell.Label.Len() {
				r.t.Errorf("region %d of %v served between %v and %v, and region %d of %v amid that, at %v", id, of.cell, of.first, of.last, s.id, s.cell, s.answered)
			}
		}
	}
}

// digger is a player who edits chunks one after the other, and sends each edit again until it is answered.
type digger struct {
	*races
	number int
	rng    *rand.Rand
	done   map[grid.Pos]chunk.Block // what was acknowledged last
	last   nodemsg.Intent           // the newest edit, which may have been applied without an answer
	edits  int
}

// build edits until ctx ends.
func (b *digger) build(ctx context.Context) {
	for seq := uint64(1); ctx.Err() == nil; seq++ {
		<-time.After(time.Duration(b.rng.IntN(200)) * time.Millisecond)
		pos := grid.ChunkPos{X: int32(b.rng.IntN(raceChunks)), Z: int32(b.rng.IntN(cellChunks))}
		b.mu.Lock()
		if n := len(b.founded); n > 0 && b.rng.IntN(12) == 0 { // it may be given up just now
			pos = b.founded[n-1]
		}
		b.mu.Unlock()
		b.last = guest(fmt.Sprint("guest", b.number), seq, at(pos, int32(b.number)), chunk.Block(1+b.rng.IntN(3)))
		for ctx.Err() == nil && !b.try(ctx, pos, b.last) {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// try sends the edit over a new link, and reports whether it was acknowledged.
func (b *digger) try(ctx context.Context, pos grid.ChunkPos, e nodemsg.Intent) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	link, info, err := b.anyone().Follow(ctx, pos)
	if err != nil {
		return false
	}
	defer link.Close()
	if !info.Cell.Contains(pos) {
		b.t.Errorf("chunk %v is not in %v", pos, info.Cell)
	}
	sent := time.Now()
	if err := link.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{e}}); err != nil {
		return false
	}
	for {
		frame, err := link.Receive(ctx)
		if err != nil || frame.Closed != "" {
			return false
		}
		for _, result := range frame.Results {
			if result.Player != e.Player || result.Seq != e.Seq {
				continue
			}
			if result.Refused != "" {
				return false
			}
			b.done[e.Pos] = e.Block
			b.edits++
			b.mu.Lock()
			defer b.mu.Unlock()
			b.served = append(b.served, service{info.Cell, info.ID, sent, time.Now()})
			return true
		}
	}
}

// reach is follow for a node whose routes may be out of date, which costs some attempts.
func (n *node) reach(pos grid.ChunkPos) gateway {
	n.net.t.Helper()
	for range 20 {
		if link, _, err := n.Follow(n.net.t.Context(), pos); err == nil {
			link.Close()
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	return n.follow(pos)
}

// read returns a block that was edited, and its region. Land that hibernates or moves costs some attempts.
func (n *node) read(ctx context.Context, pos grid.Pos) (block chunk.Block, info nodemsg.Region, err error) {
	for range 20 {
		var link transport.Link
		if link, info, err = n.Follow(ctx, pos.Chunk()); err != nil {
			<-time.After(100 * time.Millisecond)
			continue
		}
		var frame nodemsg.FromRegion
		for err = link.Send(nodemsg.ToRegion{Watch: []grid.ChunkPos{pos.Chunk()}}); err == nil && frame.Closed == ""; frame, err = link.Receive(ctx) {
			for _, delta := range frame.Chunks {
				if delta.State != nil {
					link.Close()
					return blockAt(*delta.State, pos), info, nil
				}
			}
		}
		link.Close()
	}
	return 0, info, cmp.Or(err, errors.New("the link is closed again and again"))
}

func blockAt(s nodemsg.ChunkState, pos grid.Pos) chunk.Block {
	for _, e := range s.Edits {
		if e.At == chunk.At(pos) {
			return e.Block
		}
	}
	return chunk.Air
}
