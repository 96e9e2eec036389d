package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Admins define roles between the built-in ones. Nobody can grant more than they have themselves.
func TestDefinedRoles(t *testing.T) {
	s := newScript(t)
	for _, by := range []string{"own", "adm", "mod", "hal", "bob", "delete"} {
		s.say(by, "register")
	}
	s.say("", "role own owner")
	s.say("", "role adm admin")
	s.say("", "role mod moderator")
	for _, step := range []struct{ by, text, want string }{
		{"mod", "role create helper builder", "! /role is for the role admin and above; yours is moderator"},
		{"adm", "role hal helper", `! there is no role "helper": choose one of none, visitor, builder, moderator, admin, owner`},
		{"adm", "role create Helper builder allow=mute,kick,kick deny=claim edits=7 bulk=4096,9999", "The role helper is above builder: edits=7 bulk=4096,9999 allow=kick,mute deny=claim."},
		{"adm", "role hal helper", "hal has the role helper."},
		{"adm", "role hal king", `! there is no role "king": choose one of none, visitor, builder, moderator, admin, owner, helper`},
		{"hal", "mute bob 5m", "bob is muted for 5 minutes."},
		{"hal", "unmute bob", "! /unmute is for the role moderator and above; yours is helper"},
		{"hal", "kick mod", "! they have the role moderator: only a higher one than theirs may do that"},
		{"hal", "claim 0,0 9,9", "! the role helper may not use /claim"},
		{"bob", "claim 0,0 9,9 home", "The claim home is yours: 10 × 10 blocks. /trust home PLAYER lets others build in it."},
		{"adm", "role create boss admin", "! only a higher role than admin may give, define or delete the role boss"},
		{"own", "role create boss admin allow=owner", "The role boss is above admin: allow=owner."},
		{"adm", "role create boss builder", "! only a higher role than admin may give, define or delete the role boss"},
		{"adm", "role delete boss", "! only a higher role than admin may give, define or delete the role boss"},
		{"own", "role bob boss", "bob has the role boss."},
		{"bob", "role adm builder", "adm has the role builder."},
		{"", "role adm admin", "adm has the role admin."},
		{"adm", "role create senior builder rank=60", "The role senior is above builder: rank=60."},
		{"own", "role bob senior", "bob has the role senior."},
		{"hal", "kick bob", "! they have the role senior: only a higher one than theirs may do that"},
		{"adm", "role create helper builder allow=kick rank=70 claims=1,50", "The role helper is above builder: claims=1,50 allow=kick rank=70."},
		{"hal", "kick bob", "bob was kicked."},
		{"hal", "mute bob", "! /mute is for the role moderator and above; yours is helper"},
		{"hal", "claim 20,20 29,29", "! the role helper may claim 50 columns of blocks in all: with this claim it would be 100"},
		{"hal", "claim 20,20 24,24", "The claim 1 is yours: 5 × 5 blocks. /trust 1 PLAYER lets others build in it."},
		{"hal", "claim 30,30 33,33", "! the role helper may have 1 claim: 1 exists already"},
		{"adm", "role create owner builder", "! the role owner is built in: choose another name"},
		{"adm", "role create operator builder", "! the role operator is built in: choose another name"},
		{"adm", "role create a!b builder", `! "a!b" is no name for a role: use 1 to 20 letters, digits, _ and -`},
		{"adm", "role create - builder", `! "-" is no name for a role: use 1 to 20 letters, digits, _ and -`},
		{"adm", "role create x none", `! "none" cannot be the base of a role: choose visitor, builder, moderator or admin`},
		{"adm", "role create x helper", `! "helper" cannot be the base of a role: choose visitor, builder, moderator or admin`},
		{"adm", "role create x builder allow=kick deny=kick", "! /kick cannot be both allowed and denied"},
		{"adm", "role create builder", `! the name create is registered to nobody: a page registers it when its player first builds, writes or claims land; or name their id`},
		{"", "role create x builder allow=token", "! \"allow=token\" is no option"},
		{"", "role create x builder allow=fly", "! \"allow=fly\" is no option"},
		{"", "role create x builder edits=1001", "! \"edits=1001\" is no option"},
		{"", "role create x builder edits=0", "! \"edits=0\" is no option"},
		{"", "role create x builder rank=100", "! \"rank=100\" is no option"},
		{"", "role create x builder claims=1", "! \"claims=1\" is no option"},
		{"", "role create x builder build=maybe", "! \"build=maybe\" is no option"},
		{"", "role create x builder rank=1 rank=2", "! \"rank=2\" is no option"},
		{"", "role create x builder bulk=1,2", "! \"bulk=1,2\" is no option"},
		{"adm", "set bulk helper off", "! the role helper is defined by /role create, with bulk=BLOCKS,HOUR"},
		{"adm", "set edits helper 5", "! the role helper is defined by /role create, with edits=COUNT"},
		{"adm", "set players helper", "The role of players is now helper."},
		{"own", "role create helper moderator", "! the role helper is that of all players or guests: its base is visitor or builder"},
		{"adm", "set players senior", "The role of players is now senior."},
		{"adm", "role delete senior", "The role senior is deleted. Players who had it now have the role builder."},
		{"adm", "role delete senior", `! there is no role "senior"`},
		{"adm", "role delete visitor", "delete has the role visitor."}, // as before there were roles to delete
	} {
		if got := s.say(step.by, step.text); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: /%s: %q, want %q", step.by, step.text, got, step.want)
		}
	}
	for name, want := range map[string]Role{"bob": Builder, "delete": Visitor} {
		if got := s.roleOf(idOf(name), false); got != want {
			t.Errorf("%s has the role %v, want %v", name, got, want)
		}
	}
	if got := s.Settings().Players; got != Builder {
		t.Errorf("the role of players is %v after theirs was deleted", got)
	}
	for i := len(s.Roles().Defined()); i < MaxRoles; i++ {
		s.say("", fmt.Sprintf("role create r%d visitor", i))
	}
	if got := s.say("", "role create onemore visitor"); len(s.Roles().Defined()) != MaxRoles || !strings.HasPrefix(got, "! there are 32 roles") {
		t.Errorf("%d roles, then: %s", len(s.Roles().Defined()), got)
	}
	if got := s.say("", "role create r9 builder"); strings.HasPrefix(got, "!") {
		t.Errorf("a role cannot be changed while there are as many as there can be: %s", got)
	}
}

