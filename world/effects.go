package world

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file applies what mods do about events. The effects of one event take place all, or none of them; and once: an
// answer to an event that does not wait any more is void. So a leader that was replaced cannot repeat what the next one
// has done, and the next one finds what was not answered.

// Answers is a log entry with the effects of events.
type Answers struct {
	Time    int64 // as Batch.Time
	Pins    []Pin // of chunks in which blocks are changed, or timers set
	Answers []Answer
}

// Answer has the effects of one event.
type Answer struct {
	EventAt
	Effects []mod.Effect
}

// AnswerResult is what became of an answer.
type AnswerResult int

// The results of answers.
const (
	Void      AnswerResult = iota // the event does not wait, is a timer that is not due, or its mod does not act: nothing has changed
	Done                          // all effects have taken place
	Disturbed                     // none has, since something else was there. The event waits on, to be handled again
	GivenUp                       // as Disturbed, but too often: the event does not wait any more
	Exceeded                      // none has: the mod changes too many blocks in this minute. The event waits on
	Forbidden                     // none has: the mod may not do that, or there is no such place in the region. The event does not wait any more
)

// Answered is what became of the answer to an event.
type Answered struct {
	EventAt
	Mod    string // empty if the result is Void
	Result AnswerResult
}

// Said is a message of a mod to a player.
type Said struct {
	Mod string
	mod.Message
}

// maxTries is how many answers to an event may be Disturbed; with one more it is GivenUp.
const maxTries = 2

// rateTime is the time for which a grant has its rate, in milliseconds.
const rateTime = 60_000

// Kinds of effects in an entry.
const (
	effectSet     = 0 // X, Y, Z as varints; from and to as uvarints
	effectTimer   = 1 // X, Y, Z as varints; after as a uvarint; the data, with its length as a uvarint
	effectMessage = 2 // the player, 16 bytes; the text, with its length as a uvarint
)

// Encode returns the bytes of the entry: tag, time (uvarint), pins as in a Batch, answers (count; the chunk's X and Z as
// varints, the event's id u64 big-endian, effects: count; kind, and what follows it).
func (a Answers) Encode() []byte {
	b := appendPins(binary.AppendUvarint([]byte{tagEffects}, uint64(a.Time)), a.Pins) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(len(a.Answers)))
	for i := range a.Answers {
		one := &a.Answers[i]
		b = binary.AppendVarint(binary.AppendVarint(b, int64(one.Chunk.X)), int64(one.Chunk.Z))
		b = binary.BigEndian.AppendUint64(b, one.ID)
		b = binary.AppendUvarint(b, uint64(len(one.Effects)))
		for _, e := range one.Effects {
			b = appendEffect(b, e)
		}
	}
	return b
}

func appendEffect(b []byte, e mod.Effect) []byte {
	switch {
	case e.Set != nil:
		b = appendPos(append(b, effectSet), e.Set.Pos)
		return binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.Set.From)), uint64(e.Set.To))
	case e.Timer != nil:
		b = appendPos(append(b, effectTimer), e.Timer.Pos)
		return appendText(binary.AppendUvarint(b, uint64(max(e.Timer.After, 0))), e.Timer.Data)
	default:
		b = append(append(b, effectMessage), e.Message.Player[:]...)
		return appendText(b, e.Message.Text)
	}
}

func decodeAnswers(entry []byte) (a Answers, err error) {
	r := reader{data: entry[1:]}
	if a.Time, a.Pins = r.time(), r.pins(); a.Time > math.MaxInt64-mod.MaxDelay { // a timer would be due at no time
		r.fail()
	}
	for range r.count(11) {
		one := Answer{EventAt: EventAt{Chunk: grid.ChunkPos{X: r.int32(), Z: r.int32()}, ID: binary.BigEndian.Uint64(r.bytes(8))}}
		n := r.count(5)
		if n > mod.MaxEffects {
			r.fail()
			break
		}
		for range n {
			one.Effects = append(one.Effects, r.effect())
		}
		a.Answers = append(a.Answers, one)
	}
	if r.bad || len(r.data) > 0 {
		return Answers{}, fmt.Errorf("%w: effects", errBatch)
	}
	return a, nil
}

func (r *reader) effect() (e mod.Effect) {
	switch r.bytes(1)[0] {
	case effectSet:
		e.Set = &mod.Set{Pos: r.pos(), From: r.block(), To: r.block()}
	case effectTimer:
		e.Timer = &mod.SetTimer{Pos: r.pos(), After: r.int64(), Data: r.text(mod.MaxData)}
	case effectMessage:
		e.Message = new(mod.Message)
		copy(e.Message.Player[:], r.bytes(len(e.Message.Player)))
		e.Message.Text = r.text(mod.MaxMessage)
	default:
		r.fail()
	}
	return e
}

func appendPos(b []byte, p grid.Pos) []byte {
	return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, int64(p.X)), int64(p.Y)), int64(p.Z))
}

func (r *reader) pos() grid.Pos { return grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()} }

func (r *reader) block() chunk.Block {
	block := r.uvarint()
	if block > math.MaxUint16 {
		r.fail()
	}
	return chunk.Block(block)
}

// time reads the time of an entry.
func (r *reader) time() int64 {
	t := r.int64()
	if t == 0 {
		r.fail()
	}
	return t
}

