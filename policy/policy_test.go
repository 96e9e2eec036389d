package policy

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const world = "w"

var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// keyOf returns the key of a player or node of the tests.
func keyOf(name string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	return ed25519.NewKeyFromSeed(seed)
}

func idOf(name string) player.ID { return player.IDOf(keyOf(name).Public().(ed25519.PublicKey)) }

// sign returns an act; by "" is an operator.
func sign(by string, seq uint64, at time.Time, text string) nodemsg.Act {
	key := keyOf(by)
	seq += uint64(start.UnixMicro())
	act := nodemsg.Act{At: at.UnixMilli(), Key: key.Public().(ed25519.PublicKey), Seq: seq, Name: by, Operator: by == "", Text: text}
	act.Signature = ed25519.Sign(key, SignedText(world, act))
	return act
}

// script is a policy, and a clock.
type script struct {
	*State
	t   *testing.T
	seq uint64
	now time.Time
}

func newScript(t *testing.T) *script { return &script{State: New(), t: t, now: start} }

// say carries out a command, and returns what its author is told. A refused one begins with "!".
func (s *script) say(by, text string) string {
	s.seq++
	s.now = s.now.Add(time.Second)
	act := sign(by, s.seq, s.now, text)
	tried := s.Try(act)
	effect, err := s.Apply(act)
	if (tried == nil) != (err == nil) {
		s.t.Errorf("%s: /%s: Try returned %v, Apply %v", by, text, tried, err)
	}
	if err != nil {
		return "! " + err.Error()
	}
	return strings.TrimSpace(effect.Text.Text + " " + effect.Say)
}

func TestCommands(t *testing.T) {
	s := newScript(t)
	for _, step := range []struct{ by, text, want string }{
		{"ada", "register", "The name ada is yours: nobody else can use it."},
		{"ada", "register", "! the name ada is registered to you already"},
		{"eve", "register", "The name eve is yours: nobody else can use it."},
		{"bob", "register", "The name bob is yours: nobody else can use it."},
		{"eve", "ban ada", "! /ban is for the role moderator and above; yours is builder"},
		{"eve", "owner WRONG", "! that token is wrong, or was used already: voxeld owner prints a new one"},
		{"eve", "token " + TokenHash("MINE"), "! /token is for the role operator and above; yours is builder"},
		{"", "token " + TokenHash("ABCD-EFGH"), "The token is valid for one player."},
		{"ada", "owner abcdefgh", "You own this world now. /help lists what you may do."},
		{"eve", "owner ABCD-EFGH", "! that token is wrong, or was used already: voxeld owner prints a new one"},
		{"ada", "role bob moderator", "bob has the role moderator."},
		{"bob", "role eve moderator", "! /role is for the role admin and above; yours is moderator"},
		{"bob", "ban ada", "! they have the role owner: only a higher one than theirs may do that"},
		{"bob", "ban eve 2h griefing the castle", "eve is banned for 2 hours."},
		{"eve", "register", "! You are banned from this world by bob (2 hours left): griefing the castle."},
		{"bob", "ban 203.0.113.7/24 1w", "203.0.113.0/24 is banned for 7 days."},
		{"bob", "ban 10.0.0.0/4", "! the network 10.0.0.0/4 is too large"},
		{"bob", "mute Zoe", "zoe is muted for good."},
		{"bob", "mute zoe 5", `! "5" is not a time: write 30m, 2h, 7d or 4w, or begin the reason with another word`},
		{"bob", "mute zoe 90m", "zoe is muted for 1 hour 30 minutes."},
		{"bob", "kick not!a!name", `! "not!a!name" is neither a name, a player's id, an address nor a network`},
		{"bob", "ban", "! usage: /ban NAME [TIME] [REASON]"},
		{"bob", "pardon eve", "The ban of eve is lifted."},
		{"bob", "pardon eve", "! there is no ban of eve"},
		{"bob", "unmute zoe", "The mute of zoe is lifted."},
		{"bob", "say hello", "bob: hello"},
		{"ada", "role " + idOf("eve").String() + " admin", "eve has the role admin."},
		{"eve", "role bob admin", "! only a higher role than admin may give, define or delete the role admin"},
		{"eve", "role eve builder", "eve has the role builder."},
		{"ada", "role zoe admin", "! the name zoe is registered to nobody: a page registers it when its player first builds, writes or claims land; or name their id"},
		{"ada", "role bob king", `! there is no role "king": choose one of none, visitor, builder, moderator, admin, owner`},
		{"ada", "set guests visitor", "The role of guests is now visitor."},
		{"ada", "set guests admin", "! choose none, visitor or builder"},
		{"ada", "set everything on", "! usage: /set players|guests|message|border|edits|bulk|floodban|original|claims|quota|approval|expiry|textures VALUE"},
		{"ada", "set message Be  kind", "Players read when they join: Be kind"},
		{"bob", "release zoe", "! /release is for the role admin and above; yours is moderator"},
		{"ada", "release Eve", "The name eve is free. It was that of " + idOf("eve").String() + "."},
		{"ada", "release eve", "! the name eve is registered to nobody"},
		{"eve", "register", "The name eve is yours: nobody else can use it."},
		{"", "role ada builder", "ada has the role builder."},
		{"ada", "fly", "! there is no command /fly: try /help"},
		{"ada", "help", "! there is no command /help: try /help"}, // a gateway answers it
	} {
		if got := s.say(step.by, step.text); got != step.want {
			t.Errorf("%s: /%s: %q, want %q", step.by, step.text, got, step.want)
		}
	}
	want := []Member{{Player: idOf("bob"), Name: "bob", Role: Moderator}, {Player: idOf("ada"), Name: "ada", Role: Builder}, {Player: idOf("eve"), Name: "eve", Role: Builder}}
	if members := shown(s.State); !reflect.DeepEqual(members, want) {
		t.Errorf("members %+v", members)
	}
}

