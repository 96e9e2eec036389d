package actor

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// linked returns a region that the test runs, its hub, and a gateway's link to it.
func linked() (*hub, *land, *Subscription) {
	l, _ := scripted()
	link := newLink(l)
	link.subscriber.out.Drain()
	return l.hub, l, link
}

// TrySend sends the message as long as the region has not fallen behind; otherwise it does not call take.
func TestTrySendNeverWaits(t *testing.T) {
	h, l, link := linked()
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
	l.runInbox()
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
	if l.runInbox(); h.len() != 0 || len(h.watched) != 0 {
		t.Errorf("left behind: %d subscribers, %d watched chunks", h.len(), len(h.watched))
	}
}

// A gateway that sends faster than the region ticks is held up.
func TestSendWaitsForTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, link := linked()
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
		if waiting := l.mailbox.Len(); waiting != linkCredit {
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

// A question whether the land is the newest is answered at once, but never ahead of a change of the land.
func TestQuestionsAreAnsweredAtOnce(t *testing.T) {
	h, l, link := linked()
	send(l, link, nodemsg.ToRegion{Watch: []grid.ChunkPos{here}})
	l.step()
	drain(link)
	answers := func(question uint64) []nodemsg.FromRegion {
		send(l, link, nodemsg.ToRegion{Confirm: question})
		h.publishEarly()
		frames, _ := drain(link)
		return frames
	}
	for question := range uint64(3) {
		if frames := answers(question + 1); len(frames) != 1 || frames[0].Confirmed != question+1 {
			t.Fatalf("question %d between two ticks: %+v", question+1, frames)
		}
	}
	h.contents.crowd.Changed(world.Change{Chunk: here, BlockAt: nodemsg.BlockAt{Block: chunk.Stone}})
	if frames := answers(4); len(frames) != 0 {
		t.Fatalf("with a change that was not sent: %+v", frames)
	}
	h.publish()
	frames, _ := drain(link)
	if len(frames) != 1 || frames[0].Confirmed != 4 || len(frames[0].Chunks) != 1 || len(frames[0].Chunks[0].Blocks) != 1 {
		t.Fatalf("with the next tick: %+v", frames)
	}
}
