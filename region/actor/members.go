package actor

import (
	"context"
	"slices"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// NearlyAll is how many entries a member may lack and still count as caught up.
	NearlyAll = 64
	// FirstEpoch is the epoch of a region that still has the members it was founded with.
	FirstEpoch = 1
	// recoveredEpoch is added to a region's epoch by each recovery. A log never has that many entries.
	recoveredEpoch = 1 << 40
)

// EpochOf returns the epoch of a region whose group has this configuration.
func EpochOf(c replica.Configured) uint64 {
	return c.Recovered*recoveredEpoch + max(c.Index, FirstEpoch)
}

// ConfigurationOf returns the configuration of the group of a region with this epoch, without members.
func ConfigurationOf(epoch uint64) replica.Configured {
	return replica.Configured{Index: epoch % recoveredEpoch, Recovered: epoch / recoveredEpoch}
}

// HasMember reports whether the node is a member of the region.
func HasMember(info nodemsg.Region, peer string) bool {
	return slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == peer })
}

// OwnReplica returns the replica id that the group has for the node self, or 0.
func OwnReplica(g *replica.Group, self string) uint64 {
	for _, m := range g.Configuration().Members {
		if m.Peer == self {
			return m.ID
		}
	}
	return 0
}

// voters returns the number of members with a vote.
func voters(members []replica.Member) int {
	n := 0
	for _, m := range members {
		if !m.Learner {
			n++
		}
	}
	return n
}

// configured applies a new configuration of the group.
func (a *Actor) configured(c replica.Configured) {
	a.applyMembers(c)
	if !a.member(a.Self.Peer) {
		return // Removed follows, and then nothing of the region may be stored any more
	}
	a.Changed(a.info)
	for _, m := range c.Members {
		if _, known := a.roster[m.Peer]; !known {
			a.resolve(m.Peer)
		}
	}
}

// resolve asks a member for its description. A member that does not answer is asked again when this node leads the region.
func (a *Actor) resolve(peer string) {
	a.Start(func(ctx context.Context) {
		member, err := a.Describe(ctx, peer)
		if err != nil {
			a.Logger.Debug("member not known", "region", a.info.ID, "peer", peer, "error", err)
			return
		}
		a.AddMember(member)
	})
}

// applyMembers records the group's members.
func (a *Actor) applyMembers(c replica.Configured) {
	a.members = c.Members
	a.info.Epoch = EpochOf(c)
	a.updateMembers()
	a.machine.membersChanged()
}

// updateMembers copies the group's members to the region, as far as their addresses are known. Learners are included: a member
// must be known before it can lead.
func (a *Actor) updateMembers() {
	for _, m := range a.info.Members {
		a.roster[m.Peer] = m
	}
	members := make([]nodemsg.Member, 0, len(a.members))
	for _, m := range a.members {
		if known, ok := a.roster[m.Peer]; ok {
			known.Replica, known.Learner = m.ID, m.Learner
			members = append(members, known)
		}
	}
	if len(members) > 0 {
		a.info.Members = members
	}
}

// AddMember records the address of a node that is or becomes a member. Any goroutine may call it.
func (a *Actor) AddMember(m nodemsg.Member) {
	a.Do(func() {
		before := len(a.info.Members)
		a.roster[m.Peer] = m
		a.updateMembers()
		if len(a.info.Members) != before {
			a.Changed(a.info)
		}
	})
}

// member reports whether the peer is a member of the group.
func (a *Actor) member(peer string) bool {
	return slices.ContainsFunc(a.members, func(m replica.Member) bool { return m.Peer == peer })
}
