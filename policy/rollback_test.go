package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

func TestRollbackCommands(t *testing.T) {
	s := newScript(t)
	for _, name := range []string{"ada", "bob", "eve"} {
		s.say(name, "register")
	}
	s.say("", "role ada admin")
	s.say("", "role bob moderator")
	box := grid.BoxOf(grid.Pos{X: 9, Y: 60, Z: -9}, grid.Pos{X: -9, Y: 20, Z: 9})
	since := start.Add(-2*time.Hour).UnixMilli() + 999
	of := func(who string) string { return RevertText(who, since, box) }
	for _, step := range []struct{ by, text, want string }{
		{"eve", of("bob"), "! only the role moderator and above may undo changes outside of their own claims: choose two corners in a claim of yours"},
		{"bob", of("ada"), "! they have the role admin: only a higher one than theirs may do that"},
		{"bob", of("*"), "! to undo the changes of everybody is for the role admin and above: name a player"},
		{"bob", of("10.0.0.1"), `! "10.0.0.1" is neither a player's name nor an id`},
		{"bob", "undo", "! you have ordered no rollback: name the number of one that /rollbacks lists"},
		{"bob", of("eve"), "Rollback 1 has begun."},
		{"eve", "undo 1", "! rollback 1 is not yours"},
		{"bob", of("bob"), "Rollback 2 has begun."},
		{"ada", of("*"), "Rollback 3 has begun."},
		{"bob", of("Mallory"), "Rollback 4 has begun."},
		{"bob", "undo 9", "! there is no rollback 9: /rollbacks lists them"},
		{"bob", "undo", "Rollback 5 has begun."},
		{"bob", "pause 1", "Rollback 1 is paused."},
		{"bob", "resume 1", "Rollback 1 goes on."},
		{"ada", "abort 1", "Rollback 1 is aborted: what it has undone stays so."},
		{"bob", "pause 1", "! rollback 1 was aborted"},
		{"bob", "revert eve x 1,2,3 4,5,6", `! "x" is not a time in seconds since 1970`},
		{"bob", "revert eve 1 1,2 4,5,6", `! "1,2" is not a position: write X,Y,Z`},
		{"bob", "revert eve 1 0,0,0 3584,5,6", "! the area is too large: at most 3584 blocks to each side"},
		{"bob", "revert eve", "! usage: /revert PLAYERS SINCE X,Y,Z X,Y,Z"},
		{"", of("ada"), "Rollback 6 has begun."},
		{"bob", of("eve,Mallory,eve"), "Rollback 7 has begun."},
		{"bob", of("eve,ada"), "! they have the role admin: only a higher one than theirs may do that"},
		{"ada", of("eve,*"), `! "*" is neither a player's name nor an id`},
		{"ada", of("eve,"), `! "" is neither a player's name nor an id`},
		{"bob", of("a1,a2,a3,a4,a5,a6,a7,a8,a9"), "! 9 players are too many: name at most 8"},
	} {
		if got := s.say(step.by, step.text); got != step.want {
			t.Errorf("%s: /%s: %s, want %s", step.by, step.text, got, step.want)
		}
	}
	all := s.Rollbacks()
	for i, want := range [][]player.ID{
		{idOf("eve")}, {idOf("bob")}, nil, {player.GuestID("Mallory")}, {history.Author(all[3].Number)}, {idOf("ada")}, {idOf("eve"), player.GuestID("Mallory")},
	} {
		r := all[i]
		if !slices.Equal(r.Players, want) || r.Box != box || r.ID != i+1 || i > 0 && r.Number <= all[i-1].Number {
			t.Errorf("rollback %d: %+v, want one of %v", i, r, want)
		}
		if undoes := i == 4; r.Until != 0 || r.Marked == undoes || !undoes && r.Since != since/1000*1000 || undoes && r.Since != 0 {
			t.Errorf("rollback %d is from %d until %d, marked: %v", i, r.Since, r.Until, r.Marked)
		}
	}
	if got, want := all[4].Line().Text, "5: bob undoes rollback 4 between -9,20,-9 and 9,60,9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := all[6].Line().Text, "7: bob undoes changes of eve, Mallory, eve between -9,20,-9 and 9,60,9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.HasSuffix(all[0].Line().Text, "undoes changes of eve between -9,20,-9 and 9,60,9 (aborted)") {
		t.Errorf("%q", all[0].Line().Text)
	}
}

