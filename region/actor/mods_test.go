package actor

import (
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/mods"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// granting are orders that grant mods something.
type granting struct {
	acts    []nodemsg.Act
	claimed grid.Pos // which only bob may change
}

func (granting) Numbered() int64 { return 0 }

func (granting) Marks(grid.Cell, int64, int64) []history.Mark { return nil }

func (g granting) ModActs() []nodemsg.Act { return g.acts }

func (g granting) RefuseMod(of player.ID, at grid.Pos, _ time.Time) string {
	if at == g.claimed && of != bob {
		return wire.RefusedClaimed
	}
	return ""
}

// grant returns an operator's command about the mod lamps.
func grant(seq uint64, text string) nodemsg.Act {
	return nodemsg.Act{Key: make([]byte, ed25519.PublicKeySize), Seq: seq, Operator: true, Text: text, Signature: make([]byte, ed25519.SignatureSize)}
}

// modded is a region with a mod, whose scripts a test plays.
type modded struct {
	*land
	*script
	t      *testing.T
	orders *granting
	tasks  []mods.Task
	link   *Subscription
	seq    uint64
}

func newModded(t *testing.T) *modded {
	l, g := scripted()
	m := &modded{land: l, script: g, t: t, orders: &granting{acts: []nodemsg.Act{grant(1, "grant lamps "+mod.HashOf(nil).String()+" events=place,timer blocks=lamp")}}}
	l.Orders = func() Orders { return *m.orders }
	l.RunScript = func(t mods.Task) { m.tasks = append(m.tasks, t) }
	l.contents.land.Proofs = world.Proofs{SignedAct: func(nodemsg.Act) bool { return true }}
	m.link = newLink(l)
	return m
}

// turn runs a tick, with all that it proposes committed.
func (m *modded) turn() {
	m.step()
	m.commit()
	m.step()
}

// put has a guest put a block, and returns the task that this makes.
func (m *modded) put(name string, pos grid.Pos, block chunk.Block) mods.Task {
	m.t.Helper()
	m.seq++
	send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest(name, m.seq, pos, block)}})
	m.turn()
	if len(m.tasks) != 1 {
		m.t.Fatalf("%d tasks", len(m.tasks))
	}
	return m.task()
}

func (m *modded) task() mods.Task {
	task := m.tasks[0]
	m.tasks = m.tasks[1:]
	return task
}

// answer has the script return the same effects for each event.
func (m *modded) answer(task mods.Task, effects ...mod.Effect) {
	task.Done(mods.Result{Answers: slices.Repeat([]mod.Answer{{Effects: effects}}, len(task.Inputs))})
	m.turn()
}

func (m *modded) block(at grid.Pos) chunk.Block {
	block, _ := m.contents.land.Block(at)
	return block
}

func set(at grid.Pos, from, to chunk.Block) mod.Effect {
	return mod.Effect{Set: &mod.Set{Pos: at, From: from, To: to}}
}

var lampAt = at(here, 5)

// An edit of a player is an event for the mod from the first on, and what the script returns takes place.
func TestScripts(t *testing.T) {
	m := newModded(t)
	task := m.put("alice", lampAt, chunk.Lamp)
	want := mod.Event{Mod: "lamps", Kind: mod.Place, Time: task.Inputs[0].Event.Time, Pos: lampAt, Block: chunk.Lamp, Player: alice}
	if len(task.Inputs) != 1 || task.Inputs[0].Event != want || task.Name != "lamps" || task.Region != 7 || task.Content != mod.HashOf(nil) {
		t.Fatalf("the task is %+v", task)
	}
	for place, block := range task.Inputs[0].View {
		want := mods.Untouched
		switch pos := mod.ViewPos(lampAt, place); {
		case pos == lampAt:
			want = chunk.Lamp
		case pos.Y < 0:
			want = mod.Unseen
		}
		if block != want {
			t.Errorf("at %v the script sees %d, want %d", mod.ViewPos(lampAt, place), block, want)
		}
	}
	if task.Pinned[here] != [32]byte{1, 1, 1} {
		t.Errorf("pinned: %v", task.Pinned)
	}
	far := grid.Pos{X: lampAt.X + 64, Y: 7, Z: lampAt.Z} // in a chunk that is not pinned
	m.answer(task, set(lampAt, chunk.Lamp, chunk.Air), set(far, chunk.Air, chunk.Lamp))
	m.turn() // the hash of the other chunk's terrain has come
	if m.block(lampAt) != chunk.Air || m.block(far) != chunk.Lamp || len(m.contents.land.Events()) > 0 {
		t.Errorf("after the effects there are %v and %v, %d events wait", m.block(lampAt), m.block(far), len(m.contents.land.Events()))
	}
	if base, _ := m.contents.land.Base(far.Chunk()); base != [32]byte{3, 1, 1} {
		t.Errorf("the other chunk is pinned to %v", base)
	}
	if m.turn(); len(m.tasks) > 0 {
		t.Errorf("more tasks: %v", m.tasks)
	}
}

