package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// regionTable remembers the regions that this node is a member of: id, 8 bytes big-endian → region.
const regionTable = "regions"

// ErrNotHere says that this node does not lead the region. The caller's route is old.
var ErrNotHere = errors.New("the region is not led here")

// errStopping says that the host is ending.
var errStopping = errors.New("the node is stopping")

// Storage is where regions persist; a *store.DB.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
	// View runs read on all tables as they are when it begins.
	View(read func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error) error
	// Keys is Scan without the values, which need not be readable.
	Keys(table string, prefix []byte, visit func(key []byte) error) error
}

// Options are what a Host stands on. All fields are needed, but for those that say what they are without.
type Options struct {
	Self          wire.Member                  // this node, as others reach it
	Height        int32                        // of the world, in blocks
	Placement     grid.Placement               // how cells get their keys
	Copies        int                          // members that a region shall have, at least 1
	CatalogCopies int                          // members that the catalog shall have, at least 1
	Grace         time.Duration                // how long a member may be silent before it is replaced
	Base          func(grid.ChunkPos) [32]byte // hash of a chunk's terrain; may take milliseconds; any goroutine
	// Ground generates a chunk, for nodes that generate another one; nil: they are not helped. Any goroutine.
	Ground     func(grid.ChunkPos) *chunk.Chunk
	ScrubEvery time.Duration     // how often copies of a region are compared; 0: only when somebody asks for it
	Suspects   map[uint64]string // regions of which rows were found damaged when the storage was opened, and which
	Storage    Storage           // shared with Replicas
	Replicas   *replica.Host     // run by the caller, ended after the Host
	Records    Records           // the DHT
	Peers      Peers             // the other nodes
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Host runs the regions that live on this node. Create it with NewHost; it serves while Run runs.
type Host struct {
	Options
	Directory *Directory

	metrics  *metrics
	spawn    chan func(context.Context)
	loading  flights[wire.Hello, *loop]
	joining  flights[wire.Hello, *loop] // by invitation
	liveness liveness
	looked   string        // what the supervisor knew of the nodes when it looked at the closed regions
	stop     chan struct{} // closed when Run begins to end
	leave    sync.Once     // closes leaving
	leaving  chan struct{} // closed when this node is about to end: see Drain
	suspects suspects
	failures ledgers
	// cpu measures how long a piece of a tick's work keeps a core busy, and probe is what loops have of it: for tests.
	cpu          func(work func()) time.Duration
	probe        func(l *loop, entry []byte)
	probeCatalog func(entry []byte)
	// reopenCatalog wakes the catalog's keeper when the catalog is released.
	reopenCatalog chan struct{}
	hashing       chan struct{} // as many tokens as hashes may be computed at once
	serving       chan struct{} // as many tokens as pieces may be served at once
	bases         bases

	fetchingBases flights[wire.BaseOf, []byte]

	mu struct {
		sync.Mutex
		catalog *catalog               // nil when the catalog lives elsewhere
		loops   map[uint64]*loop       // loaded regions, by id
		changes map[uint64]wire.Region // that are being told of, by id: the newest of each
		tending map[uint64]struct{}    // groups whose members are being changed
		// announced are the epochs of regions led here that the catalog is known to know.
		announced map[uint64]uint64
		drowsy    map[uint64]time.Time   // until when groups that were put to sleep are not roused
		reigns    map[uint64]reign       // of the groups that this node leads or led
		rousing   map[uint64]string      // groups that are being opened, and the member that speaks to them
		rightful  map[uint64]struct{}    // groups whose copies here are known to be no leftovers
		expelled  map[uint64]wire.Region // recovered regions as they were, whose former members are to be told
		damage    map[uint64][]Damage    // what the newest scrub of a region has left, by id; no empty lists
		condemned map[uint64]condemned   // this node's copies that must not be used, by id
	}
}

// NewHost prepares a host. The catalog is opened if it is stored here.
func NewHost(ctx context.Context, o Options) (*Host, error) {
	h := &Host{
		Options: o,
		metrics: newMetrics(o.Registerer),
		spawn:   make(chan func(context.Context)),
		stop:    make(chan struct{}),
		leaving: make(chan struct{}),
		hashing: make(chan struct{}, 2),
		cpu:     threadTime,
		probe:   provocation(),

		reopenCatalog: make(chan struct{}, 1),
		serving:       make(chan struct{}, piecesAtOnce),
		bases:         newBases(),
	}
	h.liveness.keepTo(o.Grace)
	h.mu.loops = make(map[uint64]*loop)
	h.mu.changes = make(map[uint64]wire.Region)
	h.mu.tending = make(map[uint64]struct{})
	h.mu.announced = make(map[uint64]uint64)
	h.mu.drowsy = make(map[uint64]time.Time)
	h.mu.reigns = make(map[uint64]reign)
	h.mu.rousing = make(map[uint64]string)
	h.mu.rightful = make(map[uint64]struct{})
	if err := h.loadExpelled(); err != nil {
		return nil, err
	}
	h.mu.damage = make(map[uint64][]Damage)
	h.mu.condemned = make(map[uint64]condemned)
	h.Directory = newDirectory(h)
	if err := errors.Join(h.mendRegistry(), h.judgeSuspects()); err != nil {
		return nil, err
	}
	here, err := o.Replicas.Has(world.CatalogID)
	if err != nil {
		return nil, fmt.Errorf("look for the catalog: %w", err)
	}
	if here {
		if h.mu.catalog, err = h.openCatalog(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// FoundCatalog makes this node the first holder of a new world's catalog. It is called once in a
// world's life, by the node that creates it, before NewHost.
func FoundCatalog(ctx context.Context, replicas *replica.Host, self string) error {
	g, err := replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{self}, Tables: catalogTables})
	if err != nil {
		return fmt.Errorf("found catalog: %w", err)
	}
	return g.Close()
}

// Run serves until ctx ends. Then it hands over what it leads, and returns when every region is closed.
func (h *Host) Run(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	var crew sync.WaitGroup
	defer crew.Wait()
	defer close(h.stop)
	defer end()
	if c := h.root(); c != nil {
		crew.Go(func() { h.runCatalog(serving, c) })
	}
	crew.Go(func() { h.republish(serving) })
	crew.Go(func() { h.supervise(serving) })
	crew.Go(func() { h.keepReseeding(serving) })
	crew.Go(func() { h.keepBases(serving) })
	if h.ScrubEvery > 0 {
		crew.Go(func() { h.keepScrubbing(serving) })
	}
	ending := ctx.Done()
	handedOver := make(chan struct{})
	for {
		select {
		case <-ending:
			ending = nil
			h.depart()
			crew.Go(func() { h.handOver(serving); close(handedOver) })
		case <-handedOver:
			return nil
		case task := <-h.spawn:
			crew.Go(func() { task(serving) })
		}
	}
}

// start runs a task in a goroutine that Run awaits. It reports false when the host is ending.
func (h *Host) start(task func(context.Context)) bool {
	select {
	case h.spawn <- task:
		return true
	case <-h.stop:
		return false
	}
}

// Locate gives the region that covers the chunk; it is founded first if need be.
func (h *Host) Locate(ctx context.Context, pos grid.ChunkPos) (wire.Region, error) {
	return h.Directory.Locate(ctx, pos)
}

// sit gives a seat in a region that is led here; the region is loaded first if need be.
func (h *Host) sit(ctx context.Context, hello wire.Hello) (*localLink, error) {
	reading := hello.Reading
	hello.Reading = false // a region is loaded once, whoever wants it
	for {
		l, err := h.loaded(ctx, hello)
		if err != nil {
			return nil, err
		}
		s := newSeat()
		s.reading = reading
		if l.inbox.put(func() { l.attach(s) }) {
			return &localLink{loop: l, seat: s}, nil
		}
		select { // it is being unloaded: wait, then load it anew
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (h *Host) loop(id uint64) *loop {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.loops[id]
}

// hash computes a terrain hash beside the loop and hands it in.
func (h *Host) hash(l *loop, pos grid.ChunkPos) {
	// Starting a goroutine waits for Run's loop only, which never waits for a region.
	h.start(func(ctx context.Context) {
		select {
		case h.hashing <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var base [32]byte
		hurt := fenced(func() { base = h.Base(pos) })
		<-h.hashing
		l.inbox.put(func() {
			if hurt != nil {
				panic(hurt) // it is the region's terrain: the region is fenced
			}
			h.bases.sound.Add(wire.BaseOf{Chunk: pos, Hash: base}, struct{}{}) // it need not be generated again to be checked
			l.based(pos, base)
		})
	})
}

// Loaded is what one loaded region reports about itself.
type Loaded struct {
	Region wire.Region
	Voters int // members of the group that have a vote
	Links  int
	Bodies int
	Edits  int
}

// Regions asks every loaded region how it does.
func (h *Host) Regions(ctx context.Context) []Loaded {
	h.mu.Lock()
	loops := make([]*loop, 0, len(h.mu.loops))
	for _, l := range h.mu.loops {
		loops = append(loops, l)
	}
	h.mu.Unlock()
	answers := make([]chan Loaded, len(loops))
	for i, l := range loops { // all at once: each answers at its next tick
		answer := make(chan Loaded, 1)
		answers[i] = answer
		l.inbox.put(func() {
			answer <- Loaded{Region: l.info, Voters: l.voters(), Links: len(l.seats), Bodies: l.crowd.Len(), Edits: l.land.Edits()}
		})
	}
	var all []Loaded
	for i, l := range loops {
		select {
		case one := <-answers[i]:
			all = append(all, one)
		case <-l.done:
		case <-ctx.Done():
			return all
		}
	}
	slices.SortFunc(all, func(a, b Loaded) int { return cmp.Compare(a.Region.ID, b.Region.ID) })
	return all
}

func hasMember(info wire.Region, peer string) bool {
	return slices.ContainsFunc(info.Members, func(m wire.Member) bool { return m.Peer == peer })
}
