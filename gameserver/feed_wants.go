package gameserver

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is what viewers want of a region. Each method changes what the feed knows, and while there is a
// link also what it sends next. A message's lists take effect in the order of wire.ToRegion, so what one
// call takes back of an earlier one is taken out of the message.

const (
	// maxIntents bounds the edits under way, well below wire.MaxBodies; beyond it they are refused.
	maxIntents = 4096
	// maxSays bounds the chat lines that wait for a region.
	maxSays = 256
)

// watch brings a chunk into a viewer's view. It reports false when the feed is closed.
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
			// Also if it was watched until just now: the region then tells its whole state again.
			f.mu.out.Unwatch = slices.DeleteFunc(f.mu.out.Unwatch, func(p grid.ChunkPos) bool { return p == pos })
			f.mu.out.Watch = append(f.mu.out.Watch, pos)
			wakeUp(f.wake)
		}
	}
	if !v.hasUnserved() {
		v.order = f.g.looks.Add(1) // who waits for it already does not wait longer
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

// unwatch takes a chunk out of a viewer's view. He is told nothing more about it.
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

// enter brings a viewer's body into the region. It reports false when the feed is closed.
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

// leave takes a viewer's body out.
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

// unsay takes a player's coming and going out of the next message. The lock is held.
func (f *feed) unsay(id player.ID) {
	f.mu.out.Enter = slices.DeleteFunc(f.mu.out.Enter, func(b wire.Body) bool { return b.Player == id })
	f.mu.out.Leave = slices.DeleteFunc(f.mu.out.Leave, func(l player.ID) bool { return l == id })
}

// move takes a viewer's body to its newest pose. It tells whether the caller has to see that the region is told: not if that takes the
// player to be there anyway.
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

// halt ends a viewer's body's course: it has not got where it would have gone.
func (f *feed) halt(id player.ID, whose viewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.mu.bodies[id]; b != nil && b.whose == whose && b.course.way.Goes() {
		f.stand(b)
	}
}

// hasten sends what there is to send without waiting for more.
func (f *feed) hasten() {
	if !f.push() {
		wakeUp(f.wake)
		wakeUp(f.rush)
	}
}

// stand has the region told that a body stands where it is. The lock is held, as below.
func (f *feed) stand(b *body) {
	b.course.stand(f.g.now())
	f.place(b, false)
	wakeUp(f.wake)
}

// straight reports whether the region is told of courses where the body is. It is not of original clients' players: to
// other original clients their moves are relayed as they were sent.
func (f *feed) straight(b *body) bool {
	if _, original := b.whose.(*classic); original {
		return false
	}
	v := f.mu.views[world.ChunkOf(b.Pose)]
	return !f.g.swarm.on() && (v == nil || len(v.bodies) <= courseCrowd)
}

// place puts a body's newest pose, and how it goes on, into the next message.
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

// edit asks the region for a block change, and asks again over every new link until it is answered. The
// viewer gets one result, which says that the edit is committed only if the region said so.
func (f *feed) edit(e wire.Intent, whom viewer) {
	if f.ask(e, whom) {
		f.hasten()
	}
}

// ask takes an edit in, and tells whether the region has to be told now. While others are under way the sender
// is told so instead, and takes all that comes meanwhile at once.
func (f *feed) ask(e wire.Intent, whom viewer) (alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.mu.intents, func(i intent) bool { return i.Player == e.Player && i.Seq == e.Seq })
	switch {
	case i >= 0 && f.mu.intents[i].Intent == e:
		f.mu.intents[i].whom = whom // asked again, perhaps by the player's next session: that one is told
	case i >= 0:
		// Another edit of the same number is under way. The region would take this one for that one.
		f.refuse(e, wire.RefusedStale, whom)
	case len(f.mu.intents) >= maxIntents:
		f.refuse(e, wire.RefusedUnavailable, whom)
	default:
		f.mu.intents = append(f.mu.intents, intent{e, whom})
		if !f.mu.linked {
			return false
		}
		if b := f.mu.bodies[e.Player]; b != nil && b.course.told != b.Pose {
			f.place(b, f.straight(b)) // who builds is seen where he is
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

// say tells everybody who sees the chunk. It reports false, and drops the line, when too many wait for a
// region that cannot be reached.
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
