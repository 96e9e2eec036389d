// Package placement decides and executes which nodes are the members of the groups that this node leads, which of them
// leads, and what a node does that is about to stop. The decisions are pure (package membership); a Supervisor executes
// them. A Publisher stores and publishes what this node knows of its regions: in its own list, in the catalog, in the
// DHT, and with the leaders of neighbouring regions.
//
// Supervisor.Run has a goroutine of its own and starts one task for each group that it changes. Any goroutine may call
// the other methods.
package placement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// settleTime bounds how long a leader waits for one change of members before it checks again, and settlePoll is the
	// interval of its checks meanwhile.
	settleTime = 3 * time.Second
	settlePoll = 50 * time.Millisecond
	// maxReconciles bounds how many groups are changed at the same time.
	maxReconciles = 8
	// Neighbours is how many nodes are watched in any case.
	Neighbours = 16
	// rowsEvery is the number of rounds between two checks of the closed groups.
	rowsEvery = 5
	// maxSkippedChecks is the number of rounds after which the closed groups are checked even if nothing seems to have
	// changed among the nodes.
	maxSkippedChecks = 150
	// maxMoving bounds how many closed groups are open at a time because their members must be changed.
	maxMoving = 2 * maxReconciles
	// movingRounds is the number of rounds after which such a group counts no longer, whatever became of it.
	movingRounds = 15
)

// Group is a group that this node leads and whose members the supervisor maintains.
type Group struct {
	ID    uint64
	Cell  grid.Cell // of a region
	Raft  *replica.Group
	Actor *actor.Actor
}

// GroupOf returns the group of a region.
func GroupOf(l *actor.Land) Group {
	return Group{ID: l.ID(), Cell: l.Cell(), Raft: l.Raft(), Actor: l.Actor}
}

// target returns the group's key in the DHT, to which its members are to be the nearest nodes, and how many members it
// should have at least: see membership.Choose.
func (sv *Supervisor) target(w Group) (key string, copies int) {
	if w.ID == world.CatalogID {
		return grid.CatalogKey, sv.CatalogCopies
	}
	return sv.Directory.Key(w.Cell), sv.Copies
}

// Regions are the groups that are open on this node.
type Regions interface {
	// Led lists the groups that this node leads.
	Led() []Group
	// Loaded returns a loaded region, or nil.
	Loaded(id uint64) *actor.Land
	// Open returns a region's land and loads it first if necessary.
	Open(ctx context.Context, id uint64, cell grid.Cell) (*actor.Land, error)
}

// Options configure a Supervisor. All fields are required.
type Options struct {
	Self          string
	Copies        int // least number of members of a region
	CatalogCopies int // and of the catalog
	Records       directory.Records
	Directory     *directory.Directory
	Registry      *directory.Registry
	Questions     transport.Questions
	Detector      *directory.Detector
	Tasks         *background.Tasks
	Regions       Regions
	Failures      Failures
	Slow          func() bool // reports whether this node's disk does not answer, or did not lately: others should lead
	// NotifyEvicted is called once a round by Run.
	NotifyEvicted func(context.Context)
	// Watch adds the nodes to watch besides the members of the groups that this node leads.
	Watch      func(directory.Watched)
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Failures are the failures of regions on this node; implemented by *integrity.Facts.
type Failures interface {
	// FailedLately reports whether the region has failed here within the last minutes.
	FailedLately(id uint64) bool
	// Closed reports whether the region stays closed here.
	Closed(id uint64) bool
}

// Supervisor makes the members of the groups that this node leads follow their keys.
type Supervisor struct {
	Options
	*announcements

	metrics *metrics
	closed  closedRegions
	leave   sync.Once     // closes leaving
	leaving chan struct{} // closed when this node is about to stop: see Drain

	mu struct {
		sync.Mutex
		reconciling map[uint64]struct{}    // groups whose members are being changed
		ledSince    map[uint64]leadership  // of the groups that this node leads or led
		refusals    map[invitation]refusal // of learners, to join
	}
}

// New returns a supervisor.
func New(o Options) *Supervisor {
	sv := &Supervisor{
		Options: o, metrics: newMetrics(o.Registerer), leaving: make(chan struct{}),
	}
	sv.closed.moving = make(map[uint64]int)
	sv.mu.reconciling = make(map[uint64]struct{})
	sv.announcements = newAnnouncements(o.Directory, o.Tasks, o.Logger)
	sv.mu.ledSince = make(map[uint64]leadership)
	sv.mu.refusals = make(map[invitation]refusal)
	return sv
}

// BeginChange reports whether the group may be reconciled now: it may not if it is being reconciled already, or too
// many others are.
func (sv *Supervisor) BeginChange(id uint64) bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if _, under := sv.mu.reconciling[id]; under || len(sv.mu.reconciling) >= maxReconciles {
		return false
	}
	sv.mu.reconciling[id] = struct{}{}
	return true
}

// EndChange ends what BeginChange has begun.
func (sv *Supervisor) EndChange(id uint64) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	delete(sv.mu.reconciling, id)
}

