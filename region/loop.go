package region

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// TickEvery is the length of a tick: 20 ticks a second (VoxelPopuli §3.2.3).
	TickEvery = 50 * time.Millisecond
	// idleTicks is how many ticks a region stays loaded without a gateway: 10 s, so that a player walking to and fro over a
	// border does not load it each time.
	idleTicks = 200
	// A region that has applied at least busyEntries entries since its last report reports only every busyTicks ticks: the rows
	// of active builders, which contain all their recent edits, are most of what a busy node writes.
	busyEntries = 4
	busyTicks   = 4
	// restEvery is the length of a tick of a region that is not led here, or that no gateway watches.
	restEvery = 250 * time.Millisecond
	// pendingTime is how long a gateway waits in a region without a leader.
	pendingTime = 3 * time.Second
)

// group is the replication of a loop; implemented by *replica.Group.
type group interface {
	Propose(entry []byte) error
	Ready() <-chan struct{}
	Dequeue() []replica.Delivery
	ReportApplied(index uint64, writes []kv.Write)
	Campaign()
	Close() error
}

// loop is one loaded region. All fields below inbox belong to the goroutine of run.
type loop struct {
	info    nodemsg.Region // its ID and Cell never change, the rest belongs to the goroutine of run
	inbox   *mailbox.Mailbox[func()]
	done    chan struct{} // closed when the group is closed and the host has removed the loop
	group   group
	raft    *replica.Group // the same, for the supervisor; nil in a quarantined region (see Host.loadGroup)
	logger  *slog.Logger
	metrics *metrics
	// hash requests the hash of a chunk's terrain, which arrives through the inbox as setTerrainHash.
	hash func(l *loop, pos grid.ChunkPos)
	// hibernate is called when the region can hibernate.
	hibernate func(l *loop)
	// resolveMember requests a member's address, which arrives through the inbox as addMember.
	resolveMember func(l *loop, peer string)
	// confirmLeadership checks whether this node still leads, for a gateway that wants to subscribe. The result arrives as
	// leadershipChecked.
	confirmLeadership func(l *loop, s *subscriber)
	// changed is called when this node becomes the leader, or the members change. It runs the consequences outside of the tick.
	changed func(nodemsg.Region)
	// reload reads the land again after a snapshot has replaced it.
	reload func(nodemsg.Region) (*world.Land, error)
	// read requests what is on disk of the land's parts, which arrives as haveRead. mend requests what the sources of a mark
	// retained, which arrives as endMending. pinned is called with new bases.
	read   func(l *loop, index uint64, parts map[world.Part][][]byte)
	mend   func(l *loop, index uint64, mends []world.Repair, need int)
	pinned func([]nodemsg.BaseOf)
	self   string

	land               *world.Land
	crowd              *world.Crowd
	subscribers        map[*subscriber]struct{}
	watched            map[grid.ChunkPos]map[*subscriber]struct{} // no empty sets
	waiting            []queued                                   // edits to be proposed, in order
	proposed           []nodemsg.Intent                           // edits proposed and not yet committed, in order
	pending            map[edit]pendingEdit                       // an entry for each edit in waiting or proposed
	bases              map[grid.ChunkPos]*[32]byte                // terrain hashes requested (nil) and known, of chunks not yet pinned
	leader             string                                     // as the group last reported; empty while unknown
	leading            bool
	pendingSubscribers int // number of subscribers that wait for a leader
	members            []replica.Member
	roster             map[string]nodemsg.Member // those members whose addresses are known
	reportedLeader     string                    // the leader last reported to the host
	leadershipLost     time.Time                 // when this node lost the leadership while no other leader was known
	hibernating        bool                      // the region hibernates: the loop is to end
	removed            bool                      // this node is no longer a member
	term               uint64                    // the last term in which this node led
	stalled            error                     // why storage refuses writes; nil while it does not
	failed             bool
	fault              *fault // why the loop is isolated; nothing is applied any more
	applying           uint64 // log index of the entry that is being applied, 0 between entries
	closeReason        string // why the loop must end now; empty while it need not
	readOnly           bool   // the region is quarantined: it is read-only
	afterEnd           func() // called when the loop has ended, before the region can be opened again
	budget             budget
	// careful is set if the region has failed lately. Each entry is then reported to be stored before the next is applied, so
	// that everything before an entry that causes a failure is on disk, and is shown in quarantine.
	careful bool
	// probe, if not nil, is called after commands were handled, and with every entry before it is applied. Tests use it to make
	// regions fail.
	probe  func(l *loop, entry []byte)
	tick   uint64
	idle   int // ticks without a subscriber
	number uint64
	// discarded is set, with removed, if other code deletes what is stored.
	discarded      bool
	markWaiters    map[uint64]chan<- uint64 // marks proposed here, by nonce, and the channels that wait for their indexes
	look           *look                    // for the newest mark; nil if there was none
	retained       []retained               // oldest first
	mending        *mending                 // nil if the copy is not being repaired
	heldDeliveries []replica.Delivery       // what arrived during the repair
	applied        uint64                   // the land contains the entries up to this index
	reported       uint64                   // the entries up to this one were given to the group to be stored
	expected       int                      // edits expected in the next entry: of the players answered with the last one, and of those who waited then
	gatherTimer    *time.Timer              // runs while edits wait for others
	gathering      bool                     // it runs
	inFlight       int                      // entries proposed in this term and not yet committed
	publishedEarly bool                     // everything was published since the last tick: until the next one only answers are
}

