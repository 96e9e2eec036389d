package region

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file is the part of the loop that serves gateways: which gateway watches which chunks, and what is sent to it. Everything
// here runs in the loop's goroutine.

func newSubscriber() *subscriber {
	return &subscriber{
		out:    mailbox.New[nodemsg.FromRegion](linkBacklog),
		credit: make(chan struct{}, linkCredit),
		watch:  make(map[grid.ChunkPos]struct{}),
		shown:  make(map[grid.ChunkPos]struct{}),
	}
}

// attach adds a subscriber and sets its number.
func (l *loop) attach(s *subscriber) {
	l.number++
	s.number = l.number
	l.subscribers[s] = struct{}{}
	l.idle = 0
	l.subscribe(s)
}

// detach removes a subscriber and all bodies that belong to it.
func (l *loop) detach(s *subscriber) {
	if _, subscribed := l.subscribers[s]; !subscribed {
		return
	}
	delete(l.subscribers, s)
	if !s.pendingSince.IsZero() {
		s.pendingSince = time.Time{}
		l.pendingSubscribers--
	}
	for pos := range s.watch {
		l.unwatch(s, pos)
	}
	l.crowd.LeaveAll(s.number)
	for key, a := range l.pending {
		if a.subscriber == s {
			a.subscriber = nil // still to be committed, but there is no one left to answer
			l.pending[key] = a
		}
	}
}

// dismiss sends a gateway the reason why its link ends, and removes the subscriber.
func (l *loop) dismiss(s *subscriber, why string) {
	last := nodemsg.FromRegion{Tick: l.tick, Closed: why, Results: s.nextResults()}
	if l.ledElsewhere() {
		last.Leader = l.leader
	}
	s.out.Put(last)
	s.out.Close()
	l.detach(s)
}

// handleMessage applies a message from a gateway, field by field in the order that nodemsg.ToRegion documents.
func (l *loop) handleMessage(s *subscriber, msg nodemsg.ToRegion) {
	if _, subscribed := l.subscribers[s]; !subscribed {
		return
	}
	for _, pos := range msg.Unwatch {
		l.unwatch(s, pos)
	}
	for _, pos := range msg.Watch {
		l.watch(s, pos)
	}
	if l.readOnly {
		msg = nodemsg.ToRegion{Edits: msg.Edits} // no movement or chat in a quarantined region
	}
	for _, body := range msg.Enter {
		l.crowd.Enter(s.number, body)
	}
	for _, move := range msg.Moves {
		l.crowd.Move(s.number, move)
	}
	for _, id := range msg.Leave {
		l.crowd.Leave(s.number, id)
	}
	for _, intent := range msg.Edits {
		l.queueEdit(s, intent)
	}
	for _, u := range msg.Chat {
		l.crowd.Chat(u)
	}
}

func (l *loop) watch(s *subscriber, pos grid.ChunkPos) {
	if !l.info.Cell.Contains(pos) {
		return
	}
	set := l.watched[pos]
	if set == nil {
		set = make(map[*subscriber]struct{})
		l.watched[pos] = set
	}
	set[s] = struct{}{}
	s.watch[pos] = struct{}{}
	if !slices.Contains(s.unsent, pos) {
		s.unsent = append(s.unsent, pos)
	}
}

func (l *loop) unwatch(s *subscriber, pos grid.ChunkPos) {
	delete(s.watch, pos)
	if set := l.watched[pos]; set != nil {
		delete(set, s)
		if len(set) == 0 {
			delete(l.watched, pos)
		}
	}
	s.unsent = slices.DeleteFunc(s.unsent, func(p grid.ChunkPos) bool { return p == pos })
}

