package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// newTown returns a policy in which ada, bob, eve and mod have registered their names, a day ago; mod is a moderator.
func newTown(t *testing.T) *script {
	s := newScript(t)
	for _, by := range []string{"ada", "bob", "eve", "mod"} {
		s.say(by, "register")
	}
	s.say("", "role mod moderator")
	s.pass(25 * time.Hour)
	return s
}

// pass lets a time pass on all clocks.
func (s *script) pass(d time.Duration) {
	s.now, s.seq = s.now.Add(d), s.seq+uint64(d.Microseconds()) //nolint:gosec // positive
}

func TestClaimCommands(t *testing.T) {
	s := newTown(t)
	for _, step := range []struct{ by, text, want string }{
		{"ada", "claim 30,40 10,20 harbour", "The claim harbour is yours: 21 × 21 blocks. /trust harbour PLAYER lets others build in it."},
		{"bob", "claim 30,5,40 60,60,70", "! a part of that is claimed: ada/harbour, from 10,0,20 to 30,1023,40"},
		{"bob", "claim 31,5,40 60,60,70", "The claim 1 is yours: 30 × 31 blocks. /trust 1 PLAYER lets others build in it."},
		{"bob", "claim 31,61,40 60,90,70", "The claim 2 is yours: 30 × 31 blocks. /trust 2 PLAYER lets others build in it."},
		{"ada", "claim 10,20 30,40 Harbour", "! there is a claim ada/Harbour already: choose another name"},
		{"ada", "claim 100,20 130,40 har.bour", "! \"har.bour\" is no name of a claim: use 1 to 20 letters, digits, _ and -"},
		{"ada", "claim harbour", "! write two corners, as in /claim 10,20 30,40 harbour; in the browser, /claim harbour lets you click at them"},
		{"ada", "claim 1,2 3", `! "3" is not a corner: write X,Z or X,Y,Z`},
		{"ada", "claim 1,2 3,2147483648", `! "3,2147483648" is not a corner: write X,Z or X,Y,Z`},
		{"ada", "claim 1,2 30,1024,40", `! "30,1024,40" is not a corner: write X,Z or X,Y,Z`},
		{"ada", "claim 1,2 30,10,40", "! write both corners as X,Z, or both as X,Y,Z"},
		{"ada", "claim 1,2 9,4", "! a claim is at least 4 blocks wide, long and high"},
		{"ada", "claim -2147483648,0 2147483647,3", "! a claim is at most 512 blocks wide and long"},
		{"ada", "claim 1000,0 1200,99", "! the role builder may claim 16384 columns of blocks in all: with this claim it would be 20541"},
		{"mod", "claim 1000,0 1200,99 spawn", "The claim spawn is yours: 201 × 100 blocks. /trust spawn PLAYER lets others build in it."},
		{"zoe", "claim 500,500 520,520", "! register your name first, by /register: others see whose claim it is"},
		{"", "claim 500,500 520,520", "! only players claim land"},
		{"bob", "trust ada/harbour bob", "! the claim ada/harbour is not yours"},
		{"ada", "trust harbour bob", "bob may build in ada/harbour."},
		{"ada", "trust harbour bob", "! the player bob may build there already"},
		{"ada", "trust harbour gus", "! no player with a key has registered the name gus: a page does so when its player first builds, writes or claims land"},
		{"ada", "trust harbour " + player.GuestID("gus").String(), "! no player with a key has registered the name " + player.GuestID("gus").String() + ": a page does so when its player first builds, writes or claims land"},
		{"ada", "flag harbour enter members", "Only members may enter ada/harbour."},
		{"ada", "flag harbour build none", "! usage: /flag CLAIM build|enter all|members"},
		{"ada", "untrust harbour eve", "! the claim ada/harbour has no member eve"},
		{"ada", "untrust harbour bob", "bob is no member of ada/harbour any more."},
		{"ada", "trust harbour eve", "eve may build in ada/harbour."},
		{"eve", "unclaim ada/harbour", "! the claim ada/harbour is not yours"},
		{"ada", "transfer harbour eve", "The claim harbour is eve's now."},
		{"ada", "unclaim harbour", "! there is no claim harbour: /claims lists yours"},
		{"eve", "flag harbour build all", "All players may build in eve/harbour."},
		{"eve", "unclaim mod/spawn", "! the claim mod/spawn is not yours"},
		{"mod", "unclaim eve/harbour", "The land of eve/harbour is free again."},
		{"", "unclaim bob/1", "The land of bob/1 is free again."},
		{"", "role ada owner", "ada has the role owner."},
		{"ada", "claim 0,0 9,9", "The claim 1 is yours: 10 × 10 blocks. /trust 1 PLAYER lets others build in it."},
		{"mod", "unclaim ada/1", "! they have the role owner: only a higher one than theirs may do that"},
		{"ada", "set claims 1 100", "A builder may have 1 claim with 100 columns of blocks, moderators and above 10 times as much."},
		{"bob", "claim 200,0 203,3", "! the role builder may have 1 claim: 1 exists already"},
		{"ada", "transfer 1 bob", "! the player bob may not have that claim: the role builder may have 1 claim: 1 exists already"},
		{"ada", "set claims 1", "! usage: /set claims COUNT AREA"},
		{"ada", "set claims 0 0", "A builder may have 0 claims with 0 columns of blocks, moderators and above 10 times as much."},
	} {
		if got := s.say(step.by, step.text); got != step.want {
			t.Errorf("%s: /%s:\n%q, want\n%q", step.by, step.text, got, step.want)
		}
	}
}