// Gateways and leaders of regions apply what a role defines.
func TestDefinedRolesAreApplied(t *testing.T) {
	s := newScript(t)
	for _, by := range []string{"eve", "vic", "own", "gus"} {
		s.say(by, "register")
	}
	s.say("own", "claim 0,0 9,9 castle")
	for _, text := range []string{
		"role create jailed moderator build=no", "role create digger visitor build=yes edits=3", "role eve jailed", "role vic digger",
		"set edits builder 40", "role create worker builder", "role gus worker",
	} {
		s.say("", text)
	}
	claimed, free := grid.Pos{X: 5, Y: 5, Z: 5}, grid.Pos{X: 50}
	for _, c := range []struct {
		name       string
		pos        grid.Pos
		refused    string
		edits      int
		mayUseKick bool
	}{
		{"eve", free, wire.RefusedNotAllowed, 0, true},
		{"vic", free, "", 3, false},
		{"vic", claimed, wire.RefusedClaimed, 3, false},
		{"gus", free, "", 40, false},
		{"own", claimed, "", 40, false},
	} {
		v := s.Judge(Subject{Player: idOf(c.name), Name: c.name}, s.now)
		if got := s.Builders().Refuse(&nodemsg.Intent{Player: idOf(c.name), Pos: c.pos}, s.now); got != c.refused {
			t.Errorf("a leader answers %s at %v with %q, want %q", c.name, c.pos, got, c.refused)
		}
		if v.MayBuild() != (c.refused != wire.RefusedNotAllowed) || v.Edits != c.edits {
			t.Errorf("for a gateway %s may build: %t, %d blocks a second", c.name, v.MayBuild(), v.Edits)
		}
		kick, _ := find(commands, "kick")
		if v.Role.MayUse(kick) != c.mayUseKick {
			t.Errorf("%s may kick: %t", c.name, !c.mayUseKick)
		}
	}
}

// What another command proposes, and what operators import, is carried out and listed nowhere.
func TestHiddenCommands(t *testing.T) {
	for role, hidden := range map[Role][]string{Owner: {"revert", "token", "member"}, operator: {"revert"}} {
		for _, c := range For(role) {
			if slices.Contains(hidden, c.Name) {
				t.Errorf("/%s is listed for the role %v", c.Name, role)
			}
		}
	}
}

// Leaders refuse bulk edits of those whose role may make none, whatever their gateway lets through.
func TestLeadersRefuseBulkEdits(t *testing.T) {
	s := newScript(t)
	for _, name := range []string{"mod", "bob"} {
		s.say(name, "register")
	}
	s.say("", "role mod moderator")
	e := nodemsg.Intent{Bulk: nodemsg.Bulk(nodemsg.AppendRun(nil, 0, nodemsg.BulkRun{Count: 1, To: chunk.Stone}))}
	for _, c := range []struct{ set, who, want string }{
		{"", "mod", ""},
		{"", "bob", wire.RefusedNotAllowed},
		{"set bulk builder 4096 4096", "bob", ""},
		{"set bulk moderator off", "mod", wire.RefusedNotAllowed},
	} {
		if c.set != "" {
			s.say("", c.set)
		}
		e.Player = idOf(c.who)
		if got := s.Builders().Refuse(&e, s.now); got != c.want {
			t.Errorf("a bulk edit of %s after %q: refused %q, want %q", c.who, c.set, got, c.want)
		}
	}
}