// A mod may change what the player may change for whom it acts.
func TestModsInClaims(t *testing.T) {
	m := newModded(t)
	m.orders.claimed = at(here, 20)
	m.answer(m.put("alice", lampAt, chunk.Lamp), set(lampAt, chunk.Lamp, chunk.Air), set(m.orders.claimed, chunk.Air, chunk.Lamp))
	if m.block(lampAt) != chunk.Lamp || m.block(m.orders.claimed) != chunk.Air || len(m.contents.land.Events()) > 0 {
		t.Error("a mod has changed a claim of somebody else, or a part of that")
	}
	m.answer(m.put("bob", at(here, 6), chunk.Lamp), set(m.orders.claimed, chunk.Air, chunk.Lamp))
	if m.block(m.orders.claimed) != chunk.Lamp {
		t.Error("a mod has not changed a claim for its owner")
	}
}

// An event is handled again if something else was there, and if the script could not be run.
func TestScriptsRunAgain(t *testing.T) {
	m := newModded(t)
	m.answer(m.put("alice", lampAt, chunk.Lamp), set(lampAt, chunk.Air, chunk.Lamp))
	if len(m.tasks) != 1 || m.tasks[0].Inputs[0].Event.Pos != lampAt {
		t.Fatalf("tasks %v", m.tasks)
	}
	m.task().Done(mods.Result{Err: errors.New("the content is missing")})
	m.turn()
	q := m.mods.queues["lamps"]
	if len(m.tasks) > 0 || len(q.due) != 1 || time.Until(q.rest) <= 0 {
		t.Fatalf("tasks %v, due %v", m.tasks, q.due)
	}
	q.rest = time.Time{}
	m.turn()
	m.answer(m.task(), set(lampAt, chunk.Lamp, chunk.Air))
	if m.block(lampAt) != chunk.Air {
		t.Error("there were no effects")
	}
}

// A leader begins with what the last one has left, and what a script returns to the last one is too late.
func TestNewLeaderRunsScripts(t *testing.T) {
	m := newModded(t)
	old := m.put("alice", lampAt, chunk.Lamp)
	m.mail = append(m.mail, replica.Leadership{Leader: "B", Term: 3}, replica.Leadership{Leader: "A", Self: true, Term: 4})
	m.turn()
	fresh := m.task()
	if !slices.Equal(fresh.Inputs, old.Inputs) {
		t.Errorf("the new leader hands %v to the script, the old one %v", fresh.Inputs, old.Inputs)
	}
	m.answer(old, set(lampAt, chunk.Lamp, chunk.Air))
	if m.block(lampAt) != chunk.Lamp {
		t.Error("the result of an earlier term has effects")
	}
	m.answer(fresh, set(lampAt, chunk.Lamp, chunk.Air))
	if m.block(lampAt) != chunk.Air {
		t.Error("the result has no effects")
	}
}