// Who may build and enter: for gateways by the role, for leaders by the id alone.
func TestClaimsJudge(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 9,9 home")
	s.say("ada", "claim 20,0 29,9 park")
	s.say("ada", "trust home bob")
	s.say("ada", "flag home enter members")
	s.say("ada", "flag park build all")
	s.say("", "role "+idOf("vic").String()+" visitor")
	inside, park, outside := grid.Pos{X: 9, Y: 500, Z: 9}, grid.Pos{X: 20, Y: 1, Z: 0}, grid.Pos{X: 10, Y: 1, Z: 9}
	if MaxHeight < 32*grid.ChunkSize { // world.MaxSections
		t.Error("claims of whole columns end below the top of high worlds")
	}
	for name, c := range map[string]struct {
		who         Subject
		build, walk string // where: h for home, p for park, o for outside
	}{
		"the owner":   {Subject{Player: idOf("ada"), Name: "ada"}, "hpo", "hpo"},
		"a member":    {Subject{Player: idOf("bob"), Name: "bob"}, "hpo", "hpo"},
		"a moderator": {Subject{Player: idOf("mod"), Name: "mod"}, "hpo", "hpo"},
		"a builder":   {Subject{Player: idOf("eve"), Name: "eve"}, "po", "po"},
		"a visitor":   {Subject{Player: idOf("vic"), Name: "vic"}, "", "po"},
		"a guest":     {Subject{Player: player.GuestID("ada"), Name: "ada", Guest: true}, "po", "po"},
	} {
		verdict, builders := s.Judge(c.who, s.now), s.Builders()
		id := c.who.ClaimID()
		for letter, at := range map[string]grid.Pos{"h": inside, "p": park, "o": outside} {
			claim := s.Claims().At(at)
			if (claim == nil) != (letter == "o") {
				t.Fatalf("the claim at %v is %+v", at, claim)
			}
			gateway := verdict.MayBuild() && (claim == nil || claim.MayBuild(id, verdict.Role))
			leader := builders.Refuse(&nodemsg.Intent{Player: c.who.Player, Pos: at}, s.now)
			if want := strings.Contains(c.build, letter); gateway != want || (leader == "") != want {
				t.Errorf("%s at %s: may build at a gateway: %t; a leader answers %q", name, letter, gateway, leader)
			}
			if leader == wire.RefusedClaimed && letter != "h" {
				t.Errorf("%s at %s is refused because of a claim", name, letter)
			}
			if walks := s.Claims().Keeps(id, verdict.Role, grid.Pos{X: -1}, at) == nil; walks != strings.Contains(c.walk, letter) {
				t.Errorf("%s may walk into %s: %t", name, letter, walks)
			}
		}
		if s.Claims().Keeps(id, verdict.Role, inside, grid.Pos{X: 5, Y: 5, Z: 5}) != nil || s.Claims().Keeps(id, verdict.Role, inside, outside) != nil {
			t.Errorf("%s is caught in a claim", name)
		}
	}
	if got, want := s.ClaimLine(s.Claims().At(inside)).Text, "ada/home: 0,0 to 9,9, with bob, only members may enter"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.say("mod", "ban bob")
	if got := s.Builders().Refuse(&nodemsg.Intent{Player: idOf("bob"), Pos: inside}, s.now); got != wire.RefusedNotAllowed {
		t.Errorf("a member who is banned is answered %q", got)
	}
}

// flagUntilRefused changes a claim until that is refused, and returns how many changes were carried out, and the
// reason.
func (s *script) flagUntilRefused(by, claim string) (n int, why string) {
	for ; ; n++ {
		got := s.say(by, "flag "+claim+" build "+[]string{"all", "members"}[n%2])
		if strings.HasPrefix(got, "!") {
			return n, got
		}
	}
}

