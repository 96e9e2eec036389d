package raftgroup

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/voxelpopuli/voxeld/kv"
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

// Replica is this node's member of an open group. Owned by the host's goroutine. After each call the host carries out the
// effects.
type Replica struct {
	node   *Node
	group  uint64
	id     uint64 // replica id, raft's
	handle *Group
	conf   *raftlog.Configuration // in force: of the entry advanced, or before
	tables []raftlog.TablePrefix
	logger *slog.Logger

	members       membership
	reads         reads
	sending       sending
	incoming      *IncomingSnapshot // received and passed to raft, not yet installed
	announcements announcements
	contact

	raw *raft.RawNode // nil while the host is stalled
	log *raftlog.Log

	hardState
	positions
	leadership
	stored raftlog.State // the record on disk

	unstoredWrites
	waiting [][]byte // proposals that raft could not take yet

	// floor: raft's last index is at least this. It is exact when everything that raft has is stored.
	floor uint64

	ready   raft.Ready // while inBatch: what the commit in progress makes durable
	inBatch bool
	effects Effects
}

// unstoredWrites are the owner's.
type unstoredWrites struct {
	pending      []kv.Write
	pendingBytes int
}

// contact records when messages arrived.
type contact struct {
	ticks     uint64            // since Open
	lastHeard map[uint64]uint64 // replica id → ticks at its newest message
}

// hardState is raft's. Term and vote are stored, commit may be ahead of what is stored.
type hardState struct{ term, vote, commit uint64 }

// positions are indexes of the log.
// Invariant: replica.stored.Applied ≤ applied ≤ mailed ≤ advanced ≤ commit ≤ log.Last.
type positions struct {
	applied  uint64 // the owner's tables with pending contain the entries up to here
	mailed   uint64 // entries up to here were put into the mailbox (or are internal)
	visible  uint64 // the last Committed put into the mailbox, or applied at the start
	reported uint64 // index of the owner's last ReportApplied
	advanced uint64 // entries up to here came out of raft as committed
}

func positionsAt(index uint64) positions {
	return positions{applied: index, mailed: index, visible: index, reported: index, advanced: index}
}

// leadership is who leads.
type leadership struct {
	leader         uint64     // replica id of the leader as raft sees it, 0 unknown
	leading        bool       // raft's state is leader
	lastLeadership Leadership // the newest Leadership delivered
}

// Effects are what a replica requires of its host.
type Effects struct {
	Clock      ClockEffect
	StoreLater bool // it has data to store that can wait
	StoreNow   bool // what it has to store should not wait
	SentAhead  bool // entries were sent before they are stored
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
	r := &Replica{
		node: node, group: group, id: id, conf: conf, log: l, tables: tables,
		logger:    node.Logger.With("group", group),
		hardState: hardState{term: s.Term, vote: s.Vote, commit: s.Commit}, positions: positionsAt(s.Applied), stored: s,
		handle: newGroup(node, group, s.Applied, conf, tables),
	}
	l.SnapshotHead = r.snapshotHead
	r.publishRoster()
	r.publishStatus()
	return r, nil
}

// alone reports whether this node is the only member, and needs no clock to lead.
func (r *Replica) alone() bool { return r.decides() && len(r.conf.Learners) == 0 }

// decides reports whether this node is the only voter.
func (r *Replica) decides() bool {
	return r.conf.Index > 0 && len(r.conf.Voters) == 1 && r.conf.Voters[0].ID == r.id
}

// hasUnaccepted reports whether raft could not yet accept some of the owner's input.
func (r *Replica) hasUnaccepted() bool { return len(r.waiting) > 0 || r.members.change != nil }

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
		r.raw, r.floor = node, r.log.Last
		r.effects.Clock = ClockStart
		if r.decides() {
			return node.Campaign()
		}
		return nil
	})
}

// Resume starts the replica again after Stall, when storage accepts writes.
func (r *Replica) Resume() error {
	if err := r.Start(); err != nil {
		return err
	}
	r.pushLeadership(Leadership{Term: r.term})
	return nil
}

// Group returns the owner's handle.
func (r *Replica) Group() *Group { return r.handle }

// ID returns the replica id.
func (r *Replica) ID() uint64 { return r.id }

// Idle reports whether Act may be called: the replica is not stalled, and no Ready waits to be stored.
func (r *Replica) Idle() bool { return r.raw != nil && !r.inBatch }

