package gameserver

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is what subscribers request of a region. Each method changes the subscription's state, and while there is a link also
// the next message. A message's lists take effect in the order of nodemsg.ToRegion, so a call that revokes an earlier one removes it
// from the message.

const (
	// maxIntents bounds pending edits, well below wire.MaxBodies; more are refused.
	maxIntents = 4096
	// maxChatEvents bounds the chat events that wait for a region.
	maxChatEvents = 256
)

// watch adds a subscriber to a chunk. It reports false when the subscription is closed.
func (sub *subscription) watch(pos grid.ChunkPos, by subscriber) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.mu.closed {
		return false
	}
	sub.mu.unusedSince = time.Time{}
	mc := sub.mu.chunks[pos]
	if mc == nil {
		mc = &mirrorChunk{at: pos, subscribers: make(map[subscriber]subscriberState)}
		sub.mu.chunks[pos] = mc
		sub.g.metrics.chunks.Inc()
		if sub.mu.linked {
			// Also if it was watched until just now: the region then sends its whole state again.
			sub.mu.out.Unwatch = slices.DeleteFunc(sub.mu.out.Unwatch, func(p grid.ChunkPos) bool { return p == pos })
			sub.mu.out.Watch = append(sub.mu.out.Watch, pos)
			wakeUp(sub.wake)
		}
	}
	if !mc.hasUnserved() {
		mc.order = sub.g.watchOrder.Add(1) // a chunk that is waited for already keeps its place
		if !mc.hasState {
			sub.g.jobs.await(mc.order)
		}
	}
	_, watches := mc.subscribers[by]
	if !watches && by.wantsEveryMove() {
		mc.everyMove++
	}
	if !watches && sub.mu.notified {
		by.sendNotice(landAway)
	}
	mc.subscribers[by] = awaitsChunk
	sub.queue(mc)
	return true
}

// unwatch removes a subscriber from a chunk. It receives nothing more about it.
func (sub *subscription) unwatch(pos grid.ChunkPos, by subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	mc := sub.mu.chunks[pos]
	if mc == nil {
		return
	}
	if _, watches := mc.subscribers[by]; watches && by.wantsEveryMove() {
		mc.everyMove--
	}
	delete(mc.subscribers, by)
	if len(mc.subscribers) > 0 {
		return
	}
	sub.g.interest.clearChunk(pos, mc.bodies)
	sub.g.p2p.Clear(pos)
	delete(sub.mu.chunks, pos)
	delete(sub.mu.predicted, mc)
	sub.g.jobs.arrived(mc.order)
	sub.g.metrics.chunks.Dec()
	if sub.mu.linked {
		sub.mu.out.Watch = slices.DeleteFunc(sub.mu.out.Watch, func(p grid.ChunkPos) bool { return p == pos })
		sub.mu.out.Unwatch = append(sub.mu.out.Unwatch, pos)
		wakeUp(sub.wake)
	}
}

// enter adds a subscriber's body to the region. It reports false when the subscription is closed.
func (sub *subscription) enter(b nodemsg.Body, owner subscriber) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.mu.closed {
		return false
	}
	sub.mu.unusedSince = time.Time{}
	sub.mu.bodies[b.Player] = &body{Body: b, owner: owner, predictor: newPredictor(b.Pose, sub.g.now())}
	if sub.mu.linked {
		sub.cancelEnterLeave(b.Player)
		sub.mu.out.Enter = append(sub.mu.out.Enter, b)
		if i, queued := sub.mu.moveIndex[b.Player]; queued {
			sub.mu.out.Moves[i].Pose, sub.mu.out.Moves[i].Velocity = b.Pose, b.Velocity // moves take effect after enters
		}
		wakeUp(sub.wake)
	}
	return true
}

// unshow removes a body from what the client of an original connection was shown.
func (sub *subscription) unshow(lc *legacyConn, body nodemsg.Body) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	lc.unshow(body)
}

// leave removes a subscriber's body.
func (sub *subscription) leave(id player.ID, owner subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if b := sub.mu.bodies[id]; b == nil || b.owner != owner {
		return
	}
	delete(sub.mu.bodies, id)
	if sub.mu.linked {
		sub.cancelEnterLeave(id)
		sub.mu.out.Leave = append(sub.mu.out.Leave, id)
		wakeUp(sub.wake)
	}
}

// cancelEnterLeave removes a player's entering and leaving from the next message. The lock is held.
func (sub *subscription) cancelEnterLeave(id player.ID) {
	sub.mu.out.Enter = slices.DeleteFunc(sub.mu.out.Enter, func(b nodemsg.Body) bool { return b.Player == id })
	sub.mu.out.Leave = slices.DeleteFunc(sub.mu.out.Leave, func(l player.ID) bool { return l == id })
}

