package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// anyCommand draws a command, and who gives it.
func anyCommand(r *rapid.T) (by, text string) {
	who := rapid.SampledFrom([]string{"", "ada", "bob", "eve", "mod", "zoe"})
	name := who.Filter(func(s string) bool { return s != "" })
	at := func(label string) string {
		x, z := rapid.IntRange(-50, 50).Draw(r, label), rapid.IntRange(-50, 50).Draw(r, label)
		return fmt.Sprintf("%d,%d %d,%d", x, z, x+rapid.IntRange(3, 30).Draw(r, label), z+5)
	}
	texts := []string{
		"register", "claim " + at("claim") + " home", "claim " + at("claim"), "unclaim home", "trust home " + name.Draw(r, "of"), "untrust home " + name.Draw(r, "of"),
		"flag home build all", "flag home enter members", "transfer home " + name.Draw(r, "to"),
		"ban " + name.Draw(r, "of") + " 2h x", "ban 203.0.113.0/24", "ban nobody", "mute " + name.Draw(r, "of"), "kick " + name.Draw(r, "of"), "pardon " + name.Draw(r, "of"),
		"role " + name.Draw(r, "of") + " moderator", "role " + name.Draw(r, "of") + " helper", "role create helper builder allow=kick edits=5 claims=2,1000", "role create guard moderator rank=3",
		"role create recruit visitor build=yes", "role delete helper", "role delete recruit", "set players recruit", "set players builder", "set guests visitor", "set message hello", "set border 2000",
		"set edits builder 40", "set original on", "set original off", "set claims 7 7777", "set quota 10.0.0.0/8 5 5", "set quota all 9 9", "set approval names on", "set approval claims on", "set approval claims off", "set expiry 2d", "set floodban 5m",
		"setspawn 7 64 -9", "setwarp market 1 2 3", "delwarp market", "release " + name.Draw(r, "of"), "expire", "approve 1", "approve 2", "deny 3",
		"revert " + name.Draw(r, "of") + " 5 0,0,0 9,9,9", "revert ada,guest:Gus 5 0,0,0 9,9,9", "undo", "pause", "resume", "abort 1", "token " + TokenHash("a"), "owner a", "say hi", "nonsense",
		"member " + player.GuestID("x").String() + " 5 builder xavier", "land " + player.GuestID("x").String() + " a 900,900 920,920",
	}
	return who.Draw(r, "by"), rapid.SampledFrom(texts).Draw(r, "text")
}

// oldWorld are commands, and by whom, that set all fields of a state.
var oldWorld = [][2]string{
	{"", "expire"},
	{"", "set expiry 2d"},
	{"zoe", "register"},
	{"ada", "register"},
	{"ada", "claim 0,0 9,9 home"},
	{"", "role create helper builder claims=2,1000 allow=kick deny=say edits=5"},
	{"", "role ada helper"},
	{"", "setwarp market 800 2 3"},
	{"", "token " + TokenHash("b")},
	{"", "set edits builder 40"},
	{"", "ban nobody"},
	{"", "revert ada 5 0,0,0 9,9,9"},
	{"", "undo 1"},
	{"", CompactCommand},
	{"", "say hi"},
	{"", CompactCommand},
	{"eve", "register"},
	{"ada", "trust home eve"},
	{"ada", "flag home enter members"},
	{"", "set original off"},
	{"", "set approval names on"},
	{"bob", "register"},
	{"", "set approval claims on"},
	{"ada", "claim 50,50 59,59 hut"},
	{"ada", "revert ada 5 0,0,0 9,9,9"},
	{"ada", "pause 3"},
	{"", "abort 1"},
	{"", "set message hi"},
	{"", "setspawn 700 64 9"},
	{"", "set border 2000"},
	{"", "set floodban 5m"},
	{"", "set quota 10.0.0.0/8 5 5"},
	{"", "ban eve 2h x"},
	{"", "release eve"},
	{"ada", "flag home build all"},
	{"", "ban 203.0.113.0/24"},
	{"", "expire"},
}

// apply applies commands to states, two hours after each other.
func apply(t interface{ Fatal(args ...any) }, all [][2]string, to ...*State) (now time.Time, seq uint64) {
	now = start
	for _, it := range all {
		now, seq = now.Add(2*time.Hour), seq+uint64(2*time.Hour.Microseconds())
		text := it[1]
		if text == CompactCommand {
			text = to[0].CompactText()
		}
		for _, s := range to {
			if _, err := s.Apply(sign(it[0], seq, now, text)); err != nil {
				t.Fatal(text, err)
			}
		}
	}
	return now, seq
}