// Leads reports whether this node leads, according to the newest Leadership delivered.
func (r *Replica) Leads() bool { return r.lastLeadership.Self }

// RaftLeader reports whether raft considers this node the leader, and its term.
func (r *Replica) RaftLeader() (term uint64, leads bool) { return r.term, r.leading }

// Lag returns how many delivered entries the owner has not applied.
func (r *Replica) Lag() uint64 { return r.mailed - r.applied }

// PendingBytes returns the size of the owner's writes that are not stored.
func (r *Replica) PendingBytes() int { return r.pendingBytes }

// TakeEffects returns the effects of the calls since it was last called.
func (r *Replica) TakeEffects() Effects {
	e := r.effects
	r.effects = Effects{}
	return e
}

// String describes everything that a message could change.
func (r *Replica) String() string {
	text := fmt.Sprintf("group %d, replica %d: %+v, %+v, %+v, floor %d, log %d to %d",
		r.group, r.id, r.hardState, r.positions, r.leadership, r.floor, r.log.Start, r.log.Last)
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
// That must end this group and no other. The raft node is then discarded: nothing that it has done since the last commit
// has left this function's callers.
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

// NeedsNoTicks reports whether the replica leads alone, with nothing to do.
func (r *Replica) NeedsNoTicks() bool {
	return r.alone() && r.lastLeadership.Self && !r.hasUnaccepted()
}

// ProcessInput processes what the group's inbox holds.
func (r *Replica) ProcessInput() error {
	err := r.guard("take", func() error { return r.processInbox(r.handle.empty()) })
	if r.hasUnaccepted() {
		r.effects.Clock = ClockStart
	}
	return err
}

// End ends the replica. A nil failure means that the owner closed the group and wants no delivery.
func (r *Replica) End(refusal, failure error) {
	r.raw, r.pending, r.waiting = nil, nil, nil
	r.refuseReads(refusal)
	r.dropIncoming(refusal)
	r.handle.end(refusal, failure)
}

// processInbox processes the input of owner and network for the group.
func (r *Replica) processInbox(in inbox) error {
	if c := in.trusted; c != nil && (c.Index == 0 || r.conf.Index < c.Index) {
		r.members.trusted = c
		r.publishRoster()
	}
	if in.reported > r.reported || len(in.writes) > 0 {
		r.recordApplied(in.reported, in.writes)
	}
	if in.refill {
		if err := r.deliverEntries(nil); err != nil {
			return err
		}
	}
	if r.raw == nil || !r.lastLeadership.Self {
		answerAll(in.reads, ErrNotLeader)
		in.reads = nil
	}
	if r.raw == nil || r.members.removed {
		return nil // stalled: messages are lost, as on a network; pushLeadership has dropped the proposals
	}
	return r.guard("step", func() error {
		for _, m := range in.messages {
			if err := r.admit(m); err != nil {
				r.node.Rejected.Inc()
				r.logger.Debug("message refused", "error", err)
				continue
			}
			if err := r.raw.Step(m); err != nil {
				r.logger.Debug("message ignored", "error", err) // raft's error for a message that it ignores for now
			}
			if r.lastHeard == nil {
				r.lastHeard = make(map[uint64]uint64)
			}
			r.lastHeard[m.GetFrom()] = r.ticks
			if err := r.campaignIfAhead(m); err != nil {
				return err
			}
		}
		if err := r.processRequests(in); err != nil {
			return err
		}
		r.askRaft(in.reads)
		if r.lastLeadership.Self {
			r.waiting = append(r.waiting, in.proposals...)
			r.propose()
		}
		return nil
	})
}

func (r *Replica) propose() {
	if c := r.members.change; c != nil {
		entry, err := c.Entry()
		if err == nil {
			err = r.raw.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: &r.id, Entries: []*raftpb.Entry{entry}})
		}
		if err == nil {
			r.members.change = nil
		}
	}
	if len(r.waiting) == 0 {
		return
	}
	entries := make([]*raftpb.Entry, len(r.waiting))
	for i, data := range r.waiting {
		entries[i] = &raftpb.Entry{Data: data}
	}
	err := r.raw.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: &r.id, Entries: entries})
	if err != nil {
		return // raft cannot accept them now; if it still leads at the next tick, they are proposed again
	}
	r.waiting = nil
	r.announcements.entries++
}

