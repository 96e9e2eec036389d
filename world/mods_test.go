package world

import (
	"crypto/ed25519"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const modTime = 1_700_000_000_000 // of the first entry

// modAct returns an operator's command.
func modAct(seq uint64, text string) nodemsg.Act {
	return nodemsg.Act{At: 1, Key: make([]byte, ed25519.PublicKeySize), Seq: seq, Operator: true, Text: text, Signature: make([]byte, ed25519.SignatureSize)}
}

func grantText(changes string) string {
	return strings.TrimSpace("grant lamps " + mod.HashOf(nil).String() + " " + changes)
}

// modLand is a land with its log.
type modLand struct {
	*Land
	t     interface{ Fatal(...any) }
	index uint64
	now   int64
}

// newModLand returns a land that believes all players and operators.
func newModLand(t interface{ Fatal(...any) }) *modLand {
	l := &modLand{Land: newTestLand(), t: t, now: modTime}
	l.Proofs = believing
	return l
}

var believing = Proofs{
	Signed: func(all []nodemsg.Intent) []bool { return make([]bool, len(all)) }, SignedAct: func(nodemsg.Act) bool { return true },
}

func (l *modLand) log(entry []byte) Outcome {
	l.index++
	out, err := l.Apply(l.index, entry)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *modLand) grant(seq uint64, changes string) {
	entry, err := EncodeGrant(modAct(seq, grantText(changes)))
	if err != nil {
		l.t.Fatal(err)
	}
	l.log(entry)
}

// place has a guest put a block, or take one away.
func (l *modLand) place(at grid.Pos, block chunk.Block) Outcome {
	l.now++
	return l.log(Batch{Time: l.now, Pins: []Pin{{Chunk: at.Chunk()}}, Edits: []nodemsg.Intent{guest(1, uint64(l.now), at, block)}}.Encode())
}

func (l *modLand) answer(effects []mod.Effect, to ...EventAt) Outcome {
	l.now++
	a := Answers{Time: l.now}
	for _, one := range to {
		a.Answers = append(a.Answers, Answer{one, effects})
	}
	return l.log(a.Encode())
}

func (l *modLand) status() ModStatus {
	for _, s := range l.Mods() {
		return s
	}
	return ModStatus{}
}

func (l *modLand) block(at grid.Pos) chunk.Block {
	g := l.pinned[at.Chunk()]
	if g == nil {
		return chunk.Air
	}
	block, _ := g.edits.Get(chunk.At(at))
	return block
}

func set(at grid.Pos, from, to chunk.Block) mod.Effect {
	return mod.Effect{Set: &mod.Set{Pos: at, From: from, To: to}}
}

func timer(at grid.Pos, after int64) mod.Effect {
	return mod.Effect{Timer: &mod.SetTimer{Pos: at, After: after, Data: "on"}}
}

var lampAt = grid.Pos{X: testCell.Area().MinX*grid.ChunkSize + 3, Y: 5, Z: testCell.Area().MinZ*grid.ChunkSize + 3}

func above(at grid.Pos, by int32) grid.Pos { return grid.Pos{X: at.X, Y: at.Y + by, Z: at.Z} }

// What players do becomes events of the mods that it concerns, and of no others.
func TestEventsOfEdits(t *testing.T) {
	l := newModLand(t)
	if out := l.place(lampAt, chunk.Lamp); len(out.Waiting) > 0 {
		t.Errorf("without a mod there are events %v", out.Waiting)
	}
	l.grant(1, "events=place,break,use blocks=lamp,pine_door area=-10000,0,-10000:10000,6,10000")
	door, open := chunk.PineDoor, chunk.PineDoor.Used()
	for _, c := range []struct {
		what  string
		do    func() Outcome
		kind  mod.Kind
		block chunk.Block
	}{
		{"a lamp is taken away", func() Outcome { return l.place(lampAt, chunk.Air) }, mod.Break, chunk.Lamp},
		{"a lamp is put", func() Outcome { return l.place(lampAt, chunk.Lamp) }, mod.Place, chunk.Lamp},
		{"a stone is put in its place", func() Outcome { return l.place(lampAt, chunk.Stone) }, "", 0},
		{"a lamp is put outside of the area", func() Outcome { return l.place(above(lampAt, 2), chunk.Lamp) }, "", 0},
		{"what was never edited is taken away", func() Outcome { return l.place(above(lampAt, 1), chunk.Air) }, "", 0},
		{"a door is put", func() Outcome { return l.place(lampAt, door) }, mod.Place, door},
		{"a door is opened", func() Outcome { return l.place(lampAt, open) }, mod.Use, open},
	} {
		out := c.do()
		if c.kind == "" {
			if len(out.Waiting) > 0 {
				t.Errorf("%s: events %v", c.what, out.Waiting)
			}
			continue
		}
		want := mod.Event{Mod: "lamps", Kind: c.kind, Time: l.now, Pos: lampAt, Block: c.block, Player: player.GuestID("guest1")}
		if len(out.Waiting) != 1 || out.Waiting[0].Event != want {
			t.Errorf("%s: %v, want %v", c.what, out.Waiting, want)
		}
	}
	if all := l.Events(); len(all) != 4 || l.status().Events != 4 || all[0].Kind != mod.Break {
		t.Errorf("%d events wait, counted %d: %v", len(all), l.status().Events, all)
	}
}

// An edit that is repeated, or refused, is no event.
func TestRepeatedEditIsOneEvent(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=all")
	batch := Batch{Time: l.now, Pins: []Pin{{Chunk: lampAt.Chunk()}}, Edits: []nodemsg.Intent{guest(1, 7, lampAt, chunk.Lamp)}}
	if out := l.log(batch.Encode()); len(out.Waiting) != 1 {
		t.Fatalf("events %v", out.Waiting)
	}
	if out := l.log(batch.Encode()); len(out.Waiting) != 0 {
		t.Errorf("the same edit again is %v", out.Waiting)
	}
}

func TestAnswers(t *testing.T) {
	var l *modLand
	var event EventAt
	begin := func(grant string) {
		l = newModLand(t)
		l.grant(1, grant)
		event = l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
	}
	up := above(lampAt, 1)
	const usual = "events=place blocks=lamp rate=3"
	for _, c := range []struct {
		name    string
		grant   string
		effects []mod.Effect
		result  AnswerResult
		waits   bool // the event, afterwards
	}{
		{"nothing", usual, nil, Done, false},
		{"what was never edited", usual, []mod.Effect{set(up, chunk.Air, chunk.Lamp)}, Done, false},
		{"what is expected", usual, []mod.Effect{set(lampAt, chunk.Lamp, chunk.Air), timer(lampAt, 5)}, Done, false},
		{"something else is there", usual, []mod.Effect{set(up, chunk.Air, chunk.Lamp), set(lampAt, chunk.Air, chunk.Lamp)}, Disturbed, true},
		{"another kind of block", usual, []mod.Effect{set(up, chunk.Air, chunk.Lamp), set(lampAt, chunk.Lamp, chunk.Stone)}, Forbidden, false},
		{"another region", usual, []mod.Effect{set(up, chunk.Air, chunk.Lamp), set(grid.Pos{X: 9999, Y: 3}, chunk.Air, chunk.Lamp)}, Forbidden, false},
		{"a chunk that is not pinned", usual, []mod.Effect{set(grid.Pos{X: lampAt.X + 32, Y: 3, Z: lampAt.Z}, chunk.Air, chunk.Lamp)}, Forbidden, false},
		{"above the world", usual, []mod.Effect{set(above(lampAt, testHeight), chunk.Air, chunk.Lamp)}, Forbidden, false},
		{"outside of the area", usual + " area=-10000,0,-10000:10000,5,10000", []mod.Effect{set(up, chunk.Air, chunk.Lamp)}, Forbidden, false},
		{"more than its rate", "events=place blocks=lamp rate=1", []mod.Effect{set(up, chunk.Air, chunk.Lamp), set(above(up, 1), chunk.Air, chunk.Lamp)}, Forbidden, false},
	} {
		begin(c.grant)
		before := slices.Clone(l.rows())
		out := l.answer(c.effects, event)
		if len(out.Answered) != 1 || out.Answered[0] != (Answered{event, "lamps", c.result}) {
			t.Errorf("%s: %v, want %v", c.name, out.Answered, c.result)
		}
		if waits := len(l.Events()) > 0 && l.Events()[0].EventAt == event; waits != c.waits {
			t.Errorf("%s: the event waits: %t", c.name, waits)
		}
		if c.result != Done && len(out.Changes) > 0 || c.result != Done && blocksOf(before) != blocksOf(l.rows()) {
			t.Errorf("%s: some effects took place: %v", c.name, out.Changes)
		}
		if again := l.answer(c.effects, event); c.waits == false && again.Answered[0] != (Answered{event, "", Void}) {
			t.Errorf("%s: answered again, it is %v", c.name, again.Answered)
		}
	}

	begin(usual)
	out := l.answer([]mod.Effect{set(up, chunk.Air, chunk.Lamp), {Message: &mod.Message{Player: player.ID{1}, Text: "hello"}}, timer(up, 5)}, event)
	if l.block(up) != chunk.Lamp || len(out.Changes) != 1 || !reflect.DeepEqual(out.Said, []Said{{"lamps", mod.Message{Player: player.ID{1}, Text: "hello"}}}) {
		t.Errorf("effects %+v", out)
	}
	var last history.Record
	for _, segment := range l.History(up.Chunk(), 0) {
		if err := history.Decode(segment, func(r history.Record) { last = r }); err != nil {
			t.Fatal(err)
		}
	}
	if last.Player != mod.Author("lamps") || last.At != chunk.At(up) || last.New != chunk.Lamp {
		t.Errorf("the last record of the history is %+v", last)
	}
}

func blocksOf(rows []kv.Write) (all string) {
	for _, row := range rows {
		if row.Key[8] == keyEdit {
			all += fmt.Sprint(row)
		}
	}
	return all
}

// An event is handled again a few times if something else is there, not for ever.
func TestDisturbedAnswers(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp")
	event := l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
	for range maxTries {
		if out := l.answer([]mod.Effect{set(lampAt, chunk.Air, chunk.Lamp)}, event); out.Answered[0].Result != Disturbed {
			t.Fatalf("%v", out.Answered)
		}
	}
	if out := l.answer([]mod.Effect{set(lampAt, chunk.Air, chunk.Lamp)}, event); out.Answered[0].Result != GivenUp || len(l.Events()) > 0 {
		t.Errorf("%v, and %d events wait", out.Answered, len(l.Events()))
	}
}

// A mod whose rate was used up at a time to come, as a leader has made it up, may change blocks again now.
func TestRateOfTimeToCome(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp rate=1")
	now := l.now
	for _, l.now = range []int64{now + 1_000_000, now} {
		event := l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
		if out := l.answer([]mod.Effect{set(lampAt, chunk.Lamp, chunk.Air)}, event); out.Answered[0].Result != Done {
			t.Errorf("at %d: %v", l.now, out.Answered)
		}
	}
}

func TestRate(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp rate=2")
	var events []EventAt
	for i := range int32(3) {
		events = append(events, l.place(above(lampAt, i), chunk.Lamp).Waiting[0].EventAt)
	}
	for i, want := range []AnswerResult{Done, Done, Exceeded} {
		at := above(lampAt, int32(i))
		if out := l.answer([]mod.Effect{set(at, chunk.Lamp, chunk.Air)}, events[i]); out.Answered[0].Result != want {
			t.Errorf("answer %d: %v, want %v", i, out.Answered[0].Result, want)
		}
	}
	l.now += rateTime
	if out := l.answer([]mod.Effect{set(above(lampAt, 2), chunk.Lamp, chunk.Air)}, events[2]); out.Answered[0].Result != Done {
		t.Errorf("after a minute: %v", out.Answered[0].Result)
	}
}

// A timer is an event at its time. A block has one of each mod.
func TestTimers(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place,timer blocks=lamp")
	event := l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
	out := l.answer([]mod.Effect{timer(lampAt, 1000), timer(above(lampAt, 1), 10), timer(lampAt, 100)}, event)
	all := l.Events()
	if len(all) != 2 || all[0].Time != out.Time+10 || all[1].Time != out.Time+100 || all[1].Data != "on" || l.status().Timers != 2 {
		t.Fatalf("timers %v", all)
	}
	due := all[1]
	if out := l.answer(nil, due.EventAt); out.Answered[0].Result != Void || len(l.Events()) != 2 {
		t.Errorf("a timer that is not due: %v", out.Answered)
	}
	l.now = due.Time
	if out = l.answer([]mod.Effect{timer(lampAt, 5), timer(above(lampAt, 1), 0)}, due.EventAt); out.Answered[0].Result != Done {
		t.Errorf("a timer that is due: %v", out.Answered)
	}
	if all = l.Events(); len(all) != 1 || all[0].Time != out.Time+5 || all[0].ID == due.ID {
		t.Errorf("timers %v", all)
	}
	// What a leader proposed before it was replaced is not an answer to the timer that was set since.
	l.now = all[0].Time
	if out = l.answer([]mod.Effect{timer(lampAt, 5)}, due.EventAt); out.Answered[0].Result != Void {
		t.Errorf("an answer to the earlier timer: %v", out.Answered)
	}
}

// The last of the operator's commands counts, as far as it is signed, and regions suspend mods by themselves.
func TestGrantsAndSuspensions(t *testing.T) {
	l := newModLand(t)
	l.grant(5, "events=place,timer blocks=lamp")
	player := modAct(9, grantText("off"))
	player.Operator, player.Name = false, "ada"
	entry, err := EncodeGrant(player)
	if err != nil {
		t.Fatal(err)
	}
	l.log(entry)
	l.Proofs.SignedAct = func(nodemsg.Act) bool { return false }
	l.grant(9, "events=place blocks=lamp off")
	l.Proofs = believing
	if s := l.status(); s.Act.Seq != 5 || s.Off || !s.Acts() {
		t.Fatalf("the grant is %+v", s)
	}
	if s, known := l.Mod("lamps"); !known || s.Act.Seq != 5 {
		t.Errorf("%+v, %t", s, known)
	}
	if s, known := l.Mod("water"); known {
		t.Errorf("%+v", s)
	}
	event := l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
	if e, waits := l.Event(event); !waits || e.Kind != mod.Place {
		t.Errorf("the event is %v, %t", e, waits)
	}
	l.answer([]mod.Effect{timer(lampAt, 5)}, event)
	if e, waits := l.Event(event); waits {
		t.Errorf("after its answer, %v waits", e)
	}
	l.place(lampAt, chunk.Lamp)
	if out := l.log(EncodeSuspend("lamps", "an endless loop")); !out.Mods {
		t.Error("the outcome does not say that a mod is suspended")
	}
	s := l.status()
	if s.Suspended != "an endless loop" || s.Acts() || s.Events != 0 || s.Timers != 1 || len(l.Events()) != 1 {
		t.Errorf("suspended: %+v", s)
	}
	l.now += 100
	if out := l.answer(nil, l.Events()[0].EventAt); out.Answered[0].Result != Void {
		t.Errorf("a suspended mod's timer is answered: %v", out.Answered)
	}
	if out := l.place(lampAt, chunk.Lamp); len(out.Waiting) > 0 {
		t.Error("a suspended mod gets an event")
	}
	l.grant(10, "events=place blocks=lamp")
	if out := l.place(lampAt, chunk.Lamp); len(out.Waiting) != 1 {
		t.Error("after the operator's command the mod gets no event")
	}
	entry, err = EncodeGrant(modAct(11, "revoke lamps"))
	if err != nil {
		t.Fatal(err)
	}
	l.log(entry)
	if s = l.status(); !s.Removed || s.Events+s.Timers+len(l.Events()) > 0 {
		t.Errorf("removed: %+v, %d events", s, len(l.Events()))
	}
}

// forget has the region know nothing of a mod any more.
func (l *modLand) forget(name string) Outcome { return l.log(EncodeForget(name)) }

// A command that a leader has made up, with the highest number, lasts until the policy's is logged.
func TestLaterCommandCounts(t *testing.T) {
	l := newModLand(t)
	l.grant(math.MaxUint64, "events=place blocks=all")
	l.grant(6, "events=place blocks=lamp off")
	if s := l.status(); s.Act.Seq != 6 || s.Acts() {
		t.Errorf("%+v", s)
	}
	l.log(EncodeSuspend("lamps", "x"))
	entry, err := EncodeGrant(modAct(6, grantText("events=place blocks=lamp off")))
	if err != nil {
		t.Fatal(err)
	}
	if out := l.log(entry); out.Mods {
		t.Error("the same command again changes something")
	}
	l.grant(7, "events=place,timer blocks=lamp")
	l.answer([]mod.Effect{timer(lampAt, 1)}, l.place(lampAt, chunk.Lamp).Waiting[0].EventAt)
	l.place(lampAt, chunk.Lamp)
	stored := make(rows)
	stored.store(l.Writes())
	d := l.StartDigest(l.index)
	d.Step(1 << 30)
	if out := l.forget("lamps"); !out.Mods || len(l.Mods())+len(l.Events()) > 0 || l.forget("lamps").Mods {
		t.Errorf("forgotten: %v, %v", l.Mods(), l.Events())
	}
	for _, p := range l.Parts() {
		if d.At(p, l.index) != l.digest(p) {
			t.Errorf("the digest of %v is not that of its rows", p)
		}
	}
	stored.store(l.Writes())
	if got := stored.load(t); !reflect.DeepEqual(got.rows(), l.rows()) {
		t.Error("what is stored differs from what is there")
	}
}

// grantMany grants many mods something, by commands that a leader has made up.
func (l *modLand) grantMany(first, n int, command string) {
	for i := range n {
		entry, err := EncodeGrant(modAct(1, fmt.Sprintf(command, first+i)))
		if err != nil {
			l.t.Fatal(err)
		}
		l.log(entry)
	}
}

// A region knows no more mods than a policy may name, whatever its leader has made up.
func TestTooManyMods(t *testing.T) {
	l := newModLand(t)
	l.grantMany(0, 2*mod.MaxMods, "grant m%d "+mod.HashOf(nil).String()+" events=place blocks=all")
	if n, events := len(l.Mods()), len(l.place(lampAt, chunk.Lamp).Waiting); n != mod.MaxMods || events != mod.MaxMods {
		t.Errorf("%d mods, %d events of an edit", n, events)
	}
	l.grantMany(1000, 2*mod.MaxKnownMods, "revoke m%d")
	if n := len(l.Mods()); n != mod.MaxKnownMods {
		t.Errorf("%d mods are known", n)
	}
	stored := make(rows)
	stored.store(l.Writes())
	stored.load(t)
	l.forget("m0")
	l.grant(1, "events=place blocks=lamp")
	if _, known := l.Mod("lamps"); !known {
		t.Error("there is no room after one is forgotten")
	}
}

// After a merge, nothing waits for a mod that does not act any more as the other half knows; and there are not too many.
func TestMergeDropsEvents(t *testing.T) {
	area := testCell.Area()
	far := grid.Pos{X: area.MaxX*grid.ChunkSize - 3, Y: 5, Z: area.MaxZ*grid.ChunkSize - 3} // in the other half
	for _, c := range []struct {
		command string
		timers  int
	}{{"revoke lamps", 0}, {grantText("events=place blocks=lamp off"), 1}} {
		l := newModLand(t)
		l.grant(3, "events=place,timer blocks=lamp")
		l.answer([]mod.Effect{timer(lampAt, 5)}, l.place(lampAt, chunk.Lamp).Waiting[0].EventAt)
		l.place(lampAt, chunk.Lamp)
		l.place(far, chunk.Lamp)
		l.index++
		halves := children(t, l.Land, l.index)
		var parts [2]*modLand
		for half, child := range halves {
			child.Proofs = believing
			parts[half] = &modLand{Land: child, t: t, now: l.now}
		}
		here := 0
		if len(halves[1].Events()) == 2 {
			here = 1
		}
		entry, err := EncodeGrant(modAct(4, c.command))
		if err != nil {
			t.Fatal(err)
		}
		parts[1-here].log(entry)
		parts[0].grantMany(0, mod.MaxKnownMods, "revoke a%d")
		parts[1].grantMany(0, mod.MaxKnownMods, "revoke b%d")
		for _, half := range halves {
			mustApply(t, half, 2000, EncodeFreeze(0))
		}
		if merge(t, l.Land, l.index+1, 0, halves) != Merged {
			t.Fatal("not merged")
		}
		if s, _ := l.Mod("lamps"); s.Acts() || s.Events != 0 || s.Timers != c.timers || len(l.Events()) != c.timers || len(l.Mods()) != mod.MaxKnownMods {
			t.Errorf("%s: %+v, %d events, %d mods", c.command, s, len(l.Events()), len(l.Mods()))
		}
		stored := make(rows)
		stored.store(l.Writes())
		if got := stored.load(t); !reflect.DeepEqual(got.Mods(), l.Mods()) || !slices.Equal(got.Events(), l.Events()) {
			t.Errorf("%s: what is stored differs", c.command)
		}
	}
}

// storm has a guest put many lamps in a layer of a chunk, and returns the first event.
func (l *modLand) storm(y int32, lamps int) EventAt {
	l.now++
	batch := Batch{Time: l.now, Pins: []Pin{{Chunk: lampAt.Chunk()}}}
	for i := range int32(lamps) {
		at := grid.Pos{X: lampAt.Chunk().Origin().X + i%32, Y: y, Z: lampAt.Chunk().Origin().Z + i/32}
		batch.Edits = append(batch.Edits, guest(1, uint64(l.now)<<16+uint64(i), at, chunk.Lamp))
	}
	if out := l.log(batch.Encode()); len(out.Waiting) > 0 {
		return out.Waiting[0].EventAt
	}
	return EventAt{}
}

// If too many events wait, the mod is suspended.
func TestTooManyEvents(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place,timer blocks=lamp")
	event := l.storm(1, mod.MaxEvents)
	if s := l.status(); s.Suspended != "" || s.Events != mod.MaxEvents {
		t.Fatalf("%+v", s)
	}
	l.answer([]mod.Effect{timer(lampAt, 1000)}, event)
	l.storm(2, 2)
	if s := l.status(); s.Suspended != SuspendedEvents || s.Events != 0 || s.Timers != 1 || len(l.Events()) != 1 {
		t.Errorf("%+v", s)
	}
}

// A mod that sets too many timers is suspended, and no effect of that event takes place.
func TestTooManyTimers(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp")
	var timers []mod.Effect
	for i := range int32(mod.MaxEffects) {
		timers = append(timers, timer(grid.Pos{X: lampAt.Chunk().Origin().X + i%32, Y: 1 + i/32}, 1000))
	}
	for z := int32(0); ; z++ {
		for i := range timers {
			timers[i].Timer.Pos.Z = lampAt.Chunk().Origin().Z + z
		}
		want := Done
		if z == mod.MaxTimers/mod.MaxEffects {
			want = Forbidden
		}
		out := l.answer(timers, l.storm(10, 1))
		if s := l.status(); out.Answered[0].Result != want || s.Timers != min(int(z+1)*mod.MaxEffects, mod.MaxTimers) || (s.Suspended == SuspendedTimers) != (want == Forbidden) {
			t.Fatalf("row %d: %v, %+v", z, out.Answered, s)
		}
		if want == Forbidden {
			return
		}
		if out := l.answer(timers, l.storm(11, 1)); out.Answered[0].Result != Done || l.status().Timers != int(z+1)*mod.MaxEffects {
			t.Fatalf("the same timers again: %v, %+v", out.Answered, l.status())
		}
	}
}

// modNode is a node that may lead: its copy of the land is behind the log.
type modNode struct {
	land    *Land
	applied int
}

// The effects of each event take place once, all of them or none, whoever leads, whatever else is logged, and over
// splits, merges, restarts and repairs.
func TestEffectsTakePlaceOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, checkEffects)
}

