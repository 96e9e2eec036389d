package gameserver

import (
	"testing"

	"github.com/voxelpopuli/voxeld/gameserver/outbox"
)

// The tick of a crowd allocates nothing per player or session: its allocations are per cell, and the same however many
// avatars are in them.
func TestTickAllocatesNothingForAPlayer(t *testing.T) {
	allocations := func(players int) float64 {
		h := newCrowdScene(players, jitter)
		sessions, desks := make([]*session, players), make([]outbox.Writer, players)
		for i := range sessions {
			sessions[i] = h.addSession(i)
		}
		if err := h.begin(); err != nil {
			t.Fatal(err)
		}
		sink := sinkFunc(func([]byte) error { return nil })
		tick := func() {
			for i, s := range sessions {
				s.place.moveTo(h.crowd.bodies[i].Pose)
			}
			if err := h.tick(sessions); err != nil {
				t.Fatal(err)
			}
			for i, s := range sessions {
				if s.out.Woken() {
					if err := desks[i].WriteNext(s.out, sink); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for range 300 { // buffers grow for a while
			tick()
		}
		return testing.AllocsPerRun(50, tick)
	}
	if n := allocations(400); n > 40 {
		t.Errorf("a tick of 400 players allocates %v times", n)
	}
}