// recordApplied records what the owner has applied.
func (r *Replica) recordApplied(index uint64, writes []kv.Write) {
	r.reported = index
	for _, w := range writes {
		r.pendingBytes += len(w.Key) + len(w.Value)
	}
	if r.pending == nil {
		r.pending = writes
	} else {
		r.pending = append(r.pending, writes...)
	}
	r.advanceApplied()
	r.effects.StoreLater = true
}

// advanceApplied raises the applied index past internal entries, as soon as the owner has applied everything before them.
func (r *Replica) advanceApplied() {
	r.applied = max(r.applied, r.reported)
	if r.applied >= r.visible {
		r.applied = r.mailed
	}
}

// Tick advances raft's clock.
func (r *Replica) Tick() error {
	return r.guard("tick", func() error {
		r.ticks++
		r.announcements.tick()
		r.raw.Tick()
		if r.lastLeadership.Self {
			r.propose()
		}
		r.PublishProgress()
		return nil
	})
}

// finish processes a Ready that is durable, or that needs no writing: it sends, delivers and advances.
func (r *Replica) finish(rd raft.Ready) error {
	if len(rd.Entries) > 0 {
		r.log.Append(rd.Entries)
	}
	if r.log.Changed {
		r.log.Changed = false
		r.publishRoster()
	}
	r.floor = r.log.Last
	if !raft.IsEmptyHardState(rd.HardState) {
		r.term, r.vote, r.commit = rd.GetTerm(), rd.GetVote(), rd.GetCommit()
	}
	if rd.SoftState != nil {
		r.leader, r.leading = rd.SoftState.Lead, rd.SoftState.RaftState == raft.StateLeader
	}
	if err := r.send(rd.Messages); err != nil {
		return err
	}
	if n := len(rd.CommittedEntries); n > 0 {
		r.advanced = rd.CommittedEntries[n-1].GetIndex()
		for _, entry := range rd.CommittedEntries {
			if entry.GetType() != raftpb.EntryNormal {
				r.reconfigure(entry)
			}
		}
		if err := r.deliverEntries(rd.CommittedEntries); err != nil {
			return err
		}
		r.effects.StoreLater = true
	}
	r.confirmReads(rd.ReadStates)
	r.deliverLeadership()
	r.publishStatus()
	r.raw.Advance(rd)
	if r.alone() {
		r.log.Shorten(r.mailed, raftlog.MaxTailBytes)
	} else {
		r.log.Shorten(0, raftlog.MaxTailBytes) // kept for the other members, which lag by what is in flight
	}
	return nil
}

func (r *Replica) send(messages []*raftpb.Message) error {
	for _, m := range messages {
		peer := r.peer(m.GetTo())
		if peer != "" && m.GetType() == raftpb.MsgSnap {
			r.sendSnapshot(peer, m)
			continue
		}
		if r.node.Send == nil || peer == "" {
			continue
		}
		if r.announcements.withhold(r, m) {
			continue
		}
		r.reads.recordSent(m)
		encoded, err := raftframe.Encode(m)
		if err != nil {
			return err
		}
		r.node.Send(peer, r.group, encoded)
	}
	return nil
}

// next returns the state record to store now, including rd if the replica is in the batch.
func (r *Replica) next() raftlog.State {
	s := raftlog.State{Term: r.term, Vote: r.vote, Commit: r.commit, Applied: r.applied, Start: r.log.Start, StartTerm: r.log.StartTerm}
	if r.inBatch && !raft.IsEmptyHardState(r.ready.HardState) {
		s.Term, s.Vote, s.Commit = r.ready.GetTerm(), r.ready.GetVote(), r.ready.GetCommit()
	}
	// Only durably applied entries are cut off. A slower member may still need the last ones.
	durable := r.stored.Applied
	if keep := r.node.Limits.KeepEntries; durable > s.Start+keep+keep/4 {
		s.Start = max(s.Start, r.sending.keep(durable-keep, durable-min(durable, 10*keep)))
		s.StartTerm, _ = r.log.Term(s.Start) // start < index ≤ applied ≤ last: a term exists
	}
	return s
}

// HasUnstored reports whether the owner has applied writes that are not stored.
func (r *Replica) HasUnstored() bool { return len(r.pending) > 0 || r.reported > r.stored.Applied }