func checkEffects(t *rapid.T) {
	l := newModLand(t)
	l.grant(1, "events=place,timer blocks=all rate=60000")
	stored := make(rows)
	stored.store(l.Writes())
	nodes := make([]modNode, 3) // leaders of the past and present
	var log [][]byte
	entry, err := EncodeGrant(modAct(1, grantText("events=place,timer blocks=all rate=60000")))
	if err != nil {
		t.Fatal(err)
	}
	log = append(log, entry)
	for i := range nodes {
		nodes[i].land = newTestLand()
		nodes[i].land.Proofs = believing
	}
	wanted := make(map[int]int) // steps that each lamp must have made
	handled := make(map[uint64]bool)
	built := make(map[int]int) // answers that have built on the towers of each lamp
	commit := func(e []byte) {
		waiting := l.Events()
		out := l.log(e)
		log = append(log, e)
		answers, _ := decodeAnswers(e) // of others none is used
		for i, a := range out.Answered {
			if a.Result == Done {
				if handled[a.ID] {
					t.Fatalf("event %x is handled twice", a.ID)
				}
				handled[a.ID] = true
				if w := waiting[slices.IndexFunc(waiting, func(w Waiting) bool { return w.ID == a.ID })]; answers.Answers[i].Effects[0].Set != nil {
					built[int(w.Pos.X-lampAt.X)/4]++
				}
			}
		}
		for _, w := range out.Waiting {
			if handled[w.ID] {
				t.Fatalf("event %x is there again", w.ID)
			}
		}
	}
	// Each event of lamp n puts one block of its two towers more: the height of a tower is the number of events handled.
	tower := func(land *Land, n, of int) (height int32, top grid.Pos) {
		at := grid.Pos{X: lampAt.X + int32(4*n), Y: 6, Z: lampAt.Z + int32(of)}
		for ; ; at.Y++ {
			g := land.pinned[at.Chunk()]
			block := chunk.Air
			if g != nil {
				block, _ = g.edits.Get(chunk.At(at))
			}
			if block == chunk.Air {
				return height, at
			}
			height++
		}
	}
	steps := rapid.IntRange(5, 60).Draw(t, "steps")
	for range steps {
		l.now += int64(rapid.IntRange(1, 50).Draw(t, "ms"))
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0: // a player puts a lamp
			n := rapid.IntRange(0, 3).Draw(t, "lamp")
			at := grid.Pos{X: lampAt.X + int32(4*n), Y: 5, Z: lampAt.Z}
			wanted[n]++
			commit(Batch{Time: l.now, Pins: []Pin{{Chunk: at.Chunk()}}, Edits: []nodemsg.Intent{guest(n, uint64(len(log)), at, chunk.Lamp)}}.Encode())
		case 1, 2: // a node answers what waits in its copy
			node := &nodes[rapid.IntRange(0, 2).Draw(t, "node")]
			a := Answers{Time: l.now}
			for _, w := range node.land.Events() {
				n := int(w.Pos.X-lampAt.X) / 4
				_, left := tower(node.land, n, 1)
				_, right := tower(node.land, n, 2)
				answer := Answer{w.EventAt, []mod.Effect{set(left, chunk.Air, chunk.Brick), set(right, chunk.Air, chunk.Brick)}}
				if w.Kind == mod.Place && rapid.Bool().Draw(t, "timer") {
					answer.Effects = []mod.Effect{timer(w.Pos, int64(rapid.IntRange(1, 80).Draw(t, "after")))}
				}
				a.Answers = append(a.Answers, answer)
			}
			if len(a.Answers) > 0 {
				commit(a.Encode())
			}
		case 3: // a node follows
			node := &nodes[rapid.IntRange(0, 2).Draw(t, "node")]
			for to := rapid.IntRange(node.applied, len(log)).Draw(t, "to"); node.applied < to; node.applied++ {
				if _, err := node.land.Apply(uint64(node.applied+1), log[node.applied]); err != nil {
					t.Fatal(err)
				}
			}
		case 4: // a restart
			stored.store(l.Writes())
			l.Land = stored.load(t)
			l.Proofs = believing
		case 5: // a digest agrees with the rows
			d := l.StartDigest(l.index)
			d.Step(1 << 30)
		}
		if d := l.tracked; d != nil {
			for _, p := range l.Parts() {
				if d.At(p, l.index) != l.digest(p) {
					t.Fatalf("the digest of %v is not that of its rows", p)
				}
			}
		}
	}
	for n := range 4 {
		left, _ := tower(l.Land, n, 1)
		right, _ := tower(l.Land, n, 2)
		if left != right {
			t.Fatalf("lamp %d has towers of %d and %d blocks: an answer is half there", n, left, right)
		}
		if int(left) != built[n] {
			t.Fatalf("lamp %d has a tower of %d blocks, and %d answers have built on it", n, left, built[n])
		}
		if int(left) > wanted[n] {
			t.Fatalf("lamp %d has a tower of %d blocks after %d events", n, left, wanted[n])
		}
	}
	stored.store(l.Writes())
	if got := stored.load(t); !reflect.DeepEqual(got.rows(), l.rows()) || !reflect.DeepEqual(got.Mods(), l.Mods()) {
		t.Fatalf("stored: %v, %v", got.Mods(), l.Mods())
	}
}