// A mod whose script exceeds its budget is suspended in the region, until an operator says otherwise.
func TestScriptIsSuspended(t *testing.T) {
	m := newModded(t)
	task := m.put("alice", lampAt, chunk.Lamp)
	task.Done(mods.Result{Answers: []mod.Answer{{Err: errors.New("too many steps")}}, Suspend: "too many steps"})
	m.turn()
	status, _ := m.contents.land.Mod("lamps")
	if status.Suspended != "too many steps" || len(m.contents.land.Events()) > 0 {
		t.Fatalf("%+v", status)
	}
	m.orders.acts = []nodemsg.Act{grant(2, "grant lamps "+mod.HashOf(nil).String()+" events=place,timer blocks=lamp")}
	if task = m.put("alice", at(here, 6), chunk.Lamp); task.Inputs[0].Event.Pos != at(here, 6) {
		t.Errorf("the task is %v", task)
	}
	m.answer(task)
	m.orders.acts = []nodemsg.Act{grant(3, "revoke lamps")}
	m.seq++
	send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest("alice", m.seq, lampAt, chunk.Lamp)}})
	if m.turn(); len(m.tasks) > 0 {
		t.Errorf("a mod that was removed has tasks %v", m.tasks)
	}
}

// What a lying leader has granted ends with its leadership: the next one has the region know what the policy does.
func TestMadeUpGrantsEnd(t *testing.T) {
	m := newModded(t)
	hash := mod.HashOf(nil).String()
	for _, made := range []nodemsg.Act{grant(math.MaxUint64, "grant lamps "+hash+" events=place blocks=all"), grant(1, "grant water "+hash+" events=place blocks=all")} {
		entry, err := world.EncodeGrant(made)
		if err != nil {
			t.Fatal(err)
		}
		m.proposed = append(m.proposed, entry) // in the log of the term before
	}
	m.turn()
	m.put("alice", lampAt, chunk.Lamp) // so that the region has something to be kept
	m.turn()
	all := m.contents.land.Mods()
	if len(all) != 1 || !world.SameCommand(all[0].Act, m.orders.acts[0]) {
		t.Errorf("the region knows %+v", all)
	}
	if m.step(); len(m.proposed) > 0 {
		t.Errorf("more is proposed: %q", m.proposed)
	}
}

// An edit waits until what mods are granted is proposed.
func TestEditWaitsForGrants(t *testing.T) {
	m := newModded(t)
	m.full = errors.New("full")
	m.seq++
	send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest("alice", m.seq, lampAt, chunk.Lamp)}})
	m.step()
	m.full = nil
	if m.turn(); len(m.tasks) != 1 {
		t.Error("the edit is no event for the mod")
	}
}

// Where no mod is granted anything, nothing is logged but the edits.
func TestRegionWithoutMods(t *testing.T) {
	m := newModded(t)
	m.orders.acts = []nodemsg.Act{
		grant(1, "grant lamps "+mod.HashOf(nil).String()+" events=place blocks=all area=100000,100000:100001,100001"), grant(2, "revoke water"),
	}
	m.seq++
	send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest("alice", m.seq, lampAt, chunk.Lamp)}})
	m.step()
	if len(m.proposed) != 1 || !world.IsBatch(m.proposed[0]) {
		t.Errorf("proposed: %x", m.proposed)
	}
	m.turn()
	if all := m.contents.land.Mods(); len(all) > 0 || len(m.tasks) > 0 {
		t.Errorf("mods %v, tasks %v", all, m.tasks)
	}
}