func (l *Land) applyAnswers(index uint64, entry []byte) (Outcome, error) {
	a, err := decodeAnswers(entry)
	if err != nil || l.structure.RefusesEdits() {
		return Outcome{}, err
	}
	out := Outcome{Time: a.Time}
	l.begin(index, a.Pins, &out)
	for _, one := range a.Answers {
		name, result := l.answer(index, one, &out)
		out.Answered = append(out.Answered, Answered{one.EventAt, name, result})
	}
	return out, nil
}

// answer has the effects of an event take place, if they may.
func (l *Land) answer(index uint64, a Answer, out *Outcome) (name string, result AnswerResult) {
	var w *waiting
	g := l.pinned[a.Chunk]
	if g != nil {
		w = g.inbox.get(a.ID)
	}
	if w == nil {
		return "", Void
	}
	name = w.event.Mod
	m := l.mods[name]
	if !m.acts() || w.event.Kind == mod.Timer && w.event.Time > out.Time {
		return "", Void
	}
	blocks := mod.CountBlocks(a.Effects)
	switch {
	case m.grant.Check(a.Effects) != nil, !l.reaches(a.Effects), blocks > m.grant.Rate:
		l.dropEvent(index, g, a.EventAt)
		return name, Forbidden
	case l.tooManyTimers(m, w, a.Effects):
		l.dropEvent(index, g, a.EventAt)
		l.suspend(index, name, SuspendedTimers)
		out.Mods = true
		return name, Forbidden
	case !l.asExpected(a.Effects):
		l.dropEvent(index, g, a.EventAt)
		if w.tries == maxTries {
			return name, GivenUp
		}
		l.putEvent(index, g, a.EventAt, &waiting{w.event, w.tries + 1})
		return name, Disturbed
	case blocks > 0 && !l.use(index, name, blocks, out.Time):
		return name, Exceeded
	}
	l.dropEvent(index, g, a.EventAt)
	for _, e := range a.Effects {
		l.effect(index, w.event, e, out)
	}
	return name, Done
}

// reaches reports whether the effects are within the region, in chunks that are pinned and have room.
func (l *Land) reaches(effects []mod.Effect) bool {
	added := make(map[*pinnedChunk]int)
	for _, e := range effects {
		at, changes := e.Place()
		if !changes {
			continue
		}
		g := l.pinned[at.Chunk()]
		if g == nil || at.Y < 0 || at.Y >= l.height {
			return false
		}
		if e.Set == nil {
			continue
		}
		if _, edited := g.edits.Get(chunk.At(at)); !edited {
			added[g]++
		}
		if added[g] > 0 && g.edits.Len()+added[g] > MaxEdits {
			return false
		}
	}
	return true
}

// asExpected reports whether all blocks are what the mod has found. Of what was never edited, the land does not know
// what it is: the leader does, which has passed it to the mod.
func (l *Land) asExpected(effects []mod.Effect) bool {
	for _, e := range effects {
		if s := e.Set; s != nil {
			there, edited := l.pinned[s.Pos.Chunk()].edits.Get(chunk.At(s.Pos))
			if edited && there != s.From {
				return false
			}
		}
	}
	return true
}

// tooManyTimers reports whether the mod would have too many timers with the effects of an event.
func (l *Land) tooManyTimers(m *modState, of *waiting, effects []mod.Effect) bool {
	more := 0
	if of.event.Kind == mod.Timer {
		more-- // it is over
	}
	set := make(map[grid.Pos]bool)
	for _, e := range effects {
		if e.Timer == nil {
			continue
		}
		before, changed := set[e.Timer.Pos]
		if !changed {
			_, before = l.pinned[e.Timer.Pos.Chunk()].inbox.timer(m.grant.Name, chunk.At(e.Timer.Pos))
			before = before && (of.event.Kind != mod.Timer || of.event.Pos != e.Timer.Pos)
		}
		after := e.Timer.After > 0
		if set[e.Timer.Pos] = after; after && !before {
			more++
		} else if before && !after {
			more--
		}
	}
	return more > 0 && m.timers+more > mod.MaxTimers
}

// use counts blocks that a mod changes. It reports false, and counts nothing, if they are too many in this minute.
func (l *Land) use(index uint64, name string, blocks int, now int64) bool {
	m := l.mods[name]
	from, used := m.from, m.used
	if now < from || now-from >= rateTime { // a leader that lied may have given a time to come
		from, used = now, 0
	}
	if used+blocks > m.grant.Rate {
		return false
	}
	l.changeMod(index, name, func(m *modState) { m.from, m.used = from, used+blocks })
	return true
}

func (l *Land) effect(index uint64, of mod.Event, e mod.Effect, out *Outcome) {
	name := of.Mod
	switch {
	case e.Set != nil:
		to := Change{Chunk: e.Set.Pos.Chunk(), BlockAt: nodemsg.BlockAt{At: chunk.At(e.Set.Pos), Block: e.Set.To}}
		l.setBlock(index, l.pinned[to.Chunk], to, mod.Author(name), "", out.Time, out)
	case e.Timer != nil:
		g := l.pinned[e.Timer.Pos.Chunk()]
		if id, is := g.inbox.timer(name, chunk.At(e.Timer.Pos)); is {
			l.dropEvent(index, g, EventAt{e.Timer.Pos.Chunk(), id})
		}
		if e.Timer.After > 0 {
			l.addEvent(index, g, mod.Event{Mod: name, Kind: mod.Timer, Time: out.Time + e.Timer.After, Pos: e.Timer.Pos, Player: of.Player, Data: e.Timer.Data}, out)
		}
	case e.Message != nil:
		out.Said = append(out.Said, Said{name, *e.Message})
	}
}
