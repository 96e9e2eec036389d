package policy

import (
	"crypto/ed25519"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/mod"
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

func TestManyMods(t *testing.T) {
	s := newScript(t)
	hash := mod.HashOf(nil).String()
	for i := range MaxMods {
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
