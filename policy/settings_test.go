package policy

import (
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Settings are what admins make them, and a mistyped command changes nothing.
func TestSettings(t *testing.T) {
	s := newScript(t)
	s.say("ada", "register")
	s.say("", "role ada admin")
	textures := "set textures " + strings.Repeat("A", 43)
	for text, want := range map[string]string{
		textures: "The world has textures of its own, which pages show from their next load on.", "set textures autumn.zip": "! an operator sets",
	} {
		if got := s.say("", text); !strings.HasPrefix(got, want) {
			t.Errorf("an operator: %s: %s; want %s", text, got, want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"set border 100", "The border of the world is at -100,-100 100,100."},
		{"setspawn 7 64 101", "! that is outside the border"},
		{"setspawn 7 64 100", "New players start at 7,64,100."},
		{"set border 0,0 50,50", "! the spawn would be outside"},
		{"set border 5,-300 -40,200", "! the spawn would be outside"},
		{"set border 50,-300 -40,200", "The border of the world is at -40,-300 50,200."},
		{"set border 0", "! the radius 0"},
		{"set border 1,2 3", "! \"3\" is not a corner: write X,Z"},
		{"set border 1,2 3,4 5", "! usage: /set border RADIUS | X,Z X,Z | off"},
		{"set border 1,x 3,4", "! \"x\" is not a coordinate"},
		{"set border 2147483648", "! \"2147483648\" is not a coordinate"},
		{"set edits builder 40", "The role builder may change 40 blocks a second."},
		{"set edits builder 0", "! choose 1 to"},
		{"set bulk builder 4096 20000", "The role builder may change by bulk edits: 4096 blocks at once, 20000 in an hour."},
		{"set bulk moderator off", "The role moderator may change nothing by bulk edits."},
		{"set bulk moderator default", "The role moderator may change by bulk edits: 65536 blocks at once, 262144 in an hour."},
		{"set bulk builder 2047 20000", "! write how many"},
		{"set bulk builder 4096 4095", "! write how many"},
		{"set bulk king off", "! there is no role"},
		{"set edits king 5", "! there is no role"},
		{"set original off", "VoxelPopuli's own clients may not play."},
		{"set original maybe", "! usage"},
		{textures, "! an operator sets the textures: voxeld textures FILE"},
		{"set textures off", "The world has no textures of its own."},
		{"set textures", "! usage: /set textures HASH | off"},
		{"set floodban 2h", "Who floods the chat may not join their node again for 2 hours."},
		{"set floodban 2w", "! choose at most 1 day"},
		{"set floodban", "! usage: /set floodban TIME | off"},
		{"setwarp Market 1 2 3", "/warp market leads to 1,2,3."},
		{"setwarp b@d 1 2 3", "! \"b@d\" is no name for a warp"},
		{"setwarp market", "! usage: /setwarp NAME [X Y Z]"},
		{"delwarp farm", "! there is no warp farm"},
	} {
		if got := s.say("ada", c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", c.text, got, c.want)
		}
	}
	got := s.Settings()
	if *got.Border != (place.Border{MinX: -40, MinZ: -300, MaxX: 50, MaxZ: 200}) || *got.Spawn != (grid.Pos{X: 7, Y: 64, Z: 100}) || got.Edits[Builder] != 40 || !got.NoOriginal || got.FloodBan != 7_200_000 {
		t.Errorf("settings %+v", got)
	}
	if at, ok := s.Warps().At("MARKET"); !ok || at != (grid.Pos{X: 1, Y: 2, Z: 3}) {
		t.Errorf("the warp leads to %v, %t", at, ok)
	}
	if err := s.Try(sign("ada", s.seq+1, s.now, "setspawn 7 -3000 64")); err == nil || !strings.HasPrefix(err.Error(), "the height -3000 is out of the world") {
		t.Errorf("a spawn below the world: %v", err)
	}
	s.say("ada", "set edits builder default")
	if _, set := s.Settings().Edits[Builder]; set || got.Edits[Builder] != 40 {
		t.Error("settings that were read before have changed, or the default does not hold again")
	}
	s.say("", "role ada moderator")
	if got := s.say("ada", "set border off"); !strings.HasPrefix(got, "! /set is for the role admin") {
		t.Errorf("a moderator: %s", got)
	}
	for i := range MaxWarps {
		s.say("", "setwarp w"+strings.Repeat("x", i%10)+string(rune('a'+i/10%26))+string(rune('a'+i/260))+" 1 2 3")
	}
	if got := s.say("", "setwarp onemore 1 2 3"); len(s.Warps()) != MaxWarps || !strings.HasPrefix(got, "! there are 256 warps") {
		t.Errorf("%d warps, then: %s", len(s.Warps()), got)
	}
}

// Nobody below a moderator builds outside the border, and who is outside may only come nearer.
func TestBorder(t *testing.T) {
	s := newScript(t)
	s.say("bob", "register")
	s.say("", "role bob moderator")
	s.say("", "set border -10,-10 10,20")
	inside, outside := grid.Pos{X: 10, Y: 200, Z: 20}, grid.Pos{X: 11, Y: 5, Z: 0}
	for _, c := range []struct {
		by   string
		pos  grid.Pos
		want bool
	}{{"ada", inside, true}, {"ada", outside, false}, {"bob", outside, true}} {
		if got := s.Builders().Refuse(&nodemsg.Intent{Player: idOf(c.by), Pos: c.pos}, s.now) == ""; got != c.want {
			t.Errorf("for a leader %s builds at %v: %t", c.by, c.pos, got)
		}
		if got := s.Judge(Subject{Player: idOf(c.by), Name: c.by}, s.now).Border.Contains(c.pos); got != c.want {
			t.Errorf("for a gateway %s builds at %v: %t", c.by, c.pos, got)
		}
	}
	border := s.Settings().Border
	for _, c := range []struct {
		fromX, fromZ, toX, toZ float64
		want                   bool
	}{
		{0, 0, 10.9, 20.9, true},
		{10.9, 0, 11.1, 0, false},
		{0, -9.9, 0, -10.1, false},
		{30, 0, 29, 0, true},
		{30, 0, 30, 5, true},
		{30, 0, 31, 0, false},
		{30, 0, 29, 22, false},
	} {
		if got := border.Allows(c.fromX, c.fromZ, c.toX, c.toZ); got != c.want {
			t.Errorf("from (%v, %v) to (%v, %v): %t", c.fromX, c.fromZ, c.toX, c.toZ, got)
		}
	}
	if none := (*place.Border)(nil); !none.Contains(outside) || !none.Allows(0, 0, 1e6, 0) {
		t.Error("without a border something is outside")
	}
}
