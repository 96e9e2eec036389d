package vclock

import (
	"cmp"
	"slices"
	"time"
)

// Event is an interaction between players that must be shown in causal order: chat, a hit, a gift.
type Event[P any] struct {
	Stamp
	Wall    int64 // milliseconds since the Unix epoch, by the clock of the author's gateway
	Payload P
}

// Shown is an event released by a Queue.
type Shown[P any] struct {
	Event[P]
	Late     bool // it arrived after it was given up, or after a later one of its author: successors may have been shown
	TimedOut int  // number of players with a missing event that precedes this one, and for which the wait expired
}

// Verdict is the outcome of offering an event to a Queue.
type Verdict uint8

// The outcomes of Offer.
const (
	Accepted Verdict = iota // it is, or will be, shown once
	Repeated                // it is in the queue already, or was shown before
	Stale                   // too far behind its author's latest event to determine whether it was shown; refused
	Unsound                 // its clock does not contain its author; refused
)

// QueueConfig bounds a Queue. Zero values mean the defaults.
type QueueConfig struct {
	// Wait is the longest time that an event is held back for events that precede it. A lost event delays its
	// successors by this much. Default 500 ms.
	Wait time.Duration
	// Settle is the time for which every event is held, so that an earlier concurrent one which arrives later by less
	// than this is shown first, and everybody sees the same order. It delays all events; 0 means no delay. At most
	// Wait.
	Settle time.Duration
	// MaxHeld is the most events held. If one more comes, the event that has waited longest is shown, after the held
	// events that precede it. Default 256.
	MaxHeld int
	// MaxAuthors is the most players kept, those who acted most recently. Default 2048.
	MaxAuthors int
}

func (c QueueConfig) withDefaults() QueueConfig {
	if c.Wait <= 0 {
		c.Wait = 500 * time.Millisecond
	}
	if c.MaxHeld <= 0 {
		c.MaxHeld = 256
	}
	if c.MaxAuthors <= 0 {
		c.MaxAuthors = 2048
	}
	c.Settle = min(max(c.Settle, 0), c.Wait)
	return c
}

// Queue shows received events to one player in causal order: each event after those that precede it, concurrent ones by
// wall clock. An event waits while a predecessor is held, according to History.Compare, or missing, according to gaps
// in the numbers of relevant players. It does not wait longer than QueueConfig.Wait, so a lost event does not stop
// later ones.
//
// Each number of a player counts as an event for everybody to whom the player is relevant. If some of them are not for
// this player (a private message), offer them with an empty payload; otherwise the Queue waits for them. Offer the
// player's own events as well, when they happen, because answers to them contain their numbers.
//
// The times passed to a Queue must not decrease; their origin is up to the caller. A Queue belongs to the goroutine
// that owns the player's session.
type Queue[P any] struct {
	cfg     QueueConfig
	history *History
	held    []*heldEvent[P] // in order of arrival
	authors map[ID]*authorState
	offers  uint64 // counts Offer and Meet, for authorState.lastOffer
}

type heldEvent[P any] struct {
	Shown[P]
	arrived time.Duration
	after   []*heldEvent[P] // predecessors among the events that were held together with it
	missing []Entry         // the numbers up to which relevant players' events must have been shown
	forced  bool            // it waits only for held events
	gone    bool            // it was shown
}

// authorState is a Queue's record of a player.
type authorState struct {
	last      uint64 // the highest number shown
	seen      uint64 // bit i: last-i was shown
	waived    uint64 // numbers up to this are not waited for: given up, or before Meet
	lastOffer uint64 // Queue.offers at the latest event
}

// done returns the number up to which nothing is waited for.
func (a *authorState) done() uint64 { return max(a.last, a.waived) }

const seenWindow = 64

// NewQueue returns an empty Queue. Queues of one gateway may share a history, which then contains the events offered to
// any of them. With a nil history the queue has its own.
func NewQueue[P any](cfg QueueConfig, history *History) *Queue[P] {
	if history == nil {
		history = NewHistory(0)
	}
	return &Queue[P]{cfg: cfg.withDefaults(), history: history, authors: make(map[ID]*authorState)}
}

// Held returns the number of waiting events.
func (q *Queue[P]) Held() int { return len(q.held) }

// Meet records that a player came into vision after done events, which will not arrive and are not waited for. Without
// it, the first event of a player waits for the previous one.
func (q *Queue[P]) Meet(id ID, done uint64) {
	a := q.author(id)
	a.waived = max(a.waived, done)
}

