package sim

import (
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Leaders and relays keep no avatars that have fallen silent, nor introductions of these.
func TestSilentAvatarsAreDropped(t *testing.T) {
	introducer := NewIntroducer(overlay.FirstServer, 100, 0, 0)
	leader := NewRelayLeader(overlay.FirstServer, 100, 0)
	relay := NewRelay(0, overlay.FirstServer, 0)
	for round := range uint32(500) {
		in := &overlay.Input{Round: round}
		for i := range overlay.ID(5) { // five new avatars in each round
			u := overlay.Update{Origin: 5*overlay.ID(round) + i + 1, Round: round}
			in.Inbox = append(in.Inbox, overlay.Message{From: u.Origin, Payload: &overlay.Report{Update: u}})
		}
		var out overlay.Output
		introducer.Step(in, &out)
		if n := len(introducer.here.updates); n > 5*(introduceForget+1) {
			t.Fatalf("round %d: the introducer keeps %d avatars", round, n)
		}
		if n := len(introducer.introduced); n > 2*reintroduce*5*5*(introduceForget+1) {
			t.Fatalf("round %d: the introducer keeps %d pairs", round, n)
		}
		out.Reset()
		leader.Step(in, &out)
		if n := len(leader.here.updates); n > 5*(relayForget+1) {
			t.Fatalf("round %d: the leader keeps %d avatars", round, n)
		}
		learned := &overlay.Input{Round: round}
		for _, m := range in.Inbox {
			p := &overlay.Introduction{Updates: []overlay.Update{m.Payload.(*overlay.Report).Update}}
			learned.Inbox = append(learned.Inbox, overlay.Message{From: overlay.FirstServer, Payload: p})
		}
		out.Reset()
		relay.Step(learned, &out)
		if n := len(relay.newest); n > 5*2*(relayForget+1) || len(out.Learned) != 5 {
			t.Fatalf("round %d: the relay keeps %d avatars, and delivers %d", round, n, len(out.Learned))
		}
	}
}
