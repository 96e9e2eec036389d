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
		"an election beside a liar":        {[]statement{said("X", "X", 1<<40, "X"), said("A", "", 5, "A", "B", "C"), said("B", "", 5, "A", "B", "C")}, "", []string{"A", "B", "C"}, 2},
		"an election":                      {[]statement{said("A", "", 5, "A", "B", "C"), said("B", "", 5, "A", "B", "C"), said("C", "B", 5, "A", "B", "C")}, "", []string{"A", "B", "C"}, 3},
		"a member says that it leads":      {[]statement{said("A", "B", 5, "A", "B", "C"), said("C", "C", 5, "A", "B", "C")}, "", []string{"A", "B", "C"}, 2},
		"a learner does not vote":          {[]statement{learner}, "A", []string{"A"}, 1},
		"a closed copy does not vote":      {said: []statement{closed}},
		"a liar beside the catalog":        {[]statement{said("X", "X", 1<<40, "X"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar that names honest members": {[]statement{said("X", "X", 1<<40, "X", "A", "B"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar that adds members":         {[]statement{said("X", "B", 6, "B", "X", "Y", "Z"), said("A", "B", 5, "A", "B", "C"), said("B", "B", 5, "A", "B", "C")}, "B", []string{"A", "B", "C"}, 2},
		"a liar in a world of two":         {[]statement{said("A", "A", 1, "A"), said("X", "X", 1<<40, "X")}, "A", []string{"A"}, 1},
		"a leader that is no member":       {[]statement{said("A", "X", 5, "A", "B"), said("B", "X", 5, "A", "B")}, "", []string{"A", "B"}, 2},
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

// A node that knows the catalog's members does not follow others as long as one of these says that it is a member.
func TestReplaces(t *testing.T) {
	member := func(peer string, of ...string) statement {
		s := statement{peer: peer, status: nodemsg.RegionStatus{State: nodemsg.StateOpen}}
		for _, m := range of {
			s.status.Members = append(s.status.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{Peer: m}})
		}
		return s
	}
	signed := func(s statement) statement {
		s.status.Voucher = &nodemsg.Voucher{}
		return s
	}
	before := []string{"A", "B", "C"}
	for name, c := range map[string]struct {
		said    []statement
		members []string
		want    bool
	}{
		"a liar, while one member lives":  {[]statement{member("A", "A", "B", "C"), member("X", "X")}, []string{"X"}, true},
		"others, and no member is left":   {[]statement{member("A"), {peer: "B"}, member("D", "D", "E")}, []string{"D", "E"}, false},
		"one member, recovered from it":   {[]statement{signed(member("A", "A")), member("B", "A", "B", "C")}, []string{"A"}, false},
		"one member that lies":            {[]statement{member("A", "A"), member("B", "A", "B", "C")}, []string{"A"}, true},
		"one member, and no other lives":  {[]statement{member("A", "A"), {peer: "B"}}, []string{"A"}, false},
		"most members were replaced":      {[]statement{member("A", "A", "D", "E"), member("B", "A", "B", "C")}, []string{"A", "D", "E"}, false},
		"members that nobody contradicts": {[]statement{member("D", "D")}, []string{"D"}, false},
	} {
		p := poll{said: c.said, d: &Directory{Options: Options{Vouched: func(s nodemsg.RegionStatus) bool { return s.Voucher != nil }}}}
		var at nodemsg.Region
		for _, peer := range c.members {
			at.Members = append(at.Members, nodemsg.Member{Peer: peer})
		}
		if got := p.replaces(before, at); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A node that was cut off while the catalog's members changed asks those that its own copy names, not only itself.
func TestKnownMembers(t *testing.T) {
	own := nodemsg.RegionStatus{State: nodemsg.StateOpen}
	for _, peer := range []string{"A", "B", "C"} {
		own.Members = append(own.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{Peer: peer}})
	}
	d := &Directory{Options: Options{OwnCatalog: func() nodemsg.RegionStatus { return own }}}
	d.mu.catalog.Members = []nodemsg.Member{{Peer: "C"}}
	if got := d.knownMembers(); !slices.Equal(got, []string{"A", "B", "C"}) {
		t.Errorf("a node with a copy asks %v", got)
	}
	own.State = nodemsg.StateNone
	if got := d.knownMembers(); !slices.Equal(got, []string{"C"}) {
		t.Errorf("a node without a copy asks %v", got)
	}
}
