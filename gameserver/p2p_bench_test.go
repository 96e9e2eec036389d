package gameserver

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// One round of four gateways' machines, whose players all see one another and walk at random. Reported are the time of one
// gateway, and the bytes that it sends.
func BenchmarkSwarm(b *testing.B) {
	for _, kind := range []string{OverlayPSense, OverlayAreacast} {
		for _, players := range []int{100, 300} {
			b.Run(fmt.Sprint(kind, "/", players), func(b *testing.B) { benchmarkP2P(b, kind, players) })
		}
	}
}

func benchmarkP2P(b *testing.B, kind string, players int) {
	const gateways = 4
	rng := rand.New(rand.NewPCG(1, 1))
	drivers := make(map[string]*p2pDriver)
	sessions := make([][]*session, gateways)
	for i := range gateways {
		o := options(newLands(), newMemory(), newMemory())
		o.Overlay, o.Peer = kind, peerID(i)
		drivers[peerID(i)] = New(o).p2p
	}
	walk := func(p motion.Pose) motion.Pose {
		p.X, p.Z = min(max(p.X+rng.Float64()-.5, -60), 60), min(max(p.Z+rng.Float64()-.5, -60), 60)
		return p
	}
	for n := range players {
		name, home := fmt.Sprint("p", n), peerID(n%gateways)
		pose := motion.Pose{X: 120*rng.Float64() - 60, Y: 25, Z: 120*rng.Float64() - 60}
		body := nodemsg.Body{Player: player.GuestID(name), Name: name, Pose: pose, Gateway: home}
		for _, d := range drivers {
			d.mu.remotes[numberOf(body.Player)] = &remoteAvatar{body: body, shown: true, chunk: world.ChunkOf(pose), regionBody: body, inRegion: true, regionRound: 1}
		}
		s := &session{g: drivers[home].g, body: body}
		s.mu.pose, s.mu.placed = pose, true
		s.bodySubShared.Store(&subscription{})
		sessions[n%gateways] = append(sessions[n%gateways], s)
	}
	var bytes, packets int
	round := uint32(1)
	play := func() {
		round++
		out := make(map[string]roundOutput)
		for i := range gateways {
			for _, s := range sessions[i] {
				s.mu.pose = walk(s.mu.pose)
			}
			r := drivers[peerID(i)].step(sessions[i], round)
			drivers[peerID(i)].renew(&r)
			out[peerID(i)] = r
		}
		for from, r := range out {
			for to, messages := range r.messages {
				packet := overlay.AppendPacket(nil, *messages)
				bytes += len(packet)
				packets++
				places, err := drivers[to].receive(from, packet)
				if err != nil {
					b.Fatal(err)
				}
				drivers[to].applyPlaces(places)
			}
		}
	}
	for range 20 {
		play()
	}
	bytes, packets = 0, 0
	b.ResetTimer()
	for b.Loop() {
		play()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*gateways)/1000, "ms/gateway-round")
	b.ReportMetric(float64(bytes)/float64(b.N*gateways), "B/gateway-round")
	b.ReportMetric(float64(packets)/float64(b.N*gateways), "packets/gateway-round")
}
