package region

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// TickEvery is the length of a tick: 20 a second (VoxelPopuli §3.2.3).
	TickEvery = 50 * time.Millisecond
	// idleTicks is how long a region stays loaded without a gateway: 10 s, so that somebody who
	// walks to and fro over a border does not load it each time.
	idleTicks = 200
	// A region that has applied busyEntries since it last had them stored does that every busyTicks only: the rows of
	// those who edit, with all that they did lately, are most of what a busy node writes.
	busyEntries = 4
	busyTicks   = 4
	// restEvery is the length of a tick of a region that is not led here, or that nobody watches.
	restEvery = 250 * time.Millisecond
	// lobbyTime is how long a gateway waits in a region that nobody leads, for somebody to do so.
	lobbyTime = 3 * time.Second
)

// group is the replication that a loop stands on; a *replica.Group.
type group interface {
	Propose(entry []byte) error
	Ready() <-chan struct{}
	Take() []replica.Delivery
	Applied(index uint64, writes []kv.Write)
	Campaign()
	Close() error
}

// loop is one loaded region. All fields below inbox belong to the goroutine of run.
type loop struct {
	info    wire.Region // its ID and Cell never change, the rest belongs to the goroutine of run
	inbox   *mailbox[func()]
	done    chan struct{} // closed when the group is closed and the host has forgotten the loop
	group   group
	raft    *replica.Group // the same, for the supervisor; nil in a quarantined region (see Host.awake)
	logger  *slog.Logger
	metrics *metrics
	// hash asks for the hash of a chunk's terrain; it comes back through the inbox as based.
	hash func(l *loop, pos grid.ChunkPos)
	// lull is told that the region could be put to sleep.
	lull func(l *loop)
	// acquaint asks for a member's address; it comes back through the inbox as meet.
	acquaint func(l *loop, peer string)
	// sure asks whether this node leads still, for a gateway that comes; the answer comes back as verified.
	sure func(l *loop, s *seat)
	// changed is told that this node now leads the region, or that the region has other members. It does
	// what is to be done outside of the tick.
	changed func(wire.Region)
	// reload reads the land anew after a snapshot has replaced it.
	reload func(wire.Region) (*world.Land, error)
	// read asks for what is on disk of the land's parts; it comes back as haveRead. mend asks for what the sources
	// of a mark kept; it comes back as endMending. pinned is told of new bases.
	read   func(l *loop, index uint64, parts map[world.Part][][]byte)
	mend   func(l *loop, index uint64, mends []world.Mend, need int)
	pinned func([]wire.BaseOf)
	self   string

	land     *world.Land
	crowd    *world.Crowd
	seats    map[*seat]struct{}
	watched  map[grid.ChunkPos]map[*seat]struct{} // no empty sets
	waiting  []queued                             // edits to be proposed, in order
	proposed []wire.Intent                        // edits proposed and not yet committed, in order
	pending  map[edit]asking                      // an entry for each edit in waiting or proposed
	bases    map[grid.ChunkPos]*[32]byte          // terrain hashes asked for (nil) and known, of chunks not yet pinned
	leader   string                               // as the group last said; empty while unknown
	leading  bool
	lobby    int // seats that wait for somebody to lead
	members  []replica.Member
	roster   map[string]wire.Member // those of the members whose addresses are known
	kept     string                 // the leader that the host was told of last
	lost     time.Time              // when this node lost the leadership while nobody was known to have it
	asleep   bool                   // the region is put to sleep: the loop is to end
	removed  bool                   // this node is no member any more
	term     uint64                 // in which this node led last
	stalled  error                  // why storage refuses writes; nil while it does not
	failed   bool
	hurt     *fault // why the loop is fenced; nothing is applied any more
	applying uint64 // log index of the entry that is being applied, 0 between two
	shut     string // why the loop is to end now; empty while it is not
	closed   bool   // the region is quarantined: it can be seen only
	then     func() // what is to be done when the loop has ended, before the region can be opened again
	budget   budget
	// careful: the region has failed lately, and may again. Each entry is handed in to be stored before the next is
	// applied, so that all that came before a poisonous one is on disk, and is shown in quarantine.
	careful bool
	// probe, if not nil, is called whenever commands were taken in, and with every entry before it is applied. Tests break regions by it.
	probe  func(l *loop, entry []byte)
	tick   uint64
	idle   int // ticks without a seat
	number uint64
	// discarded says, with removed, that somebody else deletes what is stored.
	discarded bool
	marks     map[uint64]chan<- uint64 // marks proposed here, by nonce, and who waits for their indexes
	look      *look                    // at the newest mark; nil if none came
	keepsakes []keepsake               // the oldest first
	mending   *mending                 // nil if the copy is not being mended
	held      []replica.Delivery       // what came while it was
	applied   uint64                   // the land has the entries up to this index
	reported  uint64                   // those up to this one were given to the group to be stored
	together  int                      // edits expected in the next entry: of those answered with the last, and of those who waited then
	gather    *time.Timer              // runs while edits wait for others
	gathers   bool                     // it runs
	flying    int                      // entries proposed in this term and not yet committed
	hurried   bool                     // all was told since the last tick: until the next one only answers are
}

