// Package membership decides how the members of a region's group follow its key. It is pure: no clock, no network. The
// supervisor of package region/placement passes in what it observes and executes one step at a time; so does the
// simulation in the tests of package replica.
//
// It also says in which state a region is: whether it has the members that it should have, or has lost the majority of
// them (Assess). A Tally counts regions by state. It alone has a lock, so that any goroutine may use it; it holds the
// regions in groups with the same members, so that a count costs as much as there are such groups, not as there are
// regions.
package membership

import "slices"

// Member is a member of a group as its leader sees it.
type Member struct {
	Peer     string
	Learner  bool
	CaughtUp bool // has nearly all of the log
	Gone     bool // not heard from, or with a disk that does not answer, for longer than the grace period
	Lost     bool // does not come back as it is: it is excluded from the world, or an operator has had it forgotten
	Failed   bool // the region has failed there lately
	Slow     bool // its disk does not answer, or did not lately
	Leaving  bool // has announced that it is about to stop: it stays a member, but must not lead
}

// MayLead reports whether leadership may be transferred to the member.
func (m Member) MayLead() bool { return m.sound() && !m.Leaving && !m.Learner }

// Impaired reports whether others should lead rather than the member.
func (m Member) Impaired() bool { return m.Failed || m.Slow }

// sound reports whether the member is live and has nearly all of the log.
func (m Member) sound() bool { return m.CaughtUp && !m.Gone && !m.Lost }

// fewest is the number of sound voters that removals leave a group of at least that many wanted members: it can still
// lose one.
const fewest = 3

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

// Next returns the next step that the leader self has to take so that its group converges to the first want nodes of
// nearest. Nearest lists the live nodes, nearest to the key first, and those whose place is kept (Choose). Only one
// change is made at a time. A voter that is gone leaves at once if enough others are sound (Departing). Otherwise new
// members are added before old ones are removed, so that the group never has fewer copies than before.
func Next(self string, members []Member, nearest []string, want int) Step {
	target := nearest[:min(want, len(nearest))]
	if peer := Departing(members, target, want); peer != "" {
		return Step{Remove, peer}
	}
	var voters []Member
	for _, m := range members {
		if !m.Learner {
			voters = append(voters, m)
			continue
		}
		switch {
		case m.Gone, m.Lost, !slices.Contains(target, m.Peer):
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
		return surplus(self, voters, nearest, want)
	}
	for _, peer := range target {
		if !isVoter(peer) {
			return Step{Add, peer}
		}
	}
	return preferredLeader(self, voters, target)
}

// Departing returns a voter that leaves the group without waiting for a substitute, or "". A vote that nobody casts
// costs the group its tolerance: of four voters with one gone, none may fail. So a gone voter leaves if three others,
// or as many as are wanted, are sound, unless its place is kept in target. With fewer it stays: it may be rebooting,
// and then has one of the last copies. A lost voter leaves in any case. No removal can be committed unless the sound
// voters are the majority of the present ones.
func Departing(members []Member, target []string, want int) string {
	voters, sound := 0, 0
	for _, m := range members {
		if m.Learner {
			continue
		}
		if voters++; m.sound() {
			sound++
		}
	}
	if 2*sound <= voters {
		return ""
	}
	for _, m := range members {
		switch {
		case m.Learner:
		case m.Lost, m.Gone && sound >= min(want, fewest) && !slices.Contains(target, m.Peer):
			return m.Peer
		}
	}
	return ""
}

// surplus removes the farthest voter of a group that has too many. It waits while too few sound ones would be left, or
// one that Departing should remove first cannot leave yet.
func surplus(self string, voters []Member, nearest []string, want int) Step {
	rank := func(m Member) int {
		if i := slices.Index(nearest, m.Peer); i >= 0 {
			return i
		}
		return len(nearest)
	}
	sound := 0
	for _, m := range voters {
		if m.Lost || m.Gone && !slices.Contains(nearest, m.Peer) {
			return Step{Kind: Wait}
		}
		if m.sound() {
			sound++
		}
	}
	worst := slices.MaxFunc(voters, func(a, b Member) int { return rank(a) - rank(b) })
	if worst.sound() && sound <= min(want, fewest) {
		return Step{Kind: Wait}
	}
	if worst.Peer != self {
		return Step{Remove, worst.Peer}
	}
	// The leader itself is surplus: another member must lead first.
	for _, able := range []func(Member) bool{
		func(m Member) bool { return !m.Impaired() },
		func(Member) bool { return true },
	} {
		for _, peer := range nearest {
			i := slices.IndexFunc(voters, func(m Member) bool { return m.Peer == peer && m.MayLead() && able(m) })
			if i >= 0 && peer != self {
				return Step{Transfer, peer}
			}
		}
	}
	return Step{Kind: Wait}
}

// preferredLeader transfers leadership to the nearest live member that has nearly all of the log and is not impaired.
// If none is better, the leader stays.
func preferredLeader(self string, voters []Member, target []string) Step {
	impaired := slices.ContainsFunc(voters, func(m Member) bool { return m.Peer == self && m.Impaired() })
	for _, peer := range target {
		if peer == self && !impaired {
			return Step{Kind: Stay}
		}
		for _, m := range voters {
			if m.Peer == peer && m.MayLead() && !m.Impaired() {
				return Step{Transfer, peer}
			}
		}
	}
	return Step{Kind: Stay}
}
