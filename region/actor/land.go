package actor

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/mods"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

const (
	// idleTicks is how many ticks a region stays loaded without a gateway: 10 s, so that a player walking to and fro
	// over a border does not load it each time.
	idleTicks = 200
	// A region that has applied at least busyEntries entries since its last report reports only every busyTicks ticks:
	// the rows of active builders, which contain all their recent edits, are most of what a busy node writes.
	busyEntries = 4
	busyTicks   = 4
	// restEvery is the length of a tick of a region that is not led here, or that no gateway watches.
	restEvery = 250 * time.Millisecond
	// PendingTime is how long a gateway waits in a region without a leader.
	PendingTime = 3 * time.Second
)

// LandOptions are what a Land needs besides. The functions are called in its goroutine and must not block; what they
// request arrives later, from any goroutine, by the function that they are passed.
type LandOptions struct {
	// Hash requests the hash of a chunk's terrain.
	Hash func(pos grid.ChunkPos, found func(base [32]byte, failed *Fault))
	// Hibernate is called when the region can hibernate.
	Hibernate func(*Land)
	// StayAwake reports whether an idle region is not to be closed yet. If nil, it may be.
	StayAwake func(id uint64) bool
	// Reload reads the land again after a snapshot has replaced it. It is called in the land's goroutine, and blocks
	// it.
	Reload func(nodemsg.Region) (*world.Land, error)
	// ReadParts requests what is on disk of the land's parts, at the index or later.
	ReadParts func(l *Land, index uint64, parts map[world.Part][][]byte, read func([]DiskPart, error))
	// FetchParts requests what the sources of a barrier retained.
	FetchParts func(m RepairRequest, fetched func([]FetchedPart))
	// Split requests that the children of a split region begin on this node, durably, with the members of the split.
	Split func(s Split, done func(error))
	// Merged is called when the split at an index has been undone: the children are no more.
	Merged func(parent nodemsg.Region, split uint64)
	// Resolve is called every now and then while the region is frozen for a merge, and when it was given up.
	Resolve func(l *Land, s world.Structure, leads bool)
	// Pinned is called with new bases.
	Pinned func([]nodemsg.BaseOf)
	// RefuseEdit returns why a player may not make an edit, if its proof is right, as one of the Refused… codes of wire;
	// empty if they may. If nil, everybody may.
	RefuseEdit func(*nodemsg.Intent) string
	// Orders returns the policy's orders that are known here. If nil, there are none.
	Orders func() Orders
	// RunScript has the script of a mod handle events. If nil, events wait.
	RunScript func(mods.Task)
	// Say shows a player, on the gateway of a node, what a mod tells them. If nil, nobody is shown that.
	Say func(gateway string, line nodemsg.PrivateLine)
	// Proofs decide whose edits are accepted. Its functions may be called in any goroutine.
	Proofs world.Proofs
	// Now returns the time of edits. If nil, it is that of the machine.
	Now func() time.Time
	// CPU measures how long a piece of work keeps a core busy. If nil, it is measured as the system allows.
	CPU func(work func()) time.Duration
	// Probe, if not nil, is called after commands were handled, with no entry, and with every entry before it is
	// applied. Tests make regions fail by it.
	Probe func(tx Tx, entry []byte)
}

// Land is a region that is open on this node.
type Land struct {
	*Actor
	cell grid.Cell
	land *land // for enqueue, Run and the messages of gateways
}

// Tx is a region as it is in its goroutine. Who is passed one is called there, and must not keep it.
type Tx struct{ *land }

// land is the state of a region.
type land struct {
	*core
	LandOptions
	handle *Land

	contents   *contents
	hub        *hub
	edits      *editQueue
	inspection *inspection
	budget     budget
	splitter   splitter
	marks      marker
	mods       scripts
	changed    map[grid.ChunkPos]int // edits applied since SampleLoad

	idle           int    // ticks without a subscriber
	applied        uint64 // the land contains the entries up to this index
	reported       uint64 // the entries up to this one were given to the group to be stored
	reportedLeader string // the leader last reported by Changed
	// unconfirmedSince is since when the disk does not answer, or refuses writes; zero if it works.
	unconfirmedSince time.Time
	leadershipLost   time.Time // when this node lost the leadership while no other leader was known
	hibernating      bool      // the region hibernates: the actor is to end
	hibernated       bool      // it has ended for that
	// careful is set if the region has failed lately. Each entry is then reported to be stored before the next is
	// applied, so that everything before an entry that causes a failure is on disk, where a backup finds it.
	careful bool
}

