// Package membership decides how a region's group follows its key (DESIGN §6): pure, no clock, no network. The
// supervisor of package region feeds it with what it sees and carries out one step at a time, and so does the
// simulation in package replica's tests. Nobody else imports it; it imports nothing of ours.
package membership

import "slices"

// Member is a member of a group as its leader sees it.
type Member struct {
	Peer     string
	Learner  bool
	CaughtUp bool // has nearly all of the log
	Gone     bool // not heard of for longer than the grace period
	Struck   bool // the region has failed there lately
	Leaving  bool // has told that it is about to end: it stays a member, and is not to lead
}

// MayLead tells whether leadership may be handed to the member.
func (m Member) MayLead() bool { return m.CaughtUp && !m.Gone && !m.Leaving && !m.Learner }

// Kind is what to do next with a group's members.
type Kind int

// What there is to do.
const (
	Stay     Kind = iota // the members are right
	Wait                 // a learner is catching up
	Add                  // take Peer in as a learner
	Promote              // make the learner Peer a voter
	Remove               // take Peer out
	Transfer             // hand leadership to Peer
)

// Step is one thing to do. Peer is empty where the kind names none.
type Step struct {
	Kind Kind
	Peer string
}

// Next tells the leader self what to do next so that its group comes to consist of the first want
// nodes of nearest: the live nodes, nearest to the key first. One change at a time, and new members are
// taken in before old ones go, so that the group never has fewer copies than it had.
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

// surplus takes the worst voter out: one that is gone, else the farthest. A group that is not too large
// keeps a gone member while there is no substitute: it may come back, and removing it gains nothing.
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
	// The leader itself is to go: somebody else must lead first.
	for _, peer := range nearest {
		i := slices.IndexFunc(voters, func(m Member) bool { return m.Peer == peer && m.MayLead() })
		if i >= 0 && peer != self {
			return Step{Transfer, peer}
		}
	}
	return Step{Kind: Wait}
}

// preferredLeader hands leadership to the nearest live member, once it has the log.
func preferredLeader(self string, voters []Member, target []string) Step {
	for _, peer := range target {
		if peer == self {
			return Step{Kind: Stay}
		}
		for _, m := range voters {
			if m.Peer == peer && m.MayLead() && !m.Struck {
				return Step{Transfer, peer}
			}
		}
	}
	return Step{Kind: Stay}
}