// Nodes of different versions find the same hash for the same state: a new field is left out of a snapshot while it is zero.
func TestSnapshotOfOldWorld(t *testing.T) {
	s := New()
	apply(t, oldWorld, s)
	if got := s.Snapshot().Hash(); got != "0b6f10ab962cec5bcba961cf674d87aa702a4339b8c146f6a065323e02c1a674" {
		t.Errorf("the hash is %s: nodes of earlier versions find another one", got)
	}
}

// The state of a snapshot, and the acts after it, are those of all acts. Whoever adds a field to a State adds it to the snapshot, and a command that sets
// it to anyCommand: this test compares all fields, and wants each to have been set.
func TestSnapshotStandsForAllActs(t *testing.T) {
	seen := make(fields)
	rapid.Check(t, func(r *rapid.T) {
		all, late := New(), New()
		now, seq := start, uint64(0)
		if rapid.Bool().Draw(r, "old world") {
			now, seq = apply(r, oldWorld, all, late)
		}
		same := func(after string) {
			if got, want := seen.dump(late), seen.dump(all); got != want { // also of what a snapshot does not have
				r.Fatalf("after %s the states differ:\n%s\n%s", after, got, want)
			}
		}
		n := rapid.IntRange(1, 80).Draw(r, "acts")
		cuts := rapid.SliceOfN(rapid.IntRange(0, n), 1, 3).Draw(r, "cuts")
		for i := range n {
			by, text := anyCommand(r)
			pass := rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 30 * time.Hour, 20 * day}).Draw(r, "pass")
			now, seq = now.Add(pass), seq+uint64(pass.Microseconds())
			act := sign(by, seq, now, text)
			switch {
			case by != "" && rapid.IntRange(0, 9).Draw(r, "seen") == 0:
				act = Seen("gateway", by, loggedIn(by, now))
				act.At = now.UnixMilli()
			case by == "" && rapid.IntRange(0, 9).Draw(r, "compact") == 0:
				act = sign("", seq, now, all.CompactText())
			case by == "":
				act.Charter = rapid.Uint64Range(1, 2).Draw(r, "charter")
			}
			did, err := all.Apply(act)
			again, errAgain := late.Apply(act)
			if did != again || (err == nil) != (errAgain == nil) {
				r.Fatalf("/%s: %v, %v; after a snapshot %v, %v", act.Text, did, err, again, errAgain)
			}
			if slices.Contains(cuts, i) {
				if late, err = Restore(late.Snapshot(), late.Acts()); err != nil {
					r.Fatal(err)
				}
				same("a snapshot")
			}
			if got, want := late.Snapshot().Hash(), all.Snapshot().Hash(); got != want {
				r.Fatalf("after /%s the snapshots differ", act.Text)
			}
		}
		same("all acts")
	})
	for _, field := range slices.Sorted(maps.Keys(seen)) {
		if !seen[field] {
			t.Errorf("no command has set %s: add one to anyCommand", field)
		}
	}
}

// fields are those of all types of this module that are part of a state, and whether one was set, as in "policy.State.acts".
type fields map[string]bool

// derived are fields that follow from others, or are none of the state.
var derived = map[string]string{
	"policy.Roles.table":       "the commands that there are",
	"policy.Claims.squares":    "the index of claims by their place",
	"policy.Claims.shared":     "set by who reads",
	"policy.author.entering":   "not of an act that was applied",
	"policy.author.role":       "its order is compared in the place of the rest: the role may have changed since",
	"policy.tally.what":        "always the same",
	"policy.tally.most":        "always the same",
	"sanction.List.networks":   "the lengths of the networks in the list",
	"sanction.Sanction.Target": "set by who lists it",
	"history.Filter.Until":     "not of an order",
}

// dump returns all fields of a state as a text.
func (f fields) dump(s *State) string {
	var text strings.Builder
	f.walk(&text, reflect.ValueOf(s))
	for i := range s.rollbacks {
		fmt.Fprintf(&text, "%v %d;", s.rollbacks[i].by.role, s.rollbacks[i].by.role.order())
	}
	return text.String()
}

