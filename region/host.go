package region

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/internal/signature"
	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// TickEvery is the length of a tick: 20 ticks a second (VoxelPopuli §3.2.3).
const TickEvery = actor.TickEvery

// TickBuckets are the bounds of histograms of ticks, in seconds. Those with the same bounds can be added.
var TickBuckets = actor.TickBuckets

// ErrNotHere is returned if this node does not lead the region. The caller's route is outdated.
var ErrNotHere = actor.ErrNotHere

// Options configure a Host. All fields are required, except those whose comment names a default.
type Options struct {
	Self          nodemsg.Member               // this node, as others reach it
	Height        int32                        // of the world, in blocks
	Placement     grid.Placement               // maps cells to keys
	Copies        int                          // number of members of a region, at least 1
	CatalogCopies int                          // number of members of the catalog, at least 1
	Grace         time.Duration                // how long a member may be silent before it is replaced
	Base          func(grid.ChunkPos) [32]byte // returns the hash of a chunk's terrain; may take milliseconds; any goroutine
	// Ground generates a chunk for nodes that generate different terrain. If nil, such nodes get none from here. Any
	// goroutine.
	Ground     func(grid.ChunkPos) *chunk.Chunk
	ScrubEvery time.Duration // how often the copies of a region are compared; 0: only on request
	// VacateAfter is how long nobody must have watched a region before it is given up because nothing was ever built
	// there; 0: 24 hours.
	VacateAfter time.Duration
	Spawn       grid.ChunkPos // where new players start: the land around it is never given up
	Limits      split.Limits  // the loads above which regions are split; zero: only on request
	// Incarnations notices nodes whose data was put back to an earlier state. Nil: nobody's was.
	Incarnations   *integrity.Incarnations
	DamagedRegions map[uint64]string // regions with rows found damaged when the storage was opened, and which rows
	Storage        integrity.Storage // shared with Replicas
	Replicas       *replica.Host     // run by the caller, ended after the Host
	Records        directory.Records // the DHT
	Peers          transport.Peers   // the other nodes
	// Players visits the players in this node's part of the DHT, for backups. It may be nil.
	Players    func(visit func(nodemsg.PlayerRecord) error) error
	Excluded   func(peer string) bool // reports whether a node is excluded from the world; nil in an open world
	NotReady   func() error           // why this node should not be sent players, if others can be; nil if it may. If nil, it always may
	Issuer     func(peer string) bool // reports whether a node may have others given up; nil in an open world: all may
	Forgotten  func(peer string)      // called when a node is given up; it may be nil
	Attester   backups.Attester       // signs backups; nil in an open world
	World      string                 // its id; if empty, edits are not signed
	Issued     policy.Issued          // which nodes are issuers; nil in an open world: all may be
	Operator   policysync.Operator    // signs commands that are typed on this node
	Clock      *wallclock.Clock       // the time of the world; nil: one that begins now
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// foundRate and foundBurst are how many foundings a second a node may ask the catalog for, and how many at once. Land
// on which nothing is built is given up again after a day.
const foundRate, foundBurst = 100, 1000

// Operations are the parts of a Host with which others than players use the world.
type Operations struct {
	Examiner  *health.Examiner    // finds what is wrong with the world
	Exporter  *backups.Exporter   // backs up the world
	Replacer  *integrity.Replacer // founds lost regions again
	Splitter  *split.Splitter     // splits regions
	AutoSplit *split.AutoSplit    // has regions split that have too much load
	Ranges    *rollback.Ranges    // asks what is in a rectangle
	History   *rollback.Keeper    // asks who changed what, and rolls it back
}

// Host runs the regions that live on this node. Create it with NewHost; it serves while Run runs.
type Host struct {
	Options
	Directory *directory.Directory
	Policy    *policysync.Copy
	Operations

	tasks       *background.Tasks
	pieces      *transport.Pieces
	questions   transport.Questions
	raft        transport.RaftServer
	foundings   *transport.PeerLimits // that other nodes ask the catalog for
	detector    *directory.Detector
	registry    *directory.Registry
	regions     *regions
	publisher   *placement.Publisher
	hibernation *hibernation
	supervisor  *placement.Supervisor
	facts       *integrity.Facts
	executor    *integrity.Executor
	damages     *integrity.Damages
	scrubber    *integrity.Scrubber
	vacater     *split.Vacater
	recovery    *integrity.Recovery
	bases       *integrity.Bases
	observer    *observer

	contradictions *health.Contradictions
}

// NewHost returns a host. It opens the catalog if that is stored here.
func NewHost(ctx context.Context, o Options) (*Host, error) {
	registry, err := directory.NewRegistry(o.Storage, o.Logger)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = wallclock.New(time.Time{})
	}
	if o.NotReady == nil {
		o.NotReady = func() error { return nil }
	}
	h := &Host{
		Options: o, tasks: background.NewTasks(), questions: transport.Questions{Peers: o.Peers}, registry: registry,
		foundings:      transport.NewPeerLimits(foundRate, foundBurst),
		contradictions: health.NewContradictions(),
	}
	m := integrity.NewMetrics(o.Registerer)
	h.facts = integrity.NewFacts(o.Self.Peer, m)
	h.detector = directory.NewDetector(directory.DetectorOptions{
		Grace: o.Grace, Describe: h.questions.Description, Connected: o.Peers.Connected, Excluded: o.Excluded, Clock: o.Clock,
	})
	h.regions = newRegions(o, h.facts, &integrity.Issuers{
		World: o.World, Issued: issued(o.Issued), Key: o.Operator.Key, Sign: o.Operator.Sign, Charter: o.Operator.Charter,
	}, h.create)
	h.observer = &observer{host: h, metrics: h.regions.metrics}
	h.pieces = transport.NewPieces(o.Self.Peer, o.Peers, h.servePiece)
	h.Directory = directory.New(directory.Options{
		Self: o.Self, Placement: o.Placement, Copies: o.Copies, Records: o.Records, Questions: h.questions, Detector: h.detector,
		Tasks: h.tasks, Catalog: h.regions.Catalog, Hung: o.Replicas.Hung, OwnCatalog: func() nodemsg.RegionStatus { return h.regions.status(world.CatalogID, false) },
		Vouched: h.regions.issuers.Vouched, Logger: o.Logger, Registerer: o.Registerer,
	})
	if h.Policy, err = policysync.Open(policysync.Options{
		World: o.World, Self: o.Self.Peer, Storage: o.Storage, Directory: h.Directory, Detector: h.detector, Catalog: h.regions.Catalog,
		Issued: issued(o.Issued), Operator: o.Operator, Now: o.Clock.Now, Settled: o.Clock.Settled, Logger: o.Logger, Registerer: o.Registerer,
	}); err != nil {
		return nil, err
	}
	evicted, err := integrity.LoadEvicted(integrity.EvictedOptions{
		Self: o.Self, Storage: o.Storage, Replicas: o.Replicas, Questions: h.questions, Detector: h.detector, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	h.supervisor = placement.New(placement.Options{
		Self: o.Self.Peer, Copies: o.Copies, Records: o.Records, Directory: h.Directory, Registry: registry, Questions: h.questions,
		Detector: h.detector, Tasks: h.tasks, Regions: h.regions, Failures: h.facts, Slow: o.Replicas.Slow,
		NotifyEvicted: evicted.Notify, Watch: h.observer.watch, Logger: o.Logger, Registerer: o.Registerer,
	})
	h.wireIntegrity(m, evicted)
	h.publisher = placement.NewPublisher(placement.PublisherOptions{
		Self: o.Self.Peer, Registry: registry, Directory: h.Directory, Records: o.Records, Supervisor: h.supervisor,
		LedElsewhere: h.damages.LedElsewhere, Tasks: h.tasks, Stored: o.Replicas.Has, Catalog: h.regions.Catalog, Logger: o.Logger,
	})
	h.hibernation = newHibernation(h.regions, h.supervisor, h.regions.metrics)
	h.wireRegions()
	if err := h.executor.NoteDamaged(o.DamagedRegions); err != nil {
		return nil, err
	}
	if err := h.markOutdated(); err != nil {
		return nil, err
	}
	here, err := o.Replicas.Has(world.CatalogID)
	if err != nil {
		return nil, fmt.Errorf("find the catalog: %w", err)
	}
	if here && h.facts.Err(world.CatalogID) == nil {
		c, err := h.regions.openCatalog(ctx)
		if err != nil {
			return nil, err
		}
		h.regions.setCatalog(c)
	}
	return h, nil
}

// issued returns which nodes are issuers: in an open world all.
func issued(by policy.Issued) policy.Issued {
	if by != nil {
		return by
	}
	return func(charter uint64, _ ed25519.PublicKey) (bool, error) { return charter == 0, nil }
}

// wireIntegrity creates the parts that keep copies sound.
func (h *Host) wireIntegrity(m *integrity.Metrics, evicted *integrity.Evicted) {
	node := integrity.Node{
		Self: h.Self, Height: h.Height, Storage: h.Storage, Replicas: h.Replicas, Registry: h.registry, Directory: h.Directory,
		Questions: h.questions, Detector: h.detector, Tasks: h.tasks, Regions: h.regions, Logger: h.Logger, Metrics: m,
	}
	h.regions.Node = node
	h.Ranges = rollback.NewRanges(rollback.RangesOptions{
		Node: node, Lands: h.regions.lands, Quarantined: h.facts.Quarantined, Ground: h.Ground,
	})
	h.Examiner = &health.Examiner{
		Node: node, Copies: h.Copies, CatalogCopies: h.CatalogCopies, Records: h.Records, Damages: h.Damaged,
		AskStatuses: h.regions.askStatuses, Memberships: h.regions.memberships, Contradictions: h.contradictions, MachineAhead: h.Clock.MachineAhead,
		NotReady: h.NotReady, Copied: h.Copied,
	}
	h.bases = integrity.NewBases(node, integrity.BasesOptions{Base: h.Base, Ground: h.Ground, Records: h.Records, Pieces: h.pieces})
	ordered := func() (all []policy.Rollback) {
		h.Policy.Read(func(p *policy.State) { all = p.Rollbacks() })
		return all
	}
	h.History = rollback.New(rollback.Options{
		Node: node, Lands: h.regions.lands, Ranges: h.Ranges, Ordered: ordered, Base: h.BaseOf, Ground: h.Ground,
		Now: h.Clock.Now, Settled: h.Clock.Settled, Registerer: h.Registerer, Founded: func(ctx context.Context) ([]nodemsg.Region, error) {
			catalog, err := h.Directory.CatalogMembers(ctx)
			if err != nil {
				return nil, err
			}
			return h.Examiner.AllRegions(ctx, catalog)
		},
	})
	h.Splitter = &split.Splitter{
		Node: node, Follow: h.Follow, Create: h.create, Pieces: h.pieces, Lands: h.regions.lands,
		Passed: h.History.Passed, AskStatuses: h.regions.askStatuses, Metrics: split.NewMetrics(h.Registerer), Askers: split.NewAskers(),
	}
	h.AutoSplit = split.NewAutoSplit(split.AutoSplitOptions{
		Node: node, Splitter: h.Splitter, Supervisor: h.supervisor, Facts: h.facts, Led: h.regions.ledLands,
		AskStatuses: h.regions.askStatuses, Limits: h.Limits, Registerer: h.Registerer,
	})
	h.Exporter = backups.NewExporter(backups.ExporterOptions{
		Node: node, AskStatuses: h.regions.askStatuses, Players: h.Players, Attester: h.Attester, Contradicted: h.contradictions.Add,
		Vouch: h.regions.issuers.Vouch, Vouched: h.regions.issuers.Vouched, UpdatePolicy: h.Policy.Update,
		Known: func() []string { return h.Records.NearestKnown(grid.CatalogKey, backups.MaxNodes) },
	})
	h.damages = integrity.NewDamages(m)
	h.executor = &integrity.Executor{Node: node, ExecutorOptions: integrity.ExecutorOptions{
		Facts: h.facts, Supervisor: h.supervisor, Records: h.Records, OpenMember: h.regions.openMember, Open: h.regions.open,
		Judge: &integrity.Judge{
			Self: h.Self.Peer, Ask: h.regions.askStatuses, Suspected: h.detector.Suspected, Suspect: h.detector.Suspect,
			Listed: h.Directory.ByID, Vouched: h.regions.issuers.Vouched, Contradicted: h.contradictions.Add,
		},
		Replaced: h.replaced, ReopenCatalog: h.reopenCatalog, CatalogReleased: h.regions.catalogReleased,
	}}
	h.scrubber = &integrity.Scrubber{Node: node, ScrubberOptions: integrity.ScrubberOptions{
		Every: h.ScrubEvery, Supervisor: h.supervisor, Damages: h.damages, Facts: h.facts, Pieces: h.pieces, Led: h.regions.ledLands,
	}}
	h.vacater = split.NewVacater(split.VacaterOptions{
		Node: node, After: h.VacateAfter, Spawn: h.Spawn, Policy: h.Policy, Supervisor: h.supervisor,
		Unusable: h.facts.Closed,
		Here: func(ctx context.Context, c *actor.Catalog, vacated nodemsg.Vacated) (nodemsg.Region, error) {
			return h.vacated(ctx, h.Self.Peer, c, vacated)
		},
		AskStatuses: h.regions.askStatuses,
		OpenAt: func(ctx context.Context, peer string, info nodemsg.Region) error {
			link, _, err := subscribeAt(ctx, h.regions, peer, nodemsg.Hello{Region: info.ID, Cell: info.Cell})
			if err == nil {
				err = link.Close()
			}
			return err
		},
	})
	h.Replacer = &integrity.Replacer{
		Node: node, Executor: h.executor, Evicted: evicted, AskStatuses: h.regions.askStatuses, LastHeard: h.detector.LastHeard,
	}
	h.recovery = &integrity.Recovery{
		Node: node, Executor: h.executor, Evicted: evicted, AskStatuses: h.regions.askStatuses, LastHeard: h.detector.LastHeard,
		Outdated: h.Replacer.Outdated,
	}
}

// newRegions returns regions that know what the options say. NewHost adds the parts that need them.
func newRegions(o Options, facts *integrity.Facts, issuers *integrity.Issuers, create func(group, id uint64, create func() error) error) *regions {
	r := &regions{
		copies: o.Copies, facts: facts, create: create, now: o.Clock.Now, actors: actor.NewMetrics(o.Registerer),
		metrics: newMetrics(o.Registerer), probe: provocation(),
		unlisted: func() bool { return o.Incarnations != nil && o.Incarnations.Unlisted() },
		putBackTo: func() time.Time {
			if o.Incarnations == nil {
				return time.Time{}
			}
			return o.Incarnations.Reached()
		},
		catalogs: catalogs{
			copies: o.CatalogCopies, records: o.Records, reopen: make(chan struct{}, 1), world: o.World, issuers: issuers,
		},
	}
	if o.World != "" {
		r.proofs.Signed = signature.New(o.World).Signed
	}
	r.mu.lands = make(map[uint64]*actor.Land)
	return r
}

// wireRegions sets the parts that open and close regions, which were made after the regions.
func (h *Host) wireRegions() {
	r := h.regions
	r.supervisor, r.executor, r.bases, r.publisher, r.hibernate = h.supervisor, h.executor, h.bases, h.publisher, h.hibernation.hibernate
	r.disk = &integrity.Disk{Node: r.Node, Pieces: h.pieces, DamagedLog: h.executor.DamagedLog}
	r.vacater, r.splitter, r.autoSplit, r.policy = h.vacater, h.Splitter, h.AutoSplit, h.Policy
}

// FoundCatalog makes this node the first member of a new world's catalog. The node that creates a world calls it once,
// before NewHost.
func FoundCatalog(ctx context.Context, replicas *replica.Host, self string) error {
	g, err := replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{self}, Tables: actor.CatalogTables})
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
		h.publisher.Republish, h.supervisor.Run, h.executor.Run, h.bases.Run, h.observer.run, h.Splitter.Run, h.AutoSplit.Run, h.vacater.Run, h.Policy.Run, h.History.Run,
		func(serving context.Context) {
			<-ctx.Done()
			h.supervisor.StartLeaving()
			h.supervisor.HandOver(serving)
			end()
		},
	}
	if c := h.regions.Catalog(); c != nil {
		tasks = append(tasks, func(ctx context.Context) { h.regions.runCatalog(ctx, c) })
	}
	if h.Incarnations != nil {
		tasks = append(tasks, h.findForgotten)
	}
	if h.ScrubEvery > 0 {
		tasks = append(tasks, h.scrubber.Run)
	}
	h.tasks.Run(serving, tasks...)
	return nil
}

