package gameserver

import (
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/gameserver/outbox"
)

// BenchmarkGatewayShare measures a tick of a gateway that has a share of a crowd's sessions, and encodes the motion of
// the whole crowd for them. The time with few sessions is that of the preparation, which every gateway spends.
func BenchmarkGatewayShare(b *testing.B) {
	const players = 1000
	for _, share := range []int{1, 4, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", players/share), func(b *testing.B) {
			h := newCrowdScene(players, jitter)
			h.crowd.hills = newHills(b)
			sessions, desks := make([]*session, players/share), make([]outbox.Writer, players/share)
			for i := range sessions {
				sessions[i] = h.addSession(i)
			}
			if err := h.begin(); err != nil {
				b.Fatal(err)
			}
			sink := sinkFunc(func([]byte) error { return nil })
			tick := func(timed bool) {
				for i, s := range sessions {
					s.place.moveTo(h.crowd.bodies[i].Pose)
				}
				h.walk()
				if timed {
					b.StartTimer()
				}
				if err := h.show(sessions); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				for i, s := range sessions {
					if s.out.Woken() {
						if err := desks[i].WriteNext(s.out, sink); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			for range 100 {
				tick(false)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				tick(true)
			}
		})
	}
}