// A player changes claims a bounded number of times on a day, one who is new less often, and goes on the next day. A
// command that is signed for another day ends no day, and begins none.
func TestClaimChangesADay(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 9,9 home")
	if got := s.say("ada", "flag home build members"); got != "! that is so already in ada/home" {
		t.Error(got)
	}
	if n, why := s.flagUntilRefused("ada", "home"); n != changesADay-1 || !strings.Contains(why, "given 200 commands about claims today") {
		t.Fatalf("after %d changes: %s", n, why)
	}
	for by, text := range map[string]string{"bob": "claim 20,0 29,9", "mod": "claim 40,0 49,9"} {
		act := sign(by, s.seq+uint64((366*24*time.Hour).Microseconds()), s.now, text) // next year
		if _, err := s.Apply(act); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.say("ada", "unclaim home"); !strings.HasPrefix(got, "!") {
		t.Errorf("after a command of next year, ada goes on: %s", got)
	}
	act := sign("ada", s.seq+uint64((366*24*time.Hour).Microseconds()), s.now, "unclaim home")
	if s.Try(act) == nil {
		t.Error("ada goes on by commands of next year")
	}
	s.pass(24 * time.Hour)
	if got := s.say("ada", "flag home build members"); strings.HasPrefix(got, "!") {
		t.Errorf("the next day: %s", got)
	}
	if n, why := s.flagUntilRefused("ada", "home"); n < changesADay/2 {
		t.Errorf("the next day, after %d changes: %s", n, why)
	}
	act = sign("new", 0, s.now, "register") // signed two days ago
	if _, err := s.Apply(act); err != nil {
		t.Fatal(err)
	}
	s.say("new", "claim 100,0 109,9 home")
	if n, why := s.flagUntilRefused("new", "home"); n != newChangesADay-1 {
		t.Errorf("a new player, after %d changes: %s", n, why)
	}
}

// When there were as many changes of claims as there may be, names are still registered, and moderators still change
// claims.
func TestClaimsLeaveRoomForNames(t *testing.T) {
	s := newTown(t)
	s.say("ada", "claim 0,0 9,9 home")
	s.claiming.acts, s.acts = maxClaimActs, maxClaimActs+10
	if got := s.say("ada", "flag home build all"); got != "! this world has had too many commands about claims: only moderators give them now" {
		t.Error(got)
	}
	for by, text := range map[string]string{"zoe": "register", "mod": "unclaim ada/home"} {
		if got := s.say(by, text); strings.HasPrefix(got, "!") {
			t.Errorf("%s: /%s: %s", by, text, got)
		}
	}
}

// Builders cannot keep others from where players are brought.
func TestClaimsKeepOutOfPublicPlaces(t *testing.T) {
	s := newTown(t)
	s.say("eve", "claim 100,0 109,9 early")
	s.say("", "setspawn 5 60 5")
	s.say("", "setwarp Market 50 60 5")
	s.say("", "setwarp early 105 60 5")
	for _, step := range []struct{ by, text, want string }{
		{"ada", "claim 0,0 9,9", "! only moderators claim the place where new players start"},
		{"ada", "claim 46,50,2 55,70,9", "! only moderators claim the place of the warp market"},
		{"ada", "claim 46,61,2 55,70,9 above", "The claim above is yours: 10 × 8 blocks. /trust above PLAYER lets others build in it."},
		{"eve", "flag early enter members", "! only moderators claim the place of the warp early"},
		{"eve", "flag early build all", "All players may build in eve/early."},
		{"mod", "claim 0,0 9,9 spawn", "The claim spawn is yours: 10 × 10 blocks. /trust spawn PLAYER lets others build in it."},
		{"mod", "flag spawn enter members", "Only members may enter mod/spawn."},
	} {
		if got := s.say(step.by, step.text); got != step.want {
			t.Errorf("%s: /%s:\n%q, want\n%q", step.by, step.text, got, step.want)
		}
	}
}

// The index agrees with a list that is searched from end to end, after any commands; and what was returned before stays
// as it was.
func TestClaimsAsAList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newTown(t)
		s.say("", "set claims 100 1000000")
		type snapshot struct {
			claims *Claims
			had    []Claim
		}
		var before []snapshot
		list := func(c *Claims) (all []Claim) {
			c.All(func(it *Claim) { all = append(all, *it) })
			return all
		}
		coordinate := rapid.Int32Range(-80, 80)
		players := rapid.SampledFrom([]string{"ada", "bob", "eve"})
		for range rapid.IntRange(1, 40).Draw(rt, "commands") {
			by, name := players.Draw(rt, "by"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
			n := func(label string) int32 { return coordinate.Draw(rt, label) }
			text := "unclaim " + name
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0, 1, 2:
				text = fmt.Sprintf("claim %d,%d %d,%d %s", n("x"), n("z"), n("x"), n("z"), name)
			case 3:
				text = fmt.Sprintf("claim %d,%d,%d %d,%d,%d %s", n("x"), 40+n("y")/2, n("z"), n("x"), 40+n("y")/2, n("z"), name)
			case 4:
				text = fmt.Sprintf("transfer %s %s", name, players.Draw(rt, "to"))
			case 5:
				text = fmt.Sprintf("flag %s %s", name, rapid.SampledFrom([]string{"enter all", "enter members", "build all"}).Draw(rt, "flag"))
			}
			box, isBox := grid.Box{}, false
			if words := strings.Fields(text); words[0] == "claim" {
				var err error
				if box, err = parseBox(words[1], words[2]); err == nil {
					isBox = true
				}
			}
			had := list(s.claims)
			free := !slices.ContainsFunc(had, func(c Claim) bool {
				return c.Overlaps(box) || c.Owner == idOf(by) && c.Name == name
			})
			got := s.say(by, text)
			if isBox && free == strings.HasPrefix(got, "!") {
				rt.Fatalf("%s says /%s: %s; the claims are %+v", by, text, got, had)
			}
			if rapid.Bool().Draw(rt, "look") {
				before = append(before, snapshot{s.Claims(), list(s.claims)})
			}
			all := list(s.claims)
			private := 0
			for _, c := range all {
				if c.Private {
					private++
				}
			}
			if s.claims.count != len(all) || s.claims.private != private {
				rt.Fatalf("%d claims are counted, %d private; there are %d, %d private", s.claims.count, s.claims.private, len(all), private)
			}
			at := grid.Pos{X: n("at"), Y: 40 + n("at")/2, Z: n("at")}
			i := slices.IndexFunc(all, func(c Claim) bool { return c.Contains(at) })
			if found := s.claims.At(at); (found == nil) != (i < 0) || found != nil && !reflect.DeepEqual(*found, all[i]) {
				rt.Fatalf("at %v is %+v, not %d of %+v", at, found, i, all)
			}
			center, radius := at.Chunk(), rapid.Int32Range(0, 3).Draw(rt, "radius")
			near := s.claims.Near(center, radius, 1000)
			for _, c := range all {
				from, to := c.Min.Chunk(), c.Max.Chunk()
				touches := from.X <= center.X+radius && to.X >= center.X-radius && from.Z <= center.Z+radius && to.Z >= center.Z-radius
				if there := slices.ContainsFunc(near, func(it *Claim) bool { return reflect.DeepEqual(*it, c) }); there != touches {
					rt.Fatalf("within %d of %v is %+v: %t", radius, center, c, there)
				}
			}
			if few := s.claims.Near(center, radius, 1); len(few) != min(1, len(near)) {
				rt.Fatalf("%d claims, at most one was asked for", len(few))
			}
		}
		for _, it := range before {
			if now := list(it.claims); !reflect.DeepEqual(now, it.had) {
				rt.Fatalf("claims that were returned have changed from %+v to %+v", it.had, now)
			}
			for _, c := range it.had {
				if at := it.claims.At(c.Min); at == nil || !reflect.DeepEqual(*at, c) {
					rt.Fatalf("in claims that were returned before, at %v is %+v", c.Min, at)
				}
			}
		}
	})
}

