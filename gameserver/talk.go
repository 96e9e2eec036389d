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

// Chat, and with it hits and gifts (wire.Deed), comes over as many feeds as there are regions in view, and one may be slower than another: an answer may be here
// before its question. So all of it goes through one vclock.Line of the gateway, and are shown in causal order; each player hears
// a part of what the gateway hears, and so in causal order too (docs/causality.md).

const (
	// talkWait is how long a line waits for others that it follows: a region that is slower than another by more is not waited for.
	talkWait = time.Second
	// talkSettle is how long each line rests, so that such that have nothing to do with each other are shown by wall clock, wherever
	// they come from.
	talkSettle = 50 * time.Millisecond
	// talkHeld is how many lines may wait, and talkAuthors how many players are remembered.
	talkHeld, talkAuthors = 1024, 4096
)

// What became of a chat line: the label order of a metric.
const (
	inOrder   = "causal"   // shown after all that it follows
	tooLate   = "late"     // shown after something that may follow it
	unordered = "none"     // shown as it came: it has no clock
	repeated  = "repeated" // not shown: it was shown before
)

// talk is the gateway's chat. Its goroutine owns the line.
type talk struct {
	g    *Gateway
	line *vclock.Line[words]
	wake chan struct{} // holds a token while something has arrived

	mu struct {
		sync.Mutex
		arrived []words // in order; feeds bring no more than regions tell in a tick
	}
}

// words are a chat line, a hit or a gift, and the feed that brought it.
type words struct {
	feed *feed
	said wire.Utterance
}

func newTalk(g *Gateway) *talk {
	cfg := vclock.LineConfig{Wait: talkWait, Settle: talkSettle, MaxHeld: talkHeld, MaxAuthors: talkAuthors}
	return &talk{g: g, line: vclock.NewLine[words](cfg, nil), wake: make(chan struct{}, 1)}
}

// arrive takes in what a region tells. The feed's lock may be held.
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

// hear offers one line. Waited for are only players whom somebody here sees: of others nothing is told.
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
	case vclock.Stale, vclock.Unsound: // such as of a player whose new gateway's clock is behind: better late than never
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

// tell shows a chat line, or a deed, to everybody who has the chunk in view in which it was said.
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

// deedOf is the message that tells of a deed; nil if it is none, or of a kind that is to be shown in words.
func deedOf(u *wire.Utterance) wire.FromServer {
	m, _ := u.Told()
	return m
}

// partingTicks is how long chat of a player is waited for who has gone out of sight: he may be on his way to another region, which
// is slower to tell. It is longer than lines wait.
const partingTicks = 2 * uint64(talkWait/region.TickEvery)

// parting is who has gone out of sight: what he had said when he came, and when he went.
type parting struct{ met, tick uint64 }

// regard gives those players of a clock whom somebody here sees, each with how much he had said when he came into sight.
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

// meet gives how much a player has said for which nobody here waits, when he comes into sight. The lock is held.
func (s *stage) meet(b *wire.Body) uint64 {
	p, back := s.mu.gone[b.Player]
	if delete(s.mu.gone, b.Player); back {
		return p.met
	}
	return b.Said
}

// part notes who goes out of sight. The lock is held.
func (s *stage) part(id player.ID, met uint64) { s.mu.gone[id] = parting{met, s.mu.tick} }

// forget lets those go who have been out of sight for long. The lock is held.
func (s *stage) forget() {
	for id, p := range s.mu.gone {
		if s.mu.tick-p.tick > partingTicks {
			delete(s.mu.gone, id)
		}
	}
}

// unheard takes lines off what players have said who come together with them: those are to be waited for.
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

// playerOf is the player of a clock's entry; the zero ID, which nobody has, if it cannot be one.
func playerOf(id vclock.ID) (p player.ID) {
	if len(id) == len(p) {
		copy(p[:], id)
	}
	return p
}
