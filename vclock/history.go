package vclock

// DefaultHistory is the default number of events that a History keeps.
const DefaultHistory = 256

// History is the recent past of one player or of all players of a gateway. It compares events by chains: if a came
// before b, and b before c, then a came before c, although c's author may have pruned a's. It finds nearly all
// relations that Compare misses, and is always correct too, because each link is. It belongs to one goroutine, like the
// Queues that share it.
type History struct {
	size   int
	past   []remembered // a ring: slot next is the oldest once it is full
	next   int
	places map[ID]map[uint64]int // by author and own component: the slot
	known  map[ID]uint64         // by player: the largest component in any received stamp, at least for the events in memory
}

type remembered struct {
	stamp Stamp
	own   uint64
	past  bits // the slots of all remembered events that precede this one, directly or by a chain
}

// bits is a set of slots, 64 in a word.
type bits []uint64

func (b bits) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }
func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) clear(i int)    { b[i/64] &^= 1 << (i % 64) }

func (b bits) join(other bits) {
	for i, w := range other {
		b[i] |= w
	}
}

func (b bits) meets(other bits) bool {
	for i, w := range other {
		if b[i]&w != 0 {
			return true
		}
	}
	return false
}

// NewHistory returns a History of the last size events; DefaultHistory if size is 0 or less. It takes size²/8 bytes.
func NewHistory(size int) *History {
	if size <= 0 {
		size = DefaultHistory
	}
	return &History{size: size, places: make(map[ID]map[uint64]int), known: make(map[ID]uint64)}
}

// Record adds an event; events may come in any order. Recording an event again has no effect.
func (h *History) Record(s Stamp) {
	own := s.Own()
	if _, ok := h.place(s); ok || own == 0 {
		return
	}
	words := (h.size + 63) / 64
	at := h.next
	h.next = (h.next + 1) % h.size
	if at == len(h.past) {
		h.past = append(h.past, remembered{past: make(bits, words)})
	} else {
		h.evict(at)
	}
	now := &h.past[at]
	now.stamp, now.own = s, own
	isNew := h.known[s.Author] < own // no received stamp contains it yet: the usual case
	for e := range s.Clock.All() {
		for n, i := range h.places[e.ID] {
			if n > e.N || now.past.has(i) { // in the clock, or reachable by a chain through a later event
				continue
			}
			if isNew || Compare(h.past[i].stamp, s) == Before {
				now.past.set(i)
				now.past.join(h.past[i].past)
			}
		}
	}
	if !isNew {
		h.extendPasts(at)
	}
	if h.places[s.Author] == nil {
		h.places[s.Author] = make(map[uint64]int)
	}
	h.places[s.Author][own] = at
	h.updateKnown(s)
}

// extendPasts adds a new event and all that precede it to the past of those remembered events that contain it, and of
// their successors.
func (h *History) extendPasts(at int) {
	now := &h.past[at]
	later := make(bits, len(now.past))
	for i := range h.past {
		if i != at && Compare(now.stamp, h.past[i].stamp) == Before {
			later.set(i)
		}
	}
	for i := range h.past {
		if i != at && !now.past.has(i) && (later.has(i) || h.past[i].past.meets(later)) {
			h.past[i].past.set(at)
			h.past[i].past.join(now.past)
		}
	}
}

// updateKnown updates known, and keeps it small: players whom no event in memory contains are dropped.
func (h *History) updateKnown(s Stamp) {
	raise := func(s Stamp) {
		for e := range s.Clock.All() {
			h.known[e.ID] = max(h.known[e.ID], e.N)
		}
	}
	raise(s)
	if len(h.known) > 4*h.size+MaxEntries {
		clear(h.known)
		for _, r := range h.past {
			raise(r.stamp)
		}
	}
}

// evict empties a slot.
func (h *History) evict(at int) {
	gone := &h.past[at]
	delete(h.places[gone.stamp.Author], gone.own)
	if len(h.places[gone.stamp.Author]) == 0 {
		delete(h.places, gone.stamp.Author)
	}
	clear(gone.past)
	for i := range h.past {
		h.past[i].past.clear(at)
	}
}

// place returns an event's slot.
func (h *History) place(s Stamp) (int, bool) {
	at, ok := h.places[s.Author][s.Own()]
	return at, ok
}

// Compare returns the relation of event a to event b, by Compare and by chains of recorded events.
func (h *History) Compare(a, b Stamp) Relation {
	if r := Compare(a, b); r != Concurrent {
		return r
	}
	x, ok := h.place(a)
	if !ok {
		return Concurrent
	}
	y, ok := h.place(b)
	switch {
	case !ok:
		return Concurrent
	case h.past[y].past.has(x) && !h.past[x].past.has(y):
		return Before
	case h.past[x].past.has(y) && !h.past[y].past.has(x):
		return After
	default:
		return Concurrent
	}
}
