package directory

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestElected(t *testing.T) {
	said := func(peer, leader string, epoch uint64, members ...string) statement {
		s := nodemsg.RegionStatus{State: nodemsg.StateOpen, Leader: leader, Epoch: epoch}
		for _, m := range members {
			s.Members = append(s.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{Peer: m}})
		}
		return statement{peer, s}
	}
	closed := said("A", "A", 5, "A")
	closed.status.State = nodemsg.StateClosed
	learner := said("A", "A", 5, "A", "B")
	learner.status.Members[1].Replica.Learner = true
	for name, c := range map[string]struct {
		said    []statement
		leader  string
		members []string
		votes   int
	}{
		"nobody answers":                   {said: []statement{{peer: "A"}, {peer: "B"}}},
		"all agree":                        {[]statement{said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C"), said("C", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 3},
		"one is down":                      {[]statement{said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C"), {peer: "C"}}, "B", []string{"A", "B", "C"}, 2},
		"one is a change behind":           {[]statement{said("A", "B", 4, "A", "B"), said("B", "B", 5, "A", "B", "C"), said("C", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"only one of three answers":        {said: []statement{said("B", "B", 5, "A", "B", "C")}},
		"an election":                      {said: []statement{said("A", "", 5, "A", "B", "C"), said("B", "", 5, "A", "B", "C"), said("C", "B", 5, "A", "B", "C")}},
		"a member says that it leads":      {said: []statement{said("A", "B", 5, "A", "B", "C"), said("C", "C", 5, "A", "B", "C")}},
		"a learner does not vote":          {[]statement{learner}, "A", []string{"A"}, 1},
		"a closed copy does not vote":      {said: []statement{closed}},
		"a liar beside the catalog":        {[]statement{said("X", "X", 1<<40, "X"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar that names honest members": {[]statement{said("X", "X", 1<<40, "X", "A", "B"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar that adds members":         {[]statement{said("X", "B", 6, "B", "X", "Y", "Z"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar in a world of two":         {[]statement{said("A", "A", 1, "A"), said("X", "X", 1<<40, "X")}, "A", []string{"A"}, 1},
		"a leader that is no member":       {said: []statement{said("A", "X", 5, "A", "B"), said("B", "X", 5, "A", "B")}},
	} {
		at, votes := elected(c.said)
		var members []string
		for _, m := range at.Members {
			members = append(members, m.Peer)
		}
		if at.Leader != c.leader || votes != c.votes || !slices.Equal(members, c.members) {
			t.Errorf("%s: %d votes for %q with %v, want %d for %q with %v", name, votes, at.Leader, members, c.votes, c.leader, c.members)
		}
	}
}
