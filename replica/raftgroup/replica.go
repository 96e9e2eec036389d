package raftgroup

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Settings of raft. Ticks are Options.TickEvery.
const (
	heartbeatTicks   = 1
	maxCommittedSize = 1 << 20 // bytes of committed entries in one step
	maxInflight      = 256     // append messages in flight to one member
	maxInflightBytes = 4 << 20
)

// Replica is this node's member of an open group. Owned by the host's goroutine. After each call the host carries out
// the effects.
type Replica struct {
	node   *Node
	group  uint64
	id     uint64 // replica id, raft's
	handle *Group
	tables []raftlog.TablePrefix
	logger *slog.Logger

	raw *raft.RawNode // nil while the host is stalled
	log *raftlog.Log

	members       membership
	check         messageCheck
	proposals     proposals
	reads         reads
	announcements announcements
	snapshots     snapshotSender
	incoming      incoming
	contact

	hardState
	positions
	leadership
	stored   raftlog.State // the record on disk
	unstored unstoredWrites

	ready   raft.Ready // while inBatch: what the commit in progress makes durable
	inBatch bool
	effects Effects
}

// hardState is raft's. Term and vote are stored, commit may be ahead of what is stored.
type hardState struct{ term, vote, commit uint64 }

// leadership is who leads.
type leadership struct {
	leader         uint64     // replica id of the leader as raft sees it, 0 unknown
	leading        bool       // raft's state is leader
	lastLeadership Leadership // the newest Leadership delivered
}

// Effects are what a replica requires of its host, and its state that the host counts.
type Effects struct {
	Clock      ClockEffect
	StoreLater bool // it has data to store that can wait
	StoreNow   bool // what it has to store should not wait
	SentAhead  bool // entries were sent before they are stored

	Lag uint64 // delivered entries that the owner has not applied
}

// ClockEffect is whether a replica needs ticks from now on.
type ClockEffect int

// Values of ClockEffect.
const (
	ClockKeep ClockEffect = iota // as before
	ClockStart
	ClockStop
)

// NewReplica resumes a group from what is stored.
func NewReplica(node *Node, group uint64, s raftlog.State, conf *raftlog.Configuration, tables []raftlog.TablePrefix) (*Replica, error) {
	id := conf.ID(node.Self)
	if id == 0 || id != conf.OwnID(node.Self) {
		return nil, fmt.Errorf("%w: its members are %v", raftlog.ErrNotMember, conf.All())
	}
	l, err := raftlog.LoadLog(node.Storage, group, s, conf)
	if err != nil {
		return nil, err
	}
	conflict, err := raftlog.Conflict(node.Storage, group)
	if err != nil {
		return nil, err
	}
	logger := node.Logger.With("group", group)
	if conflict {
		logger.Error("snapshots are refused, as before the restart", "error", errConflict)
	}
	snapshot := raftframe.OutgoingSnapshot{Group: group, From: id, Tables: tables, Limit: node.Limits.Snapshot}
	r := &Replica{
		node: node, group: group, id: id, log: l, tables: tables, logger: logger,
		members:   membership{self: node.Self, id: id, log: l},
		check:     messageCheck{conflict: conflict, conflictStored: conflict},
		snapshots: snapshotSender{node: node, logger: logger, all: snapshot},
		hardState: hardState{term: s.Term, vote: s.Vote, commit: s.Commit}, positions: positionsAt(s.Applied), stored: s,
		handle: newGroup(node, group, s.Applied, conf, tables),
	}
	l.SnapshotHead = func() (*raftpb.Snapshot, error) {
		if len(r.members.unstored) > 0 { // the stored configuration must include the receiver
			return nil, raft.ErrSnapshotTemporarilyUnavailable
		}
		return r.snapshots.head(l, r.stored.Applied)
	}
	r.publishRoster()
	r.publishStatus()
	return r, nil
}

// Start creates the raft node from what is durable. It is called at open, and again after a stall.
func (r *Replica) Start() error {
	r.log.Hard = &raftpb.HardState{Term: new(r.term), Vote: new(r.vote), Commit: new(r.commit)}
	return r.guard("start", func() error {
		node, err := raft.NewRawNode(&raft.Config{
			ID:                        r.id,
			ElectionTick:              r.node.ElectionTicks,
			HeartbeatTick:             heartbeatTicks,
			Storage:                   r.log,
			Applied:                   r.advanced,
			MaxSizePerMsg:             raftframe.MaxAppend,
			MaxCommittedSizePerReady:  maxCommittedSize,
			MaxUncommittedEntriesSize: 2 * uint64(r.node.Limits.Outstanding), // Group.Propose has a lower bound than raft
			MaxInflightMsgs:           maxInflight,
			MaxInflightBytes:          maxInflightBytes,
			CheckQuorum:               true,
			PreVote:                   true,
			StepDownOnRemoval:         true,
			DisableProposalForwarding: true,
			Logger:                    raftLogger{r.logger},
		})
		if err != nil {
			return err
		}
		r.raw, r.check = node, messageCheck{floor: r.log.Last, log: r.log, conflict: r.check.conflict, conflictStored: r.check.conflictStored}
		r.effects.Clock = ClockStart
		if r.members.onlyVoter() {
			return node.Campaign()
		}
		return nil
	})
}

