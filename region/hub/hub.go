package hub

import (
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Hub serves the gateways of a region. It belongs to the region's goroutine.
type Hub struct {
	// Detached is called when a subscriber is removed, Slow when a gateway is dismissed because it is too slow.
	Detached func(*Subscriber)
	Slow     func()
	// Received, if not nil, is called with each message of a gateway, in the gateway's goroutine.
	Received func(nodemsg.ToRegion)
	// These are what a gateway learns when it is dismissed.
	Elsewhere string          // the member that leads the region, if it is another one
	Split     uint64          // log index of the entry that split the region; 0 if it is not split
	Parent    *nodemsg.Region // that the region was merged into; nil if it was not

	contents *Contents

	subscribers    map[*Subscriber]struct{}
	watched        map[grid.ChunkPos]map[*Subscriber]struct{} // no empty sets
	pending        int                                        // number of subscribers that wait for a leader
	number         uint64
	tick           uint64
	publishedEarly bool // everything was published since the last tick: until the next one only answers are
}

// New returns the hub of a region.
func New(c *Contents) *Hub {
	return &Hub{contents: c, subscribers: make(map[*Subscriber]struct{}), watched: make(map[grid.ChunkPos]map[*Subscriber]struct{})}
}

// Attach adds a subscriber and sets its number.
func (h *Hub) Attach(s *Subscriber) {
	h.number++
	s.number = h.number
	h.subscribers[s] = struct{}{}
}

// Attached reports whether it is a subscriber.
func (h *Hub) Attached(s *Subscriber) bool {
	_, attached := h.subscribers[s]
	return attached
}

// Len returns the number of subscribers.
func (h *Hub) Len() int { return len(h.subscribers) }

// Tick returns the number of the current tick.
func (h *Hub) Tick() uint64 { return h.tick }

// NextTick begins a tick.
func (h *Hub) NextTick() { h.tick, h.publishedEarly = h.tick+1, false }

// Wait makes a subscriber wait until the leader is known, or has confirmed that it leads.
func (h *Hub) Wait(s *Subscriber) {
	s.pendingSince = time.Now()
	h.pending++
}

// WaitAll makes all subscribers wait.
func (h *Hub) WaitAll() {
	for s := range h.subscribers {
		if !s.Pending() {
			h.Wait(s)
		}
	}
}

// Pending lists the subscribers that wait, in no particular order.
func (h *Hub) Pending() []*Subscriber {
	if h.pending == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(h.subscribers)), func(s *Subscriber) bool { return !s.Pending() })
}

// EndPending dismisses the subscribers that have waited for longer than the duration.
func (h *Hub) EndPending(d time.Duration, why string) {
	for _, s := range h.Pending() {
		if time.Since(s.pendingSince) > d {
			h.Dismiss(s, why)
		}
	}
}

// Confirm accepts a gateway as a subscriber and notifies it.
func (h *Hub) Confirm(s *Subscriber) {
	h.endWait(s)
	s.out.Put(nodemsg.FromRegion{Tick: h.tick, Confirms: true})
}

// ConfirmReadOnly accepts a gateway for a read-only period.
func (h *Hub) ConfirmReadOnly(s *Subscriber, d time.Duration) {
	s.readOnlyUntil = time.Now().Add(d)
	h.Confirm(s)
}

func (h *Hub) endWait(s *Subscriber) {
	if s.Pending() {
		s.pendingSince = time.Time{}
		h.pending--
	}
}

// Detach removes a subscriber and all bodies that belong to it.
func (h *Hub) Detach(s *Subscriber) {
	if !h.Attached(s) {
		return
	}
	delete(h.subscribers, s)
	h.endWait(s)
	for pos := range s.watch {
		h.Unwatch(s, pos)
	}
	h.contents.Crowd.LeaveAll(s.number)
	h.Detached(s)
}

// Dismiss sends a gateway the reason why its link ends, and removes the subscriber.
func (h *Hub) Dismiss(s *Subscriber, why string) {
	s.out.Put(nodemsg.FromRegion{Tick: h.tick, Closed: why, Results: s.nextResults(), Leader: h.Elsewhere, Split: h.Split, Parent: h.Parent})
	s.out.Close()
	h.Detach(s)
}

// DismissAll dismisses all gateways.
func (h *Hub) DismissAll(why string) {
	for s := range h.subscribers {
		h.Dismiss(s, why)
	}
}

// DismissWriters dismisses the gateways that are not subscribed read-only.
func (h *Hub) DismissWriters(why string) {
	for s := range h.subscribers {
		if s.readOnlyUntil.IsZero() {
			h.Dismiss(s, why)
		}
	}
}

// Abandon is dismissAll for a region that has failed: it touches only the subscribers.
func (h *Hub) Abandon(why string) {
	for s := range h.subscribers {
		s.out.Put(nodemsg.FromRegion{Tick: h.tick, Closed: why, Leader: h.Elsewhere})
		s.out.Close()
	}
	clear(h.subscribers)
}

// Watch has a gateway sent a chunk and its changes.
func (h *Hub) Watch(s *Subscriber, pos grid.ChunkPos) {
	set := h.watched[pos]
	if set == nil {
		set = make(map[*Subscriber]struct{})
		h.watched[pos] = set
	}
	set[s] = struct{}{}
	s.watch[pos] = struct{}{}
	if !slices.Contains(s.unsent, pos) {
		s.unsent = append(s.unsent, pos)
	}
}

