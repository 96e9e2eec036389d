package actor

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// contents are a region's land and the players on it.
type contents struct {
	land  *world.Land
	crowd *world.Crowd
}

// subscriber is a gateway that follows a region.
type subscriber struct {
	number   uint64 // identifies it to the crowd
	out      *mailbox.Mailbox[nodemsg.FromRegion]
	buffered []nodemsg.FromRegion // belongs to the receiving goroutine
	credit   chan struct{}        // holds a token for each message that the region has not handled yet

	reading bool // it accepts a read-only subscription where the disk refuses writes and no leader is known

	// The fields below belong to the region's goroutine.
	pendingSince  time.Time // it is pending since then; zero if it is not
	readOnlyUntil time.Time // it is subscribed read-only, and until then
	watch         map[grid.ChunkPos]struct{}
	unsent        []grid.ChunkPos            // watched, and still to be sent as a whole, in order
	shown         map[grid.ChunkPos]struct{} // sent as a whole in this tick
	results       []nodemsg.EditResult
}

// hub serves the gateways of a region: which gateway watches which chunks, and what is sent to it. It belongs to the region's
// goroutine.
type hub struct {
	contents *contents
	detached func(*subscriber) // called when a subscriber is removed
	slow     func()            // called when a gateway is dismissed because it is too slow

	subscribers    map[*subscriber]struct{}
	watched        map[grid.ChunkPos]map[*subscriber]struct{} // no empty sets
	pending        int                                        // number of subscribers that wait for a leader
	number         uint64
	tick           uint64
	elsewhere      string // the member that leads the region, if it is another one
	split          uint64 // log index of the entry that split the region; 0 if it is not split
	publishedEarly bool   // everything was published since the last tick: until the next one only answers are
}

func newHub(c *contents) *hub {
	return &hub{contents: c, subscribers: make(map[*subscriber]struct{}), watched: make(map[grid.ChunkPos]map[*subscriber]struct{})}
}

// attach adds a subscriber and sets its number.
func (h *hub) attach(s *subscriber) {
	h.number++
	s.number = h.number
	h.subscribers[s] = struct{}{}
}

// wait makes a subscriber wait until the leader is known, or has confirmed that it leads.
func (h *hub) wait(s *subscriber) {
	s.pendingSince = time.Now()
	h.pending++
}

// confirm accepts a gateway as a subscriber and notifies it.
func (h *hub) confirm(s *subscriber) {
	h.endWait(s)
	s.out.Put(nodemsg.FromRegion{Tick: h.tick})
}

func (h *hub) endWait(s *subscriber) {
	if !s.pendingSince.IsZero() {
		s.pendingSince = time.Time{}
		h.pending--
	}
}

// detach removes a subscriber and all bodies that belong to it.
func (h *hub) detach(s *subscriber) {
	if _, subscribed := h.subscribers[s]; !subscribed {
		return
	}
	delete(h.subscribers, s)
	h.endWait(s)
	for pos := range s.watch {
		h.unwatch(s, pos)
	}
	h.contents.crowd.LeaveAll(s.number)
	h.detached(s)
}

// dismiss sends a gateway the reason why its link ends, and removes the subscriber.
func (h *hub) dismiss(s *subscriber, why string) {
	s.out.Put(nodemsg.FromRegion{Tick: h.tick, Closed: why, Results: s.nextResults(), Leader: h.elsewhere, Split: h.split})
	s.out.Close()
	h.detach(s)
}

// dismissAll dismisses all gateways.
func (h *hub) dismissAll(why string) {
	for s := range h.subscribers {
		h.dismiss(s, why)
	}
}

// abandon is dismissAll for a region that has failed: it touches only the subscribers.
func (h *hub) abandon(why string) {
	for s := range h.subscribers {
		s.out.Put(nodemsg.FromRegion{Tick: h.tick, Closed: why, Leader: h.elsewhere})
		s.out.Close()
	}
	clear(h.subscribers)
}

func (h *hub) watch(s *subscriber, pos grid.ChunkPos) {
	set := h.watched[pos]
	if set == nil {
		set = make(map[*subscriber]struct{})
		h.watched[pos] = set
	}
	set[s] = struct{}{}
	s.watch[pos] = struct{}{}
	if !slices.Contains(s.unsent, pos) {
		s.unsent = append(s.unsent, pos)
	}
}

func (h *hub) unwatch(s *subscriber, pos grid.ChunkPos) {
	delete(s.watch, pos)
	if set := h.watched[pos]; set != nil {
		delete(set, s)
		if len(set) == 0 {
			delete(h.watched, pos)
		}
	}
	s.unsent = slices.DeleteFunc(s.unsent, func(p grid.ChunkPos) bool { return p == pos })
}

