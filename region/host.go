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
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// regionTable stores the regions that this node is a member of: id, 8 bytes big-endian → region.
const regionTable = "regions"

// ErrNotHere is returned if this node does not lead the region. The caller's route is outdated.
var ErrNotHere = errors.New("the region is not led here")

// Storage persists regions; implemented by *store.DB.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
	// View runs read on a snapshot of all tables.
	View(read func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error) error
	// Keys is Scan without the values, which may be unreadable.
	Keys(table string, prefix []byte, visit func(key []byte) error) error
}

// Options configure a Host. All fields are required, except those whose comment names a default.
type Options struct {
	Self          nodemsg.Member               // this node, as others reach it
	Height        int32                        // of the world, in blocks
	Placement     grid.Placement               // maps cells to keys
	Copies        int                          // number of members of a region, at least 1
	CatalogCopies int                          // number of members of the catalog, at least 1
	Grace         time.Duration                // how long a member may be silent before it is replaced
	Base          func(grid.ChunkPos) [32]byte // returns the hash of a chunk's terrain; may take milliseconds; any goroutine
	// Ground generates a chunk for nodes that generate different terrain. If nil, such nodes get none from here. Any goroutine.
	Ground     func(grid.ChunkPos) *chunk.Chunk
	ScrubEvery time.Duration     // how often the copies of a region are compared; 0: only on request
	Suspects   map[uint64]string // regions with rows found damaged when the storage was opened, and which rows
	Storage    Storage           // shared with Replicas
	Replicas   *replica.Host     // run by the caller, ended after the Host
	Records    Records           // the DHT
	Peers      transport.Peers   // the other nodes
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Host runs the regions that live on this node. Create it with NewHost; it serves while Run runs.
type Host struct {
	Options
	Directory *Directory

	metrics      *metrics
	tasks        *background.Tasks
	pieces       *transport.Pieces
	questions    transport.Questions
	loading      background.Shared[*loop]
	joining      background.Shared[*loop] // joins by invitation
	detector     *failuredetector.Detector
	heard        func(peer string) time.Time // when a node was last heard from; tests replace it
	checkedNodes string                      // summary of the nodes' states when the closed regions were last checked
	leave        sync.Once                   // closes leaving
	leaving      chan struct{}               // closed when this node is about to stop: see Drain
	failures     failureRecords
	// For tests: cpu measures how long a piece of a tick's work keeps a core busy, and probe is passed to the loops.
	cpu          func(work func()) time.Duration
	probe        func(l *loop, entry []byte)
	probeCatalog func(entry []byte)
	// reopenCatalog wakes runCatalog when the catalog is released.
	reopenCatalog chan struct{}
	hashing       chan struct{} // bounds how many terrain hashes are computed at once
	bases         bases

	fetchingBases background.Shared[[]byte]

	mu struct {
		sync.Mutex
		catalog     *catalog                  // nil if this node is not a member of the catalog
		loops       map[uint64]*loop          // loaded regions, by id
		changes     map[uint64]nodemsg.Region // newest change of each region that is being published, by id
		reconciling map[uint64]struct{}       // groups whose members are being changed
		// announced holds the epochs of regions led here that the catalog has.
		announced   map[uint64]uint64
		hibernating map[uint64]time.Time      // groups that hibernate, and until when they are not woken
		ledSince    map[uint64]leadership     // of the groups that this node leads or led
		waking      map[uint64]string         // groups that are being opened, and the member whose message caused it
		validated   map[uint64]struct{}       // groups whose copies here are known not to be superseded
		evicted     map[uint64]nodemsg.Region // recovered regions as they were, whose former members are still to be notified
		damage      map[uint64][]Damage       // damage left by the newest scrub of a region, by id; no empty lists
		corrupt     map[uint64]corruptCopy    // copies on this node that must not be used, by region id
	}
}

// NewHost returns a host. It opens the catalog if that is stored here.
func NewHost(ctx context.Context, o Options) (*Host, error) {
	h := &Host{
		Options: o,
		metrics: newMetrics(o.Registerer),
		tasks:   background.NewTasks(),
		leaving: make(chan struct{}),
		hashing: make(chan struct{}, 2),
		cpu:     threadTime,
		probe:   provocation(),

		reopenCatalog: make(chan struct{}, 1),
		bases:         newBases(),
	}
	h.questions = transport.Questions{Peers: o.Peers}
	h.detector = failuredetector.New(o.Grace, h.questions.Describe)
	h.heard = h.detector.Heard
	h.pieces = transport.NewPieces(o.Self.Peer, o.Peers, h.fetched)
	h.mu.loops = make(map[uint64]*loop)
	h.mu.changes = make(map[uint64]nodemsg.Region)
	h.mu.reconciling = make(map[uint64]struct{})
	h.mu.announced = make(map[uint64]uint64)
	h.mu.hibernating = make(map[uint64]time.Time)
	h.mu.ledSince = make(map[uint64]leadership)
	h.mu.waking = make(map[uint64]string)
	h.mu.validated = make(map[uint64]struct{})
	if err := h.loadEvicted(); err != nil {
		return nil, err
	}
	h.mu.damage = make(map[uint64][]Damage)
	h.mu.corrupt = make(map[uint64]corruptCopy)
	h.Directory = newDirectory(h)
	if err := errors.Join(h.mendRegistry(), h.markSuspects()); err != nil {
		return nil, err
	}
	here, err := o.Replicas.Has(world.CatalogID)
	if err != nil {
		return nil, fmt.Errorf("find the catalog: %w", err)
	}
	if here {
		if h.mu.catalog, err = h.openCatalog(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// FoundCatalog makes this node the first member of a new world's catalog. The node that creates a world calls it once, before
// NewHost.
func FoundCatalog(ctx context.Context, replicas *replica.Host, self string) error {
	g, err := replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{self}, Tables: catalogTables})
	if err != nil {
		return fmt.Errorf("found catalog: %w", err)
	}
	return g.Close()
}

// Run serves until ctx ends. Then it hands over leaderships, and returns when every region is closed.
func (h *Host) Run(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	tasks := []func(context.Context){
		h.republish, h.supervise, h.keepReseeding, h.keepBases,
		func(serving context.Context) {
			<-ctx.Done()
			h.startLeaving()
			h.handOver(serving)
			end()
		},
	}
	if c := h.root(); c != nil {
		tasks = append(tasks, func(ctx context.Context) { h.runCatalog(ctx, c) })
	}
	if h.ScrubEvery > 0 {
		tasks = append(tasks, h.keepScrubbing)
	}
	h.tasks.Run(serving, tasks...)
	return nil
}

// start runs a task in a goroutine that Run awaits. It reports false if the host is stopping.
func (h *Host) start(task func(context.Context)) bool { return h.tasks.Start(task) }

// Locate returns the region that covers the chunk. If it does not exist, it is founded first.
func (h *Host) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return h.Directory.Locate(ctx, pos)
}

// subscribe subscribes a gateway to a region that is led here. The region is loaded first if necessary.
func (h *Host) subscribe(ctx context.Context, hello nodemsg.Hello) (*localLink, error) {
	reading := hello.Reading
	hello.Reading = false // not part of the key: a region is loaded once for all callers
	for {
		l, err := h.loaded(ctx, hello)
		if err != nil {
			return nil, err
		}
		s := newSubscriber()
		s.reading = reading
		if l.inbox.Put(func() { l.attach(s) }) {
			return &localLink{loop: l, subscriber: s}, nil
		}
		select { // it is being unloaded: wait, then load it again
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

// hash computes a terrain hash beside the loop and sends the result to its inbox.
func (h *Host) hash(l *loop, pos grid.ChunkPos) {
	// Starting a goroutine waits only for Run's loop, which never waits for a region.
	h.start(func(ctx context.Context) {
		select {
		case h.hashing <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var base [32]byte
		caught := catchFault(func() { base = h.Base(pos) })
		<-h.hashing
		l.inbox.Put(func() {
			if caught != nil {
				panic(caught) // it is the region's terrain, so the region is isolated
			}
			h.bases.sound.Add(nodemsg.BaseOf{Chunk: pos, Hash: base}, struct{}{}) // so that it is not generated again to be checked
			l.setTerrainHash(pos, base)
		})
	})
}

// Loaded is the state of a loaded region.
type Loaded struct {
	Region nodemsg.Region
	Voters int // members of the group that have a vote
	Links  int
	Bodies int
	Edits  int
}

// Regions returns the state of every loaded region.
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
		l.inbox.Put(func() {
			answer <- Loaded{Region: l.info, Voters: l.voters(), Links: len(l.subscribers), Bodies: l.crowd.Len(), Edits: l.land.Edits()}
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

func hasMember(info nodemsg.Region, peer string) bool {
	return slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == peer })
}
