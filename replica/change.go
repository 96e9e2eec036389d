package replica

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Reasons why a configuration change or a transfer is not begun.
var (
	ErrBusy     = errors.New("another configuration change is under way")
	ErrMember   = errors.New("already a member of the group")
	ErrBehind   = errors.New("not reachable, or too far behind")
	ErrLeads    = errors.New("the leader cannot remove itself: transfer leadership first")
	ErrMajority = errors.New("the group would be left without a live majority")
)

// Configured tells that the group has other members from the entry of this index on.
type Configured struct {
	Index   uint64
	Members []Member // by ascending replica id
	// Recovered is how often the group was made anew out of one survivor (Host.Recover).
	Recovered uint64
}

// Removed tells that this node is no member any more: nothing follows. The owner closes the group, and has the host
// remove it (Host.Remove), which leaves the tombstone.
type Removed struct{}

// Restored tells that a snapshot took the place of the entries up to Index. The owner's tables in storage are now what
// they were on another member when it had applied that entry. The owner throws away its state, and whatever it had not
// yet handed to Applied, loads its tables and goes on from there. A Configured follows.
type Restored struct{ Index uint64 }

func (Configured) delivery() {}
func (Removed) delivery()    {}
func (Restored) delivery()   {}

// Configuration is the newest committed configuration. Of a group that was joined and has no state yet it is what the
// owner said, with Index 0.
func (g *Group) Configuration() Configured {
	c := g.conf.Load()
	return Configured{Index: c.Index, Members: c.all(), Recovered: c.Recovered}
}

// AddLearner has the leader add a member without a vote, under a replica id that was never used before. Once
// Configured is delivered, the peer has to Join with that id; the leader then sends it a snapshot.
//
// AddLearner, Promote and Remove never block. No error means that the change is on its way: Configured follows, or a
// Leadership or Failed as with Propose, after which it is in doubt. Until then further changes are refused with
// ErrBusy. Other errors are ErrNotLeader, ErrMember, ErrNotMember, ErrBehind, ErrLeads, ErrMajority, and those of
// Propose.
func (g *Group) AddLearner(peer string) error {
	err := g.propose1(func(conf *configuration) (change, error) {
		c := change{kind: raftpb.ConfChangeAddLearnerNode, id: conf.Next, peer: peer}
		switch {
		case peer == "" || len(peer) > maxPeer:
			return c, fmt.Errorf("peer id of %d bytes", len(peer))
		case conf.id(peer) != 0:
			return c, ErrMember
		}
		if mutated("reuse-replica-ids") {
			for c.id = 1; conf.peer(c.id) != ""; {
				c.id++
			}
		}
		return c, nil
	})
	if err != nil {
		return fmt.Errorf("add learner %q: %w", peer, err)
	}
	return nil
}

// Promote has the leader give a learner its vote. ErrBehind if the learner has not caught up nearly.
func (g *Group) Promote(peer string) error {
	err := g.propose1(func(conf *configuration) (change, error) {
		id := conf.id(peer)
		switch {
		case id == 0:
			return change{}, ErrNotMember
		case conf.voter(id):
			return change{}, ErrMember
		case !g.caughtUp(id):
			return change{}, ErrBehind
		}
		return change{kind: raftpb.ConfChangeAddNode, id: id}, nil
	})
	if err != nil {
		return fmt.Errorf("promote %q: %w", peer, err)
	}
	return nil
}

// Remove has the leader remove a member, not itself (ErrLeads), and nobody without whom those who are heard of are no
// majority (ErrMajority).
func (g *Group) Remove(peer string) error {
	err := g.propose1(func(conf *configuration) (change, error) {
		id := conf.id(peer)
		switch {
		case id == 0:
			return change{}, ErrNotMember
		case peer == g.host.self:
			return change{}, ErrLeads
		case conf.voter(id) && !g.majorityWithout(id):
			return change{}, ErrMajority
		}
		return change{kind: raftpb.ConfChangeRemoveNode, id: id}, nil
	})
	if err != nil {
		return fmt.Errorf("remove %q: %w", peer, err)
	}
	return nil
}

// propose1 hands a change in that make finds possible.
func (g *Group) propose1(make func(conf *configuration) (change, error)) error {
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
	if _, err := conf.apply(conf.Index+1, c); err != nil {
		return err
	}
	g.mu.change, g.mu.changing = &c, true
	g.enqueue()
	return nil
}

// caughtUp: the member is heard of and lacks no more entries than the log keeps for it. The caller holds mu.
func (g *Group) caughtUp(id uint64) bool {
	i := slices.IndexFunc(g.mu.progress, func(p Progress) bool { return p.ID == id })
	if i < 0 {
		return false
	}
	p := g.mu.progress[i]
	return p.Active && !p.Snapshotting && p.Match > 0 && p.Match+g.host.limits.keepEntries >= g.mu.vitals.last
}

// majorityWithout: without this voter, those who are heard of are a majority still. The caller holds mu.
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

// pushConfigured delivers a configuration, or (nil) only notes that the change on its way came to nothing.
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
	g.mu.leading, g.mu.refusal = false, ErrNotMember
	g.mu.proposals, g.mu.change = nil, nil
	g.push(Removed{})
}

// pushRestored delivers a snapshot: what the owner has applied before it counts no more, and what it has not taken yet
// is void.
func (g *Group) pushRestored(c Configured, index uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.delivered, g.mu.reported = index, index
	if !mutated("apply-across-restore") {
		g.mu.restored, g.mu.reports = index, nil
	}
	g.mu.backlog, g.mu.changing = false, false
	g.mu.mailboxSize = 0
	g.mu.mailbox = slices.DeleteFunc(g.mu.mailbox, func(d Delivery) bool {
		_, leadership := d.(Leadership)
		return !leadership
	})
	g.push(Restored{Index: index})
	g.push(c)
}

// Vouch tells the gate to hear the members of a configuration that this node has not come to in its log. The owner has
// it from an authority (the catalog, or a member whom it knows), because the host had refused a message of one of them
// with ErrNotMember. A member that was cut off while its group changed could otherwise never be told of that change:
// its leader is a stranger to it. It holds until the log has come to a configuration of that index.
func (g *Group) Vouch(c Configured) error {
	if len(c.Members) > maxMembers || slices.ContainsFunc(c.Members, func(m Member) bool {
		return m.ID == 0 || m.ID > maxNumber || m.Peer == "" || len(m.Peer) > maxPeer
	}) {
		return fmt.Errorf("vouch for %v: no possible members", c.Members)
	}
	g.host.post(func() {
		r := g.host.replicas[g.id]
		if r == nil || r.handle != g || c.Index != 0 && r.conf.Index >= c.Index {
			return
		}
		r.members.vouched = &c
		r.publish()
	})
	return nil
}
