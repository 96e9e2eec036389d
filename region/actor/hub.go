package actor

import (
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// hub serves the gateways of a region.
type hub struct {
	// detached is called when a subscriber is removed, slow when a gateway is dismissed because it is too slow.
	detached func(*subscriber)
	slow     func()
	// These are what a gateway learns when it is dismissed.
	elsewhere string          // the member that leads the region, if it is another one
	split     uint64          // log index of the entry that split the region; 0 if it is not split
	parent    *nodemsg.Region // that the region was merged into; nil if it was not

	contents *contents

	subscribers    map[*subscriber]struct{}
	watched        map[grid.ChunkPos]map[*subscriber]struct{} // no empty sets
	pending        int                                        // number of subscribers that wait for a leader
	number         uint64
	tick           uint64
	publishedEarly bool // everything was published since the last tick: until the next one only answers are
}

// newHub returns the hub of a region.
func newHub(c *contents, detached func(*subscriber), slow func()) *hub {
	return &hub{contents: c, detached: detached, slow: slow, subscribers: make(map[*subscriber]struct{}), watched: make(map[grid.ChunkPos]map[*subscriber]struct{})}
}

// attach adds a subscriber and sets its number.
func (h *hub) attach(s *subscriber) {
	h.number++
	s.number = h.number
	h.subscribers[s] = struct{}{}
}

// attached reports whether it is a subscriber.
func (h *hub) attached(s *subscriber) bool {
	_, attached := h.subscribers[s]
	return attached
}

// len returns the number of subscribers.
func (h *hub) len() int { return len(h.subscribers) }

// nextTick begins a tick.
func (h *hub) nextTick() { h.tick, h.publishedEarly = h.tick+1, false }

// wait makes a subscriber wait until the leader is known, or has confirmed that it leads.
func (h *hub) wait(s *subscriber) {
	s.pendingSince = time.Now()
	h.pending++
}

// waitAll makes all subscribers wait.
func (h *hub) waitAll() {
	for s := range h.subscribers {
		if !s.pending() {
			h.wait(s)
		}
	}
}

// pendingSubscribers lists the subscribers that wait, in no particular order.
func (h *hub) pendingSubscribers() []*subscriber {
	if h.pending == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(h.subscribers)), func(s *subscriber) bool { return !s.pending() })
}

// endPending dismisses the subscribers that have waited for longer than the duration.
func (h *hub) endPending(d time.Duration, why string) {
	for _, s := range h.pendingSubscribers() {
		if time.Since(s.pendingSince) > d {
			h.dismiss(s, why)
		}
	}
}

// confirm accepts a gateway as a subscriber and notifies it.
func (h *hub) confirm(s *subscriber) {
	h.endWait(s)
	s.out.Put(nodemsg.FromRegion{Tick: h.tick})
}

// confirmReadOnly accepts a gateway for a read-only period.
func (h *hub) confirmReadOnly(s *subscriber, d time.Duration) {
	s.readOnlyUntil = time.Now().Add(d)
	h.confirm(s)
}

func (h *hub) endWait(s *subscriber) {
	if s.pending() {
		s.pendingSince = time.Time{}
		h.pending--
	}
}

// detach removes a subscriber and all bodies that belong to it.
func (h *hub) detach(s *subscriber) {
	if !h.attached(s) {
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
	s.out.Put(nodemsg.FromRegion{Tick: h.tick, Closed: why, Results: s.nextResults(), Leader: h.elsewhere, Split: h.split, Parent: h.parent})
	s.out.Close()
	h.detach(s)
}

// dismissAll dismisses all gateways.
func (h *hub) dismissAll(why string) {
	for s := range h.subscribers {
		h.dismiss(s, why)
	}
}

// dismissWriters dismisses the gateways that are not subscribed read-only.
func (h *hub) dismissWriters(why string) {
	for s := range h.subscribers {
		if s.readOnlyUntil.IsZero() {
			h.dismiss(s, why)
		}
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

// watch has a gateway sent a chunk and its changes.
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

// unwatch undoes Watch.
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

// publish sends every subscriber the changes in its chunks since the last tick. The changes of a chunk are collected
// once and shared by all frames.
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
		if s.confirmed != 0 && !s.pending() {
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

// publishEarly sends what a subscriber is waiting for before the next tick: answers to edits and to questions whether
// the land is the newest, and chunks that have just been watched. The first call between two ticks publishes everything,
// so that in a quiet region every player sees an edit as soon as it is durable. Later calls send answers only, so that
// the traffic of a busy region does not grow with its number of commits.
func (h *hub) publishEarly() {
	if !h.publishedEarly {
		for s := range h.subscribers {
			if len(s.results) > 0 || !s.pending() && (len(s.unsent) > 0 || s.confirmed != 0) {
				h.publishedEarly = true
				h.publish()
				return
			}
		}
		return
	}
	changed := h.contents.crowd.LandChanged()
	for s := range h.subscribers {
		f := nodemsg.FromRegion{Tick: h.tick, Results: s.nextResults()}
		if s.confirmed != 0 && !s.pending() && len(s.unsent) == 0 && !changed { // it has the newest land
			f.Confirmed, f.AsOf, s.confirmed = s.confirmed, s.asOf, 0
		}
		if (len(f.Results) > 0 || f.Confirmed != 0) && !s.out.Put(f) {
			h.dropSlow(s)
		}
	}
}

// dropSlow ends the link of a gateway that does not read its frames. Unread frames are dropped. On its next link the
// gateway starts with whole chunks and asks again for the results that it did not get.
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

// maxResults bounds the results that wait for one gateway. A gateway that sends edits faster than the refusals can be
// delivered loses its link.
const maxResults = 4 * wire.MaxBodies

// frameEdits bounds the edits of whole chunks in one frame, so that it stays far below wire.MaxFrame. The rest waits
// for the next tick. At least one chunk is always sent.
const frameEdits = 1 << 15

// signEdits is how many edits take as many bytes as the text of a sign.
const signEdits = 32

// show adds the whole state of newly watched chunks to the subscriber's frame. A pending subscriber gets nothing until
// the leader is known: another member may lead and have newer land.
func (h *hub) show(s *subscriber, frame func(*subscriber) *nodemsg.FromRegion) {
	clear(s.shown)
	if s.pending() {
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
func (h *hub) chunkState(pos grid.ChunkPos) nodemsg.ChunkDelta {
	state := h.contents.land.Chunk(pos)
	state.Bodies = h.contents.crowd.Inside(pos)
	return nodemsg.ChunkDelta{Chunk: pos, State: &state}
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
		if !s.pending() {
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
