package p2p

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
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