// A world that is restored has the same claims. Its commands may be entered twice.
func TestClaimsAreExported(t *testing.T) {
	before := newTown(t)
	before.say("ada", "claim 0,0 -9,9 home")
	before.say("ada", "claim 20,3,0 29,70,9 park")
	before.say("bob", "claim 100,100 109,109")
	before.say("ada", "trust home bob")
	before.say("ada", "trust home eve")
	before.say("ada", "flag home enter members")
	before.say("ada", "flag park build all")
	before.say("", "set claims 7 7777")
	after := newScript(t)
	urgent, names := before.Commands(before.now)
	if len(names) != 1 || !strings.Contains(names[0], idOf("eve").String()) { // owners of claims are urgent, and mod has a role
		t.Errorf("names %q", names)
	}
	for range 2 {
		for _, text := range append(slices.Clone(urgent), names...) {
			if got := after.say("", text); strings.HasPrefix(got, "!") {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
	list := func(s *State) (all []Claim) {
		s.Claims().All(func(c *Claim) {
			plain := *c
			plain.At, plain.Used = 0, false // a backup does not say how old a claim is
			all = append(all, plain)
		})
		slices.SortFunc(all, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })
		return all
	}
	if got, want := list(after.State), list(before.State); len(want) != 3 || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(after.Settings(), before.Settings()) {
		t.Errorf("after:  %+v\nbefore: %+v\nsettings %+v", got, want, after.Settings())
	}
}

// Orders in a restored world have higher numbers than those before, of which its land has the marks, also if the clock
// is behind.
func TestNumbersGoOnAfterARestore(t *testing.T) {
	before := newTown(t)
	before.say("ada", "claim 0,0 -9,9 home")
	before.say("mod", "revert bob 1 0,0,0 9,9,9")
	before.say("ada", "claim 40,40 49,49 gone")
	before.say("ada", "unclaim gone")
	after := newTown(t)
	after.now = before.now.AddDate(-20, 0, 0)
	urgent, names := before.Commands(before.now)
	for _, text := range append(urgent, names...) {
		after.say("", text)
	}
	marked := before.numbered
	for _, order := range []string{"claim 20,20 29,29 park", "revert bob 1 0,0,0 9,9,9"} {
		if got := after.say("mod", order); strings.HasPrefix(got, "!") || after.numbered <= marked {
			t.Errorf("%s: %s; it has number %d, and land the mark %d", order, got, after.numbered, marked)
		}
		marked = after.numbered
	}
}

// BenchmarkRefuse measures what a leader asks for each edit.
func BenchmarkRefuse(b *testing.B) {
	for _, claims := range []int{0, 10_000} {
		for _, dense := range []bool{false, true} {
			s := New()
			for i := range int32(claims) { //nolint:gosec // few
				at := grid.Pos{X: i % 100 * 150, Z: i / 100 * 150}
				box := grid.Box{Min: at, Max: grid.Pos{X: at.X + 63, Y: MaxHeight - 1, Z: at.Z + 63}}
				if dense { // as many as there can be in the chunks around the place
					at = grid.Pos{X: i % 50 * 4, Y: i / 2500 * 4, Z: i / 50 % 50 * 4}
					box = grid.Box{Min: at, Max: grid.Pos{X: at.X + 3, Y: at.Y + 3, Z: at.Z + 3}}
				}
				s.changeClaims(nil, &Claim{Owner: player.GuestID(fmt.Sprint(i)), Name: "a", Box: box})
			}
			builders, id := s.Builders(), idOf("ada")
			b.Run(fmt.Sprintf("claims=%d/dense=%t", claims, dense), func(b *testing.B) {
				i := int32(0)
				for b.Loop() {
					i++
					builders.Refuse(&nodemsg.Intent{Player: id, Pos: grid.Pos{X: i % 200, Y: 12, Z: i / 200 % 200}}, start)
				}
			})
		}
	}
}

// BenchmarkClaim measures what a new claim costs a node that has given the old ones to leaders.
func BenchmarkClaim(b *testing.B) {
	s := New()
	for i := range int32(10_000) {
		at := grid.Pos{X: i % 100 * 150, Z: i / 100 * 150}
		s.changeClaims(nil, &Claim{Owner: player.GuestID(fmt.Sprint(i)), Name: "a", Box: grid.Box{Min: at, Max: grid.Pos{X: at.X + 127, Y: MaxHeight - 1, Z: at.Z + 127}}})
	}
	it := &Claim{Owner: idOf("ada"), Name: "a", Box: grid.Box{Min: grid.Pos{X: -200}, Max: grid.Pos{X: -100, Y: MaxHeight - 1, Z: 100}}}
	for b.Loop() {
		s.changeClaims(nil, it)
		s.Builders()
		s.changeClaims(it, nil)
	}
}

// Of what the log takes from players, the largest share counts.
func TestUsedShareOfTheLog(t *testing.T) {
	s := newTown(t)
	for _, c := range []struct {
		what string
		fill func()
		want float64
	}{
		{"commands in all", func() { s.acts = MaxActs / 4 }, .5},
		{"claims", func() { s.claiming.acts = maxClaimActs * 3 / 4 }, .75},
		{"rollbacks", func() { s.undoing.acts = maxRollbackActs }, 1},
		{"commands of moderators", func() { s.acts = MaxActs }, 2},
	} {
		if c.fill(); s.Used() != c.want {
			t.Errorf("%s: %v is used, want %v", c.what, s.Used(), c.want)
		}
	}
}
