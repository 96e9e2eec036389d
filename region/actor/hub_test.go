package actor

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

// inbox is the inbox of a region, which the test empties.
type inbox struct{ *Mailbox[func()] }

func (inbox) ID() uint64              { return 7 }
func (i inbox) Enqueue(f func()) bool { return i.Put(f) }

func (i inbox) run() {
	all, _ := i.Drain()
	for _, f := range all {
		f()
	}
}

// linked returns a hub with one gateway, which watches what it is asked to.
func linked() (*hub, inbox, *Subscription) {
	cell := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	h := newHub(&contents{land: world.NewLand(7, cell, 64), crowd: crowd.New(cell)})
	h.detached, h.slow = func(*subscriber) {}, func() {}
	s := newSubscriber("peer")
	h.attach(s)
	box := inbox{NewMailbox[func()](0)}
	return h, box, h.subscription(s, box, new(world.Proofs).Proven, func(s *subscriber, msg nodemsg.ToRegion, _ []bool) {
		for _, pos := range msg.Watch {
			h.watch(s, pos)
		}
	})
}

// TrySend sends the message as long as the region has not fallen behind; otherwise it does not call take.
func TestTrySendNeverWaits(t *testing.T) {
	h, box, link := linked()
	taken := 0
	watch := func() nodemsg.ToRegion {
		taken++
		return nodemsg.ToRegion{Watch: []grid.ChunkPos{{X: int32(taken - 1)}}}
	}
	for link.TrySend(watch) {
		if taken > linkCredit {
			t.Fatal("more was taken than may wait")
		}
	}
	if taken != linkCredit {
		t.Fatalf("%d messages were taken, want %d", taken, linkCredit)
	}
	box.run()
	if len(h.watched) != linkCredit {
		t.Errorf("the region received %d messages", len(h.watched))
	}
	if !link.TrySend(watch) {
		t.Error("nothing waits, and the link takes nothing")
	}
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
	if before := taken; link.TrySend(watch) || taken != before {
		t.Error("a closed link took something")
	}
	if box.run(); h.len() != 0 || len(h.watched) != 0 {
		t.Errorf("left behind: %d subscribers, %d watched chunks", h.len(), len(h.watched))
	}
}

// A gateway that sends faster than the region ticks is held up.
func TestSendWaitsForTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, box, link := linked()
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
		if waiting := box.Len(); waiting != linkCredit {
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

// A gateway whose results cannot all be sent in time is dismissed.
func TestTooManyResults(t *testing.T) {
	h, _, link := linked()
	for range maxResults + 1 {
		link.subscriber.addResult(nodemsg.EditResult{})
	}
	if h.publish(); h.len() != 0 {
		t.Error("the results of one gateway have no bound")
	}
}
