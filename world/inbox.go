package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file keeps the events that wait for mods: a row each, with the chunk where they happened, until they are
// answered. So they split, merge and fail over with the land. A timer is an event that is not due yet.

// inbox has the events that wait in a chunk.
type inbox struct {
	events map[uint64]*waiting
	timers map[timerOf]uint64 // the timers among them
}

type waiting struct {
	event mod.Event
	tries int // answers that changed nothing, because something else was there
}

// timerOf identifies the timer of a mod at a block.
type timerOf struct {
	mod string
	at  chunk.Index
}

// EventAt identifies an event that waits in a region.
type EventAt struct {
	Chunk grid.ChunkPos
	ID    uint64 // never used again
}

func (e EventAt) compare(f EventAt) int {
	return cmp.Or(e.Chunk.Compare(f.Chunk), cmp.Compare(e.ID, f.ID))
}

// Waiting is an event that waits.
type Waiting struct {
	EventAt
	mod.Event
}

// all visits the events by their ids. The inbox may be nil.
func (b *inbox) all() iter.Seq2[uint64, *waiting] {
	return func(yield func(uint64, *waiting) bool) {
		if b == nil {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(b.events)) {
			if !yield(id, b.events[id]) {
				return
			}
		}
	}
}

func (b *inbox) get(id uint64) *waiting {
	if b == nil {
		return nil
	}
	return b.events[id]
}

func (b *inbox) put(id uint64, w *waiting) {
	b.events[id] = w
	if w.event.Kind == mod.Timer {
		b.timers[timerOf{w.event.Mod, chunk.At(w.event.Pos)}] = id
	}
}

// timer returns the timer of a mod at a block, if there is one. The inbox may be nil.
func (b *inbox) timer(name string, at chunk.Index) (id uint64, is bool) {
	if b == nil {
		return 0, false
	}
	id, is = b.timers[timerOf{name, at}]
	return id, is
}

func newInbox() *inbox {
	return &inbox{events: make(map[uint64]*waiting), timers: make(map[timerOf]uint64)}
}

// Events returns the events that wait in the region, the oldest first; of timers that are due first.
func (l *Land) Events() []Waiting {
	var all []Waiting
	for pos, g := range l.pinned {
		for id, w := range g.inbox.all() {
			all = append(all, Waiting{EventAt{pos, id}, w.event})
		}
	}
	slices.SortFunc(all, Waiting.compare)
	return all
}

func (w Waiting) compare(v Waiting) int {
	return cmp.Or(cmp.Compare(w.Time, v.Time), w.EventAt.compare(v.EventAt))
}

// eventID returns the id of an event that the entry at the index has caused: unique for ever, as that of a child, and
// the same on every replica.
func eventID(region, index uint64, ordinal int) uint64 {
	b := binary.BigEndian.AppendUint64([]byte("event\x00"), region)
	b = binary.BigEndian.AppendUint64(b, index)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(ordinal))) //nolint:gosec // not negative
	return binary.BigEndian.Uint64(sum[:8])
}

// happened adds an event for each mod that it concerns.
func (l *Land) happened(index uint64, g *pinnedChunk, e mod.Event, out *Outcome) {
	for _, name := range slices.Sorted(maps.Keys(l.mods)) {
		m := l.mods[name]
		if !m.acts() || !m.grant.Concerns(e.Kind, e.Pos, e.Block) {
			continue
		}
		if m.events >= mod.MaxEvents {
			l.suspend(index, name, SuspendedEvents)
			out.Mods = true
			continue
		}
		e.Mod = name
		l.addEvent(index, g, e, out)
	}
}

// happenedBy adds the events of a player's edit. Before is what was there, if had is set: else it was never edited.
func (l *Land) happenedBy(index uint64, g *pinnedChunk, e *nodemsg.Intent, before chunk.Block, had bool, out *Outcome) {
	event := mod.Event{Kind: mod.Place, Time: out.Time, Pos: e.Pos, Block: e.Block, Player: e.Player}
	switch {
	case e.Block == chunk.Air:
		if event.Kind, event.Block = mod.Break, chunk.Air; had {
			event.Block = before
		}
	case had && before != e.Block && before.Base() == e.Block.Base() && e.Block.Opens():
		event.Kind = mod.Use
	}
	l.happened(index, g, event, out)
}

