package vclock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

type word = Event[string]

func event(s Stamp, wall int64, text string) word { return word{s, wall, text} }

func texts(shown []Shown[string]) string {
	var out []string
	for _, s := range shown {
		text := s.Payload
		if s.Late {
			text += " (late)"
		}
		if s.TimedOut > 0 {
			text += fmt.Sprintf(" (without %d)", s.TimedOut)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// offer offers an event and checks the events shown, and the verdict.
func offer(t *testing.T, l *Queue[string], now time.Duration, e word, want string, verdict Verdict) {
	t.Helper()
	shown, got := l.Offer(now, e, everybody)
	if texts(shown) != want || got != verdict {
		t.Errorf("at %v, offering %s: shown %q, verdict %d; want %q, %d", now, e.Payload, texts(shown), got, want, verdict)
	}
}

func step(t *testing.T, l *Queue[string], now time.Duration, want string) {
	t.Helper()
	if got := texts(l.Step(now)); got != want {
		t.Errorf("at %v: shown %q, want %q", now, got, want)
	}
}

func due(t *testing.T, l *Queue[string], want time.Duration) {
	t.Helper()
	if got, ok := l.Next(); got != want || !ok {
		t.Errorf("due at %v, %v, want %v", got, ok, want)
	}
}

// conversation is a question of A's, B's answer, and C's remark to both.
func conversation() (question, answer, remark word) {
	a, b, cc := NewOwner("A", 0), NewOwner("B", 0), NewOwner("C", 0)
	q := a.Act()
	b.Merge(q, everybody)
	r := b.Act()
	cc.Merge(r, everybody)
	return event(q, 10, "question"), event(r, 5, "answer"), event(cc.Act(), 1, "remark") // with wrong wall clocks
}

func TestQueueShowsCausalOrder(t *testing.T) {
	q, a, r := conversation()
	l := NewQueue[string](QueueConfig{}, nil)
	offer(t, l, 0, r, "", Accepted)
	offer(t, l, 10*ms, a, "", Accepted)
	offer(t, l, 20*ms, a, "", Repeated)
	due(t, l, 500*ms)
	offer(t, l, 30*ms, q, "question, answer, remark", Accepted)
	offer(t, l, 40*ms, a, "", Repeated)
	if at, ok := l.Next(); ok || l.Held() != 0 {
		t.Errorf("an empty queue is due at %v and holds %d", at, l.Held())
	}
}

func TestQueueTimesOut(t *testing.T) {
	q, a, r := conversation()
	l := NewQueue[string](QueueConfig{Wait: 100 * ms}, nil)
	offer(t, l, 0, a, "", Accepted)
	offer(t, l, 60*ms, r, "", Accepted)
	due(t, l, 100*ms)
	step(t, l, 99*ms, "")
	step(t, l, 100*ms, "answer (without 1), remark") // remark does not wait for an event that was given up
	offer(t, l, 110*ms, q, "question (late)", Accepted)
	offer(t, l, 120*ms, q, "", Repeated)
}

// A released event takes its predecessors along, even if they arrived later and could wait longer.
func TestQueueReleasesPredecessors(t *testing.T) {
	_, a, r := conversation()
	l := NewQueue[string](QueueConfig{Wait: 100 * ms}, nil)
	offer(t, l, 0, r, "", Accepted)
	offer(t, l, 90*ms, a, "", Accepted)
	step(t, l, 100*ms, "answer (without 1), remark")
}

func TestQueueSettlesConcurrentOnesByWallClock(t *testing.T) {
	x, y, z := NewOwner("X", 0), NewOwner("Y", 0), NewOwner("Z", 0)
	third, first, second := event(x.Act(), 30, "third"), event(y.Act(), 10, "first"), event(z.Act(), 20, "second")
	l := NewQueue[string](QueueConfig{Settle: 50 * ms}, nil)
	offer(t, l, 0, third, "", Accepted)
	offer(t, l, 20*ms, first, "", Accepted)
	offer(t, l, 40*ms, second, "", Accepted)
	due(t, l, 50*ms)
	step(t, l, 49*ms, "")
	step(t, l, 50*ms, "first, second, third")
}

func TestQueueOfAStranger(t *testing.T) {
	a := NewOwner("A", 70)
	first, second := event(a.Act(), 1, "first"), event(a.Act(), 2, "second")
	unmet := NewQueue[string](QueueConfig{Wait: 100 * ms}, nil)
	offer(t, unmet, 0, second, "", Accepted)
	offer(t, unmet, 10*ms, first, "", Accepted) // it cannot determine that there was no earlier event for this player
	step(t, unmet, 100*ms, "first (without 1), second")

	met := NewQueue[string](QueueConfig{}, nil)
	met.Meet("A", 70)
	offer(t, met, 0, second, "", Accepted)
	offer(t, met, 10*ms, first, "first, second", Accepted)

	b := NewOwner("B", 0)
	b.Merge(first.Stamp, everybody)
	apart := NewQueue[string](QueueConfig{}, nil) // A is not relevant to this one
	shown, verdict := apart.Offer(0, event(b.Act(), 3, "about A"), sees("B"))
	if texts(shown) != "about A" || verdict != Accepted {
		t.Errorf("what follows an irrelevant player's event: %q, %d", texts(shown), verdict)
	}
}

func TestQueueRefuses(t *testing.T) {
	l := NewQueue[string](QueueConfig{Wait: ms}, nil)
	offer(t, l, 0, event(Stamp{"A", c("B", 1)}, 0, "forged"), "", Unsound)
	offer(t, l, 0, event(Stamp{"A", c("A", 100)}, 0, "100th"), "", Accepted)
	step(t, l, ms, "100th (without 1)")
	offer(t, l, ms, event(Stamp{"A", c("A", 36)}, 0, "36th"), "", Stale)
	offer(t, l, ms, event(Stamp{"A", c("A", 37)}, 0, "37th"), "37th (late)", Accepted)
	offer(t, l, 2*ms, event(Stamp{"A", c("A", 37)}, 0, "37th"), "", Repeated)
}

func TestQueueIsBounded(t *testing.T) {
	l := NewQueue[string](QueueConfig{MaxHeld: 3, MaxAuthors: 2}, nil)
	for i := range 3 {
		offer(t, l, 0, event(Stamp{"A", c("A", 10-i)}, 0, fmt.Sprint(10-i)), "", Accepted)
	}
	// One too many: the oldest is released, after its predecessors among the others, and then all are free.
	offer(t, l, 0, event(Stamp{"B", c("B", 2)}, 0, "B2"), "8 (without 1), 9, 10", Accepted)
	for i := range 9 {
		l.Meet(ID(fmt.Sprint(i)), 1)
		if len(l.authors) > 2 {
			t.Fatalf("%d players are remembered, want 2 at most", len(l.authors))
		}
	}
}

// The player whose latest event is oldest is dropped first.
func TestQueueEvictsSilentAuthors(t *testing.T) {
	l := NewQueue[string](QueueConfig{MaxAuthors: 2}, nil)
	l.Meet("A", 1)
	l.Meet("B", 1)
	offer(t, l, 0, event(Stamp{"A", c("A", 2)}, 0, "A2"), "A2", Accepted)
	l.Meet("C", 1)
	if l.authors["A"] == nil || l.authors["B"] != nil || l.authors["C"] == nil {
		t.Errorf("of A, B, A, C the queue remembers %v", l.authors)
	}
}

// A → C → B, and A is not relevant to B. A player with C's event, their own or from a shared history, sees A's before
// B's, although their clocks and wall clocks say nothing or the contrary.
func TestQueueFollowsChains(t *testing.T) {
	a, b, cc := NewOwner("A", 0), NewOwner("B", 0), NewOwner("C", 0)
	first := event(a.Act(), 30, "first")
	cc.Merge(first.Stamp, everybody)
	link := event(cc.Act(), 20, "link")
	b.Merge(link.Stamp, sees("C"))
	last := event(b.Act(), 10, "last")

	alone := NewQueue[string](QueueConfig{Wait: 100 * ms, Settle: 50 * ms}, nil)
	offer(t, alone, 0, link, "", Accepted)
	step(t, alone, 100*ms, "link (without 1)")
	offer(t, alone, 110*ms, last, "", Accepted)
	offer(t, alone, 120*ms, first, "", Accepted)
	step(t, alone, 170*ms, "first (late), last")

	shared := NewHistory(0)
	elsewhere, here := NewQueue[string](QueueConfig{}, shared), NewQueue[string](QueueConfig{Settle: 50 * ms}, shared)
	offer(t, elsewhere, 0, link, "", Accepted)
	for _, e := range []word{last, first} {
		if shown, verdict := here.Offer(0, e, sees("A", "B")); len(shown) > 0 || verdict != Accepted {
			t.Errorf("%s: shown %q, %d", e.Payload, texts(shown), verdict)
		}
	}
	step(t, here, 50*ms, "first, last")
}

// Three events, each of which claims to follow another, do not block the queue for ever.
func TestQueueBreaksCycles(t *testing.T) {
	l := NewQueue[string](QueueConfig{Wait: 100 * ms}, nil)
	offer(t, l, 0, event(Stamp{"A", c("A", 1, "B", 1)}, 3, "a"), "", Accepted)
	offer(t, l, 0, event(Stamp{"B", c("B", 1, "C", 1)}, 2, "b"), "", Accepted)
	shown, _ := l.Offer(0, event(Stamp{"C", c("C", 1, "A", 1)}, 1, "c"), everybody)
	if shown = append(shown, l.Step(100*ms)...); len(shown) != 3 || l.Held() != 0 {
		t.Errorf("of a ring of three %q are shown, %d still held", texts(shown), l.Held())
	}
}

// delivery is an event on its way to a player.
type delivery struct {
	at time.Duration
	to int
	e  Event[int] // the payload is the index of the event
}

// network is a group of players with a Queue each, over a network that delays, duplicates, reorders and loses.
type network struct {
	owners   []*Owner
	wholes   []*Owner
	lines    []*Queue[int]
	events   []pastEvent
	shown    [][]Shown[int]
	when     [][]time.Duration // of each shown event
	arrived  []map[int]time.Duration
	on       []delivery
	receives func(who, whom int) bool
}

func newNetwork(players int, cfg QueueConfig, receives func(who, whom int) bool) *network {
	m := &network{receives: receives}
	for i := range players {
		m.owners = append(m.owners, NewOwner(ID(rune('A'+i)), 0))
		m.wholes = append(m.wholes, NewOwner(ID(rune('A'+i)), 0))
		m.lines = append(m.lines, NewQueue[int](cfg, nil))
		m.arrived = append(m.arrived, map[int]time.Duration{})
	}
	m.shown, m.when = make([][]Shown[int], players), make([][]time.Duration, players)
	return m
}

func (m *network) relevant(i int) Relevant {
	return func(id ID) bool { return int(id[0]-'A') == i || m.receives(i, int(id[0]-'A')) }
}

// act makes a player do something now; delay returns the delays to each other player, none if the event is lost.
func (m *network) act(now time.Duration, i int, delay func(to int) []time.Duration) {
	d := pastEvent{stamp: m.owners[i].Act(), whole: m.wholes[i].Act().Clock}
	m.events = append(m.events, d)
	e := Event[int]{d.stamp, now.Milliseconds(), len(m.events) - 1}
	m.arrive(now, i, e)
	for j := range m.owners {
		if j == i || !m.receives(j, i) {
			continue
		}
		for _, after := range delay(j) {
			m.on = append(m.on, delivery{now + after, j, e})
		}
	}
}

func (m *network) arrive(now time.Duration, i int, e Event[int]) {
	if _, ok := m.arrived[i][e.Payload]; !ok {
		m.arrived[i][e.Payload] = now
	}
	shown, _ := m.lines[i].Offer(now, e, m.relevant(i))
	m.show(now, i, shown)
}

// show applies the shown events to the player's clock.
func (m *network) show(now time.Duration, i int, shown []Shown[int]) {
	for _, s := range shown {
		m.shown[i] = append(m.shown[i], s)
		m.when[i] = append(m.when[i], now)
		m.owners[i].Merge(s.Stamp, m.relevant(i))
		m.wholes[i].Merge(Stamp{s.Author, m.events[s.Payload].whole}, everybody)
	}
}

// run delivers events and steps lines when due, up to a time.
func (m *network) run(until time.Duration) {
	for {
		next, who, what := until, -1, -1
		for k, p := range m.on {
			if p.at < next {
				next, who, what = p.at, p.to, k
			}
		}
		for i, l := range m.lines {
			if at, ok := l.Next(); ok && at < next {
				next, who, what = at, i, -1
			}
		}
		switch {
		case who < 0:
			return
		case what >= 0:
			p := m.on[what]
			m.on = slices.Delete(m.on, what, what+1)
			m.arrive(p.at, p.to, p.e)
		default:
			m.show(next, who, m.lines[who].Step(next))
		}
	}
}

// follows reports whether an event truly follows another.
func (m *network) follows(later, earlier int) bool {
	a, b := m.events[earlier], m.events[later]
	return Compare(Stamp{a.stamp.Author, a.whole}, Stamp{b.stamp.Author, b.whole}) == Before
}

func (m *network) draw(t *rapid.T, most time.Duration, lossy bool) {
	now := time.Duration(0)
	for n := rapid.IntRange(1, 40).Draw(t, "events"); n > 0; n-- {
		now += time.Duration(rapid.IntRange(0, 80).Draw(t, "pause")) * ms
		m.run(now)
		m.act(now, rapid.IntRange(0, len(m.owners)-1).Draw(t, "who"), func(int) []time.Duration {
			var at []time.Duration
			for k := rapid.SampledFrom([]int{1, 1, 1, 2, 0}).Draw(t, "copies"); k > 0 || !lossy && len(at) == 0; k-- {
				at = append(at, time.Duration(rapid.Int64Range(0, most.Milliseconds()).Draw(t, "delay"))*ms)
			}
			return at
		})
	}
	m.run(now + time.Hour)
}

// Everything is shown once, nothing is given up, and all truly ordered pairs that a player sees are in causal order:
// the figure of research/measured.md.
func TestQueueKeepsCausalOrderOverABadNetwork(t *testing.T) {
	pairs := 0
	rapid.Check(t, func(t *rapid.T) {
		settle := time.Duration(rapid.SampledFrom([]int{0, 50}).Draw(t, "settle")) * ms
		m := newNetwork(rapid.IntRange(2, 6).Draw(t, "players"), QueueConfig{Wait: time.Minute, Settle: settle}, func(int, int) bool { return true })
		m.draw(t, 2*time.Second, false)
		for i, shown := range m.shown {
			if len(shown) != len(m.events) {
				t.Fatalf("player %d is shown %d of %d events", i, len(shown), len(m.events))
			}
			for k, later := range shown {
				if later.Late || later.TimedOut > 0 {
					t.Fatalf("player %d is shown %v: late %v, given up %d", i, later.Stamp, later.Late, later.TimedOut)
				}
				for _, earlier := range shown[:k] {
					switch {
					case earlier.Payload == later.Payload:
						t.Fatalf("player %d is shown %v twice", i, later.Stamp)
					case m.follows(earlier.Payload, later.Payload):
						t.Fatalf("player %d is shown %v before %v", i, earlier.Stamp, later.Stamp)
					case m.follows(later.Payload, earlier.Payload):
						pairs++
					}
				}
			}
		}
	})
	t.Logf("%d truly ordered pairs, all shown in causal order", pairs)
}

// With losses: arriving events are shown once, within Wait, and before their successors unless they arrived too late.
func TestQueueOverALossyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := QueueConfig{Wait: 300 * ms, MaxHeld: rapid.SampledFrom([]int{0, 4}).Draw(t, "most held")}
		m := newNetwork(rapid.IntRange(2, 6).Draw(t, "players"), cfg, func(int, int) bool { return true })
		m.draw(t, 800*ms, true)
		for i, shown := range m.shown {
			if len(shown) != len(m.arrived[i]) || m.lines[i].Held() > 0 {
				t.Fatalf("player %d is shown %d of %d events, %d are held", i, len(shown), len(m.arrived[i]), m.lines[i].Held())
			}
			for k, s := range shown {
				if waited := m.when[i][k] - m.arrived[i][s.Payload]; waited > cfg.Wait {
					t.Fatalf("%v waited for %v, want %v at most", s.Stamp, waited, cfg.Wait)
				}
				for l, earlier := range shown[:k] {
					if m.follows(earlier.Payload, s.Payload) && m.arrived[i][s.Payload] < m.when[i][l] {
						t.Fatalf("player %d is shown %v before %v, which was there", i, earlier.Stamp, s.Stamp)
					}
				}
			}
		}
	})
}

