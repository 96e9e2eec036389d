package replica

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A disk that hangs refuses nothing: that it does not answer can be seen while the host waits for it, and for some time afterwards.
func TestHungDiskIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d, Registerer: prometheus.NewRegistry()})
		g := h.mustOpen(t, alone(7))
		leads(t, g)
		<-time.After(HungAfter) // everything lazy is stored
		expect := func(what string, hung, slow bool) {
			t.Helper()
			err := h.Stalled()
			if h.Hung() != hung || g.Hung() != hung || errors.Is(err, ErrHung) != hung || h.Slow() != slow {
				t.Errorf("%s: hung %v, of the group %v, stalled by %v, slow %v", what, h.Hung(), g.Hung(), err, h.Slow())
			}
			if metric := value(t, h.metrics.stalled); (metric == 1) != hung {
				t.Errorf("%s: the metric is %v", what, metric)
			}
		}
		expect("at first", false, false)
		d.hold = make(chan struct{})
		if err := g.Propose([]byte("edit")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the host blocks in Commit
		<-time.After(HungAfter)
		expect("after as long as a commit may take", false, false)
		<-time.After(time.Millisecond)
		expect("after more", true, true)
		close(d.hold)
		synctest.Wait()
		expect("when the disk works again", false, true)
		if got := texts(g.Dequeue()); len(got) != 1 {
			t.Errorf("delivered %v", got)
		}
		<-time.After(SlowFor - time.Millisecond)
		expect("not yet forgotten", false, true)
		<-time.After(time.Millisecond)
		expect("forgotten", false, false)
	})
}