// shown returns the members without what is not shown of them.
func shown(s *State) []Member {
	members := s.Roles().Members()
	for i := range members {
		members[i].seq, members[i].named, members[i].used = 0, 0, false
	}
	return members
}

// What a player signs, and what the catalog's leader adds, is no way around the rules.
func TestTricks(t *testing.T) {
	s := newScript(t)
	for _, by := range []string{"ada", "mod", "eve"} {
		s.say(by, "register")
	}
	s.say("", "role ada owner")
	s.say("", "role mod moderator")
	s.say("mod", "ban eve 2h")
	for text, who := range map[string]Subject{
		"ban 192.0.2.1": {Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("192.0.2.1")},
		"ban Boss":      {Player: idOf("ada"), Name: "boss"},
	} {
		if got := s.say("mod", text); strings.HasPrefix(got, "!") || !s.Judge(who, s.now).MayJoin() {
			t.Errorf("a moderator excludes an owner by /%s: %s", text, got)
		}
	}
	late := sign("mod", s.seq+1, s.now.Add(1000*time.Hour), "mute zoe 1h")
	if _, err := s.Apply(late); err != nil || s.Judge(Subject{Player: idOf("eve")}, s.now).Ban == nil {
		t.Errorf("the leader ends a ban by the time of another command: %v", err)
	}
	spoofed := sign("mod", s.seq+2, s.now, "say hello")
	spoofed.Name = "ada"
	if effect, err := s.Apply(spoofed); err != nil || strings.HasPrefix(effect.Say, "ada:") {
		t.Errorf("a moderator speaks as an owner: %q, %v", effect.Say, err)
	}
	renamed := sign("ada", s.seq+3, s.now, "register")
	renamed.Name = "boss"
	if _, err := s.Apply(renamed); err == nil {
		t.Error("a player registers one name after the other")
	}
	renamed.At, renamed.Seq = s.now.Add(nameKept).UnixMilli(), uint64(s.now.Add(nameKept).UnixMicro())
	if _, err := s.Apply(renamed); err != nil || s.NameFor(idOf("ada"), "ada") != "ada" {
		t.Errorf("a player cannot change their name: %v", err)
	}
}