// What a mod tells a player is sent to the player's gateway, and not more than a player can read.
func TestModTellsPlayer(t *testing.T) {
	m := newModded(t)
	now := time.Now().Add(time.Minute) // the edit queue goes on by the time of the machine
	m.Now = func() time.Time { return now }
	var told []nodemsg.PrivateLine
	m.Say = func(gateway string, line nodemsg.PrivateLine) {
		if gateway != "peer" {
			t.Errorf("told at %q", gateway)
		}
		told = append(told, line)
	}
	send(m.land, m.link, nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
	hello, gone := mod.Effect{Message: &mod.Message{Player: alice, Text: "hello"}}, mod.Effect{Message: &mod.Message{Player: bob, Text: "hello"}}
	m.answer(m.put("alice", lampAt, chunk.Lamp), hello, gone)
	want := nodemsg.PrivateLine{From: mod.Author("lamps"), Name: "lamps", To: alice, Text: "hello"}
	if len(told) != 1 || told[0] != want || want.Valid() != nil {
		t.Errorf("told: %+v, want %+v (%v)", told, want, want.Valid())
	}
	for i := range int32(4) {
		m.answer(m.put("alice", at(here, 6+i), chunk.Lamp), slices.Repeat([]mod.Effect{hello}, mod.MaxMessages)...)
	}
	if len(told) != sayBurst {
		t.Errorf("%d lines were told", len(told))
	}
}

// Of timers that are replaced nothing is left.
func TestReplacedTimers(t *testing.T) {
	m := newModded(t)
	now := time.Now().Add(time.Minute)
	m.Now = func() time.Time { return now }
	timer := func(y int32, after int64) mod.Effect {
		return mod.Effect{Timer: &mod.SetTimer{Pos: at(here, y), After: after}}
	}
	task := m.put("alice", lampAt, chunk.Lamp)
	for range 10 * minLater {
		m.answer(task, timer(6, 1), timer(7, mod.MaxDelay))
		if now = now.Add(time.Second); len(m.tasks) == 0 {
			m.turn()
		}
		task = m.task()
	}
	if n := len(m.mods.later); n > 2*minLater {
		t.Errorf("the leader keeps %d events, and %d wait", n, len(m.contents.land.Events()))
	}
}

// Effects that members could not decode do not take those of other events with them, and each entry is small enough.
func TestEffectsThatCannotBeDecoded(t *testing.T) {
	m := newModded(t)
	long := mod.Effect{Timer: &mod.SetTimer{Pos: lampAt, After: 1000, Data: strings.Repeat("x", mod.MaxData+1)}}
	negative := mod.Effect{Timer: &mod.SetTimer{Pos: lampAt, After: -1}}
	for i := range int32(3) {
		m.seq++
		send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest("alice", m.seq, at(here, 5+i), chunk.Lamp)}})
	}
	m.turn()
	task := m.task()
	m.tasks = nil
	if len(task.Inputs) != 3 {
		t.Fatalf("%d events", len(task.Inputs))
	}
	task.Done(mods.Result{Answers: []mod.Answer{{Effects: []mod.Effect{long}}, {Effects: []mod.Effect{negative}}, {Effects: []mod.Effect{set(at(here, 7), chunk.Lamp, chunk.Air)}}}})
	m.turn()
	if m.block(at(here, 7)) != chunk.Air || len(m.contents.land.Events()) > 0 {
		t.Errorf("there is %v, and %v wait", m.block(at(here, 7)), m.contents.land.Events())
	}
}

// What a script returns for many events is proposed in entries that are small enough.
func TestEntriesOfEffects(t *testing.T) {
	m := newModded(t)
	for i := range mods.MaxEvents {
		m.seq++
		send(m.land, m.link, nodemsg.ToRegion{Edits: []nodemsg.Intent{guest("alice", m.seq, at(here, 5+int32(i)), chunk.Lamp)}})
	}
	m.turn()
	task := m.task()
	answers := make([]mod.Answer, len(task.Inputs))
	for i := range answers {
		for x := range int32(mod.MaxEffects) {
			pos := here.Origin()
			pos.X, pos.Y, pos.Z = pos.X+x%32, 1+int32(i), pos.Z+x/32
			answers[i].Effects = append(answers[i].Effects, mod.Effect{Timer: &mod.SetTimer{Pos: pos, After: mod.MaxDelay, Data: strings.Repeat("x", mod.MaxData)}})
		}
	}
	task.Done(mods.Result{Answers: answers})
	for range mods.MaxEvents {
		m.step()
		for _, entry := range m.proposed {
			if len(entry) > raftframe.MaxEntry/4 {
				t.Fatalf("an entry of %d bytes", len(entry))
			}
		}
		m.commit()
	}
	m.step()
	if status, _ := m.contents.land.Mod("lamps"); status.Events > 0 || status.Timers != len(task.Inputs)*mod.MaxEffects || status.Suspended != "" {
		t.Errorf("%+v", status)
	}
}
