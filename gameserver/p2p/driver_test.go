package p2p

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// The precision of poses in the overlay is that of sessions.
func TestOverlayPoses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		far := rapid.Float64Range(-maxReach, maxReach)
		p := motion.Pose{
			X: far.Draw(t, "x"), Y: rapid.Float64Range(motion.MinY, motion.MaxY).Draw(t, "y"), Z: far.Draw(t, "z"),
			Yaw: rapid.Float32Range(-10, 10).Draw(t, "yaw"), Pitch: rapid.Float32Range(-1.5, 1.5).Draw(t, "pitch"),
		}
		u := UpdateOf(player.GuestID("ann"), p, 7)
		payload, err := overlay.ReadPayload(overlay.AppendPayload(nil, 1, &overlay.Position{Update: u}), 1, overlay.Reference{})
		if err != nil {
			t.Fatal(err)
		}
		got := poseOf(payload.(*overlay.Position).Update)
		want := sessionmsg.PlaceOf(p.Chunk(), p).Pose(p.Chunk())
		if math.Abs(got.X-p.X) > 1./sessionmsg.PlaceUnit/2 || math.Abs(got.Z-p.Z) > 1./sessionmsg.PlaceUnit/2 || got.Y != want.Y || got.Yaw != want.Yaw || got.Pitch != want.Pitch {
			t.Errorf("%+v came as %+v", p, got)
		}
	})
}

func TestGatheringWaitsForWhoSentLastTime(t *testing.T) {
	for _, test := range []struct {
		last map[string]uint32
		want bool
	}{
		{nil, true},
		{map[string]uint32{"a": 10, "b": 10}, true},
		{map[string]uint32{"a": 10, "b": 9}, false},
		{map[string]uint32{"a": 10, "b": 8}, true}, // b has nothing to send any more, or is gone
		{map[string]uint32{"a": 11}, true},         // the clock of a is ahead
	} {
		n := roundPackets{round: 10, last: test.last}
		if got := n.complete(); got != test.want {
			t.Errorf("with %v it is complete: %v", test.last, got)
		}
		if _, there := n.last["b"]; there && test.last["b"] == 8 {
			t.Error("who was silent for a round is waited for again")
		}
	}
}

// A gateway whose clock is set back by an hour exchanges updates with the others again at once. A small step does not
// count rounds twice.
func TestClockIsSetBack(t *testing.T) {
	for _, kind := range []string{PSense, Areacast} {
		t.Run(kind, func(t *testing.T) {
			const now = 1_000_000
			ann, bob := &testAvatar{player.GuestID("ann"), motion.Pose{Y: 25}}, &testAvatar{player.GuestID("bob"), motion.Pose{X: 5, Y: 25}}
			of := map[string]*testAvatar{"peerThisNodeA": ann, "peerThisNodeB": bob}
			drivers := make(map[string]*Driver)
			for peer := range of {
				d := NewDriver(Options{Overlay: kind, Peer: peer, MaxView: 2, Rules: player.Rules{Height: 32}.WithDefaults(), Registerer: prometheus.NewRegistry()})
				for home, a := range of {
					if home != peer {
						d.Merge(&nodemsg.ChunkDelta{Chunk: a.pose.Chunk(), Enter: []nodemsg.Body{{Player: a.id, Pose: a.pose, Gateway: home}}}, nil)
					}
				}
				drivers[peer] = d
			}
			play := func(rounds map[string]uint32) {
				out := make(map[string]roundOutput)
				for peer, d := range drivers {
					r := d.step([]Avatar{of[peer]}, rounds[peer])
					d.renew(&r)
					out[peer] = r
				}
				for from, r := range out {
					for to, messages := range r.messages {
						places, err := drivers[to].receive(from, overlay.AppendPacket(nil, *messages))
						if err != nil {
							t.Fatal(err)
						}
						drivers[to].applyPlaces(places)
					}
				}
			}
			sees := func(peer string, a *testAvatar) bool {
				known := drivers[peer].mu.remotes.byID[numberOf(a.id)]
				return known.fresh && math.Abs(known.body.Pose.X-a.pose.X) < .1
			}
			const hour = 3600 * 20
			for i := range uint32(20) {
				play(map[string]uint32{"peerThisNodeA": now + i + hour, "peerThisNodeB": now + i})
			}
			if sees("peerThisNodeA", bob) || sees("peerThisNodeB", ann) {
				t.Fatal("gateways an hour apart take each other's updates: the test shows nothing")
			}
			for i := range uint32(20) {
				ann.pose.X += .1
				bob.pose.X += .1
				play(map[string]uint32{"peerThisNodeA": now + 20 + i, "peerThisNodeB": now + 20 + i})
			}
			if !sees("peerThisNodeA", bob) || !sees("peerThisNodeB", ann) {
				t.Error("they do not take each other's updates after the clock was set back")
			}
			if r := drivers["peerThisNodeA"].step(nil, now+30); r.round != now+40 {
				t.Errorf("after round %d comes %d", now+39, r.round)
			}
		})
	}
}

// A stance that a region sends is shown, where the overlay has the avatar.
func TestStancesAreShown(t *testing.T) {
	d := NewDriver(Options{Overlay: PSense, Peer: "peerThisNodeA", MaxView: 2, Rules: player.Rules{Height: 32}.WithDefaults(), Registerer: prometheus.NewRegistry()})
	bob := nodemsg.Body{Player: player.GuestID("bob"), Name: "bob", Pose: motion.Pose{X: 5, Y: 25}, Gateway: "peerThisNodeB"}
	enter := func() []nodemsg.Body {
		n := nodemsg.ChunkDelta{Chunk: bob.Pose.Chunk(), Enter: []nodemsg.Body{bob}}
		d.Merge(&n, nil)
		return n.Enter
	}
	enter()
	known := d.mu.remotes.byID[numberOf(bob.Player)]
	known.fresh = true
	known.body.Pose.X = 6
	if shown := enter(); len(shown) > 0 {
		t.Errorf("what is older than the overlay's is shown: %+v", shown)
	}
	bob.Stance.Sneaks = true
	if shown := enter(); len(shown) != 1 || !shown[0].Stance.Sneaks || shown[0].Pose.X != 6 {
		t.Errorf("bob sneaks, and is shown as %+v", shown)
	}
	known.chunk.X++
	bob.Stance.Held = 1
	if shown := enter(); len(shown) > 0 || known.body.Stance.Held != 1 {
		t.Errorf("bob, who is in another chunk, is shown as %+v, and then as %+v", shown, known.body)
	}
}
