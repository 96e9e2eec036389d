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
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/region/contents"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/mods"
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
	// Say shows a player, on the gateway of a node, what a mod tells them. If nil, nobody is shown that.
	Say func(ctx context.Context, gateway string, line nodemsg.PrivateLine)
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
	World      string                 // its id
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
	Examiner  *health.Examiner     // finds what is wrong with the world
	Exporter  *backups.Exporter    // backs up the world
	Refounder *integrity.Refounder // founds lost regions again
	Splitter  *split.Splitter      // splits regions
	AutoSplit *split.AutoSplit     // has regions split that have too much load
	Ranges    *rollback.Ranges     // asks what is in a rectangle
	History   *rollback.Keeper     // asks who changed what, and rolls it back
}

// Host runs the regions that live on this node. Create it with NewHost; it serves while Run runs.
type Host struct {
	Options
	Directory *directory.Directory
	Policy    *policysync.Copy
	Contents  *contents.Store
	Operations

	tasks          *background.Tasks
	questions      transport.Questions
	pieces         *transport.PieceServer
	raft           transport.RaftServer
	foundings      *transport.PeerLimits // that other nodes ask the catalog for
	detector       *directory.Detector
	regions        *regions
	incarnations   incarnations
	reporter       *reporter
	consent        *consent
	publisher      *placement.Publisher
	supervisor     *placement.Supervisor
	hibernation    *hibernation
	facts          *integrity.Facts
	executor       *integrity.Executor
	damages        *integrity.Damages
	scrubber       *integrity.Scrubber
	vacater        *split.Vacater
	recovery       *integrity.Recovery
	bases          *integrity.Bases
	follower       *follower
	opener         *opener
	runner         *mods.Runner
	observer       *observer
	contradictions *health.Contradictions
	catalog        *actor.Catalog // as it was opened; nil: it was not stored here
}