func newLoop(h *Host, info nodemsg.Region, g group, land *world.Land) *loop {
	return &loop{
		info: info, inbox: mailbox.New[func()](0), done: make(chan struct{}),
		group: g, logger: h.Logger, metrics: h.metrics, self: h.Self.Peer,
		hash: h.hash, resolveMember: h.resolveMember, hibernate: h.hibernate, confirmLeadership: h.confirmLeadership, changed: h.changed,
		reload: h.readLand, read: h.readParts, mend: h.mendParts, pinned: h.pinned, roster: make(map[string]nodemsg.Member),
		land: land, crowd: world.NewCrowd(info.Cell),
		subscribers: make(map[*subscriber]struct{}),
		watched:     make(map[grid.ChunkPos]map[*subscriber]struct{}),
		pending:     make(map[edit]pendingEdit),
		bases:       make(map[grid.ChunkPos]*[32]byte),
		budget:      budget{cpu: h.cpu},
		probe:       h.probe,
	}
}

// subscriber is a gateway that follows a region.
type subscriber struct {
	number   uint64 // identifies it to the crowd
	out      *mailbox.Mailbox[nodemsg.FromRegion]
	buffered []nodemsg.FromRegion // belongs to the receiving goroutine
	credit   chan struct{}        // holds a token for each message that the loop has not handled yet

	reading bool // it accepts a read-only subscription where the disk refuses writes and no leader is known

	// The fields below belong to the loop.
	pendingSince  time.Time // it is pending since then; zero if it is not
	readOnlyUntil time.Time // it is subscribed read-only, and until then
	watch         map[grid.ChunkPos]struct{}
	unsent        []grid.ChunkPos            // watched, and still to be sent as a whole, in order
	shown         map[grid.ChunkPos]struct{} // sent as a whole in this tick
	results       []nodemsg.EditResult
}

// run runs ticks until no gateway watches the region any more, the group fails, or ctx ends.
func (l *loop) run(ctx context.Context) {
	every := l.tickInterval()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	l.gatherTimer = time.NewTimer(time.Hour)
	l.gatherTimer.Stop()
	defer l.gatherTimer.Stop()
	due := time.Now()
	for {
		if pace := l.tickInterval(); pace != every {
			every = pace
			ticker.Reset(every)
			due = time.Now()
		}
		select {
		case <-ctx.Done():
			l.end("the node is stopping")
			return
		case <-l.group.Ready():
			// Answer waiting gateways now, not at the next tick.
			l.budget.run(l.handleCommits)
			if !l.failed && !l.removed {
				continue
			}
		case <-l.inbox.Wake():
			if every == restEvery { // no gateway waits for a tick then
				l.step()
				break
			}
			l.budget.run(l.handleInbox)
			continue
		case <-l.gatherTimer.C:
			l.gathering = false
			l.propose()
			continue
		case <-ticker.C:
			start := time.Now()
			if due = due.Add(every); start.Sub(due) > every {
				l.metrics.lateTicks.Inc()
				due = start
			}
			l.metrics.tickSeconds.Observe(l.runTick(start).Seconds())
		}
		if l.fault != nil {
			return // isolated: the host does the rest
		}
		if why := l.endReason(); why != "" {
			l.end(why)
			return
		}
	}
}