// publish sends every subscriber the changes in its chunks since the last tick. The changes of a chunk are collected once and
// shared by all frames.
func (h *hub) publish() {
	delta := h.contents.crowd.Flush()
	frames := make(map[*subscriber]*nodemsg.FromRegion)
	frame := func(s *subscriber) *nodemsg.FromRegion {
		f := frames[s]
		if f == nil {
			f = &nodemsg.FromRegion{Tick: h.tick}
			frames[s] = f
		}
		return f
	}
	for s := range h.subscribers {
		if len(s.results) > maxResults {
			h.dismiss(s, "too many refused edits")
			continue
		}
		h.show(s, frame)
		if len(s.results) > 0 {
			frame(s).Results = s.nextResults()
		}
	}
	for pos, n := range delta {
		for s := range h.watched[pos] {
			delta := *n
			if s.skipsChanges(pos) {
				// Its whole state, in this frame or a later one, contains everything except chat.
				delta = nodemsg.ChunkDelta{Chunk: pos, Chat: n.Chat}
				if len(n.Chat) == 0 {
					continue
				}
			}
			f := frame(s)
			f.Chunks = append(f.Chunks, delta)
		}
	}
	for s, f := range frames {
		if !s.out.Put(*f) {
			h.dropSlow(s)
		}
	}
}

// publishEarly sends what a subscriber is waiting for before the next tick: answers to edits, and chunks that have just been
// watched. The first call between two ticks publishes everything, so that in a quiet region every player sees an edit as soon as
// it is durable. Later calls send answers only, so that the traffic of a busy region does not grow with its number of commits.
func (h *hub) publishEarly() {
	waiting := false
	for s := range h.subscribers {
		if len(s.results) == 0 && (h.publishedEarly || len(s.unsent) == 0 || !s.pendingSince.IsZero()) {
			continue
		}
		if waiting = true; !h.publishedEarly {
			break
		}
		if !s.out.Put(nodemsg.FromRegion{Tick: h.tick, Results: s.nextResults()}) {
			h.dropSlow(s)
		}
	}
	if waiting && !h.publishedEarly {
		h.publishedEarly = true
		h.publish()
	}
}

// dropSlow ends the link of a gateway that does not read its frames. Unread frames are dropped. On its next link the gateway
// starts with whole chunks and asks again for the results that it did not get.
func (h *hub) dropSlow(s *subscriber) {
	select {
	case <-s.out.Ended():
		h.detach(s) // the gateway has closed the link itself
		return
	default:
	}
	h.slow()
	s.out.Drain()
	h.dismiss(s, "the gateway is too slow")
}

// maxResults bounds the results that wait for one gateway. A gateway that sends edits faster than the refusals can be delivered
// loses its link.
const maxResults = 4 * wire.MaxBodies

// nextResults removes and returns as many results as fit into one frame.
func (s *subscriber) nextResults() []nodemsg.EditResult {
	n := min(len(s.results), wire.MaxBodies)
	taken := s.results[:n:n]
	s.results = s.results[n:]
	if len(s.results) == 0 {
		s.results = nil
	}
	return taken
}

// frameEdits bounds the edits of whole chunks in one frame, so that it stays far below wire.MaxFrame. The rest waits for the next
// tick. At least one chunk is always sent.
const frameEdits = 1 << 15

// show adds the whole state of newly watched chunks to the subscriber's frame. A pending subscriber gets nothing until the leader
// is known: another member may lead and have newer land.
func (h *hub) show(s *subscriber, frame func(*subscriber) *nodemsg.FromRegion) {
	clear(s.shown)
	if !s.pendingSince.IsZero() {
		return
	}
	edits := 0
	for len(s.unsent) > 0 && edits < frameEdits {
		pos := s.unsent[0]
		s.unsent = s.unsent[1:]
		s.shown[pos] = struct{}{}
		delta := h.chunkState(pos)
		edits += len(delta.State.Edits) + 1
		f := frame(s)
		f.Chunks = append(f.Chunks, delta)
	}
}

// skipsChanges reports whether the subscriber needs none of this tick's changes of the chunk, because the whole chunk has just
// been sent or will be.
func (s *subscriber) skipsChanges(pos grid.ChunkPos) bool {
	_, shown := s.shown[pos]
	return shown || slices.Contains(s.unsent, pos)
}

// chunkState returns the current state of a chunk, with the changes of this tick included.
func (h *hub) chunkState(pos grid.ChunkPos) nodemsg.ChunkDelta {
	base, edits := h.contents.land.Chunk(pos)
	return nodemsg.ChunkDelta{Chunk: pos, State: &nodemsg.ChunkState{Base: base, Edits: edits, Bodies: h.contents.crowd.Inside(pos)}}
}

// showAgain has a chunk sent as a whole to all its subscribers.
func (h *hub) showAgain(pos grid.ChunkPos) {
	for s := range h.watched[pos] {
		if !slices.Contains(s.unsent, pos) {
			s.unsent = append(s.unsent, pos)
		}
	}
}

// showFor limits the subscriptions of all gateways here to a read-only period.
func (h *hub) showFor(d time.Duration) {
	for s := range h.subscribers {
		if s.pendingSince.IsZero() {
			s.readOnlyUntil = time.Now().Add(d)
		}
	}
}

// endReading dismisses the gateways whose read-only period is over.
func (h *hub) endReading(leading bool) {
	for s := range h.subscribers {
		switch {
		case s.readOnlyUntil.IsZero():
		case leading:
			s.readOnlyUntil = time.Time{}
		case time.Now().After(s.readOnlyUntil):
			h.dismiss(s, "this node's disk refuses writes; look whether another one leads the region")
		}
	}
}