// Rollbacks of more players than fit into a line are refused.
func TestRollbackOfTooMany(t *testing.T) {
	s := newScript(t)
	s.say("", "role ada admin")
	if _, err := s.ProposeRollback(strings.Repeat(idOf("eve").String()+",", 9)+"bob", 0, grid.Box{}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("too many ids for one line: %v", err)
	}
	origin := grid.BoxOf(grid.Pos{}, grid.Pos{X: 1, Y: 1, Z: 1})
	for _, name := range []string{strings.Repeat("guest:bob,", 21) + "guest:bob", strings.Repeat("guest:bob,", 17) + "guest:bob"} {
		since := time.Now().UnixMilli()
		_, err := s.ProposeRollback(name, since, grid.Box{})
		far := grid.BoxOf(grid.Pos{X: -1 << 26, Z: -1 << 26}, grid.Pos{X: 100 - 1<<26, Y: 127, Z: 100 - 1<<26})
		if fits := len(RevertText(name, since, far)) <= wire.MaxChat; fits != (err == nil) {
			t.Errorf("%d bytes of names, for a box that may be far away: %v", len(name), err)
		}
		if _, err := s.ProposeRollback(name, since, origin); err != nil {
			t.Errorf("%d bytes of names, for a near box: %v", len(name), err)
		}
	}
}

// Owners of claims roll back in them, whoever changed them, and nowhere else.
func TestRollbackInAClaim(t *testing.T) {
	s := newScript(t)
	for _, name := range []string{"ada", "eve"} {
		s.say(name, "register")
	}
	s.say("", "role eve admin")
	if got := s.say("ada", "claim 0,0 20,20 home"); strings.HasPrefix(got, "!") {
		t.Fatal(got)
	}
	inside := grid.BoxOf(grid.Pos{X: 1, Y: 5, Z: 1}, grid.Pos{X: 20, Y: 60, Z: 9})
	outside := grid.BoxOf(inside.Min, grid.Pos{X: 21, Y: 60, Z: 9})
	if got := s.say("ada", RevertText("eve", 0, inside)); got != "Rollback 1 has begun." {
		t.Error(got)
	}
	if got := s.say("ada", RevertText("*", 0, inside)); got != "Rollback 2 has begun." {
		t.Error(got)
	}
	if got := s.say("ada", RevertText("eve", 0, outside)); !strings.HasPrefix(got, "! only the role moderator") {
		t.Error(got)
	}
	if got := s.say("ada", "undo"); got != "Rollback 3 has begun." {
		t.Error(got)
	}
	if got := s.say("eve", "abort 1"); !strings.HasPrefix(got, "Rollback 1 is aborted") {
		t.Error(got)
	}
	s.say("ada", "pause 2")
	s.say("ada", "unclaim home")
	for _, text := range []string{"undo 2", "resume 2"} {
		if err := s.Try(sign("ada", s.seq+1, s.now, text)); !errors.Is(err, errNotOwned) {
			t.Errorf("%s in land that was theirs: %v", text, err)
		}
	}
	if got := s.say("ada", "abort 2"); !strings.HasPrefix(got, "Rollback 2 is aborted") {
		t.Error(got)
	}
}

// What is older than a claim is not its owner's to undo. Those who need no claim for a rollback are not bound by one of
// theirs. A claim keeps its mark when it is changed, given away or restored, and a rollback that is bound by it when it
// is given up.
func TestRollbackInAClaimIsBoundByIt(t *testing.T) {
	s := newScript(t)
	for _, name := range []string{"ada", "bob", "eve"} {
		s.say(name, "register")
	}
	s.say("", "role bob moderator")
	s.say("", "role eve admin")
	inside := grid.BoxOf(grid.Pos{X: 1, Y: 5, Z: 1}, grid.Pos{X: 20, Y: 60, Z: 9})
	last := func() Rollback { return s.Rollbacks()[len(s.Rollbacks())-1] }
	of := func(name string) *Claim { return s.claims.Of(idOf(name))[0] }
	s.say("ada", "claim 0,0 20,20 home")
	number := of("ada").Number
	for _, c := range []struct {
		by, of string
		bound  bool
	}{{"ada", "eve", true}, {"ada", "ada", true}, {"bob", "ada", false}, {"eve", "*", false}, {"", "*", false}} {
		if got := s.say(c.by, RevertText(c.of, 0, inside)); strings.HasPrefix(got, "!") {
			t.Fatal(got)
		}
		if got := last(); (got.After == number) != c.bound || (got.After == 0) == c.bound || got.Number <= number || !got.Marked {
			t.Errorf("%q undoes what %s did after %d, as order %d; the claim has %d", c.by, c.of, got.After, got.Number, number)
		}
		if p := s.ProposedTo(idOf(c.by), c.of, history.Rollback{Filter: history.Filter{Box: inside, Players: last().Players}}); c.by != "" && p.After != last().After {
			t.Errorf("what is proposed to %s would be after %d", c.by, p.After)
		}
	}
	s.say("ada", "trust home eve")
	s.say("ada", "transfer home bob")
	commands, _ := s.Commands(start)
	restored := newScript(t)
	for _, text := range commands {
		restored.say("", text)
	}
	for what, c := range map[string]*Claim{"given away": of("bob"), "restored": restored.claims.Of(idOf("bob"))[0]} {
		if c.Number != number {
			t.Errorf("a claim that was %s has the number %d, want %d", what, c.Number, number)
		}
	}
	s.say("bob", RevertText("*", 0, inside)) // for a moderator only in their own claim
	if got := last(); got.After != number {
		t.Errorf("a moderator undoes everything in their claim after %d", got.After)
	}
	s.say("bob", "unclaim home")
	marks := s.Builders().Marks(grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel), 0, 0)
	if len(marks) != 1+len(s.Rollbacks()) || marks[0].Number != number || marks[1].Number != s.Rollbacks()[0].Number {
		t.Errorf("without the claim there are the marks %+v", marks)
	}
	if more := s.Builders().Marks(grid.CellAt(grid.ChunkPos{X: 500}, grid.FoundingLabel), 0, 0); len(more) > 0 {
		t.Errorf("elsewhere there are the marks %+v", more)
	}
	if rest := s.Builders().Marks(grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel), marks[2].Number, marks[3].Number); len(rest) != len(marks)-4 {
		t.Errorf("of %d marks, the last without three and one that is over are %+v", len(marks), rest)
	}
}

