package mirror

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file is what subscribers request of a region. Each method changes the subscription's state, and while there is a
// link also the feed's next message.

// watch adds a subscriber to a chunk. It reports false when the subscription is closed.
func (sub *Subscription) watch(pos grid.ChunkPos, by Subscriber) bool {
	sub.mu.Lock()
	defer sub.unlock()
	if sub.mu.closed {
		return false
	}
	f := sub.feed(pos)
	c := sub.mu.chunks[pos]
	if c == nil {
		c = &Chunk{at: pos, sub: sub, subscribers: make(map[Subscriber]subscriberState)}
		sub.mu.chunks[pos] = c
		sub.m.metrics.chunks.Inc()
		f.out.watch(pos)
		f.wake.Set()
	}
	if !c.hasUnserved() {
		c.order = sub.m.order.Add(1) // a chunk that is waited for already keeps its place
		if !c.hasState {
			sub.m.builder.jobs.await(c.order)
		}
	}
	_, watches := c.subscribers[by]
	if !watches && by.WantsEveryMove() {
		c.everyMove++
	}
	if !watches && f.notified {
		by.SendNotice(sessionmsg.LandAway)
	}
	c.await(by, awaitsChunk, f.ask())
	sub.m.builder.queue(c)
	return true
}

// Refresh sends a subscriber a chunk again that it watches.
func (sub *Subscription) Refresh(pos grid.ChunkPos, by Subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	c := sub.mu.chunks[pos]
	if c == nil {
		return
	}
	if has, watches := c.subscribers[by]; watches && has == upToDate {
		c.await(by, awaitsRefresh, 0)
		sub.m.builder.queue(c)
	}
}

// Unwatch removes a subscriber from a chunk. It receives nothing more about it.
func (sub *Subscription) Unwatch(pos grid.ChunkPos, by Subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	c := sub.mu.chunks[pos]
	if c == nil {
		return
	}
	if _, watches := c.subscribers[by]; watches && by.WantsEveryMove() {
		c.everyMove--
	}
	delete(c.subscribers, by)
	c.settle(by)
	sub.forgetWarned(by)
	if len(c.subscribers) > 0 {
		return
	}
	sub.m.Interest.ClearChunk(pos, c.occupants)
	sub.m.Overlay.Clear(pos)
	delete(sub.mu.chunks, pos)
	delete(sub.mu.predicted, c)
	sub.m.builder.jobs.arrived(c.order)
	sub.m.metrics.chunks.Dec()
	f := sub.feedAt(pos)
	f.out.unwatch(pos)
	f.wake.Set()
}

// Serialize calls f while no subscriber of the subscription is called.
func (sub *Subscription) Serialize(f func()) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	f()
}

// enter adds a subscriber's body to the region. It reports false when the subscription is closed.
func (sub *Subscription) enter(entering nodemsg.Body, owner Subscriber) bool {
	sub.mu.Lock()
	defer sub.unlock()
	if sub.mu.closed {
		return false
	}
	at := entering.Pose.Chunk()
	if older := sub.mu.bodies[entering.Player]; older != nil && sub.feedAt(older.at) != sub.feed(at) {
		older.leave()
	}
	b := &body{Body: entering, at: at, sub: sub, owner: owner}
	sub.mu.bodies[b.Player] = b
	b.enter()
	return true
}

// SetStance sets the stance of a subscriber's body, which enters again with it. said is the number of the player's last
// chat line.
func (sub *Subscription) SetStance(id player.ID, stance nodemsg.Stance, said uint64, owner Subscriber) {
	sub.mu.Lock()
	defer sub.unlock()
	if b := sub.mu.bodies[id]; b != nil && b.owner == owner {
		b.Stance, b.Said = stance, max(b.Said, said)
		b.enter()
	}
}

// Leave removes a subscriber's body.
func (sub *Subscription) Leave(id player.ID, owner Subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	b := sub.mu.bodies[id]
	if b == nil || b.owner != owner {
		return
	}
	delete(sub.mu.bodies, id)
	b.leave()
}

