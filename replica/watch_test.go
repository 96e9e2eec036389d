package replica

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lockedText is text that any goroutine may add to.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A disk that hangs refuses nothing: that it does not answer can be seen while the host waits for it, and for some time
// afterwards.
func TestHungDiskIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		var log lockedText
		h := launch(t, Options{Storage: d, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
		if text := log.String(); strings.Contains(text, "the disk") {
			t.Errorf("a slow write is logged: %s", text)
		}
		<-time.After(hungLogged)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "the disk does not answer") != 1 || strings.Contains(text, "answers again") {
			t.Errorf("the log of a disk that does not answer: %s", text)
		}
		close(d.hold)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "the disk answers again") != 1 {
			t.Errorf("the log of a disk that answers again: %s", text)
		}
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

// A disk that takes more than half a second for each of two commits in a row is slow, though it never hangs.
func TestSlowDiskIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		g := h.mustOpen(t, alone(7))
		leads(t, g)
		<-time.After(HungAfter) // everything lazy is stored
		synctest.Wait()
		commit := func(takes time.Duration) {
			d.hold = make(chan struct{})
			if err := g.Propose([]byte("edit")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the host blocks in Commit
			<-time.After(takes)
			hold := d.hold
			d.hold = nil
			close(hold)
			synctest.Wait()
		}
		for i, c := range []struct {
			takes time.Duration
			slow  bool
		}{{lateAfter, false}, {lateAfter + 1, false}, {lateAfter, false}, {HungAfter, false}, {lateAfter + 1, true}} {
			if commit(c.takes); h.Slow() != c.slow || h.Hung() {
				t.Errorf("commit %d took %v: slow %v, hung %v", i, c.takes, h.Slow(), h.Hung())
			}
		}
	})
}
