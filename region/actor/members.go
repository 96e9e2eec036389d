package actor

import (
	"slices"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// NearlyAll is how many entries a member may lack and still count as caught up.
	NearlyAll = 64
	// FirstEpoch is the epoch of a region that still has the members it was founded with.
	FirstEpoch = 1
)

// EpochOf returns the epoch of a region whose group has this configuration.
func EpochOf(c replica.Configured) uint64 {
	return c.Recovered*nodemsg.RecoveredEpoch + max(c.Index, FirstEpoch)
}

// ConfigurationOf returns the configuration of the group of a region with this epoch, without members.
func ConfigurationOf(epoch uint64) replica.Configured {
	return replica.Configured{Index: epoch % nodemsg.RecoveredEpoch, Recovered: epoch / nodemsg.RecoveredEpoch}
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
