package handoff

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
)

func TestTargetsAssign(t *testing.T) {
	var targets Targets
	if addresses := targets.Assign(); addresses == nil || len(addresses) != 0 {
		t.Errorf("without targets: %v", addresses)
	}
	for i := range uint64(wire.MaxGateways + 2) {
		host := string(rune('a' + i))
		targets.add(Target{Peer: host, Sessions: i * i, address: wire.Gateway{Game: host}})
	}
	var first []byte
	for range 12 {
		addresses := targets.Assign()
		if len(addresses) != wire.MaxGateways {
			t.Fatalf("%d addresses", len(addresses))
		}
		first = append(first, addresses[0].Game[0])
	}
	// a has 0, b 1, c 4, d 9: the least loaded is next, the first of equals by name.
	if want := "aababababcab"; string(first) != want {
		t.Errorf("players go to %s, want %s", first, want)
	}
}

// Only what happened is logged.
func TestCounts(t *testing.T) {
	if got := (Step{Step: "begun"}).Counts(); len(got) != 0 {
		t.Error(got)
	}
	got := Step{Targets: make([]Target, 2), Followed: 3}.Counts()
	if want := []any{"targets", 2, "followed", 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