// Unwatch undoes Watch.
func (h *Hub) Unwatch(s *Subscriber, pos grid.ChunkPos) {
	delete(s.watch, pos)
	if set := h.watched[pos]; set != nil {
		delete(set, s)
		if len(set) == 0 {
			delete(h.watched, pos)
		}
	}
	s.unsent = slices.DeleteFunc(s.unsent, func(p grid.ChunkPos) bool { return p == pos })
}

// Publish sends every subscriber the changes in its chunks since the last tick. The changes of a chunk are collected once and
// shared by all frames.
func (h *Hub) Publish() {
	delta := h.contents.Crowd.Flush()
	frames := make(map[*Subscriber]*nodemsg.FromRegion)
	frame := func(s *Subscriber) *nodemsg.FromRegion {
		f := frames[s]
		if f == nil {
			f = &nodemsg.FromRegion{Tick: h.tick}
			frames[s] = f
		}
		return f
	}
	for s := range h.subscribers {
		if len(s.results) > maxResults {
			h.Dismiss(s, "too many refused edits")
			continue
		}
		h.show(s, frame)
		if len(s.results) > 0 {
			frame(s).Results = s.nextResults()
		}
		if s.confirmed != 0 && !s.Pending() {
			f := frame(s)
			f.Confirmed, f.AsOf, s.confirmed = s.confirmed, s.asOf, 0
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
		if !s.put(*f) {
			h.dropSlow(s)
		}
	}
}

// PublishEarly sends what a subscriber is waiting for before the next tick: answers to edits, and chunks that have just been
// watched. The first call between two ticks publishes everything, so that in a quiet region every player sees an edit as soon as
// it is durable. Later calls send answers only, so that the traffic of a busy region does not grow with its number of commits.
func (h *Hub) PublishEarly() {
	waiting := false
	for s := range h.subscribers {
		if len(s.results) == 0 && (h.publishedEarly || len(s.unsent) == 0 && s.confirmed == 0 || s.Pending()) {
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
		h.Publish()
	}
}

// dropSlow ends the link of a gateway that does not read its frames. Unread frames are dropped. On its next link the gateway
// starts with whole chunks and asks again for the results that it did not get.
func (h *Hub) dropSlow(s *Subscriber) {
	select {
	case <-s.out.Ended():
		h.Detach(s) // the gateway has closed the link itself
		return
	default:
	}
	h.Slow()
	s.out.Drain()
	h.Dismiss(s, "the gateway is too slow")
}

// maxResults bounds the results that wait for one gateway. A gateway that sends edits faster than the refusals can be delivered
// loses its link.
const maxResults = 4 * wire.MaxBodies

// frameEdits bounds the edits of whole chunks in one frame, so that it stays far below wire.MaxFrame. The rest waits for the next
// tick. At least one chunk is always sent.
const frameEdits = 1 << 15

// signEdits is how many edits take as many bytes as the text of a sign.
const signEdits = 32

// show adds the whole state of newly watched chunks to the subscriber's frame. A pending subscriber gets nothing until the leader
// is known: another member may lead and have newer land.
func (h *Hub) show(s *Subscriber, frame func(*Subscriber) *nodemsg.FromRegion) {
	clear(s.shown)
	if s.Pending() {
		return
	}
	edits := 0
	for len(s.unsent) > 0 && edits < frameEdits {
		pos := s.unsent[0]
		s.unsent = s.unsent[1:]
		s.shown[pos] = struct{}{}
		delta := h.chunkState(pos)
		edits += len(delta.State.Edits) + signEdits*len(delta.State.Signs) + 1
		f := frame(s)
		f.Chunks = append(f.Chunks, delta)
	}
}

// chunkState returns the current state of a chunk, with the changes of this tick included.
func (h *Hub) chunkState(pos grid.ChunkPos) nodemsg.ChunkDelta {
	state := h.contents.Land.Chunk(pos)
	state.Bodies = h.contents.Crowd.Inside(pos)
	return nodemsg.ChunkDelta{Chunk: pos, State: &state}
}

// ShowAgain has a chunk sent as a whole to all its subscribers.
func (h *Hub) ShowAgain(pos grid.ChunkPos) {
	for s := range h.watched[pos] {
		if !slices.Contains(s.unsent, pos) {
			s.unsent = append(s.unsent, pos)
		}
	}
}

// ShowFor limits the subscriptions of all gateways here to a read-only period.
func (h *Hub) ShowFor(d time.Duration) {
	for s := range h.subscribers {
		if !s.Pending() {
			s.readOnlyUntil = time.Now().Add(d)
		}
	}
}

// EndReading dismisses the gateways whose read-only period is over.
func (h *Hub) EndReading(leading bool) {
	for s := range h.subscribers {
		switch {
		case s.readOnlyUntil.IsZero():
		case leading:
			s.readOnlyUntil = time.Time{}
		case time.Now().After(s.readOnlyUntil):
			h.Dismiss(s, "this node's disk refuses writes; look whether another one leads the region")
		}
	}
}