func TestJudge(t *testing.T) {
	s := newScript(t)
	s.say("eve", "register")
	s.say("", "ban eve 1h")
	s.say("", "ban 198.51.100.0/24")
	s.say("", "ban 2001:db8::/32")
	s.say("", "ban 2001:db9::7")
	s.say("", "ban 2001:db9:0:1::7/128")
	s.say("", "mute loud 10m")
	s.say("", "set guests visitor")
	s.say("", "role "+idOf("vic").String()+" none")
	for _, c := range []struct {
		who                        Subject
		after                      time.Duration
		mayJoin, mayBuild, mayTalk bool
	}{
		{Subject{Player: idOf("ada"), Name: "ada"}, 0, true, true, true},
		{Subject{Player: idOf("eve"), Name: "innocent"}, 0, false, false, false},
		{Subject{Player: idOf("eve"), Name: "innocent"}, time.Hour, true, true, true},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("198.51.100.7")}, 0, false, false, false},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("::ffff:198.51.100.7")}, 0, false, false, false},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("2001:db8:1::1")}, 0, false, false, false},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("198.51.101.7")}, 0, true, true, true},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("2001:db9::ffff:1")}, 0, false, false, false}, // of the same /64
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("2001:db9:0:1::1")}, 0, false, false, false},
		{Subject{Player: idOf("ada"), Name: "ada", Address: netip.MustParseAddr("2001:db9:0:2::7")}, 0, true, true, true},
		{Subject{Player: idOf("x"), Name: "LOUD"}, 0, true, true, false},
		{Subject{Player: idOf("x"), Name: "loud"}, 11 * time.Minute, true, true, true},
		{Subject{Player: player.GuestID("gus"), Name: "gus", Guest: true}, 0, true, false, true},
		{Subject{Player: idOf("vic"), Name: "vic"}, 0, false, false, false},
	} {
		v := s.Judge(c.who, s.now.Add(c.after))
		if v.MayJoin() != c.mayJoin || v.MayBuild() != c.mayBuild || (v.MayJoin() && v.Mute == nil) != c.mayTalk {
			t.Errorf("%+v after %v: join %t, build %t, chat %t", c.who, c.after, v.MayJoin(), v.MayBuild(), v.Mute == nil)
		}
	}
	refusal := func(id player.ID, proof *nodemsg.Proof) string {
		return s.Builders().Refuse(&nodemsg.Intent{Player: id, Proof: *proof}, s.now)
	}
	key, guest := &nodemsg.Proof{Key: [32]byte{1}}, &nodemsg.Proof{Name: "gus"}
	for _, c := range []struct {
		id    player.ID
		proof *nodemsg.Proof
		want  bool
	}{
		{idOf("eve"), key, false},
		{idOf("vic"), key, false},
		{idOf("ada"), key, true},
		{player.GuestID("gus"), guest, false},
	} {
		if refusal(c.id, c.proof) == "" != c.want {
			t.Errorf("for a leader, %v with the proof %+v may build: %t", c.id, c.proof, !c.want)
		}
	}
	s.say("", "set players visitor")
	s.say("", "set guests builder")
	if refusal(idOf("ada"), key) == "" || refusal(player.GuestID("gus"), guest) != "" {
		t.Error("for a leader, players with a key may build where only guests may")
	}
	if name := s.NameFor(idOf("ada"), "Eve"); name == "Eve" || !strings.HasPrefix(name, "Eve-") {
		t.Errorf("a player takes the name of another as %q", name)
	}
	if len(s.Sanctions(s.now)) != 6 || len(s.Sanctions(s.now.Add(2*time.Hour))) != 4 {
		t.Errorf("sanctions %+v", s.Sanctions(s.now))
	}
}