// NewHost returns a host. It opens the catalog if that is stored here.
//
// Each part is made with those that it uses. The table of open regions is the first, and what opens them is the last.
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
	if o.Issued == nil { // all may be
		o.Issued = func(charter uint64, _ ed25519.PublicKey) (bool, error) { return charter == 0, nil }
	}

	// What is known here, without any question to other nodes.
	metrics, copyMetrics := newMetrics(o.Registerer), integrity.NewMetrics(o.Registerer)
	tasks := background.NewTasks()
	regions := newRegions(o.Self.Peer, o.Replicas, registry, tasks, metrics)
	facts, damages := integrity.NewFacts(o.Self.Peer, copyMetrics), integrity.NewDamages(copyMetrics)
	issuers := &integrity.Issuers{
		World: o.World, Issued: o.Issued, Key: o.Operator.Key, Sign: o.Operator.Sign, Charter: o.Operator.Charter,
	}
	incarnations := incarnations{o.Incarnations}
	contradictions := health.NewContradictions()
	loads, unwatched := split.NewLoads(o.Limits), split.NewUnwatched()

	// What asks other nodes.
	questions, pieces := transport.Questions{Peers: o.Peers}, transport.Pieces{Peers: o.Peers}
	detector := directory.NewDetector(directory.DetectorOptions{
		Grace: o.Grace, Describe: questions.Description, Connected: o.Peers.Connected, Excluded: o.Excluded, Clock: o.Clock,
	})
	reporter := &reporter{
		self: o.Self.Peer, regions: regions, storage: o.Storage, replicas: o.Replicas, questions: questions, facts: facts,
		incarnations: incarnations, issuers: issuers, loads: loads,
	}
	consent := &consent{ask: reporter.ask, contradictions: contradictions, logger: o.Logger}
	places := directory.New(directory.Options{
		Self: o.Self, Placement: o.Placement, Copies: o.Copies, Records: o.Records, Questions: questions, Detector: detector,
		Tasks: tasks, Catalog: regions.Catalog, Hung: o.Replicas.Hung, OwnCatalog: reporter.catalog, Vouched: issuers.Vouched,
		Logger: o.Logger, Registerer: o.Registerer,
	})
	policies, err := policysync.Open(policysync.Options{
		World: o.World, Self: o.Self.Peer, Storage: o.Storage, Directory: places, Detector: detector, Catalog: regions.Catalog,
		Issued: o.Issued, Operator: o.Operator, Now: o.Clock.Now, Settled: o.Clock.Settled, Logger: o.Logger, Registerer: o.Registerer,
	})
	if err != nil {
		return nil, err
	}
	kept, err := contents.Open(contents.Options{
		Self: o.Self.Peer, Storage: o.Storage, Fetch: pieces.Fetch, Wanted: func() []contents.Hash { return wanted(policies) },
		Known:  func() []string { return o.Records.NearestKnown(grid.CatalogKey, backups.MaxNodes) },
		Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	evicted, err := integrity.LoadEvicted(integrity.EvictedOptions{
		Self: o.Self, Storage: o.Storage, Replicas: o.Replicas, Questions: questions, Detector: detector, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}

	// What decides where regions live, and who leads them.
	tallies := tallies{regions, o.Records}
	supervisor := placement.New(placement.Options{
		Self: o.Self.Peer, Copies: o.Copies, CatalogCopies: o.CatalogCopies, Records: o.Records, Directory: places, Registry: registry,
		Questions: questions, Detector: detector, Tasks: tasks, Regions: regions, Failures: facts, Slow: o.Replicas.Slow,
		NotifyEvicted: evicted.Notify, Watch: tallies.watch, Logger: o.Logger, Registerer: o.Registerer,
	})
	publisher := placement.NewPublisher(placement.PublisherOptions{
		Self: o.Self.Peer, Registry: registry, Directory: places, Records: o.Records, Supervisor: supervisor,
		LedElsewhere: damages.LedElsewhere, Tasks: tasks, Stored: o.Replicas.Has, Catalog: regions.Catalog, Logger: o.Logger,
	})

	// What keeps copies sound.
	node := integrity.Node{
		Self: o.Self, Height: o.Height, Storage: o.Storage, Replicas: o.Replicas, Registry: registry, Directory: places,
		Questions: questions, Detector: detector, Tasks: tasks, Regions: regions, Logger: o.Logger, Metrics: copyMetrics,
	}
	bases := integrity.NewBases(node, integrity.BasesOptions{Base: o.Base, Ground: o.Ground, Records: o.Records, Pieces: pieces})
	executor := &integrity.Executor{Node: node, ExecutorOptions: integrity.ExecutorOptions{
		Facts: facts, Supervisor: supervisor, Records: o.Records,
		Judge: &integrity.Judge{
			Self: o.Self.Peer, Ask: reporter.ask, Suspected: detector.Suspected, Suspect: detector.Suspect,
			Listed: places.ByID, Vouched: issuers.Vouched, Contradicted: contradictions.Add,
		},
		Replaced: incarnations.replaced, ReopenCatalog: regions.reopenCatalog, CatalogReleased: regions.catalogReleased,
	}}
	scrubber := &integrity.Scrubber{Node: node, ScrubberOptions: integrity.ScrubberOptions{
		Every: o.ScrubEvery, Supervisor: supervisor, Damages: damages, Facts: facts, Pieces: pieces, Led: regions.ledLands,
	}}
	refounder := &integrity.Refounder{
		Node: node, Executor: executor, Evicted: evicted, AskStatuses: reporter.ask, LastHeard: detector.LastHeard,
	}
	recovery := &integrity.Recovery{
		Node: node, Executor: executor, Evicted: evicted, AskStatuses: reporter.ask, LastHeard: detector.LastHeard,
		Outdated: refounder.Outdated,
	}
	examiner := &health.Examiner{
		Node: node, Copies: o.Copies, CatalogCopies: o.CatalogCopies, Records: o.Records,
		Damages:     func() []integrity.Damage { return append(facts.Unsound(), damages.All()...) },
		AskStatuses: reporter.ask, Memberships: regions.memberships, Contradictions: contradictions,
		MachineAhead: o.Clock.MachineAhead, NotReady: o.NotReady, Loaded: regions.summaries, Copied: incarnations.copied,
	}

	// What players and operators do with land.
	follower := &follower{
		self: o.Self.Peer, regions: regions, unwatched: unwatched, replicas: o.Replicas, directory: places, detector: detector,
		questions: questions, tasks: tasks, ask: reporter.ask,
	}
	ranges := rollback.NewRanges(rollback.RangesOptions{
		Node: node, Lands: regions.lands, Quarantined: facts.Quarantined, Ground: o.Ground,
	})
	history := rollback.New(rollback.Options{
		Node: node, Lands: regions.lands, Ranges: ranges, Base: bases.BaseOf, Ground: o.Ground,
		Ordered: func() (all []policy.Rollback) {
			policies.Read(func(p *policy.State) { all = p.Rollbacks() })
			return all
		},
		Founded: func(ctx context.Context) ([]nodemsg.Region, error) {
			catalog, err := places.CatalogMembers(ctx)
			if err != nil {
				return nil, err
			}
			return examiner.AllRegions(ctx, catalog)
		},
		Now: o.Clock.Now, Settled: o.Clock.Settled, Registerer: o.Registerer,
	})
	splitter := &split.Splitter{
		Node: node, Follow: follower.follow, Create: incarnations.create, Pieces: pieces, Lands: regions.lands,
		Passed: history.Passed, AskStatuses: reporter.ask, Metrics: split.NewMetrics(o.Registerer), Askers: split.NewAskers(),
	}
	autoSplit := split.NewAutoSplit(split.AutoSplitOptions{
		Node: node, Loads: loads, Splitter: splitter, Supervisor: supervisor, Facts: facts, Led: regions.ledLands,
		AskStatuses: reporter.ask, Registerer: o.Registerer,
	})
	vacater := split.NewVacater(split.VacaterOptions{
		Node: node, Unwatched: unwatched, After: o.VacateAfter, Spawn: o.Spawn, Policy: policies, Supervisor: supervisor,
		Unusable: facts.Closed,
		Here: func(ctx context.Context, c *actor.Catalog, vacated nodemsg.Vacated) (nodemsg.Region, error) {
			return consent.vacated(ctx, o.Self.Peer, c, vacated)
		},
		AskStatuses: reporter.ask,
		OpenAt: func(ctx context.Context, peer string, info nodemsg.Region) error {
			link, _, err := follower.subscribeAt(ctx, peer, nodemsg.Hello{Region: info.ID, Cell: info.Cell})
			if err == nil {
				err = link.Close()
			}
			return err
		},
	})
	exporter := backups.NewExporter(backups.ExporterOptions{
		Node: node, AskStatuses: reporter.ask, Players: o.Players, Attester: o.Attester, Contradicted: contradictions.Add,
		Vouch: issuers.Vouch, Vouched: issuers.Vouched, UpdatePolicy: policies.Update,
		Known: func() []string { return o.Records.NearestKnown(grid.CatalogKey, backups.MaxNodes) },
	})

	hibernation := newHibernation(node, supervisor, facts, metrics)
	proofs := world.Proofs{
		Signed: signature.New(o.World).Signed, SignedAct: func(a nodemsg.Act) bool { return policy.Signed(o.World, a) },
	}
	runner := mods.NewRunner(mods.Options{
		Content: func(hash mod.Hash) ([]byte, error) { return kept.Get(contents.Hash(hash)) },
		Ground: func(ctx context.Context, pos grid.ChunkPos, hash *[32]byte) (*chunk.Chunk, error) {
			if c := o.Ground(pos); hash == nil || c.Hash() == *hash {
				return c, nil
			}
			return bases.BaseOf(ctx, pos, *hash)
		},
		Logger: o.Logger, Registerer: o.Registerer,
	})
	opener := &opener{
		Node: node, regions: regions, options: openerOptions{world: o.World, proofs: proofs, now: o.Clock.Now, say: saying(tasks, o.Say)},
		supervisor: supervisor, facts: facts, executor: executor, incarnations: incarnations, bases: bases,
		disk:      &integrity.Disk{Node: node, Pieces: pieces, DamagedLog: executor.DamagedLog},
		publisher: publisher, hibernation: hibernation, splitter: splitter, autoSplit: autoSplit, vacater: vacater, policy: policies, runner: runner,
		actors: actor.NewMetrics(o.Registerer), probes: probes{land: provocation()},
	}
	catalog, err := opener.begin(ctx, o.DamagedRegions)
	if err != nil {
		return nil, err
	}
	h := &Host{
		Options: o, Directory: places, Policy: policies, Contents: kept,
		Operations: Operations{
			Examiner: examiner, Exporter: exporter, Refounder: refounder, Splitter: splitter, AutoSplit: autoSplit, Ranges: ranges,
			History: history,
		},
		tasks: tasks, questions: questions, pieces: transport.NewPieceServer(answerPiece(regions, bases, kept, splitter)),
		foundings: transport.NewPeerLimits(foundRate, foundBurst), detector: detector, regions: regions, incarnations: incarnations,
		reporter: reporter, consent: consent, publisher: publisher, supervisor: supervisor, hibernation: hibernation, facts: facts,
		executor: executor, damages: damages, scrubber: scrubber, vacater: vacater, recovery: recovery, bases: bases,
		follower: follower, opener: opener, runner: runner,
		observer:       &observer{Options: o, tallies: tallies, detector: detector, facts: facts, metrics: metrics},
		contradictions: contradictions, catalog: catalog,
	}
	return h, nil
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
		h.opener.run, h.publisher.Republish, h.supervisor.Run, h.executor.Run, h.bases.Run, h.observer.run, h.Splitter.Run,
		h.AutoSplit.Run, h.vacater.Run, h.Policy.Run, h.Contents.Run, h.runner.Run, h.History.Run,
		func(serving context.Context) {
			<-ctx.Done()
			h.supervisor.StartLeaving()
			h.supervisor.HandOver(serving)
			end()
		},
	}
	if h.catalog != nil {
		tasks = append(tasks, func(ctx context.Context) { h.opener.runCatalog(ctx, h.catalog) })
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
func (h *Host) Regions(ctx context.Context) []Loaded { return h.regions.summaries(ctx) }

func (r *regions) summaries(ctx context.Context) []Loaded {
	var asked []*actor.Land
	var answers []chan Loaded
	for _, l := range r.lands() { // all at once: each answers at its next tick
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

// wanted returns the hashes of the contents that the policy names.
func wanted(policies *policysync.Copy) (all []contents.Hash) {
	policies.Read(func(p *policy.State) {
		for _, m := range p.Mods() {
			if !m.Removed {
				all = append(all, contents.Hash(m.Content))
			}
		}
		if hash, set := p.Settings().TexturesHash(); set {
			all = append(all, contents.Hash(hash))
		}
	})
	return all
}

// saying returns a function that has say called in a goroutine of its own.
func saying(tasks *background.Tasks, say func(context.Context, string, nodemsg.PrivateLine)) func(string, nodemsg.PrivateLine) {
	if say == nil {
		return nil
	}
	return func(gateway string, line nodemsg.PrivateLine) {
		tasks.Start(func(ctx context.Context) { say(ctx, gateway, line) })
	}
}

// answerPiece answers what other nodes fetch.
func answerPiece(regions *regions, bases *integrity.Bases, kept *contents.Store, splitter *split.Splitter) transport.AnswerPiece {
	return func(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched {
		var l *actor.Land
		switch {
		case f.Base != nil:
			return bases.Serve(ctx, *f.Base)
		case f.Content != nil:
			return kept.Serve(*f.Content)
		case f.Freeze != nil:
			return splitter.FreezeHere(ctx, peer, *f.Freeze)
		case f.Digests != nil:
			l = regions.Loaded(f.Digests.Group)
		case f.Part != nil:
			l = regions.Loaded(f.Part.Group)
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
}
