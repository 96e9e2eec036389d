package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Players below moderator cannot fill the acts: once the first half is used, each command of theirs that adds an act is
// refused, but for coming back, once. What is left is for moderators and operators.
func TestPlayersCannotFillTheActs(t *testing.T) {
	commandsOf := map[string]string{ // each would be carried out in an empty log
		"register": "register", "claim": "claim 100,100 109,109", "unclaim": "unclaim home", "trust": "trust home bob", "untrust": "untrust home eve",
		"flag": "flag home build all", "transfer": "transfer home bob", "revert": "revert bob 1 0,0,0 9,9,9", "undo": "undo 1", "pause": "pause 1",
		"resume": "resume 2", "abort": "abort 1", "owner": "owner ABCD-EFGH",
	}
	town := func(t *testing.T) *script {
		s := newTown(t)
		for _, step := range [][2]string{
			{"ada", "claim 0,0 9,9 home"},
			{"ada", "trust home eve"},
			{"ada", "revert bob 1 0,0,0 9,9,9"},
			{"ada", "revert eve 1 0,0,0 9,9,9"},
			{"ada", "pause 2"},
			{"", "token " + TokenHash("ABCD-EFGH")},
		} {
			if got := s.say(step[0], step[1]); strings.HasPrefix(got, "!") {
				t.Fatal(step, got)
			}
		}
		return s
	}
	for _, c := range commands {
		if c.run == nil || c.Role == operator || c.Role.AtLeast(Moderator) || c.Name == seenCommand {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			by, text := "ada", commandsOf[c.Name]
			if c.Name == "register" {
				by = "new"
			}
			if text == "" {
				t.Fatal("a new command of players: what ends it?")
			}
			act := func(s *script) error {
				s.seq++
				s.now = s.now.Add(time.Second)
				return s.Try(sign(by, s.seq, s.now, text))
			}
			s := town(t)
			if err := act(s); err != nil {
				t.Fatalf("before the half: %v", err)
			}
			s.acts = MaxActs / 2
			switch err := act(s); {
			case c.Name == "owner": // needs a token of an operator's, which counts once
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Errorf("/%s is entered after the half", text)
			}
			s.acts = MaxActs - 1
			if got := s.say("mod", "mute gus"); strings.HasPrefix(got, "!") {
				t.Errorf("the last act is not for a moderator: %s", got)
			}
			if err := s.Try(sign("mod", s.seq+1, s.now, "unmute gus")); err == nil {
				t.Error("there is an act after the last")
			}
		})
	}
	if left := MaxActs/2 - MaxNames - MaxClaims; left < 200_000 {
		t.Errorf("%d acts are left for moderators and operators", left)
	}
}

// A player comes back once for each name and each claim: whoever has a key can sign any number of logins.
func TestComingBackIsEnteredOnce(t *testing.T) {
	s := newScript(t)
	back := func(by string) error {
		s.now = s.now.Add(time.Second)
		s.seq = uint64(s.now.Sub(start).Microseconds()) //nolint:gosec // positive
		act := Seen("gateway", by, loggedIn(by, s.now))
		act.At = s.now.UnixMilli()
		err := s.Try(act)
		if err == nil {
			_, err = s.Apply(act)
		}
		return err
	}
	if back("ada") == nil {
		t.Error("a player of whom nothing is known comes back")
	}
	s.say("ada", "register")
	if back("ada") == nil {
		t.Error("a player comes back at once")
	}
	s.pass(25 * time.Hour)
	s.say("eve", "register")
	if err := back("ada"); err != nil {
		t.Error(err)
	}
	for range 3 {
		if back("ada") == nil {
			t.Error("a player comes back again, which confirms nothing")
		}
	}
	s.say("ada", "claim 0,0 9,9 home")
	s.say("ada", "claim 100,0 109,9 mill")
	s.pass(25 * time.Hour)
	if err := back("ada"); err != nil {
		t.Errorf("two new claims are not confirmed: %v", err)
	}
	if back("ada") == nil {
		t.Error("two claims are confirmed twice")
	}
}

// A restore enters what a log of commands has come to: one command for each player of whom something is left, each
// claim, member and setting, whatever number of commands has led there. What can be seen is the same.
func TestExportHasWhatCounts(t *testing.T) {
	before := newScript(t)
	say := func(by, text string) {
		t.Helper()
		if got := before.say(by, text); strings.HasPrefix(got, "!") {
			t.Fatalf("%s: /%s: %s", by, text, got)
		}
	}
	back := func(by string) {
		before.now = before.now.Add(time.Second)
		before.seq = uint64(before.now.Sub(start).Microseconds()) //nolint:gosec // positive
		act := Seen("gateway", by, loggedIn(by, before.now))
		act.At = before.now.UnixMilli()
		if _, err := before.Apply(act); err != nil {
			t.Fatal(err)
		}
	}
	const players = 200
	say("", "expire")
	say("mod", "register")
	say("", "role mod moderator")
	for i := range players {
		by := fmt.Sprintf("p%d", i)
		say(by, "register")
		say(by, fmt.Sprintf("claim %d,0 %d,9 home", 100*i, 100*i+9))
		say(by, "flag home build all")
		say(by, "flag home build members")
		say(by, fmt.Sprintf("claim %d,50 %d,59 mill", 100*i, 100*i+9))
		say(by, "unclaim mill")
		say("mod", "mute "+by)
		say("mod", "unmute "+by)
		say("mod", "say hello")
	}
	before.pass(day)
	for i := 0; i < players; i += 4 { // the others never come back
		by := fmt.Sprintf("p%d", i)
		back(by)
		say(by, "trust home mod")
	}
	say("mod", "ban p0 60d griefing")
	before.pass(35 * day)
	say("", "set message Welcome")
	say("", "set border 2000")
	say("", "expire")

	urgent, names := before.Commands(before.now)
	after := newScript(t)
	after.now = before.now
	for _, text := range append(urgent, names...) {
		if got := after.say("", text); strings.HasPrefix(got, "!") {
			t.Errorf("%s: %s", text, got)
		}
	}
	counts := len(before.members) + before.Claims().Count()*2 + 1 /* ban */ + 5 /* settings */ + 1 /* numbered */
	if after.Acts() != uint64(counts) || before.Acts() < 10*after.Acts() {                         //nolint:gosec // a count
		t.Errorf("%d commands became %d, want %d", before.Acts(), after.Acts(), counts)
	}
	if len(before.names) != players/4+1 || before.Claims().Count() != players/4 {
		t.Errorf("%d names and %d claims are left", len(before.names), before.Claims().Count())
	}
	claims := func(s *script) (all []Claim) {
		s.Claims().All(func(c *Claim) {
			seen := *c
			seen.At, seen.Used = 0, true // a backup does not say how old they are
			all = append(all, seen)
		})
		return all
	}
	if !reflect.DeepEqual(shown(after.State), shown(before.State)) || !reflect.DeepEqual(after.names, before.names) || !reflect.DeepEqual(after.Settings(), before.Settings()) || !reflect.DeepEqual(claims(after), claims(before)) || !reflect.DeepEqual(after.Sanctions(before.now), before.Sanctions(before.now)) {
		t.Error("something that can be seen differs")
	}
	if after.Used() > before.Used()/10 {
		t.Errorf("%v of the log is used, before it was %v", after.Used(), before.Used())
	}
}