// The commands of an export make the same policy, in which no act of before can be repeated.
func TestExport(t *testing.T) {
	before := newScript(t)
	for _, by := range []string{"ada", "bob", "eve"} {
		before.say(by, "register")
	}
	before.say("", "role ada owner")
	before.say("", "role "+idOf("zoe").String()+" none")
	for _, text := range []string{
		"role create helper builder claims=2,1000 deny=claim,trust rank=7 allow=Mute,kick", "role create Recruit visitor build=yes edits=3 bulk=off",
		"role bob helper", "set players recruit",
	} {
		if got := before.say("ada", text); strings.HasPrefix(got, "!") {
			t.Fatal(got)
		}
	}
	old := sign("ada", before.seq+1, before.now, "ban eve 2h griefing the castle "+strings.Repeat("again ", 30))
	for _, text := range []string{
		"ban 203.0.113.0/24", "mute loud 5m", "set guests none", "set message Be kind", "kick bob", "setspawn 7 64 -9", "set border -90,40 100,-200",
		"set original off", "set edits builder 40", "set edits visitor 5", "set bulk builder 4096 20000", "set bulk moderator off", "set floodban 24h",
		"set textures " + strings.Repeat("A", 43), "setwarp Market 1 2 -3", "setwarp farm 4 5 6",
	} {
		before.say("ada", text)
	}
	before.seq++
	if _, err := before.Apply(old); err == nil {
		t.Fatal("an old act was applied")
	}
	before.say("ada", old.Text)
	after := newScript(t)
	after.now = before.now
	urgent, names := before.Commands(before.now)
	if len(names) != 1 { // eve has no role
		t.Errorf("names %q", names)
	}
	for _, text := range append(urgent, names...) {
		if got := after.say("", text); strings.HasPrefix(got, "!") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got, want := after.Roles().Defined(), before.Roles().Defined(); len(got) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("roles: %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(shown(after.State), shown(before.State)) || !reflect.DeepEqual(after.Settings(), before.Settings()) || !reflect.DeepEqual(after.warps, before.warps) || !reflect.DeepEqual(after.names, before.names) {
		t.Errorf("after: %+v, %+v; before: %+v, %+v", shown(after.State), after.Settings(), shown(before.State), before.Settings())
	}
	got, want := after.Sanctions(before.now), before.Sanctions(before.now)
	for i := range want {
		want[i].Reason = want[i].Reason[:min(len(want[i].Reason), len(got[i].Reason))] // a long one may be cut
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after:  %+v\nbefore: %+v", got, want)
	}
	if _, err := after.Apply(old); err == nil {
		t.Error("an act of before was repeated")
	}
}

// While names are entered one after the other, players go on: whose name was registered by somebody else is taken over
// without it, but with the number of their last command, and whoever was given a role keeps it.
func TestExportMeetsChanges(t *testing.T) {
	before := newScript(t)
	for _, by := range []string{"ada", "bob", "eve"} {
		before.say(by, "register")
	}
	old := sign("ada", 1, before.now, "say again")
	_, names := before.Commands(before.now)
	after := newScript(t)
	after.now, after.seq = before.now, before.seq
	act := sign("mallory", 9, after.now, "register")
	act.Name = "ada"
	if _, err := after.Apply(act); err != nil {
		t.Fatal(err)
	}
	act = sign("eve", 9, after.now, "register")
	act.Name = "evelyn"
	if _, err := after.Apply(act); err != nil {
		t.Fatal(err)
	}
	after.seq = 10
	after.say("", "role "+idOf("bob").String()+" moderator")
	for _, text := range names {
		adapted := after.Adapt(text)
		if got := after.say("", adapted); strings.HasPrefix(got, "!") {
			t.Errorf("%s, as %s: %s", text, adapted, got)
		}
	}
	if owner, _ := after.OwnerOf("ada"); owner != idOf("mallory") || after.NameOf(idOf("bob")) != "bob" || after.NameOf(idOf("eve")) != "eve" {
		t.Errorf("names %v", after.names)
	}
	if after.roleOf(idOf("bob"), false) != Moderator {
		t.Error("bob has lost the role that he was given")
	}
	if _, err := after.Apply(old); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a command of before is carried out again: %v", err)
	}
	for _, text := range []string{"set message Hello", "member x 1 - ada", "member " + idOf("ada").String() + " 1 - ada more"} {
		if got := after.Adapt(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// An act counts once, and none that is older than one that was carried out.
func TestRepeatedActs(t *testing.T) {
	s := New()
	second, first := sign("ada", 2, start, "register"), sign("ada", 1, start, "register")
	if _, err := s.Apply(second); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(second); !errors.Is(err, ErrRepeated) {
		t.Errorf("the same again: %v", err)
	}
	if _, err := s.Apply(first); err == nil {
		t.Error("an older act was carried out")
	}
	operate := func(seq, charter uint64) error {
		act := sign("", seq, start, "say x")
		act.Charter = charter
		_, err := s.Apply(act)
		return err
	}
	if err := operate(1, 5); err != nil {
		t.Fatal(err)
	}
	if operate(2, 4) == nil {
		t.Error("an operator was taken for an issuer by a charter that was replaced")
	}
	if _, err := s.Apply(sign("ada", 3, start, "register")); err == nil || strings.Contains(err.Error(), "older") { // players have no charter
		t.Errorf("after an operator's act a player is told: %v", err)
	}
	if s.Acts() != 6 {
		t.Errorf("%d acts were counted", s.Acts())
	}
}

// No forgery is accepted: of 100,000 acts in which something was changed after they were signed, or which another key
// signed.
func TestForgedActs(t *testing.T) {
	all := 100_000
	if testing.Short() {
		all = 5_000
	}
	issued := func(uint64, ed25519.PublicKey) (bool, error) { return true, nil }
	act := sign("ada", 7, start, "ban eve")
	if err := Verify(world, act, issued); err != nil {
		t.Fatal(err)
	}
	other := sign("eve", 7, start, "ban eve")
	for i := range all {
		forged, of := act, world
		switch i % 7 {
		case 0:
			forged.Seq += uint64(i + 1)
		case 1:
			forged.Name = fmt.Sprintf("ada%d", i)
		case 2:
			forged.Text = fmt.Sprintf("ban eve %dh", i+1)
		case 3:
			forged.Key = other.Key
		case 4:
			forged.Signature = append([]byte(nil), act.Signature...)
			forged.Signature[i%64] ^= byte(1 << (i / 64 % 8))
		case 5:
			of = fmt.Sprintf("w%d", i)
		case 6:
			forged.Operator, forged.Name, forged.Charter = true, "", uint64(i)
		}
		if Verify(of, forged, issued) == nil {
			t.Fatalf("forgery %d was accepted: %+v", i, forged)
		}
	}
	operated := sign("", 7, start, "ban eve")
	for _, issued := range []Issued{
		func(uint64, ed25519.PublicKey) (bool, error) { return false, nil },
		func(uint64, ed25519.PublicKey) (bool, error) { return false, ErrUnknownCharter },
	} {
		if Verify(world, operated, issued) == nil {
			t.Error("an operator whose node is no issuer was obeyed")
		}
	}
}

// Nodes that apply the same acts have the same policy, whatever the acts are; and a refused act changes nothing but the
// number of acts.
func TestSamePolicyEverywhere(t *testing.T) {
	words := []string{
		"ban", "pardon", "kick", "mute", "unmute", "role", "register", "set", "say", "owner", "token", "players", "guests", "message", "none", "visitor",
		"setwarp", "delwarp", "setspawn", "border", "edits", "bulk", "4096", "original", "floodban", "off", "1", "-5,3", "default",
		"builder", "moderator", "admin", "owner", "1s", "2h", "ada", "bob", "eve", "192.0.2.1", "192.0.2.0/24", idOf("bob").String(), "T", TokenHash("T"),
		"claim", "unclaim", "trust", "untrust", "flag", "transfer", "claims", "0,0", "9,9", "5,5", "ada/1", "bob/1", "1", "home", "build", "enter", "all", "members",
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := New(), New()
		now := start
		for seq := range rapid.Uint64Range(1, 60).Draw(t, "acts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			by := rapid.SampledFrom([]string{"", "", "ada", "bob", "eve"}).Draw(t, "by")
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 4).Draw(t, "words"), " ")
			act := sign(by, seq+1, now, text)
			tried := a.Try(act)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("Try of %q changed the policy", text)
			}
			effect, err := a.Apply(act)
			again, errAgain := b.Apply(act)
			if !reflect.DeepEqual(effect, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) || fmt.Sprint(err) != fmt.Sprint(tried) {
				t.Fatalf("%q: %v %v, then %v %v; tried: %v", text, effect, err, again, errAgain, tried)
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("the policies differ: %+v, %+v", a, b)
		}
	})
}