// NewLand returns the land of a region whose group is open, which Run runs. Careful is set if the region has failed
// lately.
func NewLand(base Options, o LandOptions, info nodemsg.Region, g Group, stored *world.Land, careful bool) *Land {
	if o.CPU == nil {
		o.CPU = threadTime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StayAwake == nil {
		o.StayAwake = func(uint64) bool { return false }
	}
	c := &contents{land: stored, crowd: crowd.New(info.Cell)}
	l := &land{core: newCore(base, info, g), LandOptions: o, contents: c, budget: newBudget(o.CPU), careful: careful, changed: make(map[grid.ChunkPos]int)}
	l.handle = &Land{l.Actor, info.Cell, l}
	l.machine = l
	l.edits = newEditQueue(c, info.Cell, g, o.Now, l.requestHash, func() bool { return l.mods.grant() && l.marks.arrived(l) }, func(err error) {
		l.Logger.Debug("proposal not accepted; edits wait", "region", info.ID, "error", err)
	})
	l.hub = newHub(c, l.edits.forget, func() { l.Logger.Warn("link closed: gateway too slow", "region", info.ID) })
	l.contents.land.Proofs = o.Proofs
	l.inspection = &inspection{
		contents: c, self: base.Self.Peer, waiters: make(map[uint64]chan<- uint64),
		read: func(index uint64, parts map[world.Part][][]byte) {
			l.ReadParts(l.handle, index, parts, func(disk []DiskPart, err error) {
				l.handle.enqueue(func(l *land) { l.inspection.haveRead(index, disk, err) })
			})
		},
		unkept: func(p world.Part, err error) {
			l.Logger.Error("part not retained for other members", "region", l.info.ID, "part", p.String(), "error", err)
		},
	}
	l.splitter.land, l.mods.land = l, l
	l.splitter.takeOver()
	if l.raft != nil {
		l.applied, l.reported = l.raft.AppliedIndex(), l.raft.AppliedIndex()
		l.applyMembers(l.raft.AppliedConfiguration()) // a split that comes first has these
	}
	return l.handle
}

// Enqueue has f called in the region's goroutine. It reports false if the region has ended.
func (l *Land) Enqueue(f func(Tx)) bool { return l.enqueue(func(l *land) { f(Tx{l}) }) }

func (l *Land) enqueue(f func(*land)) bool { return l.mailbox.Put(func() { f(l.land) }) }

// requestHash requests the hash of a chunk's terrain.
func (l *land) requestHash(pos grid.ChunkPos) {
	l.Hash(pos, func(base [32]byte, failed *Fault) {
		l.handle.enqueue(func(l *land) {
			if failed != nil {
				panic(failed) // it is the region's terrain, so the region is isolated
			}
			l.edits.setTerrainHash(pos, base)
		})
	})
}

// unloadable reports whether the region could be closed now without losing anything or leaving a request unanswered.
func (l *land) unloadable() bool {
	return l.edits.empty() && !l.inspection.busy() && !l.paused && !l.edits.frozen
}

// end dismisses all gateways, including those that were just coming in.
func (l *land) end(why string) {
	if l.fault != nil {
		if l.hub.elsewhere = ""; l.ledElsewhere() {
			l.hub.elsewhere = l.leader
		}
		l.hub.abandon(why)
		return
	}
	l.hub.dismissAll(why)
	l.report()
}

// salvage stores the land: of a region that stays closed, a backup has what is stored.
func (l *land) salvage() { l.report() }

// Summary is the state of a region.
type Summary struct {
	Region nodemsg.Region
	Voters int // members of the group that have a vote
	Links  int
	Bodies int
	Edits  int
	// Suspended are the mods that are suspended in the region.
	Suspended []world.ModStatus
}

// Summarize sends the region's state to answer, which must have room for it. It reports false if the region has ended,
// or is about to: then nothing is sent.
func (l *Land) Summarize(answer chan<- Summary) bool {
	return l.enqueue(func(l *land) {
		answer <- Summary{
			Region: l.info, Voters: voters(l.members), Links: l.hub.len(), Bodies: l.contents.crowd.Len(),
			Edits: l.contents.land.Edits(), Suspended: l.mods.suspended(),
		}
	})
}

// Cell returns the region's cell.
func (l *Land) Cell() grid.Cell { return l.cell }

// Region returns the region, without applying anything that is committed.
func (tx Tx) Region() nodemsg.Region { return tx.info }

// Leads reports whether this node leads the region.
func (tx Tx) Leads() bool { return tx.leading }

// Contents returns the land.
func (tx Tx) Contents() *world.Land { return tx.contents.land }

// Applied returns the log index up to which the land contains the entries.
func (tx Tx) Applied() uint64 { return tx.applied }

// Crowd returns the avatars in the region, on its leader.
func (tx Tx) Crowd() *crowd.Crowd { return tx.contents.crowd }

// Waits reports whether an edit with the block waits to be proposed.
func (tx Tx) Waits(block chunk.Block) bool {
	return slices.ContainsFunc(tx.edits.waiting, func(q queued) bool { return q.Block == block })
}

// report hands the applied rows to the group to be stored. It does not do so after every entry, so that a row that
// changes often is written once.
func (l *land) report() {
	if l.applied > l.reported {
		l.group.ReportApplied(l.applied, l.contents.land.Writes())
		l.reported = l.applied
	}
}
