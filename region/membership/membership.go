// Package membership decides how the members of a region's group follow its key. It is pure: no clock, no network. The supervisor
// of package region passes in what it observes and executes one step at a time; so does the simulation in the tests of package
// replica. Only region's subpackages import it, and it imports none of this module.
package membership

import "slices"

// Member is a member of a group as its leader sees it.
type Member struct {
	Peer     string
	Learner  bool
	CaughtUp bool // has nearly all of the log
	Gone     bool // not heard from for longer than the grace period
	Struck   bool // the region has failed there lately
	Leaving  bool // has announced that it is about to stop: it stays a member, but must not lead
	Full     bool // too busy to be given the region
}

// MayLead reports whether leadership may be transferred to the member.
func (m Member) MayLead() bool { return m.CaughtUp && !m.Gone && !m.Leaving && !m.Learner }

// Kind is the kind of a step.
type Kind int

// The kinds of steps.
const (
	Stay     Kind = iota // the members are right
	Wait                 // a learner is catching up, or none of the others can lead yet
	Add                  // add Peer as a learner
	Promote              // make the learner Peer a voter
	Remove               // remove Peer
	Transfer             // transfer leadership to Peer
)

// Step is one change to a group. Peer is empty for kinds that concern no peer.
type Step struct {
	Kind Kind
	Peer string
}

// Preferred returns nearest with the nodes first that should be the members: those that fit, nearest first, among the first want+spare
// nodes. The others follow, nearest first, and fill up what is missing. A member should always fit, so that it does not lose its place
// because it is busy.
func Preferred(nearest []string, want, spare int, fits func(peer string) bool) []string {
	window := nearest[:min(want+spare, len(nearest))]
	preferred := make([]string, 0, len(nearest))
	for _, peer := range window {
		if len(preferred) < want && fits(peer) {
			preferred = append(preferred, peer)
		}
	}
	chosen := preferred
	for _, peer := range nearest {
		if !slices.Contains(chosen, peer) {
			preferred = append(preferred, peer)
		}
	}
	return preferred
}

// Next returns the next step that the leader self has to take so that its group converges to the first want nodes of nearest.
// Nearest lists the live nodes, nearest to the key first. Only one change is made at a time, and new members are added before old
// ones are removed, so that the group never has fewer copies than before.
func Next(self string, members []Member, nearest []string, want int) Step {
	target := nearest[:min(want, len(nearest))]
	var voters []Member
	for _, m := range members {
		if !m.Learner {
			voters = append(voters, m)
			continue
		}
		switch {
		case m.Gone, !slices.Contains(target, m.Peer):
			return Step{Remove, m.Peer}
		case m.CaughtUp:
			return Step{Promote, m.Peer}
		default:
			return Step{Kind: Wait}
		}
	}
	isVoter := func(peer string) bool {
		return slices.ContainsFunc(voters, func(m Member) bool { return m.Peer == peer })
	}
	if len(voters) > want {
		return surplus(self, voters, nearest)
	}
	for _, peer := range target {
		if !isVoter(peer) {
			return Step{Add, peer}
		}
	}
	return preferredLeader(self, voters, target)
}

// surplus removes the worst voter: one that is gone, or else the farthest. A group that is not too large keeps a gone member
// while there is no substitute: the member may come back, and removing it gains nothing.
func surplus(self string, voters []Member, nearest []string) Step {
	rank := func(m Member) int {
		switch i := slices.Index(nearest, m.Peer); {
		case m.Gone:
			return len(nearest) + 1
		case i < 0:
			return len(nearest)
		default:
			return i
		}
	}
	worst := slices.MaxFunc(voters, func(a, b Member) int { return rank(a) - rank(b) })
	if worst.Peer != self {
		return Step{Remove, worst.Peer}
	}
	// The leader itself is surplus: another member must lead first.
	for _, full := range []bool{false, true} {
		for _, peer := range nearest {
			i := slices.IndexFunc(voters, func(m Member) bool { return m.Peer == peer && m.MayLead() && m.Full == full })
			if i >= 0 && peer != self {
				return Step{Transfer, peer}
			}
		}
	}
	return Step{Kind: Wait}
}

// preferredLeader transfers leadership to the nearest live member that has nearly all of the log, and room for the region.
func preferredLeader(self string, voters []Member, target []string) Step {
	for _, peer := range target {
		if peer == self {
			return Step{Kind: Stay}
		}
		for _, m := range voters {
			if m.Peer == peer && m.MayLead() && !m.Struck && !m.Full {
				return Step{Transfer, peer}
			}
		}
	}
	return Step{Kind: Stay}
}
