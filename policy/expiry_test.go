package policy

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// loggedIn returns a login of a player at a time.
func loggedIn(by string, at time.Time) player.Login {
	key := keyOf(by)
	login := player.Login{Key: [32]byte(key.Public().(ed25519.PublicKey)), At: at.UnixMilli(), Salt: [16]byte{7}}
	login.Signature = [64]byte(ed25519.Sign(key, player.ProofText(login.Nonce("gateway"), world)))
	return login
}

// comeBack lets a player log in now.
func (s *script) comeBack(by string) {
	s.t.Helper()
	s.seq++
	s.now = s.now.Add(time.Second)
	act := Seen("gateway", by, loggedIn(by, s.now))
	act.At = s.now.UnixMilli()
	if !Signed(world, act) {
		s.t.Fatalf("the login of %s does not count", by)
	}
	if _, err := s.Apply(act); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) check(steps ...[3]string) {
	s.t.Helper()
	for _, step := range steps {
		if got := s.say(step[0], step[1]); got != step[2] {
			s.t.Errorf("%s: /%s: %q, want %q", step[0], step[1], got, step[2])
		}
	}
}

const day = 24 * time.Hour

// Names and claims end whose players never come back. One who has come back on another day keeps both, as does who was
// given a role.
func TestUnusedNamesAndClaimsExpire(t *testing.T) {
	s := newScript(t)
	for i, by := range []string{"squat", "ada", "mod", "old"} {
		s.say(by, "register")
		s.say(by, fmt.Sprintf("claim %d,0 %d,9 home", 100*i, 100*i+9))
	}
	s.say("", "role mod moderator")
	s.check([3]string{"", "expire", "From now on names and claims that are not used expire."})
	if s.Unconfirmed(idOf("ada"), s.now.Add(19*time.Hour)) || !s.Unconfirmed(idOf("ada"), s.now.Add(21*time.Hour)) {
		t.Error("who comes back on the same day counts, or on the next does not")
	}
	s.comeBack("squat") // at once: a script does
	s.pass(day)
	s.comeBack("ada")
	s.say("old", "flag home build all") // a command counts, too
	if s.Unconfirmed(idOf("ada"), s.now.Add(day)) {
		t.Error("ada is to confirm her name again")
	}
	s.pass(28 * day)
	if s.Expires(s.now) {
		t.Error("something expires after 29 days")
	}
	s.pass(day)
	if !s.Expires(s.now) {
		t.Error("nothing expires after 30 days")
	}
	s.check(
		[3]string{"", "expire", "1 name, 1 claim and 0 requests have expired."},
		[3]string{"", "expire", "0 names, 0 claims and 0 requests have expired."},
		[3]string{"eve", "claim 500,0 509,9", "! register your name first, by /register: others see whose claim it is"},
	)
	if _, taken := s.OwnerOf("squat"); taken || s.Claims().Count() != 3 || s.Expires(s.now) {
		t.Errorf("squat's name is taken: %t; %d claims", taken, s.Claims().Count())
	}
	for _, by := range []string{"ada", "mod", "old"} {
		if s.NameOf(idOf(by)) != by || len(s.Claims().Of(idOf(by))) != 1 {
			t.Errorf("%s has lost their name or claim", by)
		}
	}
}

// A claim of a player who has been known for long ends, too, if they never come back after it.
func TestUnusedClaimExpires(t *testing.T) {
	s := newTown(t)
	s.say("", "expire")
	s.comeBack("ada")
	s.say("ada", "claim 0,0 9,9 home")
	s.pass(31 * day)
	s.say("", "expire")
	if s.NameOf(idOf("ada")) != "ada" || s.Claims().Count() != 0 {
		t.Errorf("ada's name is %q, and there are %d claims", s.NameOf(idOf("ada")), s.Claims().Count())
	}
}

// Nothing ends by one clock: neither that of the operator nor that of the catalog's leader. What is older than the rule
// has its time from then on.
func TestExpiryNeedsTwoClocks(t *testing.T) {
	s := newScript(t)
	s.say("ada", "register")
	s.pass(100 * day)
	s.check([3]string{"", "expire", "From now on names and claims that are not used expire."})
	for what, times := range map[string][2]time.Duration{"operator": {400 * day, 0}, "leader": {0, 400 * day}} {
		s.seq++
		act := sign("", s.seq+uint64(times[0].Microseconds()), s.now.Add(times[1]), "expire")
		delete(s.nodes, idOf("")) // the number of the command of before, which may be of the future
		if _, err := s.Apply(act); err != nil {
			t.Fatal(err)
		}
		if s.NameOf(idOf("ada")) != "ada" {
			t.Errorf("the clock of the %s has ended a name", what)
		}
	}
}

// Only a login of the key's owner counts, with the time that they have signed.
func TestSeenIsSigned(t *testing.T) {
	login := loggedIn("ada", start)
	for what, change := range map[string]func(*nodemsg.Act){
		"":                func(*nodemsg.Act) {},
		"another gateway": func(a *nodemsg.Act) { a.Text = Seen("other", "ada", login).Text },
		"another time":    func(a *nodemsg.Act) { later := login; later.At += 1000; a.Text = Seen("gateway", "ada", later).Text },
		"a number":        func(a *nodemsg.Act) { a.Seq++ },
		"another player":  func(a *nodemsg.Act) { a.Key = keyOf("eve").Public().(ed25519.PublicKey) },
		"an operator":     func(a *nodemsg.Act) { a.Operator, a.Name = true, "" },
		"another command": func(a *nodemsg.Act) { a.Text = "register" },
		"a number and time": func(a *nodemsg.Act) {
			later := login
			later.At += 1000
			*a = Seen("gateway", "ada", later)
			a.Signature = login.Signature[:]
		},
	} {
		act := Seen("gateway", "ada", login)
		change(&act)
		if act.Valid() != nil {
			t.Fatal(what, act.Valid())
		}
		if got := Signed(world, act); got != (what == "") {
			t.Errorf("with %q changed, the signature is right: %t", what, got)
		}
	}
}

// Who is forgotten cannot have a command of before carried out again; who is new can give commands.
func TestForgottenPlayers(t *testing.T) {
	s := newScript(t)
	s.say("", "expire")
	s.seq++
	old := sign("squat", s.seq, s.now, "register")
	if _, err := s.Apply(old); err != nil {
		t.Fatal(err)
	}
	s.pass(31 * day)
	s.say("", "expire")
	if len(s.members) != 0 {
		t.Errorf("%d players are known", len(s.members))
	}
	if _, err := s.Apply(old); err == nil {
		t.Error("a command of before is carried out again")
	}
	s.check([3]string{"squat", "register", "The name squat is yours: nobody else can use it."})
}

func TestSetExpiry(t *testing.T) {
	s := newTown(t)
	s.check(
		[3]string{"", "set expiry 1d", "! choose 2 days to 365 days"},
		[3]string{"", "set expiry", "! usage: /set expiry TIME | off"},
		[3]string{"", "set expiry 90d", "Names and claims that are not used expire after 90 days."},
		[3]string{"", "set expiry off", "Names and claims do not expire."},
		[3]string{"", "expire", "! names and claims do not expire in this world (set expiry)"},
		[3]string{"ada", "expire", "! /expire is for the role operator and above; yours is builder"},
	)
}