// Offer adds an arriving event and returns the events to show now, in order. relevant reports the players whose events
// reach this one, and are therefore waited for; it is called only during Offer. The author is always waited for.
func (q *Queue[P]) Offer(now time.Duration, e Event[P], relevant Relevant) ([]Shown[P], Verdict) {
	own := e.Own()
	if own == 0 {
		return q.Step(now), Unsound
	}
	a := q.author(e.Author)
	if own <= a.last {
		if behind := a.last - own; behind >= seenWindow {
			return q.Step(now), Stale
		} else if a.seen>>behind&1 == 1 {
			return q.Step(now), Repeated
		}
	}
	if slices.ContainsFunc(q.held, func(h *heldEvent[P]) bool { return h.Author == e.Author && h.Own() == own }) {
		return q.Step(now), Repeated
	}
	h := &heldEvent[P]{Shown: Shown[P]{Event: e, Late: own <= a.done()}, arrived: now}
	for entry := range e.Clock.All() {
		if entry.ID == e.Author {
			entry.N--
		} else if !relevant(entry.ID) {
			continue
		}
		if entry.N > 0 {
			h.missing = append(h.missing, entry)
		}
	}
	q.history.Record(e.Stamp)
	for _, other := range q.held {
		if r := q.history.Compare(other.Stamp, h.Stamp); r == Before {
			h.after = append(h.after, other)
		} else if r == After {
			other.after = append(other.after, h)
		}
	}
	q.held = append(q.held, h)
	if len(q.held) > q.cfg.MaxHeld {
		q.force(q.held[0])
	}
	return q.Step(now), Accepted
}

// Step returns the events to show now. Call it at the time that Next returns.
func (q *Queue[P]) Step(now time.Duration) []Shown[P] {
	for _, h := range q.held {
		if !h.forced && now-h.arrived >= q.cfg.Wait {
			q.force(h)
		}
	}
	var out []Shown[P]
	for {
		best := -1
		for i, h := range q.held {
			if q.waits(h) || !h.forced && now-h.arrived < q.cfg.Settle {
				continue
			}
			if best < 0 || earlier(h, q.held[best]) {
				best = i
			}
		}
		if best < 0 {
			best = q.cycle()
		}
		if best < 0 {
			return out
		}
		for i, h := range q.held { // earlier events go before it, settled or not: best has waited for that
			if earlier(h, q.held[best]) && !q.waits(h) {
				best = i
			}
		}
		out = append(out, q.show(best))
	}
}

// Next returns when Step is due; ok is false if nothing is held.
func (q *Queue[P]) Next() (at time.Duration, ok bool) {
	for _, h := range q.held {
		due := h.arrived + q.cfg.Wait
		if !q.waits(h) {
			due = h.arrived + q.cfg.Settle
		}
		if !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// waits reports whether an event must wait for another one, held or missing.
func (q *Queue[P]) waits(h *heldEvent[P]) bool {
	for n := len(h.after); n > 0 && h.after[n-1].gone; n-- {
		h.after = h.after[:n-1]
	}
	if len(h.after) > 0 {
		return true
	}
	for n := len(h.missing); n > 0 && q.done(h.missing[n-1].ID) >= h.missing[n-1].N; n-- {
		h.missing = h.missing[:n-1]
	}
	return len(h.missing) > 0 && !h.forced
}

// force releases an event and all held events that precede it.
func (q *Queue[P]) force(h *heldEvent[P]) {
	h.forced = true
	for _, other := range h.after {
		if !other.forced && !other.gone {
			q.force(other)
		}
	}
}

// cycle returns the index of the earliest of forced events that wait for each other in a cycle. Forged clocks can
// create one: each of three events claims to follow the next. It returns -1 unless all forced events are stuck.
func (q *Queue[P]) cycle() int {
	best := -1
	for i, h := range q.held {
		if h.forced && (best < 0 || earlier(h, q.held[best])) {
			best = i
		}
	}
	return best
}

// show removes an event from the queue.
func (q *Queue[P]) show(i int) Shown[P] {
	h := q.held[i]
	h.gone = true
	q.held = slices.Delete(q.held, i, i+1)
	for _, e := range h.missing {
		if a := q.author(e.ID); a.done() < e.N {
			a.waived = e.N
			h.TimedOut++
		}
	}
	a, own := q.author(h.Author), h.Own()
	if own > a.last {
		if step := own - a.last; step < seenWindow {
			a.seen <<= step
		} else {
			a.seen = 0
		}
		a.last = own
	}
	a.seen |= 1 << (a.last - own)
	return h.Shown
}

// earlier orders events that may be shown at the same time: by wall clock, then by an order that is the same for
// everybody.
func earlier[P any](a, b *heldEvent[P]) bool {
	return cmp.Or(cmp.Compare(a.Wall, b.Wall), cmp.Compare(a.Author, b.Author), cmp.Compare(a.Own(), b.Own())) < 0
}

// done returns the number up to which nothing of a player is waited for.
func (q *Queue[P]) done(id ID) uint64 {
	if a := q.authors[id]; a != nil {
		return a.done()
	}
	return 0
}

// author returns the record of a player, creating it if necessary.
func (q *Queue[P]) author(id ID) *authorState {
	q.offers++
	a := q.authors[id]
	if a == nil {
		if len(q.authors) >= q.cfg.MaxAuthors {
			q.evictAuthor()
		}
		a = &authorState{}
		q.authors[id] = a
	}
	a.lastOffer = q.offers
	return a
}

// evictAuthor drops the player whose latest event is oldest.
func (q *Queue[P]) evictAuthor() {
	var oldest ID
	for id, a := range q.authors {
		if o := q.authors[oldest]; o == nil || a.lastOffer < o.lastOffer {
			oldest = id
		}
	}
	delete(q.authors, oldest)
}