// Drain begins the shutdown of this node while Run still runs. It asks other nodes not to choose this one for anything,
// stops the supervisor, and hands over leaderships. It returns how many groups were handed over and how many stay led
// here because no other member could take over, or could in time. It may be called again.
func (h *Host) Drain(ctx context.Context) (handed, kept int) { return h.supervisor.Drain(ctx) }

// Locate returns the region that covers the chunk. If it does not exist, it is founded first.
func (h *Host) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return h.Directory.Locate(ctx, pos)
}

// ErrNotFounded is the error of Find for land that is not founded.
var ErrNotFounded = directory.ErrNotFounded

// Find returns the region that covers the chunk, or ErrNotFounded, also if this node has a route of land that was given
// up.
func (h *Host) Find(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return h.Directory.Find(ctx, pos)
}

// Describe returns what a node says of itself, now or lately.
func (h *Host) Describe(ctx context.Context, peer string) (nodemsg.Member, error) {
	if peer == h.Self.Peer {
		return h.Self, nil
	}
	if member, ok := h.detector.Alive(peer); ok {
		return member, nil
	}
	return h.detector.Check(ctx, peer)
}

// BaseOf returns the terrain with that hash for a chunk of which this node generates other terrain. The error is
// integrity.ErrNoBase if no reachable node has it, or an error of the storage.
func (h *Host) BaseOf(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error) {
	return h.bases.BaseOf(ctx, pos, hash)
}

