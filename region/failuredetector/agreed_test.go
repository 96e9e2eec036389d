package failuredetector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// An old node, or one that is not known yet, keeps the others from what it would not understand. It cannot once all have understood it, whatever
// it says, nor by its silence.
func TestAgreed(t *testing.T) {
	const now, old = nodemsg.Version, nodemsg.Version - 1
	describes := map[string]nodemsg.Answer{"new": {Version: now}, "old": {Version: old}, "informed": {Version: now, Agreed: now}, "boastful": {Version: now, Agreed: now + 9}}
	start := func(connected *[]string) *Detector {
		return New(time.Minute, func(_ context.Context, peer string) (nodemsg.Answer, error) {
			answer, there := describes[peer]
			if !there {
				return nodemsg.Answer{}, errors.New("silent")
			}
			m := member(peer)
			answer.Member = &m
			return answer, nil
		}, func() []string { return *connected })
	}
	synctest.Test(t, func(t *testing.T) {
		var connected []string
		remembered := 0
		d := start(&connected)
		d.Remember = func(version int) { remembered = version }
		rounds := func(d *Detector, lasting time.Duration) {
			t.Helper()
			for end := time.Now().Add(lasting); time.Now().Before(end); <-time.After(RoundEvery) {
				watched := make(Watched)
				for _, peer := range connected {
					watched.Add(peer, d.StrangerEvery)
				}
				d.Refresh(t.Context(), watched)
			}
		}
		expect := func(what string, d *Detector, agrees bool, agreed int) {
			t.Helper()
			if d.Agrees(now) != agrees || d.Agreed() != agreed {
				t.Errorf("%s: it agrees: %t, on %d; want %t, on %d", what, d.Agrees(now), d.Agreed(), agrees, agreed)
			}
		}
		expect("alone, just started", d, true, 0)
		connected = []string{"new"}
		expect("one that is not known yet", d, false, 0)
		rounds(d, RoundEvery)
		expect("one that is new", d, true, 0)
		connected = []string{"new", "old"}
		expect("another that is not known yet", d, false, 0)
		rounds(d, 2*settleFor)
		expect("it is old", d, false, 0)
		if !d.Agrees(old) {
			t.Error("what the old one understands may not be used")
		}
		connected = []string{"new"}
		rounds(d, silentFor+settleFor+2*RoundEvery)
		expect("it is gone", d, true, now)
		if remembered != now {
			t.Errorf("version %d is remembered", remembered)
		}
		connected = []string{"new", "old", "silent"}
		rounds(d, 2*settleFor)
		expect("it is back", d, true, now)

		again := start(&connected)
		again.Restore(remembered)
		expect("after a restart", again, true, now)

		connected = []string{"new", "silent"}
		d = start(&connected)
		rounds(d, silentFor-2*RoundEvery)
		expect("one is silent", d, false, 0)
		rounds(d, settleFor+4*RoundEvery)
		expect("it stays silent", d, true, now)

		connected = []string{"old", "informed", "boastful"}
		d = start(&connected)
		rounds(d, RoundEvery)
		expect("others had agreed", d, true, now)
	})
}
