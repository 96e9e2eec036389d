package actor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/budget"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A gateway that comes while no member leads waits for a leader, for a limited time. A gateway that comes to the wrong member is
// sent the leader's name.
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
		if frames, _ := first.subscriber.out.Drain(); len(frames) != 0 {
			t.Errorf("while there is no leader: %+v", frames)
		}
		g.mail = []replica.Delivery{replica.Leadership{Leader: "A", Self: true, Term: 4}}
		l.step()
		if frames, _ := first.subscriber.out.Drain(); len(frames) != 1 || frames[0].Closed != "" {
			t.Errorf("when this node leads: %+v", frames)
		}
		g.mail = []replica.Delivery{replica.Leadership{Term: 5}}
		l.step()
		second := newLink(l)
		g.mail = []replica.Delivery{replica.Leadership{Leader: "B", Term: 5}}
		l.step()
		third := newLink(l)
		for i, link := range []*Subscription{first, second, third} {
			frames, open := link.subscriber.out.Drain()
			if n := len(frames); open || n == 0 || frames[n-1].Leader != "B" {
				t.Errorf("gateway %d gets %+v", i, frames)
			}
		}
		g.mail = []replica.Delivery{replica.Leadership{Term: 6}}
		l.step()
		fourth := newLink(l)
		<-time.After(PendingTime + time.Millisecond)
		l.step()
		if _, closed := received(fourth); closed == "" || len(l.hub.subscribers) != 0 || l.hub.pending != 0 {
			t.Errorf("after %v: %q, %d subscribers, %d pending", PendingTime, closed, len(l.hub.subscribers), l.hub.pending)
		}
	})
}

// TrySend sends the message as long as the loop has not fallen behind; otherwise it does not call take.
func TestTrySendNeverWaits(t *testing.T) {
	l, _ := scripted()
	link := newLink(l)
	outside := link
	taken := 0
	watch := func() nodemsg.ToRegion {
		taken++
		return nodemsg.ToRegion{Watch: []grid.ChunkPos{{X: int32(taken - 1)}}}
	}
	for outside.TrySend(watch) {
		if taken > linkCredit {
			t.Fatal("more was taken than may wait")
		}
	}
	if taken != linkCredit {
		t.Fatalf("%d messages were taken, want %d", taken, linkCredit)
	}
	l.runInbox()
	if len(link.subscriber.watch) != linkCredit {
		t.Errorf("the loop heard %d messages", len(link.subscriber.watch))
	}
	if !outside.TrySend(watch) {
		t.Error("nothing waits, and the link takes nothing")
	}
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
	if before := taken; outside.TrySend(watch) || taken != before {
		t.Error("a closed link took something")
	}
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
			b := budget.New(func(work func()) time.Duration { work(); return c.cpu })
			blown := false
			for start := time.Now(); time.Since(start) < 3*budget.Window; {
				_, err := b.Tick(func() { <-time.After(c.wall) }, time.Now())
				blown = blown || err != nil
			}
			if blown != c.blown {
				t.Errorf("%s: blown is %v", c.name, blown)
			}
		}
	})
}

// A gateway that sends faster than the region ticks is held up.
func TestSendWaitsForTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := scripted()
		link := newLink(l)
		sent := make(chan error)
		go func() {
			for {
				if err := link.Send(nodemsg.ToRegion{}); err != nil {
					sent <- err
					return
				}
			}
		}()
		synctest.Wait()
		if waiting := l.inbox.Len(); waiting != linkCredit {
			t.Errorf("%d messages wait for a tick", waiting)
		}
		if err := link.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; !errors.Is(err, ErrLinkClosed) {
			t.Error(err)
		}
	})
}

func TestGroupFaults(t *testing.T) {
	if groupFault(replica.ErrStopped) != nil || groupFault(replica.ErrStorage).Kind != Refused || groupFault(kv.ErrDamaged).Kind != Broken {
		t.Error("failures of groups are mistaken")
	}
}
