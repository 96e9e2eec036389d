package actor

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/region/mods"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file has the scripts of mods handle the events that wait in a region, on its leader (docs/adr/0121). Nothing here
// need outlive the leader: the next one finds in the land what is not answered.

const (
	// grantEvery is how long an entry with a grant is awaited before it is proposed again.
	grantEvery = time.Second
	// scriptRetry is after what time events are handled again whose script could not be run, or whose mod has changed
	// too many blocks in this minute.
	scriptRetry = 2 * time.Second
	// answerTime is after what time events count as unanswered: their entry may be lost.
	answerTime = 30 * time.Second
	// entryEffects is how many effects an entry may have, if it has those of several events: so it is applied within a
	// few milliseconds, and far smaller than entries may be.
	entryEffects = 512
	// minLater is how many events are not looked through for those that do not wait any more.
	minLater = 64
)

// scripts hands events to scripts, and proposes what they return.
type scripts struct {
	land *land

	arrived  []nodemsg.Act // of these, all that concern the region have arrived there
	proposed []nodemsg.Act // of these, those that had not were proposed
	granted  time.Time     // when they were

	term   uint64      // of the leadership in which the following was begun; 0: it is to be begun
	round  int         // counts how often it was begun: results of earlier rounds do not count
	later  eventsByDue // events that are not given to their mod's queue yet, and some that do not wait any more
	full   int         // with so many, the latter are removed
	queues map[string]*scriptQueue
}

// scriptQueue has the events of one mod.
type scriptQueue struct {
	due     []world.Waiting // to be handled, in order
	rest    time.Time       // until when none are
	since   time.Time       // when those that are being handled were given to the script; zero if there are none
	handled map[world.EventAt]bool
	answers []world.Answer // to be proposed once the terrain of their chunks is known
	lines   *rate.Limiter  // of what is said to players
}

// eventsByDue is a heap.
type eventsByDue []world.Waiting

func (e eventsByDue) Len() int           { return len(e) }
func (e eventsByDue) Less(i, j int) bool { return e[i].Time < e[j].Time }
func (e eventsByDue) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *eventsByDue) Push(x any)        { *e = append(*e, x.(world.Waiting)) }

func (e *eventsByDue) Pop() any {
	last := len(*e) - 1
	w := (*e)[last]
	*e = (*e)[:last]
	return w
}

// grant proposes what operators have granted mods, as far as the region knows something else than this node, and that
// it forgets the mods that only the region knows. It reports false if not all of it can be proposed now: edits must wait
// then, since what comes later in the log is an event for the mods.
func (s *scripts) grant() bool {
	l := s.land
	if l.Orders == nil || !l.leading {
		return true
	}
	acts := l.Orders().ModActs() // of the same policy, this is the same list
	if len(acts) == 0 || same(acts, s.arrived) || same(acts, s.proposed) && time.Since(s.granted) < grantEvery {
		return true
	}
	missing := s.missing(acts)
	for _, entry := range missing {
		if err := l.group.Propose(entry); err != nil {
			l.edits.rejected(err)
			return false
		}
	}
	if s.proposed, s.granted = acts, time.Now(); len(missing) == 0 {
		s.arrived = acts
	}
	return true
}

// missing returns the entries after which the region knows of mods what the policy does.
func (s *scripts) missing(acts []nodemsg.Act) (entries [][]byte) {
	land, area := s.land.contents.land, s.land.info.Cell.Area()
	named := make(map[string]bool, len(acts))
	for _, act := range acts {
		g, removed, ok := mod.ReadCommand(act.Text)
		named[g.Name] = true
		has, known := land.Mod(g.Name)
		concerned := !removed && (g.Area == nil || area.Overlaps(g.Area.Area()))
		if !ok || known && world.SameCommand(has.Act, act) || !known && !concerned {
			continue
		}
		if entry, err := world.EncodeGrant(act); err == nil {
			entries = append(entries, entry)
		}
	}
	for _, has := range land.Mods() {
		if !named[has.Name] {
			entries = slices.Insert(entries, 0, world.EncodeForget(has.Name)) // first, so that there is room
		}
	}
	return entries
}

// same reports whether two lists, which are never changed, are the same.
func same(a, b []nodemsg.Act) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// reset has everything begun again from the land.
func (s *scripts) reset() { s.term, s.arrived, s.proposed = 0, nil, nil }

