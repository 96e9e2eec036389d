package mirror

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file has what is shown to a new subscriber confirmed: a link may be with a leader that was deposed and does not know it, and the
// mirror may be old. Each time a subscriber begins to watch a chunk the region is asked whether its state is the newest; it answers once a
// majority has confirmed that after the question. If there is no answer for NoticeAfter, the land is shown as it was, and the subscriber is
// told so.

// ask asks the region whether its state is the newest, and returns the number of the question. The lock is held, as below.
func (f *feed) ask() uint64 {
	if f.confirmed == math.MaxUint64 {
		return 1 // this region answers none
	}
	f.expectAnswer()
	if !f.out.linked {
		return 1 // the next link begins with it
	}
	if f.out.message.Confirm == 0 {
		f.asked++
		f.out.message.Confirm = f.asked
		f.wake.Set()
	}
	return f.asked
}

// expectAnswer has showUnconfirmed called if no answer arrives.
func (f *feed) expectAnswer() {
	if !f.unansweredSince.IsZero() {
		return
	}
	f.unansweredSince = time.Now()
	if f.unanswered == nil {
		f.unanswered = time.AfterFunc(NoticeAfter, f.showUnconfirmed)
	} else {
		f.unanswered.Reset(NoticeAfter)
	}
}

// confirmingLink is a region.Link that knows whether its region answers questions. The regions of others do not.
type confirmingLink interface{ Confirms() bool }

// beginConfirming begins the questions of a link.
func (f *feed) beginConfirming(answers bool) {
	f.asked, f.confirmed, f.asOf, f.warned = 1, 0, time.Time{}, nil
	if !answers {
		f.confirmed, f.unansweredSince = math.MaxUint64, time.Time{}
		return
	}
	f.out.message.Confirm = 1
	f.expectAnswer()
}

// endConfirming ends them: whoever waits for a chunk waits for the next link's first answer.
func (f *feed) endConfirming() {
	if f.out.linked {
		f.seen = time.Now()
	}
	f.asked, f.confirmed = 0, 0
	for _, c := range f.sub.mu.chunks {
		if !f.cell.Contains(c.at) {
			continue
		}
		for by, has := range c.subscribers {
			if _, asked := c.unconfirmed[by]; asked && has != upToDate {
				c.unconfirmed[by] = 1
			}
		}
	}
}

// applyConfirmed applies a region's answer. What is shown is what this frame and earlier ones brought.
func (f *feed) applyConfirmed(frame *nodemsg.FromRegion) {
	if frame.Confirmed == 0 || f.confirmed == math.MaxUint64 {
		return
	}
	f.confirmed, f.asOf = frame.Confirmed, time.Time{}
	if frame.AsOf != 0 {
		f.asOf = time.UnixMilli(frame.AsOf)
	}
	f.unansweredSince = time.Time{}
	if f.unanswered != nil {
		f.unanswered.Stop()
	}
	if f.confirmed < f.asked {
		f.expectAnswer()
	}
	f.queueUnconfirmed()
}

func (f *feed) queueUnconfirmed() {
	for _, c := range f.sub.mu.chunks {
		if len(c.unconfirmed) > 0 && f.cell.Contains(c.at) {
			f.sub.m.builder.queue(c)
		}
	}
}

// showUnconfirmed shows the land as it is here to those who have waited for an answer for long enough.
func (f *feed) showUnconfirmed() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if f.ended || f.unansweredSince.IsZero() {
		return
	}
	if f.asOf = f.seen; f.out.linked || f.asOf.IsZero() {
		f.asOf = f.unansweredSince
	}
	f.unansweredSince = time.Time{}
	for _, c := range f.sub.mu.chunks {
		if !f.cell.Contains(c.at) || !c.hasState {
			continue
		}
		for by := range c.unconfirmed {
			f.warnOf(by)
		}
		c.unconfirmed = nil
		f.sub.m.builder.queue(c)
	}
}

// landUnconfirmed is the notice to those who are shown land that no majority has confirmed.
const landUnconfirmed = "The land here cannot be confirmed at the moment. You see it as of "

// warn sends a subscriber who is about to be sent a chunk the notice that it may be old.
func (f *feed) warn(c *Chunk, by Subscriber) {
	if _, asked := c.unconfirmed[by]; asked && !f.asOf.IsZero() {
		f.warnOf(by)
	}
}

// warnOf sends a subscriber the notice since when the land may be old, once over each link.
func (f *feed) warnOf(by Subscriber) {
	if f.warned[by] {
		return
	}
	if f.warned == nil {
		f.warned = make(map[Subscriber]bool)
	}
	f.warned[by] = true
	by.SendNotice(landUnconfirmed + f.asOf.UTC().Format("15:04:05") + " UTC.")
}