func FuzzAct(f *testing.F) {
	for _, c := range commands {
		f.Add(c.Name+" "+c.Usage, "ada")
	}
	f.Add("ban 0::/1 9w", "")
	f.Add("role create helper builder build=no edits=5 claims=1,2 allow=kick,mute deny=claim rank=9", "ada")
	f.Add("role delete moderator", "ada")
	f.Fuzz(func(t *testing.T, text, by string) {
		s := newScript(t)
		act := sign(by, 1, start, text)
		if act.Valid() != nil {
			return
		}
		if by != "" {
			s.roles.assign(s.member(idOf(by)), Owner)
		}
		effect, err := s.Apply(act)
		if err == nil && effect.Text.Text == "" && effect.Say == "" {
			t.Errorf("/%s did nothing", text)
		}
		s.Judge(Subject{Player: idOf(by), Name: by, Address: netip.IPv6Loopback()}, start)
		s.Sanctions(start)
		again := newScript(t)
		for _, text := range roleCommands(s.roles) {
			if got := again.say("", text); len(text) > wire.MaxChat || strings.HasPrefix(got, "!") {
				t.Errorf("after %q, %q: %s", act.Text, text, got)
			}
		}
		if !reflect.DeepEqual(again.roles.Defined(), s.roles.Defined()) {
			t.Errorf("%q becomes %q", act.Text, roleCommands(s.roles))
		}
	})
}

// Who is banned for a while cannot sign a time when they will not be banned any more. What was entered before that was
// refused keeps its effect.
func TestBannedAuthorSignsALaterTime(t *testing.T) {
	s := newScript(t)
	s.say("bob", "register")
	s.say("", "role bob moderator")
	s.say("", "ban bob 2h")
	act := sign("bob", uint64((23 * time.Hour).Microseconds()), s.now, "ban eve")
	if err := s.Try(act); err == nil || err.Error() != "You are banned from this world by an operator (2 hours left)." {
		t.Errorf("it may be entered: %v", err)
	}
	if _, err := s.Apply(act); err != nil {
		t.Errorf("one that is in the catalog: %v", err)
	}
}
