package replica

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Status is what a group looks like from this node.
type Status struct {
	Term    uint64
	Leader  string     // peer; "" while unknown
	Self    bool       // this node leads, as the newest Leadership delivered said
	Last    uint64     // index of the last entry in this node's log
	Commit  uint64     // entries up to here are safe, as far as this node knows
	Applied uint64     // the owner has applied the entries up to here
	Members []Progress // by ascending replica id
}

// Progress is how far a member has come. Match, Active and Snapshotting are the leader's to know: from others they are
// zero. They are as of the last tick.
type Progress struct {
	Member
	Match        uint64 // entries up to here are on the member's disk
	Active       bool   // it was heard of within the election timeout; always true of the leader itself
	Snapshotting bool   // it is too far behind for the log: a snapshot is being sent, or waits to be
}

// vitals is the part of Status that follows every step.
type vitals struct {
	term, last, commit, applied uint64
	leader                      string
}

// Status may be called from any goroutine, and costs a lock.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.mu.vitals
	s := Status{Term: v.term, Leader: v.leader, Self: g.mu.leading, Last: v.last, Commit: v.commit, Applied: v.applied}
	if g.mu.leading {
		s.Members = slices.Clone(g.mu.progress)
	}
	if s.Members == nil {
		for _, m := range g.conf.Load().all() {
			s.Members = append(s.Members, Progress{Member: m})
		}
	}
	return s
}

// tellStatus publishes what follows every step.
func (r *replica) tellStatus() {
	v := vitals{term: r.term, last: r.log.last, commit: r.commit, applied: r.applied}
	if r.leader != 0 {
		v.leader = r.peer(r.leader)
	}
	r.handle.mu.Lock()
	r.handle.mu.vitals = v
	r.handle.mu.Unlock()
}

// tellProgress publishes how far the members have come, if this node leads.
func (r *replica) tellProgress() {
	if r.node == nil || !r.leading {
		return
	}
	all := r.conf.all()
	progress := make([]Progress, len(all))
	for i, m := range all {
		progress[i].Member = m
	}
	r.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		i := slices.IndexFunc(progress, func(p Progress) bool { return p.ID == id })
		if i < 0 {
			return
		}
		heard, known := r.heard[id]
		progress[i].Match = p.Match
		progress[i].Active = id == r.id || known && r.ticks-heard <= uint64(r.host.electionTicks)
		progress[i].Snapshotting = p.State == tracker.StateSnapshot
	})
	r.handle.mu.Lock()
	r.handle.mu.progress = progress
	r.handle.mu.Unlock()
}

// peer returns the peer with a replica id, "" if it is not known.
func (r *replica) peer(id uint64) string {
	if id == r.id {
		return r.host.self
	}
	return r.members.roster.peer(id)
}

// Transfer has the leader hand its leadership to another member with a vote. It does not block; a Leadership tells that
// it worked. If the member does not take over within the election timeout, this node goes on to lead. Entries proposed
// meanwhile wait. The error is ErrNotLeader, ErrNotMember (also of a learner), ErrMember (of this node itself),
// ErrBehind, or one of Propose's.
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
	id := conf.id(peer)
	switch {
	case g.mu.refusal != nil:
		return g.mu.refusal
	case !g.mu.leading:
		return ErrNotLeader
	case !conf.voter(id):
		return ErrNotMember
	case peer == g.host.self:
		return ErrMember
	case !g.caughtUp(id):
		return ErrBehind
	}
	g.mu.transfer = id
	g.enqueue()
	return nil
}

// Campaign has this node stand for election at once, if it has a vote and knows of no leader: a group that was closed
// on all its members wakes up without waiting for a timeout. The others should be opened first (or when Receive answers
// ErrNotOpen); one member at a time should be asked to, or their votes are split. Should another have entries that it
// lacks, that one stands in its place. It may be repeated, and never blocks.
func (g *Group) Campaign() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.ended {
		g.mu.campaign = true
		g.enqueue()
	}
}

// overbid stands for election itself when a member asks for a vote that it cannot get, because it lacks entries that this
// node has, and nobody leads: whoever woke the group need not know who has all of its log, and no timeout is waited for.
func (r *replica) overbid(m *raftpb.Message) error {
	if m.GetType() != raftpb.MsgPreVote {
		return nil
	}
	s := r.node.BasicStatus()
	if s.Lead != 0 || s.RaftState != raft.StateFollower || !r.conf.voter(r.id) || r.conf.Index == 0 {
		return nil
	}
	term, err := r.log.Term(r.log.last)
	if err != nil {
		return err
	}
	if term > m.GetLogTerm() || term == m.GetLogTerm() && r.log.last > m.GetIndex() {
		return r.node.Campaign()
	}
	return nil
}

// lead carries out what the owner asked for beside entries: changes, transfers, elections.
func (r *replica) lead(in inbox) error {
	if in.campaign && r.leader == 0 && !r.leading && r.conf.voter(r.id) && r.conf.Index > 0 {
		return r.node.Campaign()
	}
	if !r.told.Self {
		return nil
	}
	if in.change != nil {
		r.members.change = in.change
	}
	if in.transfer != 0 {
		r.node.TransferLeader(in.transfer)
	}
	return nil
}
