package crowd

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// The yaw of tick frames yields the round again, for any of the last 256.
func TestRoundsAreReadFromYaws(t *testing.T) {
	for before := int32(1); before < 700; before += 13 {
		for of := max(0, before-yawRounds); of < before; of++ {
			yaw := sessionmsg.PlaceOf(grid.ChunkPos{}, motion.Pose{X: 1, Y: 40, Z: 1, Yaw: yawOf(of)}).Yaw
			if got := roundOf(yaw, before); got != of {
				t.Fatalf("round %d, seen before %d, is read as %d", of, before, got)
			}
		}
	}
	if got := roundOf(yawByte(-1), 1); got >= 0 {
		t.Errorf("who has not begun is in round %d", got)
	}
}

// Consecutive rounds differ enough in yaw for every LOD tier to send the turn.
func TestYawsAreTurns(t *testing.T) {
	for rounds := int32(1); rounds <= 6; rounds++ {
		if turn := int8(yawByte(rounds) - yawByte(0)); max(turn, -turn) < 24 {
			t.Errorf("after %d rounds the yaw has turned by %d", rounds, turn)
		}
	}
}

func TestNobodyIsTooFast(t *testing.T) {
	o := Rounds{Targets: []string{"nowhere"}, Paths: [][]Point{{{0, 0}}, {{.9, 0}}, {{.9, 2}}}}
	if err := o.validate(); err == nil {
		t.Error("two blocks in a round are taken")
	}
	o.Paths = o.Paths[:2]
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// Players who begin together do so a fixed time before the gateways' rounds, whenever they were started and however
// late they are. The whole delay counts as late.
func TestRoundsBeginTogether(t *testing.T) {
	const ms = time.Millisecond
	for _, offset := range []time.Duration{0, 3, 39, 40, 41, 49} {
		now := time.Unix(1000, int64(offset*ms))
		p := newPacer(now, false)
		if early := time.Duration(p.start.UnixNano()) % RoundTime; early != RoundTime-LeadTime || !p.start.After(now) || p.start.Sub(now) > RoundTime {
			t.Errorf("started %v into a round, they begin after %v", offset*ms, p.start.Sub(now))
		}
		for _, c := range []struct{ lag, shift, late time.Duration }{
			{0, 0, 0}, {3 * ms, 0, 3 * ms}, {20 * ms, 0, 20 * ms}, {30 * ms, RoundTime, RoundTime}, {120 * ms, 2 * RoundTime, 120 * ms},
		} {
			late, before := p.late, p.start
			p.lag(c.lag)
			if shift, counted := p.start.Sub(before), p.late-late; shift != c.shift || counted != c.late {
				t.Errorf("late by %v: rounds are put off by %v, and %v are counted, want %v and %v", c.lag, shift, counted, c.shift, c.late)
			}
		}
	}
}

// If players are spread over a round, one late slice delays only itself, unless the following rounds are postponed
// for all.
func TestSlicesAreLateAlone(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPacer(now, true)
	p.lag(maxLag)
	if p.start != now || p.late != maxLag/parts || p.slices != parts {
		t.Errorf("one of %d parts is late by %v: rounds begin at %v, and %v are counted", p.slices, maxLag, p.start, p.late)
	}
	p.lag(7 * time.Millisecond)
	if p.start != now.Add(7*time.Millisecond) || p.late != 7*time.Millisecond+maxLag/parts {
		t.Errorf("one is late by 7 ms more: rounds begin at %v, and %v are counted", p.start, p.late)
	}
}