func (l *Land) addEvent(index uint64, g *pinnedChunk, e mod.Event, out *Outcome) {
	at := EventAt{e.Pos.Chunk(), eventID(l.id, index, len(out.Waiting))}
	l.putEvent(index, g, at, &waiting{event: e})
	out.Waiting = append(out.Waiting, Waiting{at, e})
}

// putEvent stores an event.
func (l *Land) putEvent(index uint64, g *pinnedChunk, at EventAt, w *waiting) {
	part, key := Part{Chunk: at.Chunk}, l.eventKey(at)
	l.tracked.rowChanges(index, part, key, nil, false)
	if g.inbox == nil {
		g.inbox = newInbox()
	}
	g.inbox.put(at.ID, w)
	l.countEvent(w, 1)
	l.tracked.rowChanges(index, part, key, w.encode(), true)
	l.dirtyRows.events[at] = struct{}{}
}

// dropEvent removes an event that is there.
func (l *Land) dropEvent(index uint64, g *pinnedChunk, at EventAt) {
	w := g.inbox.events[at.ID]
	l.tracked.rowChanges(index, Part{Chunk: at.Chunk}, l.eventKey(at), w.encode(), false)
	delete(g.inbox.events, at.ID)
	if w.event.Kind == mod.Timer {
		delete(g.inbox.timers, timerOf{w.event.Mod, chunk.At(w.event.Pos)})
	}
	if len(g.inbox.events) == 0 {
		g.inbox = nil
	}
	l.countEvent(w, -1)
	l.dirtyRows.events[at] = struct{}{}
}

// dropEvents removes the events that mods do not keep.
func (l *Land) dropEvents(index uint64) {
	for pos, g := range l.pinned { // each by itself: the order is nothing that members could differ in
		for id, w := range g.inbox.all() {
			if !l.mods[w.event.Mod].keeps(w.event.Kind) {
				l.dropEvent(index, g, EventAt{pos, id})
			}
		}
	}
}

// encode returns the row of an event: its kind, a byte; the mod's name and the data, each with its length as a uvarint;
// time, index of the block in the chunk, block and tries as uvarints; the player, 16 bytes.
func (w *waiting) encode() []byte {
	e := &w.event
	b := []byte{byte(slices.Index(mod.Kinds, e.Kind))} //nolint:gosec // few
	b = appendText(appendText(b, e.Mod), e.Data)
	for _, v := range [...]uint64{uint64(e.Time), uint64(chunk.At(e.Pos)), uint64(e.Block), uint64(w.tries)} { //nolint:gosec // not negative
		b = binary.AppendUvarint(b, v)
	}
	return append(b, e.Player[:]...)
}

func decodeWaiting(pos grid.ChunkPos, height int32, row []byte) (*waiting, bool) {
	r := reader{data: row}
	w := new(waiting)
	e := &w.event
	kind := int(r.bytes(1)[0])
	e.Mod, e.Data, e.Time = r.text(mod.MaxName), r.text(mod.MaxData), r.int64()
	at, block, tries := r.uvarint(), r.uvarint(), r.uvarint()
	copy(e.Player[:], r.bytes(len(e.Player)))
	if r.bad || len(r.data) > 0 || kind >= len(mod.Kinds) || at >= uint64(height)*grid.ChunkSize*grid.ChunkSize || block > math.MaxUint16 || tries > maxTries { //nolint:gosec // the height is positive
		return nil, false
	}
	e.Kind, e.Pos, e.Block, w.tries = mod.Kinds[kind], chunk.Index(at).Pos(pos), chunk.Block(block), int(tries)
	return w, true
}

// Event returns an event that waits. It reports false if it does not any more.
func (l *Land) Event(at EventAt) (mod.Event, bool) {
	if g := l.pinned[at.Chunk]; g != nil {
		if w := g.inbox.get(at.ID); w != nil {
			return w.event, true
		}
	}
	return mod.Event{}, false
}