// tick passes events that are due to scripts, and proposes the answers.
func (s *scripts) tick() {
	l := s.land
	if l.RunScript == nil || !l.leading || l.paused || l.contents.land.Structure().RefusesEdits() {
		s.term = 0
		return
	}
	if s.term != l.edits.term {
		s.begin()
	}
	now := l.Now()
	for len(s.later) > 0 && s.later[0].Time <= now.UnixMilli() {
		w := heap.Pop(&s.later).(world.Waiting)
		s.queue(w.Mod).due = append(s.queue(w.Mod).due, w)
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		q := s.queues[name]
		switch {
		case !q.since.IsZero() && time.Since(q.since) > answerTime:
			s.term = 0
		case len(q.answers) > 0:
			s.propose(q)
		case q.since.IsZero() && len(q.due) > 0 && time.Now().After(q.rest):
			s.run(name, q)
		}
	}
}

// begin takes over what waits in the land.
func (s *scripts) begin() {
	s.term = s.land.edits.term
	s.round++
	s.later, s.queues = s.land.contents.land.Events(), make(map[string]*scriptQueue)
	s.prune()
}

// prune removes events that do not wait any more from those that are not due: timers that were replaced.
func (s *scripts) prune() {
	s.later = slices.DeleteFunc(s.later, func(w world.Waiting) bool {
		_, waits := s.land.contents.land.Event(w.EventAt)
		return !waits
	})
	heap.Init(&s.later)
	s.full = 2*len(s.later) + minLater
}

func (s *scripts) queue(name string) *scriptQueue {
	q := s.queues[name]
	if q == nil {
		q = &scriptQueue{handled: make(map[world.EventAt]bool), lines: rate.NewLimiter(rate.Every(sayEvery), sayBurst)}
		s.queues[name] = q
	}
	return q
}

// run passes the events of a mod to its script.
func (s *scripts) run(name string, q *scriptQueue) {
	l := s.land
	status, _ := l.contents.land.Mod(name)
	if !status.Acts() {
		q.due = nil // if it acts again, all begins anew
		return
	}
	var events []world.Waiting
	task := mods.Task{Region: l.info.ID, Name: name, Content: status.Content, Pinned: make(map[grid.ChunkPos][32]byte)}
	for len(q.due) > 0 && len(events) < mods.MaxEvents {
		w := q.due[0]
		q.due = q.due[1:]
		if _, waits := l.contents.land.Event(w.EventAt); waits {
			events = append(events, w)
			task.Inputs = append(task.Inputs, mod.Input{Event: w.Event, View: s.view(w.Pos, task.Pinned)})
		}
	}
	if len(events) == 0 {
		return
	}
	q.since = time.Now()
	handle, round := l.handle, s.round
	task.Done = func(r mods.Result) {
		handle.enqueue(func(l *land) {
			if l.mods.term != 0 && l.mods.round == round {
				l.mods.ran(name, q, events, r)
			}
		})
	}
	l.RunScript(task)
}

// view returns what a script sees around an event, and adds the bases of the chunks.
func (s *scripts) view(at grid.Pos, pinned map[grid.ChunkPos][32]byte) (v mod.View) {
	land := s.land.contents.land
	for place := range v {
		pos := mod.ViewPos(at, place)
		v[place] = mod.Unseen
		if pos.Y < 0 || pos.Y >= land.Height() || !s.land.info.Cell.Contains(pos.Chunk()) {
			continue
		}
		block, edited := land.Block(pos)
		if v[place] = block; edited {
			continue
		}
		v[place] = mods.Untouched
		if base, is := land.Base(pos.Chunk()); is {
			pinned[pos.Chunk()] = base
		}
	}
	return v
}

// ran takes what a script has returned.
func (s *scripts) ran(name string, q *scriptQueue, events []world.Waiting, r mods.Result) {
	l := s.land
	q.rest = time.Now().Add(r.Pause)
	if r.Err != nil {
		l.Logger.Debug("the script of a mod cannot be run", "region", l.info.ID, "mod", name, "error", r.Err)
		q.due, q.since, q.rest = append(events, q.due...), time.Time{}, time.Now().Add(scriptRetry)
		return
	}
	for i, w := range events {
		answer := world.Answer{EventAt: w.EventAt}
		if err := s.check(w, r.Answers[i]); err == nil {
			answer.Effects = r.Answers[i].Effects
		} else {
			l.Logger.Debug("an event of a mod has no effects", "region", l.info.ID, "mod", name, "at", w.Pos.String(), "error", err)
		}
		q.handled[w.EventAt] = true
		q.answers = append(q.answers, answer)
	}
	s.propose(q)
	if r.Suspend != "" {
		l.Logger.Warn("a mod is suspended in a region", "region", l.info.ID, "cell", l.info.Cell.String(), "mod", name, "reason", r.Suspend)
		if err := l.group.Propose(world.EncodeSuspend(name, r.Suspend)); err != nil {
			l.edits.rejected(err)
		}
	}
}

