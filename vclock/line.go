package vclock

import (
	"cmp"
	"slices"
	"time"
)

// Event is what happens between players and must be seen in causal order: chat, a hit, a gift.
type Event[P any] struct {
	Stamp
	Wall    int64 // milliseconds since the Unix epoch, by the clock of the author's gateway
	Payload P
}

// Shown is an event that leaves a Line.
type Shown[P any] struct {
	Event[P]
	Late    bool // given up, or followed by another of its author's, before it came: what followed it may have been shown before
	GivenUp int  // players of whom an event was missing that this one follows, and was waited for too long
}

// Verdict says what became of an event that was offered to a Line.
type Verdict uint8

// What becomes of an offered event.
const (
	Taken    Verdict = iota // it is, or will be, shown once
	Repeated                // it is in the line, or was shown before
	Stale                   // so far behind its author's latest that the line cannot tell whether it was shown; not taken
	Unsound                 // its clock does not hold its author; not taken
)

// LineConfig bounds a Line. Zero values mean the defaults.
type LineConfig struct {
	// Wait is how long an event is held back at most, for others that it follows. What is lost costs its followers this
	// much. Default 500 ms.
	Wait time.Duration
	// Settle is how long every event rests, so that concurrent ones which were done earlier but come later by less than
	// this are shown first, and everybody sees the same order. It delays all events; 0 means none. At most Wait.
	Settle time.Duration
	// MaxHeld is how many events are held at most; if one more comes, the one that has waited longest is shown, after
	// those held ones that it follows. Default 256.
	MaxHeld int
	// MaxAuthors is how many players are remembered at most, those heard of last. Default 2048.
	MaxAuthors int
}

