package gameserver

import (
	"context"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
)

// Chat, and with it hits and gifts (wire.Deed), arrives on a subscription for each region in view. One may be slower than
// another: an answer may arrive before its question. So all events go through one vclock.Line of the gateway, and are shown in
// causal order; each player gets a subsequence of the gateway's events, and so sees causal order too (docs/causality.md).

const (
	// talkWait is how long an event waits for others that it follows: a region that is slower than another by more is not waited
	// for.
	talkWait = time.Second
	// talkSettle is how long each event is held back, so that unrelated ones are shown by wall clock, whichever region they come
	// from.
	talkSettle = 50 * time.Millisecond
	// talkHeld is the maximum number of waiting events, and talkAuthors that of remembered players.
	talkHeld, talkAuthors = 1024, 4096
)

// Orders of a chat event: the label order of a metric.
const (
	inOrder   = "causal"   // shown after everything that it follows
	tooLate   = "late"     // shown after something that may follow it
	unordered = "none"     // shown on arrival: it has no clock
	repeated  = "repeated" // not shown: it was shown before
)

// talk brings the gateway's chat into causal order. Its goroutine owns the line.
type talk struct {
	g    *Gateway
	line *vclock.Line[words]
	wake chan struct{} // holds a token while events have arrived

	mu struct {
		sync.Mutex
		arrived []words // in order; subscriptions bring no more than regions send in a tick
	}
}

// words is a chat message, hit or gift, and the subscription that received it.
type words struct {
	feed *feed
	said wire.Utterance
}

func newTalk(g *Gateway) *talk {
	cfg := vclock.LineConfig{Wait: talkWait, Settle: talkSettle, MaxHeld: talkHeld, MaxAuthors: talkAuthors}
	return &talk{g: g, line: vclock.NewLine[words](cfg, nil), wake: make(chan struct{}, 1)}
}

// arrive queues events of a region. The subscription's lock may be held.
func (t *talk) arrive(f *feed, says []wire.Utterance) {
	t.mu.Lock()
	for _, u := range says {
		t.mu.arrived = append(t.mu.arrived, words{f, u})
	}
	t.mu.Unlock()
	wakeUp(t.wake)
}

func (t *talk) take() []words {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived := t.mu.arrived
	t.mu.arrived = nil
	return arrived
}

// run shows chat until ctx ends.
func (t *talk) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C:
		}
		for _, w := range t.take() {
			t.hear(w)
		}
		t.show(t.line.Step(t.g.now()))
		t.g.metrics.talkHeld.Set(float64(t.line.Held()))
		if at, waits := t.line.Next(); waits {
			timer.Reset(at - t.g.now())
		}
	}
}

// hear offers one event to the line. It waits only for players in view of a session here: events of others are not shown.
func (t *talk) hear(w words) {
	stamp, counted := w.said.Clock()
	if !counted || t.g.heedless {
		t.tell(w, stamp, unordered)
		return
	}
	seen := t.g.stage.regard(stamp.Clock)
	for id, said := range seen {
		t.line.Meet(id, said)
	}
	event := vclock.Event[words]{Stamp: stamp, Wall: w.said.Wall, Payload: w}
	shown, verdict := t.line.Offer(t.g.now(), event, func(id vclock.ID) bool { _, sees := seen[id]; return sees })
	t.show(shown)
	switch verdict {
	case vclock.Taken:
	case vclock.Repeated:
		t.g.metrics.talk.WithLabelValues(repeated).Inc()
	case vclock.Stale, vclock.Unsound: // such as from a player whose new gateway's clock is behind: better late than never
		t.tell(w, stamp, tooLate)
	}
}

func (t *talk) show(shown []vclock.Shown[words]) {
	for _, s := range shown {
		order := inOrder
		if s.Late {
			order = tooLate
		}
		t.g.metrics.talkMissed.Add(float64(s.GivenUp))
		t.tell(s.Payload, s.Stamp, order)
	}
}

func (t *talk) tell(w words, stamp vclock.Stamp, order string) {
	t.g.metrics.talk.WithLabelValues(order).Inc()
	w.feed.tell(w.said, stamp)
}

// tell publishes an event to everybody who has the chunk in view in which it was sent.
func (f *feed) tell(u wire.Utterance, stamp vclock.Stamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.mu.views[u.Chunk]
	if v == nil {
		return // unwatched meanwhile
	}
	says := []wire.Utterance{u}
	f.publish(v, &bulletin{
		ChunkNews: wire.ChunkNews{Chunk: u.Chunk, Says: says}, told: &wire.TickNews{Chunk: u.Chunk, Says: says},
		tick: f.mu.tick, feed: f, view: v, stamp: stamp, deed: deedOf(&u),
	})
}

// deedOf returns the message for an interaction; nil if the event is none, or of a kind that is shown as text.
func deedOf(u *wire.Utterance) wire.FromServer {
	m, _ := u.Told()
	return m
}

// partingTicks is how long chat is waited for of a player who has gone out of sight: they may be on the way to another region,
// which is slower to send it. It is longer than events wait.
const partingTicks = 2 * uint64(talkWait/region.TickEvery)

// parting is a player who has gone out of sight: the number of their last event when they came, and the tick when they went.
type parting struct{ met, tick uint64 }

// regard returns those players of a clock who are in view here, each with the number of their last event when they came into
// sight.
func (s *stage) regard(c vclock.Clock) map[vclock.ID]uint64 {
	seen := make(map[vclock.ID]uint64)
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range c.All() {
		id := playerOf(e.ID)
		if a := s.mu.actors[id]; a != nil {
			seen[e.ID] = a.met
		} else if p, gone := s.mu.gone[id]; gone {
			seen[e.ID] = p.met
		}
	}
	return seen
}

// meet returns the number up to which a player's events are not waited for, when they come into sight. The lock is held.
func (s *stage) meet(b *wire.Body) uint64 {
	p, back := s.mu.gone[b.Player]
	if delete(s.mu.gone, b.Player); back {
		return p.met
	}
	return b.Said
}

// part records a player who goes out of sight. The lock is held.
func (s *stage) part(id player.ID, met uint64) { s.mu.gone[id] = parting{met, s.mu.tick} }

// forget removes players who have been out of sight for long. The lock is held.
func (s *stage) forget() {
	for id, p := range s.mu.gone {
		if s.mu.tick-p.tick > partingTicks {
			delete(s.mu.gone, id)
		}
	}
}

// unheard subtracts events that arrive together with their entering authors from the authors' counts: these are to be waited for.
func unheard(came []wire.Body, says []wire.Utterance) {
	for i := range says {
		for j := range came {
			b := &came[j]
			if b.Player != says[i].Player {
				continue
			}
			if stamp, counted := says[i].Clock(); counted {
				b.Said = min(b.Said, stamp.Own()-1)
			}
		}
	}
}

// playerOf returns the player of a clock's entry; the zero ID, which no player has, if it cannot be one.
func playerOf(id vclock.ID) (p player.ID) {
	if len(id) == len(p) {
		copy(p[:], id)
	}
	return p
}