// Group returns the owner's handle.
func (r *Replica) Group() *Group { return r.handle }

// ID returns the replica id.
func (r *Replica) ID() uint64 { return r.id }

// Idle reports whether Act may be called: the replica is not stalled, and no Ready waits to be stored.
func (r *Replica) Idle() bool { return r.raw != nil && !r.inBatch }

// RaftLeader reports whether raft considers this node the leader, and its term.
func (r *Replica) RaftLeader() (term uint64, leads bool) { return r.term, r.leading }

// TakeEffects returns the effects of the calls since TakeEffects was last called.
func (r *Replica) TakeEffects() Effects {
	e := r.effects
	e.Lag = r.mailed - r.applied
	r.effects = Effects{}
	return e
}

// String describes everything that a message could change.
func (r *Replica) String() string {
	text := fmt.Sprintf("group %d, replica %d: %+v, %+v, %+v, floor %d, log %d to %d",
		r.group, r.id, r.hardState, r.positions, r.leadership, r.check.floor, r.log.Start, r.log.Last)
	if r.raw == nil {
		return text
	}
	progress := make(map[uint64]string) // fmt prints maps in order
	r.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		progress[id] = fmt.Sprint(p.Match, p.Next, p.State, p.PendingSnapshot, p.RecentActive, p.MsgAppFlowPaused)
	})
	s := r.raw.BasicStatus()
	return fmt.Sprint(text, ", raft: ", s.HardState, s.SoftState, s.Applied, r.raw.HasReady(), progress)
}

// guard runs f, which calls into raft. Raft panics when its invariants are broken (and on every error of its storage).
// That must end this group and no other. The raft node is then discarded: nothing that it has done since the last
// commit has left this function's callers.
func (r *Replica) guard(doing string, f func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			r.logger.Error("raft panicked", "doing", doing, "panic", broken,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("%s: raft: %v", doing, broken)
		}
	}()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// HasUnstored reports whether there is something to store before the replica is closed.
func (r *Replica) HasUnstored() bool {
	return len(r.unstored.writes) > 0 || r.reported > r.stored.Applied || r.check.conflict != r.check.conflictStored
}

// End ends the replica. A nil failure means that the owner closed the group and wants no delivery.
func (r *Replica) End(refusal, failure error) {
	r.raw, r.unstored, r.proposals = nil, unstoredWrites{}, proposals{}
	r.reads.refuse(refusal)
	r.incoming.drop(refusal)
	r.handle.end(refusal, failure)
}

// publishRoster updates the roster after the configuration, the log's changes or the trusted members have changed.
func (r *Replica) publishRoster() {
	r.members.updateRoster()
	r.handle.conf.Store(r.log.Conf)
	r.handle.roster.Store(r.members.roster)
}

// publishStatus publishes the part of Status that changes at every step.
func (r *Replica) publishStatus() {
	v := basicStatus{term: r.term, last: r.log.Last, commit: r.commit, applied: r.applied, lost: r.check.lost, conflict: r.check.conflict}
	if r.leader != 0 {
		v.leader = r.members.peer(r.leader)
	}
	r.handle.mu.Lock()
	r.handle.mu.basicStatus = v
	r.handle.mu.Unlock()
}

// publishProgress publishes the members' progress, if this node leads.
func (r *Replica) publishProgress() {
	if r.raw == nil || !r.leading {
		return
	}
	all := r.log.Conf.All()
	progress := make([]Progress, len(all))
	for i, m := range all {
		progress[i].Member = m
	}
	r.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		i := slices.IndexFunc(progress, func(p Progress) bool { return p.ID == id })
		if i < 0 {
			return
		}
		progress[i].Match = p.Match
		progress[i].Active = id == r.id || r.within(id, uint64(r.node.ElectionTicks))
		progress[i].Snapshotting = p.State == tracker.StateSnapshot
	})
	r.handle.mu.Lock()
	r.handle.mu.progress = progress
	r.handle.mu.Unlock()
}
