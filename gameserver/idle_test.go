package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/region"
)

// A gateway without clients makes few frames; a client that connects gets them at once, and all of them.
func TestIdleGatewayMakesFewFrames(t *testing.T) {
	for whom, come := range map[string]func(*harness){
		"a session":          func(r *harness) { r.join("ann", 1) },
		"an original client": func(r *harness) { r.connect("ann") },
	} {
		t.Run(whom, func(t *testing.T) { testIdleFrames(t, come) })
	}
}

func testIdleFrames(t *testing.T, come func(*harness)) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		frames := func() uint64 {
			synctest.Wait()
			var m dto.Metric
			if err := r.g.metrics.frameSeconds.Write(&m); err != nil {
				t.Fatal(err)
			}
			return m.GetHistogram().GetSampleCount()
		}
		pass(frameIdle)
		before := frames()
		pass(10 * frameIdle)
		if n := frames() - before; n > 10 {
			t.Errorf("%d frames in ten seconds, and no client is connected", n)
		}
		pass(frameIdle / 2) // between two frames
		before = frames()
		come(r)
		pass(frameIdle / 2)
		if n, want := frames()-before, uint64(frameIdle/2/frameLate); n < want {
			t.Errorf("%d frames in the first half second, want %d", n, want)
		}
	})
}

// Original clients get the time of day at each tick, whenever they connect.
func TestClockWaitsForOriginalClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		for range 2 {
			pass(time.Second) // without clients the clock stands
			o := r.connect("ann")
			o.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
			pass(10 * region.TickEvery)
			o.mu.Lock()
			times := o.mu.times
			o.mu.Unlock()
			if times < 10 {
				t.Errorf("the time was sent %d times in 10 ticks", times)
			}
			o.conn.Close()
			pass(time.Second)
		}
	})
}