// Move sets the newest pose of a subscriber's body; alone means that nobody sees it well. It reports whether the region
// needs the update, and the caller must call Wake or Flush: not if the prediction covers the move.
func (sub *Subscription) Move(id player.ID, pose motion.Pose, owner Subscriber, alone bool) (needsUpdate bool) {
	sub.mu.Lock()
	defer sub.unlock()
	b := sub.mu.bodies[id]
	if b == nil || b.owner != owner || b.setPose(pose) {
		return false
	}
	out := &sub.feedAt(b.at).out
	straight := b.predictable()
	if needsUpdate = b.predictor.Observe(pose, sub.m.Now(), alone); !straight {
		needsUpdate = !b.regionHas()
	}
	if !needsUpdate && !out.hasMove(id) {
		sub.mu.diverged = true
		sub.m.metrics.movesWithheld.Inc()
		return false
	}
	b.sendMove(straight)
	return out.linked
}

// EndPrediction ends the prediction of a subscriber's body, which has not got as far as predicted.
func (sub *Subscription) EndPrediction(id player.ID, owner Subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if b := sub.mu.bodies[id]; b != nil && b.owner == owner && b.predictor.Predicts() {
		b.sendRest()
	}
}

// Wake sends what is collected soon, together with what is requested until then.
func (sub *Subscription) Wake() {
	var some [4]*feed
	for _, f := range sub.appendDue(some[:0]) {
		f.wake.Set()
	}
}

// Flush sends what is collected without waiting for more.
func (sub *Subscription) Flush() {
	var some [4]*feed
	for _, f := range sub.appendDue(some[:0]) {
		f.flush()
	}
}

// appendDue appends the feeds that have something to send.
func (sub *Subscription) appendDue(dst []*feed) []*feed {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, f := range sub.mu.feeds {
		if f.out.linked && !f.out.message.Empty() {
			dst = append(dst, f)
		}
	}
	return dst
}

func (f *feed) flush() {
	if !f.sender.tryFlush() {
		f.wake.Set()
		f.flushNow.Set()
	}
}

// Edit requests a block change, and requests it again over every new link until it is answered. The subscriber gets one
// result, which is "committed" only if the region answered so.
func (sub *Subscription) Edit(e nodemsg.Intent, by Subscriber) {
	sendNow, answered := sub.addEdit(e, by)
	if sendNow != nil {
		sendNow.flush()
	}
	if answered {
		by.Flush()
	}
}

// addEdit adds a pending edit. It returns the feed that the caller should flush now, nil for none, and reports whether
// to flush the refusal. If others are pending it wakes the sender instead, which then sends all that has been
// collected.
func (sub *Subscription) addEdit(e nodemsg.Intent, by Subscriber) (sendNow *feed, answered bool) {
	sub.mu.Lock()
	defer sub.unlock()
	added, refused := sub.mu.pending.add(e, by)
	if refused != "" {
		return nil, by.SendResult(nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Block: sub.blockAt(e.Pos), Refused: refused})
	}
	f := sub.feed(e.Pos.Chunk())
	if !added || !f.out.linked {
		return nil, false
	}
	if b := sub.mu.bodies[e.Player]; b != nil && f.cell.Contains(b.at) && b.predictor.LastSent() != b.Pose {
		b.sendMove(b.predictable()) // builders must be shown exactly where they are
	}
	f.sendEdit(&sub.mu.pending[len(sub.mu.pending)-1])
	if len(sub.mu.pending) == 1 {
		return f, false
	}
	f.wake.Set()
	f.flushNow.Set()
	return nil, false
}

// SendChat sends a chat event to everybody who sees the chunk. It reports false, and drops the event, when too many
// wait for a region that cannot be reached.
func (sub *Subscription) SendChat(u nodemsg.ChatEvent) bool {
	sub.mu.Lock()
	defer sub.unlock()
	if !sub.Covers(u.Chunk) {
		return false
	}
	f := sub.feed(u.Chunk)
	f.wake.Set()
	return f.out.chat(u)
}