// handleCommits applies what the group has committed between two ticks, and publishes it.
func (l *loop) handleCommits() {
	l.deliver()
	l.proposeTogether()
	l.publishEarly()
}

// handleInbox applies what others send between two ticks, and answers.
func (l *loop) handleInbox() {
	l.runInbox()
	l.proposeTogether()
	l.publishEarly()
}

// runTick runs a tick that is due, and returns how long it took. A region that is led here and exceeds its budget is isolated if
// another member can lead it. Otherwise it continues: slow land is better than none.
func (l *loop) runTick(now time.Time) time.Duration {
	if !l.leading || l.tickInterval() != TickEvery {
		l.budget.rest()
		l.step()
		return time.Since(now)
	}
	took, blown := l.budget.tick(l.step, now)
	if blown == nil {
		return took
	}
	if l.isOnlyMember() || !l.hasSubstitute() {
		l.logger.Warn("region is slow and no other member can lead it", "region", l.info.ID, "cell", l.info.Cell.String(), "error", blown)
		return took
	}
	l.fault = &fault{kind: slow, cause: blown}
	return took
}

// hasSubstitute reports whether another member could lead.
func (l *loop) hasSubstitute() bool {
	if l.raft == nil {
		return false
	}
	status := l.raft.Status()
	return slices.ContainsFunc(status.Members, func(m replica.Progress) bool {
		return m.Peer != l.self && !m.Learner && m.Active && m.Match+nearlyAll >= status.Last
	})
}

// tickInterval returns the current length of the region's ticks.
func (l *loop) tickInterval() time.Duration {
	if l.leading && (l.idle <= idleTicks || !l.unloadable()) || l.isOnlyMember() {
		return TickEvery
	}
	return restEvery
}

// isOnlyMember reports whether the group has no other members.
func (l *loop) isOnlyMember() bool { return len(l.members) <= 1 }

// endReason returns why the loop must end now, or "".
func (l *loop) endReason() string {
	l.hibernating = l.hibernating && len(l.subscribers) == 0
	switch {
	case l.removed:
		return "the region has moved to other nodes"
	case l.closeReason != "":
		return l.closeReason
	case l.failed:
		return "the region's storage failed"
	case l.hibernating && l.inbox.CloseIfEmpty():
		return "the region sleeps"
	case l.isOnlyMember() && l.idle > idleTicks && l.unloadable() && l.inbox.CloseIfEmpty():
		return "no gateway watches it"
	default:
		return ""
	}
}

// step is one tick.
func (l *loop) step() {
	l.tick++
	l.crowd.Tick()
	l.runInbox()
	l.deliver()
	l.continueLook()
	if l.applied-l.reported < busyEntries || l.tick%busyTicks == 0 {
		l.report()
	}
	l.propose()
	l.publish()
	l.publishedEarly = false
	l.awaitLeader()
	l.endReading()
	l.idle++
	if len(l.subscribers) > 0 {
		l.idle = 0
	}
	if l.canHibernate() {
		l.hibernate(l)
	}
}

// runInbox runs the closures that the links and the host have queued.
func (l *loop) runInbox() {
	inputs, _ := l.inbox.Drain()
	for _, input := range inputs {
		input()
	}
	if l.probe != nil {
		l.probe(l, nil)
	}
}

// unloadable reports whether the region could be closed now without losing anything or leaving a request unanswered.
func (l *loop) unloadable() bool {
	return len(l.waiting) == 0 && len(l.pending) == 0 && !l.looking()
}

// end closes the group and dismisses all gateways, including those that were just coming in. Later commands find the inbox
// closed.
func (l *loop) end(why string) {
	l.inbox.Close()
	inputs, _ := l.inbox.Drain()
	for _, input := range inputs {
		input()
	}
	for s := range l.subscribers {
		l.dismiss(s, why)
	}
	l.report()
	if err := l.group.Close(); err != nil {
		l.logger.Error("close region", "region", l.info.ID, "error", err)
	}
	l.logger.Debug("region unloaded", "region", l.info.ID, "cell", l.info.Cell, "why", why)
}