// What waits, and what mods may do, goes with the land through splits and merges.
func TestModsSplitAndMerge(t *testing.T) {
	l := newModLand(t)
	l.grant(3, "events=place,timer blocks=lamp rate=10")
	area := testCell.Area()
	far := grid.Pos{X: area.MaxX*grid.ChunkSize - 3, Y: 5, Z: area.MaxZ*grid.ChunkSize - 3} // in the other half
	l.answer([]mod.Effect{timer(lampAt, 5), set(lampAt, chunk.Lamp, chunk.Air)}, l.place(lampAt, chunk.Lamp).Waiting[0].EventAt)
	l.place(far, chunk.Lamp)
	before, status := l.Events(), l.status()
	l.index++
	halves := children(l.t.(*testing.T), l.Land, l.index)
	var parts [2]*modLand
	for half, child := range halves {
		child.Proofs = believing
		parts[half] = &modLand{Land: child, t: t, now: l.now}
		if s := parts[half].status(); s.Act.Seq != 3 || s.Events+s.Timers != 1 || len(child.Events()) != 1 {
			t.Errorf("half %d: %+v, %v", half, s, child.Events())
		}
	}
	parts[1].log(EncodeSuspend("lamps", "x"))
	parts[0].grant(4, "events=place blocks=lamp rate=10")
	for _, half := range halves {
		if mustApply(t, half, 50, EncodeFreeze(0)) != Froze {
			t.Fatal("not frozen")
		}
	}
	if out, err := halves[0].Apply(51, (Answers{Time: l.now, Answers: []Answer{{EventAt: halves[0].Events()[0].EventAt}}}).Encode()); err != nil || len(out.Answered) > 0 {
		t.Errorf("a frozen region is answered: %v, %v", out, err)
	}
	if merge(t, l.Land, l.index+1, 0, halves) != Merged {
		t.Fatal("not merged")
	}
	l.index++
	if got := l.Events(); len(got) != 1 || got[0] != before[1] && got[0] != before[0] {
		t.Errorf("after the merge %v wait, before the split %v", got, before)
	}
	if s := l.status(); s.Act.Seq != 4 || s.Suspended != "" || s.Rate != status.Rate {
		t.Errorf("after the merge %+v", s)
	}
	stored := make(rows)
	stored.store(l.Writes())
	if got := stored.load(t); !slices.Equal(got.Events(), l.Events()) || !reflect.DeepEqual(got.Mods(), l.Mods()) {
		t.Errorf("stored are %v, %v", got.Events(), got.Mods())
	}
}

