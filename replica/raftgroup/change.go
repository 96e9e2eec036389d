package raftgroup

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Configuration returns the newest committed configuration. Of a group that was joined and has no state yet it is the
// one in the owner's JoinInfo, with Index 0.
func (g *Group) Configuration() Configured {
	return NewConfigured(g.conf.Load())
}

// NewestID returns the highest replica id that the group has ever given to a member, as far as this node can tell.
func (g *Group) NewestID() uint64 { return g.conf.Load().Next - 1 }

// AddLearner makes the leader add a member without a vote, under a replica id that was never used before. Once
// Configured is delivered, the peer has to Join with that id; the leader then sends it a snapshot.
//
// AddLearner, Promote and Remove never block. No error means that the change is in progress. Then either Configured
// follows, or a Leadership or Failed as with Propose; after the latter two the outcome is unknown. Until then further
// changes fail with ErrBusy. Other errors are ErrNotLeader, ErrMember, ErrNotMember, ErrBehind, ErrLeads, ErrMajority,
// and those of Propose.
func (g *Group) AddLearner(peer string) error {
	err := g.proposeChange(func(conf *raftlog.Configuration) (raftlog.Change, error) {
		c := raftlog.Change{Kind: raftpb.ConfChangeAddLearnerNode, ID: conf.Next, Peer: peer}
		switch {
		case peer == "" || len(peer) > raftlog.MaxPeer:
			return c, fmt.Errorf("peer id of %d bytes", len(peer))
		case conf.ID(peer) != 0:
			return c, ErrMember
		}
		return c, nil
	})
	if err != nil {
		return fmt.Errorf("add learner %q: %w", peer, err)
	}
	return nil
}

// Promote makes the leader give a learner its vote. ErrBehind if the learner has not nearly caught up.
func (g *Group) Promote(peer string) error {
	err := g.proposeChange(func(conf *raftlog.Configuration) (raftlog.Change, error) {
		id := conf.ID(peer)
		switch {
		case id == 0:
			return raftlog.Change{}, raftlog.ErrNotMember
		case conf.IsVoter(id):
			return raftlog.Change{}, ErrMember
		case !g.caughtUp(id):
			return raftlog.Change{}, ErrBehind
		}
		return raftlog.Change{Kind: raftpb.ConfChangeAddNode, ID: id}, nil
	})
	if err != nil {
		return fmt.Errorf("promote %q: %w", peer, err)
	}
	return nil
}

// Remove makes the leader remove a member. It cannot remove itself (ErrLeads), nor a member without which the active
// ones are no majority (ErrMajority).
func (g *Group) Remove(peer string) error {
	err := g.proposeChange(func(conf *raftlog.Configuration) (raftlog.Change, error) {
		id := conf.ID(peer)
		switch {
		case id == 0:
			return raftlog.Change{}, raftlog.ErrNotMember
		case peer == g.node.Self:
			return raftlog.Change{}, ErrLeads
		case conf.IsVoter(id) && !g.majorityWithout(id):
			return raftlog.Change{}, ErrMajority
		}
		return raftlog.Change{Kind: raftpb.ConfChangeRemoveNode, ID: id}, nil
	})
	if err != nil {
		return fmt.Errorf("remove %q: %w", peer, err)
	}
	return nil
}

// proposeChange proposes a change, if make succeeds.
func (g *Group) proposeChange(make func(conf *raftlog.Configuration) (raftlog.Change, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.mu.refusal != nil:
		return g.mu.refusal
	case !g.mu.leading:
		return ErrNotLeader
	case g.mu.changing:
		return ErrBusy
	}
	conf := g.conf.Load()
	c, err := make(conf)
	if err != nil {
		return err
	}
	if _, err := conf.Apply(conf.Index+1, c); err != nil {
		return err
	}
	g.mu.inbox.change, g.mu.changing = &c, true
	g.enqueue()
	return nil
}

// caughtUp reports whether the member is active and lacks no more entries than the log keeps for it. The caller holds
// mu.
func (g *Group) caughtUp(id uint64) bool {
	i := slices.IndexFunc(g.mu.progress, func(p Progress) bool { return p.ID == id })
	if i < 0 {
		return false
	}
	p := g.mu.progress[i]
	return p.Active && !p.Snapshotting && p.Match > 0 && p.Match+g.node.Limits.KeepEntries >= g.mu.basicStatus.last
}

// majorityWithout reports whether the active voters are a majority without this one. The caller holds mu.
func (g *Group) majorityWithout(id uint64) bool {
	voters, active := 0, 0
	for _, p := range g.mu.progress {
		if p.Learner || p.ID == id {
			continue
		}
		voters++
		if p.Active {
			active++
		}
	}
	return 2*active > voters
}

// pushConfigured delivers a configuration, or (nil) only records that the change in progress had no effect.
func (g *Group) pushConfigured(c *Configured) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.changing = false
	if c != nil {
		g.mu.delivered = max(g.mu.delivered, c.Index)
		g.push(*c)
	}
}

func (g *Group) pushRemoved() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.leading, g.mu.refusal = false, raftlog.ErrNotMember
	g.mu.inbox.proposals, g.mu.inbox.change = nil, nil
	g.push(Removed{})
}

// pushRestored delivers a snapshot. It voids the owner's earlier calls of ReportApplied and the deliveries not yet
// taken.
func (g *Group) pushRestored(c Configured, index uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.delivered, g.mu.reported = index, index
	g.mu.restored, g.mu.inbox.writes = index, nil
	g.mu.backlog, g.mu.changing = false, false
	g.mu.mailboxSize = 0
	g.mu.mailbox = slices.DeleteFunc(g.mu.mailbox, func(d Delivery) bool {
		_, leadership := d.(Leadership)
		return !leadership
	})
	g.push(Restored{Index: index})
	g.push(c)
}

// TrustMembers makes Receive accept messages from the members of a configuration that this node's log has not reached
// yet. The owner calls it with a configuration from an authority (the catalog, or a trusted member), after the host has
// refused a message of one of these members with ErrNotMember. Otherwise a member that was cut off while its group
// changed could never be informed of that change, because it does not know the leader. The call is in effect until the
// log has reached a configuration of that index.
func (g *Group) TrustMembers(c Configured) error {
	if len(c.Members) > raftlog.MaxMembers || slices.ContainsFunc(c.Members, func(m raftlog.Member) bool {
		return m.ID == 0 || m.ID > raftlog.MaxNumber || m.Peer == "" || len(m.Peer) > raftlog.MaxPeer
	}) {
		return fmt.Errorf("trust members %v: no possible members", c.Members)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.ended {
		g.mu.inbox.trusted = &c
		g.enqueue()
	}
	return nil
}