// move sets the newest pose of a subscriber's body. It reports whether the caller must flush the message to the region: not if
// the prediction covers the move.
func (sub *subscription) move(id player.ID, pose motion.Pose, owner subscriber, alone bool) (needsUpdate bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	b := sub.mu.bodies[id]
	if b == nil || b.owner != owner {
		return false
	}
	b.Pose = pose
	straight := sub.predictable(b)
	if needsUpdate = b.predictor.observe(pose, sub.g.now(), alone); !straight {
		needsUpdate = b.predictor.lastSent != pose || b.predictor.sentVelocity.Moving()
	}
	if _, queued := sub.mu.moveIndex[id]; !needsUpdate && !queued {
		sub.mu.diverged = true
		sub.g.metrics.movesWithheld.Inc()
		return false
	}
	sub.putMove(b, straight)
	return sub.mu.linked
}

// endPrediction ends the prediction of a subscriber's body, which has not got as far as predicted.
func (sub *subscription) endPrediction(id player.ID, owner subscriber) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if b := sub.mu.bodies[id]; b != nil && b.owner == owner && b.predictor.sentVelocity.Moving() {
		sub.sendStanding(b)
	}
}

// Flush sends what is collected without waiting for more.
func (sub *subscription) Flush() {
	if !sub.tryFlush() {
		wakeUp(sub.wake)
		wakeUp(sub.flushNow)
	}
}

// sendStanding sends the region that a body stands where it is. The lock is held, as below.
func (sub *subscription) sendStanding(b *body) {
	b.predictor.commitStanding(sub.g.now())
	sub.putMove(b, false)
	wakeUp(sub.wake)
}

// predictable reports whether the region is sent predictions for the body. It is not for players of original clients: their moves
// are relayed to other original clients as they were sent.
func (sub *subscription) predictable(b *body) bool {
	if _, original := b.owner.(*legacyConn); original {
		return false
	}
	mc := sub.mu.chunks[world.ChunkOf(b.Pose)]
	return !sub.g.p2p.Enabled() && (mc == nil || len(mc.bodies) <= predictionCrowd)
}

// putMove puts a body's newest pose and velocity into the next message.
func (sub *subscription) putMove(b *body, straight bool) {
	if !sub.mu.linked {
		return // the next link begins with it
	}
	m := nodemsg.BodyMove{Player: b.Player, Pose: b.Pose, Velocity: b.predictor.commitMove(straight)}
	sub.mu.diverged = sub.mu.diverged || m.Velocity.Moving()
	if i, queued := sub.mu.moveIndex[b.Player]; queued {
		sub.mu.out.Moves[i] = m
		return
	}
	sub.g.metrics.movesSent.Inc()
	sub.mu.moveIndex[b.Player] = len(sub.mu.out.Moves)
	sub.mu.out.Moves = append(sub.mu.out.Moves, m)
}

// edit requests a block change, and requests it again over every new link until it is answered. The subscriber gets one result,
// which is "committed" only if the region answered so.
func (sub *subscription) edit(e nodemsg.Intent, by subscriber) {
	if sub.addPending(e, by) {
		sub.Flush()
	}
}

// addPending adds a pending edit, and reports whether the caller should send it now. If others are pending it wakes the sender
// instead, which then sends all that has been collected.
func (sub *subscription) addPending(e nodemsg.Intent, by subscriber) (alone bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	i := slices.IndexFunc(sub.mu.pending, func(i intent) bool { return i.Player == e.Player && i.Seq == e.Seq })
	switch {
	case i >= 0 && sub.mu.pending[i].Intent == e:
		sub.mu.pending[i].requester = by // requested again, perhaps by the player's next session: that one gets the result
	case i >= 0:
		// Another edit of the same number is pending. The region would confuse the two.
		sub.refuse(e, wire.RefusedStale, by)
	case len(sub.mu.pending) >= maxIntents:
		sub.refuse(e, wire.RefusedUnavailable, by)
	default:
		sub.mu.pending = append(sub.mu.pending, intent{e, by})
		if !sub.mu.linked {
			return false
		}
		if b := sub.mu.bodies[e.Player]; b != nil && b.predictor.lastSent != b.Pose {
			sub.putMove(b, sub.predictable(b)) // builders must be shown exactly where they are
		}
		sub.mu.out.Edits = append(sub.mu.out.Edits, e)
		if len(sub.mu.pending) == 1 {
			return true
		}
		wakeUp(sub.wake)
		wakeUp(sub.flushNow)
	}
	return false
}

func (sub *subscription) refuse(e nodemsg.Intent, why string, by subscriber) {
	if o := by.sendResult(nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Block: sub.blockAt(e.Pos), Refused: why}); o != nil {
		wakeUp(o.wake)
	}
}

// sendChat sends a chat event to everybody who sees the chunk. It reports false, and drops the event, when too many wait for a
// region that cannot be reached.
func (sub *subscription) sendChat(u nodemsg.ChatEvent) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.mu.out.Chat) >= maxChatEvents {
		return false
	}
	sub.mu.out.Chat = append(sub.mu.out.Chat, u)
	wakeUp(sub.wake)
	return true
}