// Loaded is the state of a loaded region.
type Loaded = actor.Summary

// Regions returns the state of every loaded region. It does not wait for those that are being closed, which a hung disk
// delays.
func (h *Host) Regions(ctx context.Context) []Loaded {
	var asked []*actor.Land
	var answers []chan Loaded
	for _, l := range h.regions.lands() { // all at once: each answers at its next tick
		if answer := make(chan Loaded, 1); l.Summarize(answer) {
			asked, answers = append(asked, l), append(answers, answer)
		}
	}
	var all []Loaded
	for i, l := range asked {
		select {
		case one := <-answers[i]:
			all = append(all, one)
		case <-l.Done():
		case <-ctx.Done():
			return all
		}
	}
	slices.SortFunc(all, func(a, b Loaded) int { return cmp.Compare(a.Region.ID, b.Region.ID) })
	return all
}

// servePiece answers a request of another node, or of this one.
func (h *Host) servePiece(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched {
	var l *actor.Land
	switch {
	case f.Base != nil:
		return h.bases.Serve(ctx, *f.Base)
	case f.Freeze != nil:
		return h.Splitter.FreezeHere(ctx, peer, *f.Freeze)
	case f.Digests != nil:
		l = h.regions.Loaded(f.Digests.Group)
	case f.Part != nil:
		l = h.regions.Loaded(f.Part.Group)
	default:
		return nodemsg.Fetched{Error: "unknown request; upgrade voxeld"}
	}
	switch {
	case l == nil:
		return nodemsg.Fetched{Error: "the region is not open here"}
	case f.Digests != nil:
		return l.ServeDigests(ctx, peer, *f.Digests)
	default:
		return l.ServePart(ctx, peer, *f.Part)
	}
}