func (f fields) walk(text *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			text.WriteString("nil")
			return
		}
		f.walk(text, v.Elem())
	case reflect.Struct:
		text.WriteString("{")
		for i := range v.NumField() {
			name := v.Type().String() + "." + v.Type().Field(i).Name
			if derived[name] != "" || v.Type().Field(i).Name == "_" {
				continue
			}
			if strings.HasPrefix(v.Type().PkgPath(), "github.com/voxelpopuli/") {
				f[name] = f[name] || !v.Field(i).IsZero()
			}
			fmt.Fprintf(text, "%s:", v.Type().Field(i).Name)
			f.walk(text, v.Field(i))
			text.WriteString(" ")
		}
		text.WriteString("}")
	case reflect.Map:
		var all []string
		for key, value := range v.Seq2() {
			var entry strings.Builder
			f.walk(&entry, key)
			entry.WriteString("=")
			f.walk(&entry, value)
			all = append(all, entry.String())
		}
		slices.Sort(all)
		fmt.Fprint(text, all)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8 {
			fmt.Fprintf(text, "%x", v) // an id
			return
		}
		text.WriteString("[")
		for i := range v.Len() {
			f.walk(text, v.Index(i))
			text.WriteString(" ")
		}
		text.WriteString("]")
	default:
		fmt.Fprint(text, v)
	}
}

// Only the hash of the state is accepted, and counts begin anew after it.
func TestCompact(t *testing.T) {
	s := newTown(t)
	s.claiming.acts, s.undoing.acts = maxClaimActs, maxRollbackActs
	if got := s.say("ada", "claim 0,0 9,9 home"); got != "! this world has had too many commands about claims: only moderators give them now" {
		t.Error(got)
	}
	s.check([3]string{"", fmt.Sprintf("compact %d 0123", s.Acts()), "! " + ErrOtherState.Error()})
	s.check([3]string{"", s.CompactText() + " x", "! usage: /compact [ACTS HASH]"})
	s.check([3]string{"", "compact", "! usage: /compact [ACTS HASH]"})
	s.check([3]string{"ada", s.CompactText(), "! /compact is for the role operator and above; yours is builder"})
	before := s.CompactText()
	s.check([3]string{"", "say hi", "an operator: hi"})
	s.check([3]string{"", before, "! other commands came between: try again"})
	acts := s.Acts()
	s.check([3]string{"", s.CompactText(), fmt.Sprintf("%d commands are compacted.", acts)})
	if last, before := s.Compacted(); last != acts || before != 0 {
		t.Errorf("compacted %d and %d, want %d and 0", last, before, acts)
	}
	s.check([3]string{"ada", "claim 0,0 9,9 home", "The claim home is yours: 10 × 10 blocks. /trust home PLAYER lets others build in it."})
	for of, allowed := range map[uint64]bool{MaxActs + acts - 1: true, MaxActs + acts: false} {
		s.acts = of
		if err := s.Try(sign("", s.seq+1, s.now, "say hi")); (err == nil) != allowed {
			t.Errorf("after %d acts: %v", of, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	s := newScript(&testing.T{})
	for _, step := range [][2]string{{"ada", "register"}, {"ada", "claim 0,0 9,9 home"}, {"", "role create helper builder"}, {"", "role ada helper"}, {"", "ban eve"}, {"", "setwarp a 1 2 3"}, {"", "revert ada 5 0,0,0 9,9,9"}, {"", "set quota 10.0.0.0/8 5 5"}} {
		s.say(step[0], step[1])
	}
	f.Add(s.Snapshot()[0])
	f.Fuzz(func(t *testing.T, part []byte) {
		state, err := Restore(Snapshot{part}, 7)
		if err != nil {
			return
		}
		if state.Acts() != 7 {
			t.Error("another number of acts")
		}
		state.Judge(Subject{Player: idOf("ada"), Name: "ada"}, start)
		state.Try(nodemsg.Act{Key: make([]byte, 32), Operator: true, Text: "expire"}) //nolint:errcheck // it must not panic
	})
}

// A full state: 250,000 names and 20,000 claims.
func BenchmarkSnapshot(b *testing.B) {
	s := New()
	for i := range MaxNames {
		id := player.GuestID(fmt.Sprint(i))
		s.giveName(id, fmt.Sprintf("player%d", i), start.UnixMilli())
		s.members[id].seq = uint64(start.UnixMicro())
	}
	for i := range MaxClaims {
		x := int32(i%200) * 64
		z := int32(i/200) * 64
		box, err := parseBox(fmt.Sprintf("%d,%d", x, z), fmt.Sprintf("%d,%d", x+31, z+31))
		if err != nil {
			b.Fatal(err)
		}
		s.changeClaims(nil, &Claim{Owner: player.GuestID(fmt.Sprint(i)), Name: "home", Box: box, At: start.UnixMilli()})
	}
	bytes := 0
	for b.Loop() {
		bytes = 0
		for _, part := range s.Snapshot() {
			bytes += len(part)
		}
	}
	b.ReportMetric(float64(bytes)/1e6, "MB")
	snapshot := s.Snapshot()
	begun := time.Now()
	if _, err := Restore(snapshot, 7); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(begun).Seconds(), "s/restore")
}