// A member whose copy is damaged gets the rows of mods and events from others.
func TestModRowsAreRepaired(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place,timer blocks=lamp")
	l.answer([]mod.Effect{timer(lampAt, 5)}, l.place(lampAt, chunk.Lamp).Waiting[0].EventAt)
	l.place(lampAt, chunk.Lamp)
	damaged := newTestLand()
	table := make(rows)
	for _, p := range []Part{{Sequences: true}, {Chunk: lampAt.Chunk()}} {
		var sound []kv.Write
		l.Rows(p, func(key, value []byte) {
			sound = append(sound, kv.Write{Key: slices.Clone(key), Value: slices.Clone(value)})
		})
		writes, err := damaged.Replace(p, sound, nil)
		if err != nil {
			t.Fatal(err)
		}
		table.store(writes)
	}
	for name, got := range map[string]*Land{"in memory": damaged, "stored": table.load(t)} {
		if !slices.Equal(got.Events(), l.Events()) || !reflect.DeepEqual(got.Mods(), l.Mods()) || got.Mods()[0].Timers != 1 {
			t.Errorf("%s: %v, %v", name, got.Events(), got.Mods())
		}
	}
}

// What a mod has changed can be rolled back, as what a player has.
func TestModIsRolledBack(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp")
	event := l.place(lampAt, chunk.Lamp).Waiting[0].EventAt
	l.answer([]mod.Effect{set(lampAt, chunk.Lamp, chunk.Air), set(above(lampAt, 1), chunk.Air, chunk.Lamp)}, event)
	l.log(RollbackStep{
		Rollback: history.Rollback{
			Number: 1,
			Filter: history.Filter{Until: l.now + 1, Players: []player.ID{mod.Author("lamps")}, Box: grid.BoxOf(lampAt, above(lampAt, 1))},
		},
		Time: l.now + 1, Chunk: lampAt.Chunk(), Natural: []nodemsg.BlockAt{{At: chunk.At(above(lampAt, 1)), Block: chunk.Air}},
	}.Encode())
	if l.block(lampAt) != chunk.Lamp || l.block(above(lampAt, 1)) != chunk.Air {
		t.Errorf("after the rollback there are %v and %v", l.block(lampAt), l.block(above(lampAt, 1)))
	}
}

