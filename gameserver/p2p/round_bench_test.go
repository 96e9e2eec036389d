package p2p

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// One round of four gateways' machines, whose players all see one another and walk at random. Reported are the time of
// one gateway, and the bytes that it sends.
func BenchmarkRound(b *testing.B) {
	for _, kind := range []string{PSense, Areacast} {
		for _, players := range []int{100, 300} {
			b.Run(fmt.Sprint(kind, "/", players), func(b *testing.B) { benchmarkRound(b, kind, players) })
		}
	}
}

// testAvatar is an avatar that a test moves.
type testAvatar struct {
	id   player.ID
	pose motion.Pose
}

func (a *testAvatar) Player() player.ID         { return a.id }
func (a *testAvatar) Pose() (motion.Pose, bool) { return a.pose, true }
func (a *testAvatar) UpdateRegion()             {}

// peerID returns an id of the form of libp2p's.
func peerID(i int) string { return fmt.Sprintf("peerThisNode%c", 'A'+i) }

func benchmarkRound(b *testing.B, kind string, players int) {
	const gateways = 4
	rng := rand.New(rand.NewPCG(1, 1))
	drivers := make(map[string]*Driver)
	avatars := make([][]*testAvatar, gateways)
	for i := range gateways {
		drivers[peerID(i)] = NewDriver(Options{
			Overlay: kind, Peer: peerID(i), MaxView: 2, Rules: player.Rules{Height: 32}.WithDefaults(), Registerer: prometheus.NewRegistry(),
		})
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
			d.mu.remotes.byID[numberOf(body.Player)] = &remoteAvatar{body: body, shown: true, chunk: pose.Chunk(), regionBody: body, inRegion: true, regionRound: 1}
		}
		avatars[n%gateways] = append(avatars[n%gateways], &testAvatar{body.Player, pose})
	}
	var bytes, packets int
	round := uint32(1)
	play := func() {
		round++
		out := make(map[string]roundOutput)
		for i := range gateways {
			all := make([]Avatar, len(avatars[i]))
			for n, a := range avatars[i] {
				a.pose = walk(a.pose)
				all[n] = a
			}
			r := drivers[peerID(i)].step(all, round)
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
