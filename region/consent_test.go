package region

import (
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestConfirms(t *testing.T) {
	moved := nodemsg.Region{ID: 9, Epoch: 5, Members: []nodemsg.Member{member("A"), member("C"), member("D")}}
	of := func(state nodemsg.RegionState, epoch uint64, peers ...string) nodemsg.RegionStatus {
		s := nodemsg.RegionStatus{Region: 9, State: state, Epoch: epoch}
		for _, p := range peers {
			s.Members = append(s.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{Peer: p}})
		}
		return s
	}
	for name, c := range map[string]struct {
		said nodemsg.RegionStatus
		want opinion
	}{
		"the same":                {of(nodemsg.StateOpen, 5, "A", "C", "D"), yes},
		"the same, closed":        {of(nodemsg.StateClosed, 5, "A", "C", "D"), yes},
		"it is further":           {of(nodemsg.StateOpen, 6, "A", "D"), yes},
		"before the change":       {of(nodemsg.StateOpen, 4, "A", "B", "C"), no},
		"others after the change": {of(nodemsg.StateOpen, 5, "A", "B", "C"), no},
		"it has no copy":          {of(nodemsg.StateNone, 0), unknown},
		"its copy is damaged":     {of(nodemsg.StateFailed, 4, "A", "B", "C"), unknown},
		"quarantined, as it was":  {of(nodemsg.StateQuarantined, 4, "A", "B", "C"), no},
	} {
		if got := confirms(c.said, moved); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
