package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestServiceCommands(t *testing.T) {
	s := newScript(t)
	id, other := idOf("bridge").String(), idOf("other").String()
	for _, step := range []struct{ by, text, want string }{
		{"ada", "register", "The name ada is yours: nobody else can use it."},
		{"", "role ada owner", "ada has the role owner."},
		{"ada", "service add bridge " + id + " read", "! /service is for the role operator and above; yours is owner"},
		{"", "service add ada " + id + " read", "! the name ada is registered to another player"},
		{"", "service add bridge " + id + " fly", `! there is no scope "fly": choose of read, edit, chat`},
		{"", "service add bridge " + id + " read area=1", `! area "1": want X1,Z1:X2,Z2 or X1,Y1,Z1:X2,Y2,Z2 in blocks, such as -64,-64:64,64`},
		{"", "service add bridge " + id + " read rate=0", `! rate "0": want 1 to 100000 blocks a second`},
		{"", "service add bridge " + id, "! usage: /service " + serviceUsage},
		{"", "service add bridge " + idOf("ada").String() + " read", "! that key is known already, as another player's or service's"},
		{"", "service add bridge " + id + " read,chat,read area=9,-3:-5,60 rate=20 until=1900000000000", "bridge has a key."},
		{"bridge", "register", "! /register is for the role visitor and above; yours is none"}, // it is no player
		{"eve", "register", "The name eve is yours: nobody else can use it."},
		{"ada", "release Bridge", "! Bridge is a service: voxeld service remove Bridge ends it"},
		{"ada", "role bridge moderator", "! bridge is a service: its key has scopes, and no role"},
		{"ada", "claim 0,0 9,9 home", "The claim home is yours: 10 × 10 blocks. /trust home PLAYER lets others build in it."},
		{"ada", "trust home bridge", "bridge may build in ada/home."}, // though it has given no command
		{"ada", "transfer home bridge", "! claims are given to players who have registered their names"},
		{"", "service add Bridge " + other + " chat", "Bridge has a key."}, // a new key
		{"", "service remove nobody", "! there is no service nobody: voxeld service list lists them"},
		{"", "service remove ada", "! there is no service ada: voxeld service list lists them"},
	} {
		if got := s.say(step.by, step.text); got != step.want {
			t.Errorf("%s: /%s: %q, want %q", step.by, step.text, got, step.want)
		}
	}
	if home := s.Claims().Of(idOf("ada"))[0]; len(home.Members) != 0 {
		t.Errorf("a key that is no longer valid may build in %v", home)
	}
	if all := s.Services(); len(all) != 1 || all[0].ID != idOf("other") || s.Service(idOf("bridge")) != nil {
		t.Errorf("services %v", all)
	}
	s.now = s.now.Add(100 * 24 * time.Hour)
	s.say("", ExpireCommand)
	s.now = s.now.Add(100 * 24 * time.Hour)
	s.say("", ExpireCommand)
	if s.NameOf(idOf("other")) != "Bridge" {
		t.Error("the name of a service has expired")
	}
	if got := s.say("", "service remove bridge"); got != "The key of Bridge is valid no longer. Its edits are found by its id: "+other+"." || len(s.Services()) != 0 || s.NameOf(idOf("other")) != "" {
		t.Errorf("removed: %q, services %v", got, s.Services())
	}
	for i := range MaxServices {
		s.say("", fmt.Sprintf("service add s%d %v read", i, idOf(fmt.Sprint("s", i))))
	}
	if got := s.say("", "service add more "+id+" read"); got != "! there are 64 services: remove some first" {
		t.Errorf("one more service: %q", got)
	}
}

// A restored world has the same services.
func TestServicesAreExported(t *testing.T) {
	before := newScript(t)
	before.say("", "service add bridge "+idOf("bridge").String()+" read,chat,edit area=9,-3:-5,60 rate=20 until=1900000000000")
	urgent, names := before.Commands(before.now)
	after := newScript(t)
	for _, text := range append(urgent, names...) {
		if got := after.say("", after.Adapt(text)); got[0] == '!' {
			t.Errorf("/%s: %s", text, got)
		}
	}
	if got, want := after.Service(idOf("bridge")), before.Service(idOf("bridge")); got == nil || got.String() != want.String() {
		t.Errorf("after a restore %v, want %v", got, want)
	}
}

// Leaders of regions refuse what a service may not change, whatever its gateway says.
func TestBuildersRefuseServices(t *testing.T) {
	s := newScript(t)
	s.say("", "service add artist "+idOf("artist").String()+" edit area=0,0:9,9 until="+fmt.Sprint(start.Add(time.Hour).UnixMilli()))
	s.say("", "service add bridge "+idOf("bridge").String()+" read,chat")
	s.say("", "set players none")
	s.say("", "set border -5,-5 5,5")
	bulk := nodemsg.Bulk(nodemsg.AppendRun(nodemsg.AppendRun(nil, 0, nodemsg.BulkRun{Count: 1, To: 1}), 1, nodemsg.BulkRun{At: 4, Count: 10, To: 1})) // to x = 13
	for _, c := range []struct {
		by    string
		edit  nodemsg.Intent
		after time.Duration
		want  string
	}{
		{"artist", nodemsg.Intent{Pos: grid.Pos{X: 5, Y: 300, Z: 5}}, 0, ""},
		{"artist", nodemsg.Intent{Pos: grid.Pos{X: 6, Y: 3, Z: 5}}, 0, wire.RefusedOutsideBorder},
		{"artist", nodemsg.Intent{Pos: grid.Pos{X: -1, Y: 3, Z: 5}}, 0, wire.RefusedNotAllowed},
		{"artist", nodemsg.Intent{Bulk: bulk[:4]}, 0, ""},
		{"artist", nodemsg.Intent{Bulk: bulk}, 0, wire.RefusedOutsideBorder},
		{"artist", nodemsg.Intent{}, 2 * time.Hour, wire.RefusedNotAllowed},
		{"bridge", nodemsg.Intent{}, 0, wire.RefusedNotAllowed},
		{"eve", nodemsg.Intent{}, 0, wire.RefusedNotAllowed},
	} {
		c.edit.Player = idOf(c.by)
		if got := s.Builders().Refuse(&c.edit, start.Add(c.after)); got != c.want {
			t.Errorf("%s at %v: %q, want %q", c.by, c.edit.Pos, got, c.want)
		}
	}
	s.say("", "ban artist 1h")
	if got := s.Builders().Refuse(&nodemsg.Intent{Player: idOf("artist")}, s.now); got != wire.RefusedNotAllowed {
		t.Errorf("a banned service: %q", got)
	}
}

func FuzzParseService(f *testing.F) {
	f.Add("bridge", "read,chat", "area=9,-3:-5,60", "rate=20", "until=1900000000000")
	f.Fuzz(func(t *testing.T, name, scopes, area, rate, until string) {
		id := player.GuestID(name).String()
		v, err := parseService([]string{name, id, scopes, area, rate, until})
		if err != nil {
			return
		}
		s := newScript(t)
		s.say("", "service "+v.String())
		again := s.Service(v.ID)
		if again == nil || again.String() != v.String() {
			t.Errorf("%v is read as %v", v, again)
		}
	})
}