// Rollbacks are bounded, and a list that was read does not change.
func TestRollbacksAreBounded(t *testing.T) {
	s := newScript(t)
	s.say("", RevertText("eve", 0, grid.Box{}))
	before := s.Rollbacks()
	s.say("", "abort 1")
	if before[0].Aborted || !s.Rollbacks()[0].Aborted {
		t.Error("aborting a rollback changed a list that was read, or none")
	}
	for range MaxRollbacks {
		s.say("", RevertText("eve", 0, grid.Box{}))
	}
	if all := s.Rollbacks(); len(all) != MaxRollbacks || all[0].ID != 2 || fmt.Sprint(all[MaxRollbacks-1].ID) != "1001" {
		t.Errorf("%d rollbacks are kept, from %d on", len(all), all[0].ID)
	}
}

// Whoever plays with the name of a moderator cannot end their rollback by leaving out its number. What was entered
// before that was refused keeps its effect.
func TestRollbackOfANamesake(t *testing.T) {
	s := newScript(t)
	s.say("", "role "+idOf("ada").String()+" moderator")
	box := grid.BoxOf(grid.Pos{X: 9, Y: 60, Z: -9}, grid.Pos{X: -9, Y: 20, Z: 9})
	s.say("ada", RevertText("eve", start.UnixMilli(), box))
	for _, command := range []string{"pause", "resume", "abort", "undo"} {
		s.seq++
		act := sign("eve", s.seq, s.now, command)
		act.Name = "ada"
		if err := s.Try(act); err == nil || !strings.HasPrefix(err.Error(), "rollback 1 was ordered by another player with your name") {
			t.Errorf("/%s: %v", command, err)
		}
		if _, err := s.Apply(act); err != nil {
			t.Errorf("/%s that is in the catalog: %v", command, err)
		}
	}
	s.say("ada", RevertText("eve", start.UnixMilli(), box))
	if got := s.say("ada", "pause"); got != "Rollback 3 is paused." {
		t.Error(got)
	}
	if got := s.say("", RevertText("eve", start.UnixMilli(), box)) + s.say("", "abort"); !strings.HasSuffix(got, "Rollback 4 is aborted: what it has undone stays so.") {
		t.Error(got)
	}
}

// refuses reports why a command is not entered; one that an earlier version has entered is carried out.
func (s *script) refuses(by, text string) string {
	s.t.Helper()
	s.seq++
	act := sign(by, s.seq, s.now, text)
	why := s.Try(act)
	if _, err := s.Apply(act); err != nil || why == nil {
		s.t.Errorf("%s: /%s: when it is entered: %v; in the catalog: %v", by, text, why, err)
	}
	return fmt.Sprint(why)
}