// queueEdit queues an edit. If the edit is already pending because another link sent it, only the subscriber that gets the answer
// changes.
func (l *loop) queueEdit(s *subscriber, intent nodemsg.Intent) {
	key := edit{intent.Player, intent.Seq}
	before, underWay := l.pending[key]
	if underWay && before.intent != intent {
		s.results = append(s.results, refusal(intent, wire.RefusedStale))
		return
	}
	l.pending[key] = pendingEdit{intent: intent, subscriber: s}
	if underWay {
		return
	}
	pos := intent.Pos.Chunk()
	switch {
	case !l.info.Cell.Contains(pos):
		l.refuse(intent, wire.RefusedOutOfWorld)
	case !intent.Block.Known():
		l.refuse(intent, wire.RefusedUnknownBlock)
	case l.readOnly, l.stalled != nil, len(l.waiting) >= maxWaiting:
		// A retry, sent because the previous leader's answer was lost, may already be applied.
		if block, applied := l.land.Confirms(intent); applied {
			l.sendResult(key, nodemsg.EditResult{Player: intent.Player, Seq: intent.Seq, Block: block})
		} else if l.readOnly {
			l.refuse(intent, wire.RefusedQuarantined)
		} else {
			l.refuse(intent, wire.RefusedUnavailable)
		}
	default:
		if !l.land.Pinned(pos) {
			l.terrainHash(pos) // request the hash now: propose will need it
		}
		l.waiting = append(l.waiting, queued{Intent: intent})
	}
}

// publish sends every subscriber the changes in its chunks since the last tick. The changes of a chunk are collected once and
// shared by all frames.
func (l *loop) publish() {
	news := l.crowd.Flush()
	frames := make(map[*subscriber]*nodemsg.FromRegion)
	frame := func(s *subscriber) *nodemsg.FromRegion {
		f := frames[s]
		if f == nil {
			f = &nodemsg.FromRegion{Tick: l.tick}
			frames[s] = f
		}
		return f
	}
	for s := range l.subscribers {
		if len(s.results) > maxResults {
			l.dismiss(s, "too many refused edits")
			continue
		}
		l.show(s, frame)
		if len(s.results) > 0 {
			frame(s).Results = s.nextResults()
		}
	}
	for pos, n := range news {
		for s := range l.watched[pos] {
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
			l.dropSlow(s)
		}
	}
}

// publishEarly sends what a subscriber is waiting for before the next tick: answers to edits, and chunks that have just been
// watched. The first call between two ticks publishes everything, so that in a quiet region every player sees an edit as soon as
// it is durable. Later calls send answers only, so that the traffic of a busy region does not grow with its number of commits.
func (l *loop) publishEarly() {
	waiting := false
	for s := range l.subscribers {
		if len(s.results) == 0 && (l.publishedEarly || len(s.unsent) == 0 || !s.pendingSince.IsZero()) {
			continue
		}
		if waiting = true; !l.publishedEarly {
			break
		}
		if !s.out.Put(nodemsg.FromRegion{Tick: l.tick, Results: s.nextResults()}) {
			l.dropSlow(s)
		}
	}
	if waiting && !l.publishedEarly {
		l.publishedEarly = true
		l.publish()
	}
}

// dropSlow ends the link of a gateway that does not read its frames. Unread frames are dropped. On its next link the gateway
// starts with whole chunks and asks again for the results that it did not get.
func (l *loop) dropSlow(s *subscriber) {
	select {
	case <-s.out.Ended():
		l.detach(s) // the gateway has closed the link itself
		return
	default:
	}
	l.logger.Warn("gateway too slow, link cut", "region", l.info.ID)
	s.out.Drain()
	l.dismiss(s, "the gateway is too slow")
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
func (l *loop) show(s *subscriber, frame func(*subscriber) *nodemsg.FromRegion) {
	clear(s.shown)
	if !s.pendingSince.IsZero() {
		return
	}
	edits := 0
	for len(s.unsent) > 0 && edits < frameEdits {
		pos := s.unsent[0]
		s.unsent = s.unsent[1:]
		s.shown[pos] = struct{}{}
		news := l.chunkState(pos)
		edits += len(news.State.Edits) + 1
		f := frame(s)
		f.Chunks = append(f.Chunks, news)
	}
}

// skipsChanges reports whether the subscriber needs none of this tick's changes of the chunk, because the whole chunk has just
// been sent or will be.
func (s *subscriber) skipsChanges(pos grid.ChunkPos) bool {
	_, shown := s.shown[pos]
	return shown || slices.Contains(s.unsent, pos)
}

// chunkState returns the current state of a chunk, with the changes of this tick included.
func (l *loop) chunkState(pos grid.ChunkPos) nodemsg.ChunkDelta {
	base, edits := l.land.Chunk(pos)
	return nodemsg.ChunkDelta{Chunk: pos, State: &nodemsg.ChunkState{Base: base, Edits: edits, Bodies: l.crowd.Inside(pos)}}
}
