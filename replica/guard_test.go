package replica

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// panicOnce is a counter of deliveries that panics once.
type panicOnce struct {
	prometheus.Counter
	done bool
}

func (c *panicOnce) Inc() {
	if !c.done {
		c.done = true
		panic("test")
	}
	c.Counter.Inc()
}

// A panic in one group, where the host's goroutine works for it, ends only that group: it can be opened again, and
// other groups continue to commit.
func TestPanicEndsOneGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := launch(t, Options{Storage: newDisk()})
		open := func(group uint64) *Group {
			g, err := h.Open(context.Background(), Founding{Group: group, Members: []string{"me"}})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
			return g
		}
		sick, well := open(1), open(2)
		counter := &panicOnce{Counter: h.node.Delivered}
		done := make(chan struct{})
		h.input.post(func() { h.node.Delivered = counter; close(done) })
		<-done
		if err := sick.Propose([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if err := well.Propose([]byte("y")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		committed := false
		for _, d := range well.Dequeue() {
			c, ok := d.(Committed)
			committed = committed || ok && string(c.Entry) == "y"
		}
		if !committed {
			t.Error("the group beside it does not commit")
		}
		failed := false
		for _, d := range sick.Dequeue() {
			_, ok := d.(Failed)
			failed = failed || ok
		}
		if !failed {
			t.Fatal("the group does not fail")
		}
		if err := open(1).Propose([]byte("z")); err != nil {
			t.Errorf("opened again: %v", err)
		}
	})
}