// Owners of claims cannot fill the catalog with commands about rollbacks: each gives so many a day, all of them so
// many. Moderators go on.
func TestRollbackCommandsAreLimited(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 20,20 home")
	order := RevertText("eve", 0, grid.BoxOf(grid.Pos{X: 1, Y: 5, Z: 1}, grid.Pos{X: 9, Y: 60, Z: 9}))
	s.say("ada", order)
	s.say("ada", "pause 1")
	if got := s.refuses("ada", "pause 1"); got != "nothing was changed: Rollback 1 is paused." {
		t.Error(got)
	}
	s.say("ada", "resume 1")
	if got := s.refuses("ada", "resume 1"); got != "nothing was changed: Rollback 1 goes on." {
		t.Error(got)
	}
	for n := 5; n < changesADay; n++ {
		if got := s.say("ada", []string{"resume 1", "pause 1"}[n%2]); strings.HasPrefix(got, "!") {
			t.Fatalf("after %d commands: %s", n, got)
		}
	}
	for _, text := range []string{order, "resume 1", "abort 1", "undo 1"} {
		if got := s.refuses("ada", text); got != "you have given 200 commands about rollbacks today: go on tomorrow" {
			t.Errorf("/%s: %s", text, got)
		}
	}
	if got := s.say("ada", "flag home build all"); strings.HasPrefix(got, "!") {
		t.Errorf("claims are counted with rollbacks: %s", got)
	}
	for range changesADay + 1 {
		if got := s.say("mod", order); strings.HasPrefix(got, "!") {
			t.Fatal(got)
		}
	}
	s.pass(24 * time.Hour)
	if got := s.say("ada", order); strings.HasPrefix(got, "!") {
		t.Errorf("the next day: %s", got)
	}
	for what, fill := range map[string]func(){
		"so many about rollbacks": func() { s.undoing.acts = maxRollbackActs },
		"half of all":             func() { s.undoing.acts, s.acts = 0, MaxActs/2 },
	} {
		fill()
		if got := s.refuses("ada", order); got != "this world has had too many commands about rollbacks: only moderators give them now" {
			t.Errorf("after %s: %s", what, got)
		}
		for _, by := range []string{"mod", ""} {
			if got := s.say(by, order); strings.HasPrefix(got, "!") {
				t.Errorf("after %s, %q: %s", what, by, got)
			}
		}
	}
}

// Owners of claims cannot drop a moderator's rollback from the list while it may be left to be carried out.
func TestBuildersKeepRollbacksOfModerators(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 20,20 home")
	order := RevertText("eve", 0, grid.BoxOf(grid.Pos{X: 1, Y: 5, Z: 1}, grid.Pos{X: 9, Y: 60, Z: 9}))
	s.say("mod", order)
	s.say("mod", "pause")
	for range MaxRollbacks - 2 {
		s.say("", order)
	}
	if got := s.say("ada", order); got != "Rollback 1000 has begun." {
		t.Fatal(got)
	}
	for _, text := range []string{order, "undo 1000"} {
		err := s.Try(sign("ada", s.seq+1, s.now, text))
		if err == nil || err.Error() != "the list of rollbacks is full, and rollback 1, its first, may not be complete: ask a moderator to order yours" {
			t.Errorf("/%s: %v", text, err)
		}
	}
	s.say("mod", "abort 1")
	if got := s.say("ada", order); got != "Rollback 1001 has begun." {
		t.Error(got)
	}
	if got := s.refuses("ada", order); !strings.Contains(got, "rollback 2, its first") {
		t.Error(got)
	}
	s.pass(listedFor)
	if got := s.say("ada", order); got != "Rollback 1003 has begun." {
		t.Error(got)
	}
	if got := s.say("mod", order); got != "Rollback 1004 has begun." {
		t.Error(got)
	}
}

// An owner of a claim cannot fill the list, so that a moderator's rollback becomes its first and nobody else may order
// any.
func TestRollbacksOfOneBuilderAreLimited(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 20,20 home")
	s.say("bob", "claim 100,0 120,20 home")
	order := func(x int32) string {
		return RevertText("eve", 0, grid.BoxOf(grid.Pos{X: x, Y: 5, Z: 1}, grid.Pos{X: x + 8, Y: 60, Z: 9}))
	}
	s.say("mod", order(1))
	for n := range maxRollbacksOfOne {
		if got, want := s.say("ada", order(1)), fmt.Sprintf("Rollback %d has begun.", n+2); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	s.say("ada", "abort")
	for _, text := range []string{order(1), "undo 2"} {
		if got := s.refuses("ada", text); got != "you have ordered 100 rollbacks within 30 days: ask a moderator to order yours" {
			t.Errorf("/%s: %s", text, got)
		}
	}
	for by, text := range map[string]string{"bob": order(101), "mod": order(1), "": order(1)} {
		if got := s.say(by, text); strings.HasPrefix(got, "!") {
			t.Errorf("%q: /%s: %s", by, text, got)
		}
	}
	s.pass(listedFor)
	if got := s.say("ada", order(1)); strings.HasPrefix(got, "!") {
		t.Errorf("after 30 days: %s", got)
	}
}