func TestModRowsRefused(t *testing.T) {
	l := newModLand(t)
	l.grant(1, "events=place blocks=lamp")
	l.place(lampAt, chunk.Lamp)
	for _, row := range l.rows() {
		if row.Key[8] != keyMod && row.Key[8] != keyEvent {
			continue
		}
		for _, value := range [][]byte{nil, row.Value[:len(row.Value)-1], append(slices.Clone(row.Value), 0)} {
			fresh := newTestLand()
			fresh.pinTo(lampAt.Chunk(), [32]byte{})
			if err := fresh.Load(row.Key, value); err == nil {
				t.Errorf("row %x is loaded with %x", row.Key, value)
			}
		}
	}
}

// Whatever a leader that lies proposes, what members store of it can be loaded again.
func TestRowsOfEntriesAreLoaded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Just(int64(modTime)), rapid.Int64Range(math.MaxInt64-mod.MaxDelay-2, math.MaxInt64))
		l := newModLand(t)
		l.grant(math.MaxUint64, "events=place,timer blocks=all")
		stored := make(rows)
		for range rapid.IntRange(1, 8).Draw(t, "entries") {
			l.index++
			now := times.Draw(t, "time")
			entry := Batch{Time: now, Pins: []Pin{{Chunk: lampAt.Chunk()}}, Edits: []nodemsg.Intent{guest(1, l.index, lampAt, chunk.Lamp)}}.Encode()
			if events := l.Events(); len(events) > 0 && rapid.Bool().Draw(t, "answer") {
				after := rapid.SampledFrom([]int64{0, 1, mod.MaxDelay, mod.MaxDelay + 1, math.MaxInt64}).Draw(t, "after")
				set := set(lampAt, rapid.SampledFrom([]chunk.Block{chunk.Lamp, chunk.Air}).Draw(t, "from"), chunk.Lamp)
				entry = Answers{Time: now, Answers: []Answer{{events[0].EventAt, []mod.Effect{timer(lampAt, after), set}}}}.Encode()
			}
			_, _ = l.Apply(l.index, entry) // refused or not
			stored.store(l.Writes())
			if got := stored.load(t); !reflect.DeepEqual(got.rows(), l.rows()) {
				t.Fatal("what is stored differs from what is there")
			}
		}
	})
}

