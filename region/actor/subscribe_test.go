package actor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
)

// A gateway that comes while no member leads waits for a leader, for a limited time. A gateway that comes to the wrong
// member is sent the leader's name.
func TestPendingSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := scripted()
		g.mail = []replica.Delivery{replica.Leadership{Term: 3}}
		l.step()
		first := newLink(l)
		l.step()
		if g.campaigns == 0 {
			t.Error("no node stands for election")
		}
		if frames, _ := drain(first); len(frames) != 0 {
			t.Errorf("while there is no leader: %+v", frames)
		}
		g.mail = []replica.Delivery{replica.Leadership{Leader: "A", Self: true, Term: 4}}
		l.step()
		if frames, _ := drain(first); len(frames) != 1 || frames[0].Closed != "" {
			t.Errorf("when this node leads: %+v", frames)
		}
		g.mail = []replica.Delivery{replica.Leadership{Term: 5}}
		l.step()
		second := newLink(l)
		g.mail = []replica.Delivery{replica.Leadership{Leader: "B", Term: 5}}
		l.step()
		third := newLink(l)
		for i, link := range []*Subscription{first, second, third} {
			frames, open := drain(link)
			if n := len(frames); open || n == 0 || frames[n-1].Leader != "B" {
				t.Errorf("gateway %d gets %+v", i, frames)
			}
		}
		g.mail = []replica.Delivery{replica.Leadership{Term: 6}}
		l.step()
		fourth := newLink(l)
		<-time.After(PendingTime + time.Millisecond)
		l.step()
		if _, closed := received(fourth); closed == "" || l.hub.len() != 0 || len(l.hub.pendingSubscribers()) != 0 {
			t.Errorf("after %v: %q, %d subscribers, %d pending", PendingTime, closed, l.hub.len(), len(l.hub.pendingSubscribers()))
		}
	})
}

// On an overloaded machine, long ticks are not counted as the region's fault.
func TestBudgetCountsCPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name      string
			wall, cpu time.Duration
			blown     bool
		}{
			{"quick", 10 * time.Millisecond, 10 * time.Millisecond, false},
			{"waits for a core", 200 * time.Millisecond, 20 * time.Millisecond, false},
			{"busy", 60 * time.Millisecond, 60 * time.Millisecond, true},
			{"very busy", 2 * time.Second, 2 * time.Second, true},
		} {
			b := newBudget(func(work func()) time.Duration { work(); return c.cpu })
			blown := false
			for start := time.Now(); time.Since(start) < 3*budgetWindow; {
				_, err := b.tick(func() { <-time.After(c.wall) }, time.Now())
				blown = blown || err != nil
			}
			if blown != c.blown {
				t.Errorf("%s: blown is %v", c.name, blown)
			}
		}
	})
}

func TestGroupFaults(t *testing.T) {
	if groupFault(replica.ErrStopped) != nil || groupFault(replica.ErrStorage).Kind != Refused || groupFault(kv.ErrDamaged).Kind != Broken {
		t.Error("failures of groups are mistaken")
	}
}
