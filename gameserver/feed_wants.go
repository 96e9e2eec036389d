package gameserver

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is what subscribers request of a region. Each method changes the subscription's state, and while there is a link also
// the next message. A message's lists take effect in the order of wire.ToRegion, so a call that revokes an earlier one removes it
// from the message.

const (
	// maxIntents bounds pending edits, well below wire.MaxBodies; more are refused.
	maxIntents = 4096
	// maxSays bounds the chat events that wait for a region.
	maxSays = 256
)

// watch adds a subscriber to a chunk. It reports false when the subscription is closed.
func (f *feed) watch(pos grid.ChunkPos, whom viewer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return false
	}
	f.mu.unused = time.Time{}
	v := f.mu.views[pos]
	if v == nil {
		v = &view{at: pos, viewers: make(map[viewer]sight)}
		f.mu.views[pos] = v
		f.g.metrics.chunks.Inc()
		if f.mu.linked {
			// Also if it was watched until just now: the region then sends its whole state again.
			f.mu.out.Unwatch = slices.DeleteFunc(f.mu.out.Unwatch, func(p grid.ChunkPos) bool { return p == pos })
			f.mu.out.Watch = append(f.mu.out.Watch, pos)
			wakeUp(f.wake)
		}
	}
	if !v.hasUnserved() {
		v.order = f.g.looks.Add(1) // a chunk that is waited for already keeps its place
		if !v.known {
			f.g.jobs.await(v.order)
		}
	}
	_, looks := v.viewers[whom]
	if !looks && whom.stepwise() {
		v.stepwise++
	}
	if !looks && f.mu.away {
		whom.notice(landAway)
	}
	v.viewers[whom] = nothing
	f.queue(v)
	return true
}

// unwatch removes a subscriber from a chunk. It receives nothing more about it.
func (f *feed) unwatch(pos grid.ChunkPos, whom viewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.mu.views[pos]
	if v == nil {
		return
	}
	if _, looks := v.viewers[whom]; looks && whom.stepwise() {
		v.stepwise--
	}
	delete(v.viewers, whom)
	if len(v.viewers) > 0 {
		return
	}
	f.g.stage.clear(pos, v.bodies)
	f.g.swarm.clear(pos)
	delete(f.mu.views, pos)
	delete(f.mu.walks, v)
	f.g.jobs.arrived(v.order)
	f.g.metrics.chunks.Dec()
	if f.mu.linked {
		f.mu.out.Watch = slices.DeleteFunc(f.mu.out.Watch, func(p grid.ChunkPos) bool { return p == pos })
		f.mu.out.Unwatch = append(f.mu.out.Unwatch, pos)
		wakeUp(f.wake)
	}
}

// enter adds a subscriber's body to the region. It reports false when the subscription is closed.
func (f *feed) enter(b wire.Body, whose viewer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return false
	}
	f.mu.unused = time.Time{}
	f.mu.bodies[b.Player] = &body{Body: b, whose: whose, course: newCourse(b.Pose, f.g.now())}
	if f.mu.linked {
		f.unsay(b.Player)
		f.mu.out.Enter = append(f.mu.out.Enter, b)
		if i, queued := f.mu.moving[b.Player]; queued {
			f.mu.out.Moves[i].Pose, f.mu.out.Moves[i].Way = b.Pose, b.Way // moves take effect after enters
		}
		wakeUp(f.wake)
	}
	return true
}

// leave removes a subscriber's body.
func (f *feed) leave(id player.ID, whose viewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.mu.bodies[id]; b == nil || b.whose != whose {
		return
	}
	delete(f.mu.bodies, id)
	if f.mu.linked {
		f.unsay(id)
		f.mu.out.Leave = append(f.mu.out.Leave, id)
		wakeUp(f.wake)
	}
}

// unsay removes a player's entering and leaving from the next message. The lock is held.
func (f *feed) unsay(id player.ID) {
	f.mu.out.Enter = slices.DeleteFunc(f.mu.out.Enter, func(b wire.Body) bool { return b.Player == id })
	f.mu.out.Leave = slices.DeleteFunc(f.mu.out.Leave, func(l player.ID) bool { return l == id })
}

