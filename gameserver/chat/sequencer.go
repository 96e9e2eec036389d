// Package chat brings the chat of a gateway, and with it hits and gifts, into causal order.
//
// Chat arrives on a subscription for each region in view. One may be slower than another: an answer may arrive before
// its question. So all these events go through one vclock.Queue of the gateway, and are shown in causal order; each
// player gets a subsequence of the gateway's events, and so sees causal order too. A Clock numbers the events of one
// player; the Sequencer brings those of all players into order.
//
// An event travels from the player's gateway, which decides whether a hit or gift is allowed, to the leader of their
// region, and from there to all gateways that watch the chunk. It carries a pruned vector clock: the numbers of the
// events that its author has received, of the author, of players in vision range or out of it for less than 10 s, and
// for as long of the authors of events that were shown. Of these at most 32 entries are kept, those received last, in
// 740 bytes. A session begins with the time in milliseconds, so numbers never decrease (docs/adr/0006); a player who
// moves to another gateway starts above the number in their record, plus 1,024 if it is ahead of the clock. Clocks are
// accepted from nodes only.
//
// The queue holds an event while one before it is held or missing: the author's previous number, or the numbers in the
// clock of players whose avatars the gateway tracks or tracked in the last 2 s. After Wait the event is shown anyway;
// one that arrives even later is marked late. Each waits for settle, for concurrent ones over slower links. With frames
// up to 0.7 s late, all 36,045 ordered pairs of each seed are shown in order (go test ./gameserver -run Causal -v
// -causal.seeds=100).
//
// Limits: a lost event delays its followers by Wait, once, and so does a player's first event after a change of
// gateways. What a player received before the change and did not answer is not in the next clock. Wrong clocks of
// gateways reorder concurrent events.
//
// Lines to the whole world pass no leader: the author's gateway sends each to the other gateways (docs/adr/0108). They
// have a second Sequencer, and each player a second Clock, with the authors of the lines that the player was shown in
// the last 10 s. Every gateway gets every line, so the Sequencer waits for what a clock names (AwaitNamed). Between a
// line nearby and one to the world there is no order. Four gateways, eight players who answer at once, messages up to
// 0.7 s late and one in ten sent twice: each is shown all lines once, all ordered pairs in order (go test ./gameserver
// -run WorldChat).
//
// Sequencer.Run owns the line, and a Clock belongs to its player's session.
package chat

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// Wait is how long an event waits for others that it follows: a region that is slower than another by more is not
	// waited for.
	Wait = time.Second
	// settle is how long each event is held back, so that unrelated ones are shown by wall clock, whichever region they
	// come from.
	settle = 50 * time.Millisecond
	// maxHeld is the maximum number of waiting events, and maxAuthors that of remembered players.
	maxHeld, maxAuthors = 1024, 4096
	// maxArrived is the maximum number of events that have arrived and were not looked at yet. Only a leader that lies
	// sends more.
	maxArrived = 16384
)

// Orders of a chat event: the label order of a metric.
const (
	dropped   = "dropped"  // not shown: too many had arrived
	inOrder   = "causal"   // shown after everything that it follows
	tooLate   = "late"     // shown after something that may follow it
	unordered = "none"     // shown on arrival: it has no clock
	repeated  = "repeated" // not shown: it was shown before
)

// Publisher shows events to those who have the place in view where they happen; a gateway's subscription to a region.
type Publisher interface {
	PublishChat(e nodemsg.ChatEvent, stamp vclock.Stamp)
}

// Options are the dependencies of a Sequencer.
type Options struct {
	Now func() time.Duration // the gateway's clock
	// Awaited returns those players of an event's clock whose events reach this gateway, each with the number up to which
	// they are not waited for: that of their last event before they came into sight here.
	Awaited    func(vclock.Stamp) map[vclock.ID]uint64
	Unordered  bool // for tests: events are shown as they arrive
	Registerer prometheus.Registerer
}

// AwaitNamed is Options.Awaited where every gateway gets every event: those are waited for that the clock names. Of the
// author nothing is: one gateway sends their events, in order.
func AwaitNamed(s vclock.Stamp) map[vclock.ID]uint64 {
	named := make(map[vclock.ID]uint64)
	for e := range s.Clock.All() {
		named[e.ID] = e.N - 1
	}
	return named
}

// Sequencer brings the gateway's events into causal order. The goroutine of Run owns the line.
type Sequencer struct {
	Options
	metrics metrics
	line    *vclock.Queue[Event]
	wake    wake.Signal // events have arrived

	mu struct {
		sync.Mutex
		arrived []Event // in order; at most maxArrived
	}
}

// Event is a chat message, hit or gift, and who publishes it.
type Event struct {
	nodemsg.ChatEvent
	publisher Publisher
}

// NewSequencer returns a sequencer that is not running yet.
func NewSequencer(o Options) *Sequencer {
	cfg := vclock.QueueConfig{Wait: Wait, Settle: settle, MaxHeld: maxHeld, MaxAuthors: maxAuthors}
	return &Sequencer{Options: o, metrics: newMetrics(o.Registerer), line: vclock.NewQueue[Event](cfg, nil), wake: wake.NewSignal()}
}

// Enqueue queues events of a region. Any goroutine may call it; it takes no lock but the sequencer's own.
func (t *Sequencer) Enqueue(to Publisher, events []nodemsg.ChatEvent) {
	t.mu.Lock()
	taken := events[:min(len(events), maxArrived-len(t.mu.arrived))]
	for _, e := range taken {
		t.mu.arrived = append(t.mu.arrived, Event{e, to})
	}
	t.mu.Unlock()
	if n := len(events) - len(taken); n > 0 {
		t.metrics.events.WithLabelValues(dropped).Add(float64(n))
	}
	t.wake.Set()
}

func (t *Sequencer) takeArrived() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived := t.mu.arrived
	t.mu.arrived = nil
	return arrived
}

// Run shows chat until ctx ends.
func (t *Sequencer) Run(ctx context.Context) {
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
		t.show(t.line.Step(t.Now()))
		t.metrics.held.Set(float64(t.line.Held()))
		if at, waits := t.line.Next(); waits {
			timer.Reset(at - t.Now())
		}
	}
}

// offer offers one event to the line. It waits only for awaited players: events of others are not shown here.
func (t *Sequencer) offer(e Event) {
	stamp, counted := e.Clock()
	if !counted || t.Unordered {
		t.publish(e, stamp, unordered)
		return
	}
	seen := t.Awaited(stamp)
	for id, said := range seen {
		t.line.Meet(id, said)
	}
	event := vclock.Event[Event]{Stamp: stamp, Wall: e.Wall, Payload: e}
	shown, verdict := t.line.Offer(t.Now(), event, func(id vclock.ID) bool { _, sees := seen[id]; return sees })
	t.show(shown)
	switch verdict {
	case vclock.Accepted:
	case vclock.Repeated:
		t.metrics.events.WithLabelValues(repeated).Inc()
	case vclock.Stale, vclock.Unsound: // such as from a player whose new gateway's clock is behind: better late than never
		t.publish(e, stamp, tooLate)
	}
}

func (t *Sequencer) show(shown []vclock.Shown[Event]) {
	for _, s := range shown {
		order := inOrder
		if s.Late {
			order = tooLate
		}
		t.metrics.missed.Add(float64(s.TimedOut))
		t.publish(s.Payload, s.Stamp, order)
	}
}

func (t *Sequencer) publish(e Event, stamp vclock.Stamp, order string) {
	t.metrics.events.WithLabelValues(order).Inc()
	e.publisher.PublishChat(e.ChatEvent, stamp)
}
