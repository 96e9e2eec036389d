package region

import (
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestConfirms(t *testing.T) {
	const recovered = nodemsg.RecoveredEpoch
	moved := nodemsg.Region{ID: 9, Epoch: 5, Members: []nodemsg.Member{member("A"), member("C"), member("D")}}
	numbered := moved
	numbered.Members = []nodemsg.Member{{Peer: "D", Replica: 3, Learner: true}, {Peer: "A", Replica: 1}, {Peer: "C", Replica: 2}}
	reordered := moved
	reordered.Members = []nodemsg.Member{member("D"), member("A"), member("C")}
	split, merged := moved, moved
	split.Split, merged.Merged = 4, 4
	raised := moved
	raised.Epoch += recovered
	of := func(state nodemsg.RegionState, epoch uint64, peers ...string) nodemsg.RegionStatus {
		s := nodemsg.RegionStatus{Region: 9, State: state, Epoch: epoch, Structure: &nodemsg.Structure{}}
		for i, p := range peers {
			s.Members = append(s.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{ID: uint64(i) + 1, Peer: p}})
		}
		return s
	}
	same := func(of nodemsg.RegionStatus) nodemsg.RegionStatus { return of }
	learns := func(s nodemsg.RegionStatus) nodemsg.RegionStatus { s.Members[2].Replica.Learner = true; return s }
	structured := func(is nodemsg.Structure) func(s nodemsg.RegionStatus) nodemsg.RegionStatus {
		return func(s nodemsg.RegionStatus) nodemsg.RegionStatus { s.Structure = &is; return s }
	}
	unread := func(s nodemsg.RegionStatus) nodemsg.RegionStatus { s.Structure = nil; return s }
	for name, c := range map[string]struct {
		said  nodemsg.RegionStatus
		but   func(nodemsg.RegionStatus) nodemsg.RegionStatus
		moved nodemsg.Region
		want  opinion
	}{
		"the same":                    {of(nodemsg.StateOpen, 5, "A", "C", "D"), same, moved, yes},
		"the same, closed":            {of(nodemsg.StateClosed, 5, "A", "C", "D"), same, moved, yes},
		"it is further":               {of(nodemsg.StateOpen, 6, "A", "D"), same, moved, later},
		"before the change":           {of(nodemsg.StateOpen, 4, "A", "B", "C"), same, moved, no},
		"others after the change":     {of(nodemsg.StateOpen, 5, "A", "B", "C"), same, moved, no},
		"more after the change":       {of(nodemsg.StateOpen, 5, "A", "C"), same, moved, no},
		"it has no copy":              {of(nodemsg.StateNone, 0), same, moved, unknown},
		"its copy is damaged":         {of(nodemsg.StateFailed, 4, "A", "B", "C"), same, moved, unknown},
		"quarantined, as it was":      {of(nodemsg.StateQuarantined, 4, "A", "B", "C"), same, moved, no},
		"in another order":            {of(nodemsg.StateOpen, 5, "A", "C", "D"), learns, numbered, yes},
		"a vote more":                 {of(nodemsg.StateOpen, 5, "A", "C", "D"), same, numbered, no},
		"other replicas":              {of(nodemsg.StateOpen, 5, "A", "C", "D"), same, reordered, no},
		"more recoveries":             {of(nodemsg.StateOpen, 6, "A", "C", "D"), same, raised, no},
		"it was split":                {of(nodemsg.StateOpen, 5, "A", "C", "D"), structured(nodemsg.Structure{Split: 4}), split, yes},
		"it was not split":            {of(nodemsg.StateOpen, 5, "A", "C", "D"), same, split, no},
		"split, further":              {of(nodemsg.StateOpen, 6, "A", "C", "D"), structured(nodemsg.Structure{Split: 4}), split, later},
		"it was not split, further":   {of(nodemsg.StateOpen, 6, "A", "C", "D"), same, split, no},
		"it is split, and not merged": {of(nodemsg.StateOpen, 5, "A", "C", "D"), structured(nodemsg.Structure{Split: 4}), merged, no},
		"it was merged":               {of(nodemsg.StateOpen, 5, "A", "C", "D"), structured(nodemsg.Structure{Merged: 4}), merged, yes},
		"merged since":                {of(nodemsg.StateOpen, 5, "A", "C", "D"), structured(nodemsg.Structure{Merged: 5}), split, later},
		"its structure is not known":  {of(nodemsg.StateOpen, 5, "A", "C", "D"), unread, split, unknown},
		"nor is it the same":          {of(nodemsg.StateOpen, 5, "A", "C", "X"), unread, moved, no},
		"nor has it the change":       {of(nodemsg.StateOpen, 4, "A", "C", "D"), unread, moved, no},
	} {
		if got := confirms(c.but(c.said), c.moved); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A report is accepted if most voters have seen the change, or nobody who can be asked knows better. A learner may lag
// for long.
func TestConsentOfMostVoters(t *testing.T) {
	for name, c := range map[string]struct {
		said opinions
		want bool
	}{
		"all others are down":           {opinions{voters: 3, agree: 1}, true},
		"one of three has seen it":      {opinions{voters: 3, agree: 2, disagree: 1}, true},
		"nobody has seen it":            {opinions{voters: 3, agree: 1, disagree: 1}, false},
		"who answers knows a later one": {opinions{voters: 3, agree: 1, later: 1}, false},
		"half":                          {opinions{voters: 4, agree: 2, disagree: 1}, false},
	} {
		if got := c.said.consent(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