// move sets the newest pose of a subscriber's body. It reports whether the caller must flush the message to the region: not if
// the prediction covers the move.
func (f *feed) move(id player.ID, pose wire.Pose, whose viewer, alone bool) (tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.mu.bodies[id]
	if b == nil || b.whose != whose {
		return false
	}
	b.Pose = pose
	straight := f.straight(b)
	if tell = b.course.hear(pose, f.g.now(), alone); !straight {
		tell = b.course.told != pose || b.course.way.Goes()
	}
	if _, queued := f.mu.moving[id]; !tell && !queued {
		f.mu.strays = true
		f.g.metrics.movesWithheld.Inc()
		return false
	}
	f.place(b, straight)
	return f.mu.linked
}

// halt ends the prediction of a subscriber's body, which has not got as far as predicted.
func (f *feed) halt(id player.ID, whose viewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.mu.bodies[id]; b != nil && b.whose == whose && b.course.way.Goes() {
		f.stand(b)
	}
}

// hasten sends what is collected without waiting for more.
func (f *feed) hasten() {
	if !f.push() {
		wakeUp(f.wake)
		wakeUp(f.rush)
	}
}

// stand sends the region that a body stands where it is. The lock is held, as below.
func (f *feed) stand(b *body) {
	b.course.stand(f.g.now())
	f.place(b, false)
	wakeUp(f.wake)
}

// straight reports whether the region is sent predictions for the body. It is not for players of original clients: their moves
// are relayed to other original clients as they were sent.
func (f *feed) straight(b *body) bool {
	if _, original := b.whose.(*classic); original {
		return false
	}
	v := f.mu.views[world.ChunkOf(b.Pose)]
	return !f.g.swarm.on() && (v == nil || len(v.bodies) <= courseCrowd)
}

// place puts a body's newest pose and velocity into the next message.
func (f *feed) place(b *body, straight bool) {
	if !f.mu.linked {
		return // the next link begins with it
	}
	m := wire.BodyMove{Player: b.Player, Pose: b.Pose, Way: b.course.tell(straight)}
	f.mu.strays = f.mu.strays || m.Way.Goes()
	if i, queued := f.mu.moving[b.Player]; queued {
		f.mu.out.Moves[i] = m
		return
	}
	f.g.metrics.movesTold.Inc()
	f.mu.moving[b.Player] = len(f.mu.out.Moves)
	f.mu.out.Moves = append(f.mu.out.Moves, m)
}

// edit requests a block change, and requests it again over every new link until it is answered. The subscriber gets one result,
// which is "committed" only if the region answered so.
func (f *feed) edit(e wire.Intent, whom viewer) {
	if f.ask(e, whom) {
		f.hasten()
	}
}

// ask adds a pending edit, and reports whether the caller should send it now. If others are pending it wakes the sender instead,
// which then sends all that has been collected.
func (f *feed) ask(e wire.Intent, whom viewer) (alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.mu.intents, func(i intent) bool { return i.Player == e.Player && i.Seq == e.Seq })
	switch {
	case i >= 0 && f.mu.intents[i].Intent == e:
		f.mu.intents[i].whom = whom // requested again, perhaps by the player's next session: that one gets the result
	case i >= 0:
		// Another edit of the same number is pending. The region would confuse the two.
		f.refuse(e, wire.RefusedStale, whom)
	case len(f.mu.intents) >= maxIntents:
		f.refuse(e, wire.RefusedUnavailable, whom)
	default:
		f.mu.intents = append(f.mu.intents, intent{e, whom})
		if !f.mu.linked {
			return false
		}
		if b := f.mu.bodies[e.Player]; b != nil && b.course.told != b.Pose {
			f.place(b, f.straight(b)) // builders must be shown exactly where they are
		}
		f.mu.out.Edits = append(f.mu.out.Edits, e)
		if len(f.mu.intents) == 1 {
			return true
		}
		wakeUp(f.wake)
		wakeUp(f.rush)
	}
	return false
}

func (f *feed) refuse(e wire.Intent, why string, whom viewer) {
	if o := whom.result(wire.EditResult{Player: e.Player, Seq: e.Seq, Block: f.standing(e.Pos), Refused: why}); o != nil {
		wakeUp(o.wake)
	}
}

// say sends a chat event to everybody who sees the chunk. It reports false, and drops the event, when too many wait for a region
// that cannot be reached.
func (f *feed) say(u wire.Utterance) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.out.Says) >= maxSays {
		return false
	}
	f.mu.out.Says = append(f.mu.out.Says, u)
	wakeUp(f.wake)
	return true
}