func newLoop(h *Host, info wire.Region, g group, land *world.Land) *loop {
	return &loop{
		info: info, inbox: newMailbox[func()](0), done: make(chan struct{}),
		group: g, logger: h.Logger, metrics: h.metrics, hash: h.hash, acquaint: h.acquaint, lull: h.lull, sure: h.sure, changed: h.changed,
		reload: h.readLand, read: h.readParts, mend: h.mendParts, pinned: h.pinned, self: h.Self.Peer, roster: make(map[string]wire.Member),
		land: land, crowd: world.NewCrowd(info.Cell),
		seats:   make(map[*seat]struct{}),
		watched: make(map[grid.ChunkPos]map[*seat]struct{}),
		pending: make(map[edit]asking),
		bases:   make(map[grid.ChunkPos]*[32]byte),
		budget:  budget{cpu: h.cpu},
		probe:   h.probe,
	}
}

// seat is the place of one gateway in a region.
type seat struct {
	number uint64 // names it to the crowd
	out    *mailbox[wire.FromRegion]
	taken  []wire.FromRegion // belongs to the receiving goroutine
	credit chan struct{}     // holds a token for each message that the loop has not heard yet

	reading bool // it may have its seat where the disk refuses writes and nobody is known to lead

	// The rest belongs to the loop.
	since   time.Time // it is in the lobby since then; zero if it is not
	until   time.Time // it has its seat for reading only, and until then
	watch   map[grid.ChunkPos]struct{}
	fresh   []grid.ChunkPos            // watched, and still to be shown as a whole, in order
	shown   map[grid.ChunkPos]struct{} // as a whole, in this tick
	results []wire.EditResult
}

// run is the region's life: ticks until nobody watches any more, the group fails, or ctx ends.
func (l *loop) run(ctx context.Context) {
	every := l.pace()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	l.gather = time.NewTimer(time.Hour)
	l.gather.Stop()
	defer l.gather.Stop()
	due := time.Now()
	for {
		if pace := l.pace(); pace != every {
			every = pace
			ticker.Reset(every)
			due = time.Now()
		}
		select {
		case <-ctx.Done():
			l.end("the node is stopping")
			return
		case <-l.group.Ready():
			// Whoever waits for an answer gets it now, not at the next tick.
			l.budget.do(l.hasNews)
			if !l.failed && !l.removed {
				continue
			}
		case <-l.inbox.wake:
			if every == restEvery { // nobody waits for a tick then
				l.step()
				break
			}
			l.budget.do(l.hears)
			continue
		case <-l.gather.C:
			l.gathers = false
			l.propose()
			continue
		case <-ticker.C:
			start := time.Now()
			if due = due.Add(every); start.Sub(due) > every {
				l.metrics.lateTicks.Inc()
				due = start
			}
			l.metrics.tickSeconds.Observe(l.work(start).Seconds())
		}
		if l.hurt != nil {
			return // fenced: the rest is the host's
		}
		if why := l.over(); why != "" {
			l.end(why)
			return
		}
	}
}