// memberStates returns the members as the leader sees them.
func (sv *Supervisor) memberStates(w Group, s replica.Status) []membership.Member {
	states := make([]membership.Member, len(s.Members))
	for i, m := range s.Members {
		self := m.Peer == sv.Self
		slow, failed := sv.Slow(), sv.Failures.FailedLately(w.ID)
		if about, _ := sv.Detector.About(m.Peer); !self {
			slow, failed = about.Slow, slices.Contains(about.Failed, w.ID)
		}
		states[i] = membership.Member{
			Peer: m.Peer, Learner: m.Learner,
			CaughtUp: self || m.Active && !m.Snapshotting && m.Match+actor.NearlyAll >= s.Last,
			Leaving:  sv.Detector.Leaving(m.Peer),
			Gone:     !self && !m.Active && sv.Detector.Gone(m.Peer),
			Lost:     !self && sv.Detector.Lost(m.Peer),
			Failed:   failed,
			Slow:     slow,
		}
	}
	return states
}

// outdated reports whether a node runs an earlier version: it would refuse what others apply.
func (sv *Supervisor) outdated(peer string) bool {
	version, known := sv.Detector.Version(peer)
	return known && version < nodemsg.Version
}

// next returns the next change to the group.
func (sv *Supervisor) next(w Group, s replica.Status) membership.Step {
	size, nearest := sv.nearestOf(w, s)
	return membership.Next(sv.Self, sv.memberStates(w, s), nearest, size)
}

// nearestOf returns how many members the group should have, and the nodes nearest to its key that can be members: live
// nodes that understand its log, and members whose grace period is not over. Those that should be members are first.
func (sv *Supervisor) nearestOf(w Group, s replica.Status) (size int, nearest []string) {
	members, voters := make([]string, len(s.Members)), make([]string, 0, len(s.Members))
	for i, m := range s.Members {
		members[i] = m.Peer
		if !m.Learner {
			voters = append(voters, m.Peer)
		}
	}
	key, copies := sv.target(w)
	nearest = sv.Records.NearestKnown(key, directory.Candidates, members...)
	nearest = slices.DeleteFunc(nearest, func(peer string) bool {
		if peer == sv.Self {
			return false
		}
		i := slices.IndexFunc(s.Members, func(m replica.Progress) bool { return m.Peer == peer })
		if i >= 0 && (s.Members[i].Active || !sv.Detector.Gone(peer)) {
			return false
		}
		_, lives := sv.Detector.Alive(peer)
		return !lives || i < 0 && (sv.outdated(peer) || sv.avoids(w.ID, peer))
	})
	return membership.Choose(copies, voters, nearest, sv.Records.Operator)
}

// forgetDeleted forgets the regions that are no longer stored here.
func (sv *Supervisor) forgetDeleted() {
	sv.mu.Lock()
	known := slices.Collect(maps.Keys(sv.mu.ledSince))
	sv.mu.Unlock()
	for _, id := range append(known, sv.announcements.known()...) {
		if _, err := sv.Registry.Region(id); id == world.CatalogID || !errors.Is(err, actor.ErrNotHere) { // not with a lock: it reads the disk
			continue
		}
		sv.announcements.forget(id)
		sv.mu.Lock()
		delete(sv.mu.ledSince, id)
		sv.mu.Unlock()
	}
}

// Change begins a change of members and waits until it is committed.
func (sv *Supervisor) Change(ctx context.Context, w Group, kind, peer string, begin func(string) error) error {
	before := w.Raft.Configuration().Index
	if err := begin(peer); err != nil {
		return err
	}
	done := func() bool {
		conf := w.Raft.Configuration()
		return conf.Index > before && hasMembers(w.Raft.Status(), conf)
	}
	if err := AwaitGroup(ctx, done); err != nil {
		return err
	}
	sv.metrics.changes.WithLabelValues(kind).Inc()
	sv.Logger.Info("region's members are being changed", "group", w.ID, "change", kind, "peer", peer)
	return nil
}

// hasMembers reports whether the status, which is as of the group's last tick, has these members already.
func hasMembers(s replica.Status, conf replica.Configured) bool {
	return slices.EqualFunc(s.Members, conf.Members, func(p replica.Progress, m replica.Member) bool { return p.Member == m })
}

var errUnsettled = errors.New("timed out")

// AwaitGroup waits for a condition that the group brings about.
func AwaitGroup(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return errUnsettled
		case <-poll.C:
		}
	}
	return nil
}

// UpToDate returns the live members other than this node, all of which have applied as much as this node. It returns an
// error if there is another live one, the members are to be changed, or the catalog does not have them.
func (sv *Supervisor) UpToDate(ctx context.Context, w Group, status replica.Status) ([]string, error) {
	next := sv.next(w, status)
	if next.Kind != membership.Stay && next.Kind != membership.Transfer {
		return nil, errors.New("its members are being changed")
	}
	info, err := w.Actor.Info(ctx)
	if err == nil {
		err = sv.Announce(ctx, info)
	}
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range status.Members {
		switch {
		case m.Peer == sv.Self:
		case m.Active && m.Match >= status.Last:
			others = append(others, m.Peer)
		case !sv.Detector.Gone(m.Peer):
			return nil, fmt.Errorf("member %s is not up to date", m.Peer)
		}
	}
	return others, nil
}

// leadership is the time since when this node was seen to lead a group, in one term.
type leadership struct {
	term  uint64
	since time.Time
}

// closedRegions are the closed regions that this node is responsible for and whose members are not the right ones. It
// belongs to Run.
type closedRegions struct {
	nodes     string         // summary of the nodes' states at the last check
	misplaced []uint64       // ids, found by the last check and not looked at since
	moving    map[uint64]int // opened since, and the round from which they count no longer
}
