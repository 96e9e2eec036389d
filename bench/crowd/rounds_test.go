package crowd

import (
	"testing"
	"time"

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

// Who begin together do so a fixed time before the gateways' rounds, whenever they were started and however late they are.
func TestRoundsBeginTogether(t *testing.T) {
	for _, offset := range []time.Duration{0, 3, 39, 40, 41, 49} {
		now := time.Unix(1000, int64(offset*time.Millisecond))
		p := newPacer(now, false)
		for _, lag := range []time.Duration{0, 5, 20, 30, 120} {
			late, before := p.late, p.start
			p.lag(lag * time.Millisecond)
			if early := time.Duration(p.start.UnixNano()) % RoundTime; early != RoundTime-LeadTime || !p.start.After(now) || p.start.Sub(now) > RoundTime+170*time.Millisecond {
				t.Errorf("started %v ms into a round, late by %v ms, they begin at %v", int64(offset), int64(lag), p.start.Sub(now))
			}
			if wants := lag > lagMost/time.Millisecond; wants != (p.late > late) {
				t.Errorf("late by %v ms: %v are counted", int64(lag), p.late-late)
			}
			if lag < 25 && p.start != before {
				t.Errorf("late by %v ms, they leave out a round", int64(lag))
			}
		}
	}
	p := newPacer(time.Unix(1000, 0), true)
	p.lag(7 * time.Millisecond)
	if p.start != time.Unix(1000, int64(7*time.Millisecond)) || p.slices != parts {
		t.Errorf("spread, they begin at %v in %d parts", p.start, p.slices)
	}
}
