package raftgroup

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Status describes a group as seen from this node.
type Status struct {
	Term    uint64
	Leader  string     // peer; "" while unknown
	Self    bool       // this node leads, according to the newest Leadership delivered
	Last    uint64     // index of the last entry in this node's log
	Commit  uint64     // entries up to here are known to be safe
	Applied uint64     // the owner has applied the entries up to here
	Members []Progress // by ascending replica id
}

// Progress is how far a member has come. Only the leader knows Match, Active and Snapshotting; elsewhere they are zero.
// They are as of the last tick.
type Progress struct {
	raftlog.Member
	Match        uint64 // entries up to here are on the member's disk
	Active       bool   // a message arrived within the election timeout; always true of the leader itself
	Snapshotting bool   // it lags behind the start of the log: a snapshot is being sent, or is due
}

// basicStatus is the part of Status that is updated at every step.
type basicStatus struct {
	term, last, commit, applied uint64
	leader                      string
}

// Status may be called from any goroutine, and costs a lock.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.mu.basicStatus
	s := Status{Term: v.term, Leader: v.leader, Self: g.mu.leading, Last: v.last, Commit: v.commit, Applied: v.applied}
	if g.mu.leading {
		s.Members = slices.Clone(g.mu.progress)
	}
	if s.Members == nil {
		for _, m := range g.conf.Load().All() {
			s.Members = append(s.Members, Progress{Member: m})
		}
	}
	return s
}

// publishStatus publishes the part of Status that changes at every step.
func (r *Replica) publishStatus() {
	v := basicStatus{term: r.term, last: r.log.Last, commit: r.commit, applied: r.applied}
	if r.leader != 0 {
		v.leader = r.peer(r.leader)
	}
	r.handle.mu.Lock()
	r.handle.mu.basicStatus = v
	r.handle.mu.Unlock()
}

// PublishProgress publishes the members' progress, if this node leads.
func (r *Replica) PublishProgress() {
	if r.raw == nil || !r.leading {
		return
	}
	all := r.conf.All()
	progress := make([]Progress, len(all))
	for i, m := range all {
		progress[i].Member = m
	}
	r.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		i := slices.IndexFunc(progress, func(p Progress) bool { return p.ID == id })
		if i < 0 {
			return
		}
		heard, known := r.lastHeard[id]
		progress[i].Match = p.Match
		progress[i].Active = id == r.id || known && r.ticks-heard <= uint64(r.node.ElectionTicks)
		progress[i].Snapshotting = p.State == tracker.StateSnapshot
	})
	r.handle.mu.Lock()
	r.handle.mu.progress = progress
	r.handle.mu.Unlock()
}

// peer returns the peer with a replica id, "" if there is none.
func (r *Replica) peer(id uint64) string {
	if id == r.id {
		return r.node.Self
	}
	return r.members.roster.peer(id)
}

// Transfer makes the leader transfer its leadership to another voter. It does not block; a Leadership reports success. If
// the member does not take over within the election timeout, this node continues to lead. Entries proposed meanwhile
// wait. The error is ErrNotLeader, ErrNotMember (also for a learner), ErrMember (for this node itself), ErrBehind, or one
// of Propose's.
func (g *Group) Transfer(peer string) error {
	if err := g.transfer(peer); err != nil {
		return fmt.Errorf("transfer leadership to %q: %w", peer, err)
	}
	return nil
}

func (g *Group) transfer(peer string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	conf := g.conf.Load()
	id := conf.ID(peer)
	switch {
	case g.mu.refusal != nil:
		return g.mu.refusal
	case !g.mu.leading:
		return ErrNotLeader
	case !conf.IsVoter(id):
		return raftlog.ErrNotMember
	case peer == g.node.Self:
		return ErrMember
	case !g.caughtUp(id):
		return ErrBehind
	}
	g.mu.inbox.transfer = id
	g.enqueue()
	return nil
}

// Campaign makes this node campaign at once, if it has a vote and the group has no known leader. So a group that was
// closed on all its members resumes without waiting for a timeout. The others should be opened first (or when Receive
// returns ErrNotOpen). Only one member at a time should campaign, or the votes are split. If another member has entries
// that this one lacks, it campaigns instead. Campaign may be repeated, and never blocks.
func (g *Group) Campaign() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.ended {
		g.mu.inbox.campaign = true
		g.enqueue()
	}
}

// campaignIfAhead campaigns when a member asks for a vote that it cannot get, because it lacks entries that this node
// has, and there is no leader. So the member opened first need not be the one with the whole log, and no timeout passes.
func (r *Replica) campaignIfAhead(m *raftpb.Message) error {
	if m.GetType() != raftpb.MsgPreVote {
		return nil
	}
	s := r.raw.BasicStatus()
	if s.Lead != 0 || s.RaftState != raft.StateFollower || !r.conf.IsVoter(r.id) || r.conf.Index == 0 {
		return nil
	}
	term, err := r.log.Term(r.log.Last)
	if err != nil {
		return err
	}
	if term > m.GetLogTerm() || term == m.GetLogTerm() && r.log.Last > m.GetIndex() {
		return r.raw.Campaign()
	}
	return nil
}

// processRequests processes the owner's requests other than entries: changes, transfers, elections.
func (r *Replica) processRequests(in inbox) error {
	if in.campaign && r.leader == 0 && !r.leading && r.conf.IsVoter(r.id) && r.conf.Index > 0 {
		return r.raw.Campaign()
	}
	if !r.lastLeadership.Self {
		return nil
	}
	if in.change != nil {
		r.members.change = in.change
	}
	if in.transfer != 0 {
		r.raw.TransferLeader(in.transfer)
	}
	return nil
}