// Players in a row receive events from their neighbours' neighbours, so clocks are pruned. Pairs that are
// distinguishable from the received events are still in order.
func TestQueueWithPrunedClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newNetwork(8, QueueConfig{Wait: time.Minute}, func(i, j int) bool { return max(i-j, j-i) <= 2 })
		m.draw(t, 2*time.Second, false)
		for i, shown := range m.shown {
			h := NewHistory(64)
			for k, s := range shown {
				h.Record(s.Stamp)
				for _, earlier := range shown[:k] {
					if got := h.Compare(s.Stamp, earlier.Stamp); got == Before || s.TimedOut > 0 {
						t.Fatalf("player %d is shown %v before %v, without %d", i, earlier.Stamp, s.Stamp, s.TimedOut)
					}
				}
			}
		}
	})
}

// Whatever clocks claim, each event is shown once, in time, and the queue stays bounded.
func TestQueueSurvivesForgedClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := QueueConfig{Wait: 100 * ms, Settle: 20 * ms, MaxHeld: 5, MaxAuthors: 3}
		l := NewQueue[string](cfg, NewHistory(4))
		now, taken, shown := time.Duration(0), 0, 0
		for n := rapid.IntRange(1, 60).Draw(t, "events"); n > 0; n-- {
			now += time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * ms
			out, verdict := l.Offer(now, event(drawStamp(t), rapid.Int64().Draw(t, "wall"), ""), everybody)
			shown += len(out)
			if verdict == Accepted {
				taken++
			}
			if at, ok := l.Next(); ok && (at <= now || at > now+cfg.Wait) || l.Held() > cfg.MaxHeld || len(l.authors) > cfg.MaxAuthors {
				t.Fatalf("at %v: due at %v, %d held, %d players remembered", now, at, l.Held(), len(l.authors))
			}
		}
		if shown += len(l.Step(now + cfg.Wait)); shown != taken || l.Held() != 0 {
			t.Fatalf("%d taken, %d shown, %d held", taken, shown, l.Held())
		}
	})
}