func (c LineConfig) withDefaults() LineConfig {
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

// Line shows one player the events that reach him in causal order: each after those that it follows, concurrent ones by
// wall clock. An event waits while one that it follows is held, by History.Compare, or missing, by gaps in the numbers of
// relevant players; it does not wait longer than LineConfig.Wait, so what is lost does not stop what comes after.
//
// Each number of a player counts as an event for everybody who finds him relevant. If some of them are not for this player
// (a private word), offer them with an empty payload, or the Line waits for them. The player's own events are offered as well,
// when he does them: what answers them holds their numbers.
//
// The times passed to it must not fall back; what they count from is the caller's choice. A Line belongs to the goroutine
// that owns the player's session.
type Line[P any] struct {
	cfg     LineConfig
	history *History
	held    []*heldEvent[P] // in order of arrival
	authors map[ID]*authorState
	offers  uint64 // counts Offer and Meet, for authorState.heard
}

type heldEvent[P any] struct {
	Shown[P]
	arrived time.Duration
	after   []*heldEvent[P] // those that it follows of the ones that were held together with it
	missing []Entry         // up to which number relevant players' events must have been shown
	forced  bool            // it waits for nothing that is not held
	gone    bool            // it was shown
}

// authorState is what a Line remembers of a player.
type authorState struct {
	last   uint64 // the highest number shown
	seen   uint64 // bit i: last-i was shown
	waived uint64 // nobody waits for numbers up to this: given up, or before the player was met
	heard  uint64 // Line.offers when last heard of
}

// done is the number up to which nothing is waited for.
func (a *authorState) done() uint64 { return max(a.last, a.waived) }

const seenWindow = 64

// NewLine makes an empty Line. Lines of one gateway may share a history, and then know by it what any of them was offered;
// without one (nil) the line keeps its own.
func NewLine[P any](cfg LineConfig, history *History) *Line[P] {
	if history == nil {
		history = NewHistory(0)
	}
	return &Line[P]{cfg: cfg.withDefaults(), history: history, authors: make(map[ID]*authorState)}
}

// Held returns how many events wait.
func (l *Line[P]) Held() int { return len(l.held) }

// Meet tells that a player has come into vision who has done that many events, which are not for us: they are not
// waited for. Without it, the first that is heard of a player waits for the one before it.
func (l *Line[P]) Meet(id ID, done uint64) {
	a := l.author(id)
	a.waived = max(a.waived, done)
}

// Offer takes an event that arrives now and returns what is to be shown now, in this order. relevant says whose events
// reach us, and so are waited for; it is asked only during the call. The author is waited for in any case.
func (l *Line[P]) Offer(now time.Duration, e Event[P], relevant Relevant) ([]Shown[P], Verdict) {
	own := e.Own()
	if own == 0 {
		return l.Step(now), Unsound
	}
	a := l.author(e.Author)
	if own <= a.last {
		if behind := a.last - own; behind >= seenWindow {
			return l.Step(now), Stale
		} else if a.seen>>behind&1 == 1 {
			return l.Step(now), Repeated
		}
	}
	if slices.ContainsFunc(l.held, func(h *heldEvent[P]) bool { return h.Author == e.Author && h.Own() == own }) {
		return l.Step(now), Repeated
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
	l.history.Hear(e.Stamp)
	for _, other := range l.held {
		if r := l.history.Compare(other.Stamp, h.Stamp); r == Before {
			h.after = append(h.after, other)
		} else if r == After {
			other.after = append(other.after, h)
		}
	}
	l.held = append(l.held, h)
	if len(l.held) > l.cfg.MaxHeld {
		l.force(l.held[0])
	}
	return l.Step(now), Taken
}

// Step returns what is to be shown now. Call it at the time that Next says.
func (l *Line[P]) Step(now time.Duration) []Shown[P] {
	for _, h := range l.held {
		if !h.forced && now-h.arrived >= l.cfg.Wait {
			l.force(h)
		}
	}
	var out []Shown[P]
	for {
		best := -1
		for i, h := range l.held {
			if l.waits(h) || !h.forced && now-h.arrived < l.cfg.Settle {
				continue
			}
			if best < 0 || earlier(h, l.held[best]) {
				best = i
			}
		}
		if best < 0 {
			best = l.knot()
		}
		if best < 0 {
			return out
		}
		for i, h := range l.held { // what was done earlier goes before it, rested or not: that is what best has rested for
			if earlier(h, l.held[best]) && !l.waits(h) {
				best = i
			}
		}
		out = append(out, l.show(best))
	}
}

// Next returns when Step is due; ok is false if nothing is held.
func (l *Line[P]) Next() (at time.Duration, ok bool) {
	for _, h := range l.held {
		due := h.arrived + l.cfg.Wait
		if !l.waits(h) {
			due = h.arrived + l.cfg.Settle
		}
		if !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// waits reports whether an event has to wait for another: one that is held, or one that is missing.
func (l *Line[P]) waits(h *heldEvent[P]) bool {
	for n := len(h.after); n > 0 && h.after[n-1].gone; n-- {
		h.after = h.after[:n-1]
	}
	if len(h.after) > 0 {
		return true
	}
	for n := len(h.missing); n > 0 && l.done(h.missing[n-1].ID) >= h.missing[n-1].N; n-- {
		h.missing = h.missing[:n-1]
	}
	return len(h.missing) > 0 && !h.forced
}

// force lets an event go, and the held ones that it follows by any way.
func (l *Line[P]) force(h *heldEvent[P]) {
	h.forced = true
	for _, other := range h.after {
		if !other.forced && !other.gone {
			l.force(other)
		}
	}
}

// knot finds the earliest of forced events that wait for each other in a ring. Clocks that lie can make one: each of three
// events claims to follow the next. It returns -1 unless all forced ones are stuck.
func (l *Line[P]) knot() int {
	best := -1
	for i, h := range l.held {
		if h.forced && (best < 0 || earlier(h, l.held[best])) {
			best = i
		}
	}
	return best
}

// show takes an event out of the line.
func (l *Line[P]) show(i int) Shown[P] {
	h := l.held[i]
	h.gone = true
	l.held = slices.Delete(l.held, i, i+1)
	for _, e := range h.missing {
		if a := l.author(e.ID); a.done() < e.N {
			a.waived = e.N
			h.GivenUp++
		}
	}
	a, own := l.author(h.Author), h.Own()
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

// earlier orders events that may be shown at the same time: by wall clock, then in a way that is the same for everybody.
func earlier[P any](a, b *heldEvent[P]) bool {
	return cmp.Or(cmp.Compare(a.Wall, b.Wall), cmp.Compare(a.Author, b.Author), cmp.Compare(a.Own(), b.Own())) < 0
}

// done returns up to which number nothing of a player is waited for.
func (l *Line[P]) done(id ID) uint64 {
	if a := l.authors[id]; a != nil {
		return a.done()
	}
	return 0
}

// author returns what is remembered of a player, and makes room for a new one.
func (l *Line[P]) author(id ID) *authorState {
	l.offers++
	a := l.authors[id]
	if a == nil {
		if len(l.authors) >= l.cfg.MaxAuthors {
			l.forget()
		}
		a = &authorState{}
		l.authors[id] = a
	}
	a.heard = l.offers
	return a
}

// forget drops the player who was not heard of for longest.
func (l *Line[P]) forget() {
	var oldest ID
	for id, a := range l.authors {
		if o := l.authors[oldest]; o == nil || a.heard < o.heard {
			oldest = id
		}
	}
	delete(l.authors, oldest)
}
