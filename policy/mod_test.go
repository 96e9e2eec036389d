package policy

import (
	"crypto/ed25519"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Operators grant mods what they may do, and the last command counts.
func TestMods(t *testing.T) {
	s := newScript(t)
	hash := mod.HashOf(nil).String()
	s.say("ada", "register")
	s.say("", "role ada owner")
	for _, c := range []struct{ by, text, want string }{
		{"ada", "grant lamps " + hash, "! /grant is for the role operator"},
		{"", "grant lamps " + hash + " events=use blocks=lamp", "The mod lamps has the grant: lamps " + hash + " events=use blocks=lamp rate=600"},
		{"", "grant lamps " + hash + " blocks=lamb", "! there is no block"},
		{"", "grant water " + hash + " rate=5 off", "The mod water has the grant"},
		{"", "grant lamps " + hash + " events=timer", "The mod lamps has the grant: lamps " + hash + " events=timer rate=600"},
		{"", "revoke", "! usage: /revoke NAME"},
		{"", "revoke fire", "! there is no mod fire"},
		{"", "revoke water", "The mod water is removed."},
		{"", "revoke water", "! there is no mod water"},
	} {
		if got := s.say(c.by, c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", c.text, got, c.want)
		}
	}
	mods := s.Mods()
	if len(mods) != 2 || mods[0].String() != "lamps "+hash+" events=timer rate=600" || mods[0].Removed || !mods[1].Removed {
		t.Errorf("mods %v", mods)
	}
	for _, m := range mods { // regions find the same in the act
		g, removed, ok := mod.ReadCommand(m.Act.Text)
		if !ok || g.Name != m.Name || removed != m.Removed || !removed && g.String() != m.String() {
			t.Errorf("the act of %v says %v, %t, %t", m, g, removed, ok)
		}
	}
	if acts := s.Builders().ModActs(); len(acts) != 2 || acts[0].Text != mods[0].Act.Text || acts[1].Text != "revoke water" {
		t.Errorf("acts %v", acts)
	}
	if urgent, _ := s.Commands(s.now); !strings.Contains(strings.Join(urgent, "\n"), "\ngrant "+mods[0].String()) || strings.Contains(strings.Join(urgent, "\n"), "water") {
		t.Errorf("a restored world has the commands %q", urgent)
	}
	if of, err := s.PlayersOf("mod:lamps"); err != nil || len(of) != 1 || s.AuthorName(of[0], "") != "mod:lamps" {
		t.Errorf("who has changed what the mod has is %v, %v", of, err)
	}
	if of, err := s.PlayersOf("mod:Lamps"); err == nil {
		t.Errorf("mod:Lamps is %v", of)
	}
	if _, there := s.ModNamed("water"); there {
		t.Error("a removed mod is there")
	}
}

// Of two commands about a mod, regions know by their numbers which is later. So must all nodes.
func TestGrantOfOlderNumber(t *testing.T) {
	s := newScript(t)
	hash := mod.HashOf(nil).String()
	s.say("", "grant lamps "+hash)
	another := keyOf("another node").Public().(ed25519.PublicKey)
	late := nodemsg.Act{At: s.now.UnixMilli(), Key: another, Seq: uint64(start.UnixMicro()), Operator: true, Text: "revoke lamps"}
	if _, err := s.Apply(late); err == nil || !strings.Contains(err.Error(), "clocks") {
		t.Errorf("a command with an older number: %v", err)
	}
}

// A mod may change for a player, or a service, what these may change themselves.
func TestModsMayWhatTheirPlayerMay(t *testing.T) {
	s := newScript(t)
	s.say("", "service add artist "+idOf("artist").String()+" edit area=0,0:9,9 until="+strconv.FormatInt(start.Add(time.Hour).UnixMilli(), 10))
	s.say("", "service add bridge "+idOf("bridge").String()+" read,chat")
	s.say("", "set border -5,-5 5,5")
	s.say("eve", "register")
	s.say("ada", "register")
	s.say("mod", "register")
	s.say("", "role mod moderator")
	in, out := grid.Pos{X: 3, Y: 3, Z: 3}, grid.Pos{X: -1, Y: 3, Z: 5}
	for _, c := range []struct {
		command string // of an operator, before
		by      player.ID
		at      grid.Pos
		after   time.Duration
		want    string
	}{
		{"", idOf("artist"), in, 0, ""},
		{"", idOf("artist"), out, 0, wire.RefusedNotAllowed},
		{"", idOf("artist"), in, 2 * time.Hour, wire.RefusedNotAllowed},
		{"", idOf("bridge"), in, 0, wire.RefusedNotAllowed},
		{"", idOf("eve"), out, 0, ""},
		{"", idOf("eve"), grid.Pos{X: 6, Y: 3}, 0, wire.RefusedOutsideBorder},
		{"", idOf("mod"), grid.Pos{X: 6, Y: 3}, 0, ""},
		{"ban mod 1h", idOf("mod"), in, 0, wire.RefusedNotAllowed},
		{"", idOf("mod"), in, 2 * time.Hour, ""},
		{"ban eve", idOf("eve"), in, 0, wire.RefusedNotAllowed},
		{"role ada visitor", idOf("ada"), in, 0, wire.RefusedNotAllowed},
		{"set players visitor", player.GuestID("guest"), in, 0, ""},
		{"set guests visitor", player.GuestID("guest"), in, 0, wire.RefusedNotAllowed},
	} {
		if c.command != "" {
			if got := s.say("", c.command); strings.HasPrefix(got, "!") {
				t.Fatalf("%s: %s", c.command, got)
			}
		}
		if got := s.Builders().RefuseMod(c.by, c.at, start.Add(c.after)); got != c.want {
			t.Errorf("%s: %v at %v: %q, want %q", c.command, c.by, c.at, got, c.want)
		}
	}
}

func TestManyMods(t *testing.T) {
	s := newScript(t)
	hash := mod.HashOf(nil).String()
	for i := range mod.MaxMods {
		s.say("", "grant m"+strconv.Itoa(i)+" "+hash)
	}
	if got := s.say("", "grant more "+hash); !strings.HasPrefix(got, "! there are 32 mods") {
		t.Error(got)
	}
	if got := s.say("", "grant m5 "+hash+" rate=7"); !strings.HasPrefix(got, "The mod m5") {
		t.Error(got)
	}
	s.say("", "revoke m5")
	if got := s.say("", "grant more "+hash); !strings.HasPrefix(got, "The mod more") {
		t.Error(got)
	}
}

// Mods that were removed count for their names only.
func TestManyModNames(t *testing.T) {
	s := newScript(t)
	hash := mod.HashOf(nil).String()
	for i := range mod.MaxKnownMods {
		s.say("", "grant m"+strconv.Itoa(i)+" "+hash)
		s.say("", "revoke m"+strconv.Itoa(i))
	}
	if got := s.say("", "grant more "+hash); got != "! this world has had 256 mods: give this one the name of one that was removed" {
		t.Error(got)
	}
	if got := s.say("", "grant m5 "+hash); !strings.HasPrefix(got, "The mod m5") {
		t.Error(got)
	}
}