// check returns why the effects of an event must not be proposed. Some of that only the leader judges; what members
// judge, too, would be Forbidden, or could not even be decoded, with the effects of other events.
func (s *scripts) check(w world.Waiting, a mod.Answer) error {
	if a.Err != nil {
		return a.Err
	}
	status, _ := s.land.contents.land.Mod(w.Mod)
	if err := status.Check(a.Effects); err != nil {
		return err
	}
	for _, e := range a.Effects {
		if e.Set == nil || s.land.Orders == nil {
			continue
		}
		if why := s.land.Orders().RefuseMod(w.Player, e.Set.Pos, s.land.Now()); why != "" {
			return refusedError(why)
		}
	}
	return mod.CheckProposal(a.Effects)
}

// refusedError is a code of wire.
type refusedError string

func (e refusedError) Error() string { return "refused: " + string(e) }

// propose proposes answers of a mod, as many as an entry may have, unless the terrain of a chunk is not known yet.
func (s *scripts) propose(q *scriptQueue) {
	l := s.land
	entry := world.Answers{Time: max(1, l.Now().UnixMilli())}
	pinned, ready := make(map[grid.ChunkPos]bool), true
	effects := 0
	for i := range q.answers {
		if effects += len(q.answers[i].Effects); i > 0 && effects > entryEffects {
			break
		}
		entry.Answers = q.answers[:i+1]
		for _, e := range q.answers[i].Effects {
			at, changes := e.Place()
			pos := at.Chunk()
			if !changes || pinned[pos] || l.contents.land.Pinned(pos) || !l.info.Cell.Contains(pos) {
				continue
			}
			pinned[pos] = true
			if base := l.edits.terrainHash(pos); base != nil {
				entry.Pins = append(entry.Pins, world.Pin{Chunk: pos, Base: *base})
			} else {
				ready = false
			}
		}
	}
	if !ready {
		return
	}
	if err := l.group.Propose(entry.Encode()); err != nil {
		l.edits.rejected(err)
		return
	}
	q.answers = q.answers[len(entry.Answers):]
}

// suspended returns the mods that are suspended in the region.
func (s *scripts) suspended() []world.ModStatus {
	return slices.DeleteFunc(s.land.contents.land.Mods(), func(m world.ModStatus) bool { return m.Suspended == "" })
}

const (
	// sayEvery and sayBurst are how many lines a mod may tell players of a region: one in sayEvery, and so many at once.
	// What is more is not shown.
	sayEvery = 100 * time.Millisecond
	sayBurst = 32
)

// say shows a player in the region what a mod tells them.
func (s *scripts) say(said world.Said) {
	gateway := s.land.contents.crowd.Gateway(said.Player)
	if s.land.Say == nil || gateway == "" || !s.queue(said.Mod).lines.AllowN(s.land.Now(), 1) {
		return
	}
	s.land.Say(gateway, nodemsg.PrivateLine{From: mod.Author(said.Mod), Name: said.Mod, To: said.Player, Text: said.Text})
}

// applied takes over what an entry has done.
func (s *scripts) applied(out world.Outcome) {
	if out.Mods {
		s.term, s.arrived = 0, nil
	}
	if s.term == 0 {
		return
	}
	for _, said := range out.Said {
		s.say(said)
	}
	for _, w := range out.Waiting {
		heap.Push(&s.later, w)
	}
	if len(s.later) > s.full {
		s.prune()
	}
	for _, a := range out.Answered {
		for _, q := range s.queues {
			if !q.handled[a.EventAt] {
				continue
			}
			if delete(q.handled, a.EventAt); len(q.handled) == 0 {
				q.since = time.Time{}
			}
			event, waits := s.land.contents.land.Event(a.EventAt)
			if !waits {
				continue
			}
			if a.Result == world.Exceeded {
				q.rest = time.Now().Add(scriptRetry)
			}
			heap.Push(&s.later, world.Waiting{EventAt: a.EventAt, Event: event})
		}
	}
}
