package gameserver

import (
	"context"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Chat, and with it hits and gifts (nodemsg.Interaction), arrives on a subscription for each region in view. One may be slower than
// another: an answer may arrive before its question. So all events go through one vclock.Line of the gateway, and are shown in
// causal order; each player gets a subsequence of the gateway's events, and so sees causal order too (docs/causality.md).

const (
	// chatWait is how long an event waits for others that it follows: a region that is slower than another by more is not waited
	// for.
	chatWait = time.Second
	// chatSettle is how long each event is held back, so that unrelated ones are shown by wall clock, whichever region they come
	// from.
	chatSettle = 50 * time.Millisecond
	// chatHeld is the maximum number of waiting events, and chatAuthors that of remembered players.
	chatHeld, chatAuthors = 1024, 4096
)

// Orders of a chat event: the label order of a metric.
const (
	inOrder   = "causal"   // shown after everything that it follows
	tooLate   = "late"     // shown after something that may follow it
	unordered = "none"     // shown on arrival: it has no clock
	repeated  = "repeated" // not shown: it was shown before
)

// chatSequencer brings the gateway's chat into causal order. Its goroutine owns the line.
type chatSequencer struct {
	g    *Gateway
	line *vclock.Line[chatEvent]
	wake chan struct{} // holds a token while events have arrived

	mu struct {
		sync.Mutex
		arrived []chatEvent // in order; subscriptions bring no more than regions send in a tick
	}
}

// chatEvent is a chat message, hit or gift, and the subscription that received it.
type chatEvent struct {
	sub  *subscription
	chat nodemsg.ChatEvent
}

func newChatSequencer(g *Gateway) *chatSequencer {
	cfg := vclock.LineConfig{Wait: chatWait, Settle: chatSettle, MaxHeld: chatHeld, MaxAuthors: chatAuthors}
	return &chatSequencer{g: g, line: vclock.NewLine[chatEvent](cfg, nil), wake: make(chan struct{}, 1)}
}

// enqueue queues events of a region. The subscription's lock may be held.
func (t *chatSequencer) enqueue(sub *subscription, events []nodemsg.ChatEvent) {
	t.mu.Lock()
	for _, u := range events {
		t.mu.arrived = append(t.mu.arrived, chatEvent{sub, u})
	}
	t.mu.Unlock()
	wakeUp(t.wake)
}

func (t *chatSequencer) takeArrived() []chatEvent {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived := t.mu.arrived
	t.mu.arrived = nil
	return arrived
}

// run shows chat until ctx ends.
func (t *chatSequencer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C:
		}
		for _, e := range t.takeArrived() {
			t.offer(e)
		}
		t.show(t.line.Step(t.g.now()))
		t.g.metrics.chatHeld.Set(float64(t.line.Held()))
		if at, waits := t.line.Next(); waits {
			timer.Reset(at - t.g.now())
		}
	}
}

// offer offers one event to the line. It waits only for players in view of a session here: events of others are not shown.
func (t *chatSequencer) offer(e chatEvent) {
	stamp, counted := e.chat.Clock()
	if !counted || t.g.unorderedChat {
		t.publish(e, stamp, unordered)
		return
	}
	seen := t.g.interest.awaitedAuthors(stamp.Clock)
	for id, said := range seen {
		t.line.Meet(id, said)
	}
	event := vclock.Event[chatEvent]{Stamp: stamp, Wall: e.chat.Wall, Payload: e}
	shown, verdict := t.line.Offer(t.g.now(), event, func(id vclock.ID) bool { _, sees := seen[id]; return sees })
	t.show(shown)
	switch verdict {
	case vclock.Taken:
	case vclock.Repeated:
		t.g.metrics.chatEvents.WithLabelValues(repeated).Inc()
	case vclock.Stale, vclock.Unsound: // such as from a player whose new gateway's clock is behind: better late than never
		t.publish(e, stamp, tooLate)
	}
}

func (t *chatSequencer) show(shown []vclock.Shown[chatEvent]) {
	for _, s := range shown {
		order := inOrder
		if s.Late {
			order = tooLate
		}
		t.g.metrics.chatMissed.Add(float64(s.GivenUp))
		t.publish(s.Payload, s.Stamp, order)
	}
}

func (t *chatSequencer) publish(e chatEvent, stamp vclock.Stamp, order string) {
	t.g.metrics.chatEvents.WithLabelValues(order).Inc()
	e.sub.publishChat(e.chat, stamp)
}

// publishChat publishes an event to everybody who has the chunk in view in which it was sent.
func (sub *subscription) publishChat(u nodemsg.ChatEvent, stamp vclock.Stamp) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	mc := sub.mu.chunks[u.Chunk]
	if mc == nil {
		return // unwatched meanwhile
	}
	events := []nodemsg.ChatEvent{u}
	sub.publish(mc, &chunkDelta{
		ChunkDelta: nodemsg.ChunkDelta{Chunk: u.Chunk, Chat: events}, tickNews: &sessionmsg.TickDelta{Chunk: u.Chunk, Chat: events},
		tick: sub.mu.tick, sub: sub, chunk: mc, stamp: stamp, interaction: interactionOf(&u),
	})
}

// interactionOf returns the message for an interaction; nil if the event is none, or of a kind that is shown as text.
func interactionOf(u *nodemsg.ChatEvent) sessionmsg.FromServer {
	m, _ := sessionmsg.InteractionMessage(u)
	return m
}

// departedTicks is how long chat is waited for of a player who has gone out of sight: they may be on the way to another region,
// which is slower to send it. It is longer than events wait.
const departedTicks = 2 * uint64(chatWait/region.TickEvery)

// departed is a player who has gone out of sight: the number of their last event when they came, and the tick when they went.
type departed struct{ met, tick uint64 }

// awaitedAuthors returns those players of a clock who are in view here, each with the number of their last event when they came
// into sight.
func (ix *interestIndex) awaitedAuthors(c vclock.Clock) map[vclock.ID]uint64 {
	seen := make(map[vclock.ID]uint64)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for e := range c.All() {
		id := playerOf(e.ID)
		if a := ix.mu.actors[id]; a != nil {
			seen[e.ID] = a.firstAwaited
		} else if p, gone := ix.mu.departed[id]; gone {
			seen[e.ID] = p.met
		}
	}
	return seen
}

// firstAwaited returns the number up to which a player's events are not waited for, when they come into sight. The lock is held.
func (ix *interestIndex) firstAwaited(b *nodemsg.Body) uint64 {
	p, back := ix.mu.departed[b.Player]
	if delete(ix.mu.departed, b.Player); back {
		return p.met
	}
	return b.Said
}

// noteDeparted records a player who goes out of sight. The lock is held.
func (ix *interestIndex) noteDeparted(id player.ID, met uint64) {
	ix.mu.departed[id] = departed{met, ix.mu.tick}
}

// dropDeparted removes players who have been out of sight for long. The lock is held.
func (ix *interestIndex) dropDeparted() {
	for id, p := range ix.mu.departed {
		if ix.mu.tick-p.tick > departedTicks {
			delete(ix.mu.departed, id)
		}
	}
}

// subtractArriving subtracts events that arrive together with their entering authors from the authors' counts: these are to be
// waited for.
func subtractArriving(came []nodemsg.Body, events []nodemsg.ChatEvent) {
	for i := range events {
		for j := range came {
			b := &came[j]
			if b.Player != events[i].Player {
				continue
			}
			if stamp, counted := events[i].Clock(); counted {
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
