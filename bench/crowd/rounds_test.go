package crowd

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// A round comes back from the yaw that tick frames tell, whichever of the last 256 it was.
func TestRoundsAreReadFromYaws(t *testing.T) {
	for before := int32(1); before < 700; before += 13 {
		for of := max(0, before-stampRounds); of < before; of++ {
			yaw := wire.PlaceOf(grid.ChunkPos{}, wire.Pose{X: 1, Y: 40, Z: 1, Yaw: yawOf(of)}).Yaw
			if got := roundOf(yaw, before); got != of {
				t.Fatalf("round %d, seen before %d, is read as %d", of, before, got)
			}
		}
	}
	if got := roundOf(stampOf(-1), 1); got >= 0 {
		t.Errorf("who has not begun is in round %d", got)
	}
}

// Whoever is told of a round and then of the next ones is told of a turn, in whatever grade.
func TestStampsAreTurns(t *testing.T) {
	for rounds := int32(1); rounds <= 6; rounds++ {
		if turn := int8(stampOf(rounds) - stampOf(0)); max(turn, -turn) < 24 {
			t.Errorf("after %d rounds the yaw has turned by %d", rounds, turn)
		}
	}
}

func TestNobodyIsTooFast(t *testing.T) {
	o := Rounds{Targets: []string{"nowhere"}, Way: [][]Spot{{{0, 0}}, {{.9, 0}}, {{.9, 2}}}}
	if err := o.validate(); err == nil {
		t.Error("two blocks in a round are taken")
	}
	o.Way = o.Way[:2]
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}
