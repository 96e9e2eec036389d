package gameserver

import (
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// BenchmarkFanOut measures one tick's delta from the subscription to the bytes written for each session: a chunk in which 50
// avatars move and one block changes, seen by 1, 10, 100 or 1000 sessions.
func BenchmarkFanOut(b *testing.B) {
	for _, sessions := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			g := newIdleGateway(options(newLands(), playerstest.NewMemory(), playerstest.NewMemory()))
			var sub *mirror.Subscription
			var crowd []*session
			var desks []outbox.Writer
			for range sessions {
				crowd = append(crowd, &session{g: g, out: outbox.New(func() {}), codec: codec.JSON})
				sub = showChunk(g, grid.ChunkPos{}, crowd[len(crowd)-1])
				discard(crowd[len(crowd)-1].out)
			}
			desks = make([]outbox.Writer, sessions)
			frame := nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Blocks: []nodemsg.BlockAt{{At: 5, Block: 1}}}}}
			var enter []nodemsg.Body
			for i := range 50 {
				id := player.GuestID(fmt.Sprint(i))
				enter = append(enter, nodemsg.Body{Player: id, Name: fmt.Sprint("p", i), Pose: motion.Pose{Y: 64}})
				frame.Chunks[0].Moves = append(frame.Chunks[0].Moves, nodemsg.BodyMove{Player: id, Pose: motion.Pose{X: 1.25, Y: 64, Z: float64(i)}})
			}
			if err := sub.Apply(nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Enter: enter}}}); err != nil {
				b.Fatal(err)
			}
			bytes := 0
			write := func(data []byte) error {
				bytes += len(data)
				return nil
			}
			for b.Loop() {
				frame.Tick++
				if err := sub.Apply(frame); err != nil {
					b.Fatal(err)
				}
				for i, s := range crowd {
					if err := desks[i].WriteNext(s.out, sinkFunc(write)); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(bytes)/float64(b.N)/float64(sessions), "bytes/session")
		})
	}
}

// BenchmarkSessionTick measures a tick of a crowd that walks about in one chunk, from the region's message to the bytes written
// for each session. It must not allocate per player: a tick's allocations are the same for 100 and 1500.
func BenchmarkSessionTick(b *testing.B) {
	for _, players := range []int{100, 500, 1500} {
		b.Run(fmt.Sprintf("players=%d", players), func(b *testing.B) {
			h := newCrowdScene(players, jitter)
			sessions, desks := make([]*session, players), make([]outbox.Writer, players)
			for i := range sessions {
				sessions[i] = h.addSession(i)
			}
			if err := h.begin(); err != nil {
				b.Fatal(err)
			}
			bytes := 0
			var c streamConn
			sink := sinkFunc(func(data []byte) error {
				c.out = sessionmsg.AppendMessage(c.out[:0], data)
				bytes += len(c.out)
				return nil
			})
			tick := func() {
				for i, s := range sessions {
					s.place.moveTo(h.crowd.bodies[i].Pose)
				}
				if err := h.tick(sessions); err != nil {
					b.Fatal(err)
				}
				for i, s := range sessions {
					if s.out.Woken() {
						if err := desks[i].WriteNext(s.out, sink); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			for range 100 {
				tick()
			}
			bytes = 0
			for b.Loop() {
				tick()
			}
			b.ReportMetric(float64(bytes)/float64(b.N)/float64(players), "bytes/session")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(players), "ns/session")
		})
	}
}
