package mirror

import (
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file has what is shown to a new subscriber confirmed: a link may be with a leader that was deposed and does not
// know it, and the mirror may be old. Each time a subscriber begins to watch a chunk the region is asked whether its
// state is the newest; it answers once a majority has confirmed that after the question. If there is no answer for
// NoticeAfter, the land is shown as it is here, and the subscriber is told so.

// confirmation is where a feed stands with its questions to the region. It is a step machine: times are passed in.
// Questions have numbers that grow over all feeds of the mirror, so that a chunk that another feed takes over keeps its
// own; 0 is none.
type confirmation struct {
	linked    bool
	asked     uint64              // the newest question of this feed
	answered  uint64              // the questions up to this one are answered
	replied   uint64              // the newest question that the region itself has answered over this link
	asOf      time.Time           // that answer: when a majority confirmed the land last, because now none does; zero if it has just done so
	confirmed time.Time           // when a majority did so last; zero if never
	since     time.Time           // since when an answer is waited for; zero if none is
	warned    map[Subscriber]bool // that the land may be old, since it was confirmed last; only those who watch the subscription
}

func newConfirmation(now time.Time) confirmation {
	return confirmation{since: now, warned: make(map[Subscriber]bool)}
}

// join has a feed take over land of another: what is shown of it was confirmed with that.
func (c *confirmation) join(other *confirmation) {
	if c.confirmed.IsZero() || !other.confirmed.IsZero() && other.confirmed.Before(c.confirmed) {
		c.confirmed = other.confirmed
	}
}

// begin begins a link, which asks a question at once.
func (c *confirmation) begin(now time.Time, question uint64) {
	c.linked, c.asked, c.answered, c.replied, c.asOf = true, question, 0, 0, time.Time{}
	c.await(now)
}

// end ends the link. Whoever waits now, or begins to, waits for the first answer over the next one.
func (c *confirmation) end(now time.Time) {
	if !c.linked {
		return
	}
	if c.linked = false; c.asOf.IsZero() {
		c.answered = 0
		c.await(now)
	}
}

// await has expire take effect if no answer arrives.
func (c *confirmation) await(now time.Time) {
	if c.since.IsZero() {
		c.since = now
	}
}

// ask returns the question whose answer a new subscriber waits for, and whether it is to be sent. While there is no
// link, that is the next one's first question, unless an answer was waited for long enough.
func (c *confirmation) ask(now time.Time, next uint64) (question uint64, send bool) {
	switch {
	case c.linked:
		c.asked = next
	case !c.asOf.IsZero():
		c.answered = next
		return next, false
	}
	c.await(now)
	return next, c.linked
}

// answer is the region's answer to the questions up to this one. AsOf is not zero if no majority confirms the land.
func (c *confirmation) answer(now time.Time, question uint64, asOf time.Time) {
	if question = min(question, c.asked); question < c.replied {
		return // a later answer has overtaken it
	}
	switch {
	case question == c.asked:
		c.since = time.Time{}
	case question > c.replied, c.since.IsZero(): // the answer to an earlier question, repeated, does not postpone expire
		c.since = now
	}
	c.answered, c.replied, c.asOf = question, question, asOf
	if asOf.IsZero() {
		c.confirmed = now
		clear(c.warned)
	}
}

// due returns when expire is to be called; zero if no answer is waited for.
func (c *confirmation) due() time.Time {
	if c.since.IsZero() {
		return time.Time{}
	}
	return c.since.Add(NoticeAfter)
}

// expire answers all questions, up to the newest of all feeds, if an answer was waited for long enough. It reports
// whether that is so.
func (c *confirmation) expire(now time.Time, newest uint64) bool {
	if c.since.IsZero() || now.Before(c.due()) {
		return false
	}
	c.answered, c.asOf = newest, c.confirmed
	if c.asOf.IsZero() {
		c.asOf = c.since
	}
	c.since = time.Time{}
	return true
}

// allows reports whether who waits for the answer to a question can be sent a chunk. Shown is whether the region has
// sent its state over this link.
func (c *confirmation) allows(question uint64, shown bool) bool {
	return question <= c.answered && (shown || !c.asOf.IsZero())
}

// warn reports whether who is sent a chunk now is to be told that it may be old, and records that.
func (c *confirmation) warn(by Subscriber) bool {
	if c.asOf.IsZero() || c.warned[by] {
		return false
	}
	c.warned[by] = true
	return true
}

// ask returns the question whose answer a new subscriber waits for. The lock is held, as below.
func (f *feed) ask() uint64 {
	question, send := f.confirmation.ask(time.Now(), f.sub.m.asked.Add(1))
	if send {
		f.out.message.Confirm = question // that of an earlier one, too, if it was not sent yet
		f.wake.Set()
		f.flushNow.Set()
	}
	f.awaitAnswer()
	return question
}

// beginConfirming begins the questions of a link.
func (f *feed) beginConfirming() {
	question := f.sub.m.asked.Add(1)
	f.confirmation.begin(time.Now(), question)
	f.out.message.Confirm = question
	f.awaitAnswer()
}

// endConfirming ends them.
func (f *feed) endConfirming() {
	f.confirmation.end(time.Now())
	f.awaitAnswer()
}

// awaitAnswer has showUnconfirmed called when an answer was waited for long enough.
func (f *feed) awaitAnswer() {
	if due := f.confirmation.due(); !due.IsZero() {
		f.unanswered.Reset(time.Until(due))
	}
}

// applyConfirmed applies a region's answer. What is shown is what this frame and earlier ones brought.
func (f *feed) applyConfirmed(frame *nodemsg.FromRegion) {
	if frame.Confirmed == 0 {
		return
	}
	now, asOf := time.Now(), time.Time{}
	if frame.AsOf != 0 {
		asOf = now.Add(-max(0, f.sub.m.Wall().Sub(time.UnixMilli(frame.AsOf))))
	}
	f.confirmation.answer(now, frame.Confirmed, asOf)
	f.awaitAnswer()
	f.queueUnconfirmed()
}

func (f *feed) queueUnconfirmed() {
	for _, c := range f.sub.mu.chunks {
		if len(c.waiting) > 0 && f.cell.Contains(c.at) {
			f.sub.m.builder.queue(c)
		}
	}
}

// showUnconfirmed shows the land as it is here to those who have waited for an answer for long enough.
func (f *feed) showUnconfirmed() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	switch {
	case f.ended:
	case f.confirmation.expire(time.Now(), f.sub.m.asked.Load()):
		f.queueUnconfirmed()
	default:
		f.awaitAnswer()
	}
}

// forgetWarned forgets that a subscriber was warned, when they watch nothing here any more.
func (sub *Subscription) forgetWarned(by Subscriber) {
	for _, c := range sub.mu.chunks {
		if _, watches := c.subscribers[by]; watches {
			return
		}
	}
	for _, f := range sub.mu.feeds {
		delete(f.confirmation.warned, by)
	}
}

// warn sends a subscriber who is about to be sent a chunk the notice that it may be old, if no answer came.
func (f *feed) warn(c *Chunk, by Subscriber) {
	if c.waiting[by] != 0 && f.confirmation.warn(by) {
		by.SendNotice(sessionmsg.LandUnconfirmed(f.sub.m.Wall().Add(-time.Since(f.confirmation.asOf))))
	}
}