func FuzzModEntries(f *testing.F) {
	grant, err := EncodeGrant(modAct(1, grantText("events=use blocks=lamp")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(grant)
	f.Add(EncodeSuspend("lamps", "x"))
	f.Add(EncodeForget("lamps"))
	f.Add(Answers{Time: 5, Pins: []Pin{{Chunk: lampAt.Chunk()}}, Answers: []Answer{{EventAt{lampAt.Chunk(), 7}, []mod.Effect{
		set(lampAt, 1, 2), timer(lampAt, 3), {Message: &mod.Message{Text: "x"}},
	}}}}.Encode())
	f.Fuzz(func(t *testing.T, entry []byte) {
		if len(entry) == 0 || entry[0] < tagEffects || entry[0] > tagMod {
			return
		}
		land := newModLand(t)
		land.Proofs = believing
		if _, err := land.Apply(1, entry); err != nil {
			return
		}
		if entry[0] == tagEffects {
			a, err := decodeAnswers(entry)
			if again, err2 := decodeAnswers(a.Encode()); err != nil || err2 != nil || !reflect.DeepEqual(a, again) {
				t.Errorf("%v becomes %v, %v, %v", a, again, err, err2)
			}
		}
	})
}

// An edit costs nothing for mods where there are none.
func BenchmarkEditsBesideMods(b *testing.B) {
	for _, c := range []struct{ name, grant string }{
		{"none", ""}, {"another area", "events=place blocks=all area=100000,100000:100001,100001"}, {"other blocks", "events=place blocks=brick"},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newModLand(b)
			if c.grant != "" {
				l.grant(1, c.grant)
			}
			batch := Batch{Time: l.now, Pins: []Pin{{Chunk: lampAt.Chunk()}}, Edits: make([]nodemsg.Intent, 64)}
			for b.Loop() {
				l.index++
				for i := range batch.Edits {
					batch.Edits[i] = guest(i, l.index, above(lampAt, int32(i)%16), chunk.Block(1+l.index%2))
				}
				l.ApplyProven(l.index, batch)
				if l.index%64 == 0 {
					l.Writes()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/edit")
		})
	}
}