// hasNews takes in what the group has between two ticks, and tells it.
func (l *loop) hasNews() {
	l.deliver()
	l.proposeTogether()
	l.hurry()
}

// hears takes in what others say between two ticks, and answers.
func (l *loop) hears() {
	l.listen()
	l.proposeTogether()
	l.hurry()
}

// work runs a tick that is due, and gives how long it took. A region that is led here and blows its budget is
// fenced, if another member can lead it; else it goes on: slow land is better than none.
func (l *loop) work(now time.Time) time.Duration {
	if !l.leading || l.pace() != TickEvery {
		l.budget.rest()
		l.step()
		return time.Since(now)
	}
	took, blown := l.budget.tick(l.step, now)
	if blown == nil {
		return took
	}
	if l.alone() || !l.substitute() {
		l.logger.Warn("region is slow, and nobody else can lead it", "region", l.info.ID, "cell", l.info.Cell.String(), "error", blown)
		return took
	}
	l.hurt = &fault{kind: slow, cause: blown}
	return took
}

// substitute tells whether another member could lead.
func (l *loop) substitute() bool {
	if l.raft == nil {
		return false
	}
	status := l.raft.Status()
	return slices.ContainsFunc(status.Members, func(m replica.Progress) bool {
		return m.Peer != l.self && !m.Learner && m.Active && m.Match+nearlyAll >= status.Last
	})
}

// pace is the length of the region's ticks now.
func (l *loop) pace() time.Duration {
	if l.leading && (l.idle <= idleTicks || !l.unloadable()) || l.alone() {
		return TickEvery
	}
	return restEvery
}

// alone tells whether the group has no other members.
func (l *loop) alone() bool { return len(l.members) <= 1 }

// over says why the loop must end now; it is empty if it need not.
func (l *loop) over() string {
	l.asleep = l.asleep && len(l.seats) == 0
	switch {
	case l.removed:
		return "the region has moved to other nodes"
	case l.shut != "":
		return l.shut
	case l.failed:
		return "the region's storage failed"
	case l.asleep && l.inbox.closeIfEmpty():
		return "the region sleeps"
	case l.alone() && l.idle > idleTicks && l.unloadable() && l.inbox.closeIfEmpty():
		return "nobody watches"
	default:
		return ""
	}
}

// step is one tick.
func (l *loop) step() {
	l.tick++
	l.crowd.Tick()
	l.listen()
	l.deliver()
	l.lookOn()
	if l.applied-l.reported < busyEntries || l.tick%busyTicks == 0 {
		l.report()
	}
	l.propose()
	l.tell()
	l.hurried = false
	l.wait()
	l.endReading()
	l.idle++
	if len(l.seats) > 0 {
		l.idle = 0
	}
	if l.sleepy() {
		l.lull(l)
	}
}

// listen takes in what gateways and the host say.
func (l *loop) listen() {
	inputs, _ := l.inbox.take()
	for _, input := range inputs {
		input()
	}
	if l.probe != nil {
		l.probe(l, nil)
	}
}

// unloadable tells whether nothing would be lost or left unanswered if the region were closed now.
func (l *loop) unloadable() bool {
	return len(l.waiting) == 0 && len(l.pending) == 0 && !l.looking()
}

// end closes the group and dismisses all gateways, also those that were just coming in. Commands that
// come later find the inbox closed.
func (l *loop) end(why string) {
	l.inbox.close()
	inputs, _ := l.inbox.take()
	for _, input := range inputs {
		input()
	}
	for s := range l.seats {
		l.dismiss(s, why)
	}
	l.report()
	if err := l.group.Close(); err != nil {
		l.logger.Error("close region", "region", l.info.ID, "error", err)
	}
	l.logger.Debug("region unloaded", "region", l.info.ID, "cell", l.info.Cell, "why", why)
}
