package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// everywhere is how long a change of the policy may take until it has effect on another node.
const everywhere = 2 * time.Second

// Roles, names and bans hold on all nodes, whichever they were entered on, and outlive their restarts and the death of
// one of them.
func TestPolicy(t *testing.T) {
	first := startDaemon(t)
	second := startDaemon(t, "--join", first.invite())
	third := startDaemon(t, "--join", first.invite())
	token := first.operate("owner")

	ada := joinWithKey(t, second.Game, "ada", "ada's key")
	if got := ada.command("register"); !strings.HasPrefix(got, "The name ada is yours") {
		t.Error(got)
	}
	if got := ada.command("ban eve"); !strings.HasPrefix(got, "/ban is for the role moderator") {
		t.Error(got)
	}
	if got := ada.command("owner " + token); !strings.HasPrefix(got, "You own this world") {
		t.Error(got)
	}
	ada.until("the role of an owner", func() bool { return ada.Permissions.Role == "owner" && ada.Permissions.Name == "ada" })

	eve := joinWithKey(t, third.Game, "eve", "eve's key")
	eve.command("register")
	first.operate("mute", "eve") // at once: the name was entered at another node
	first.operate("unmute", "eve")
	at := eve.Welcome.Pose
	place := grid.Pos{X: int32(at.X) + 2, Y: int32(at.Y) + 3, Z: int32(at.Z)}
	eve.put(place, chunk.Brick)

	t.Run("names", func(t *testing.T) {
		agree(t, first, second, third)
		if code := dialSession(t, first.Game, "Eve", 1).ended(); code != wire.FailNameTaken {
			t.Errorf("a guest takes a registered name: %q", code)
		}
		other := joinWithKey(t, first.Game, "eve", "another key")
		if name := other.Welcome.Name; name == "eve" || !strings.HasPrefix(name, "eve-") {
			t.Errorf("a player with another key is called %q", name)
		}
		other.Leave()
	})
	t.Run("a ban", func(t *testing.T) {
		entered := time.Now()
		if got := ada.command("ban eve 1h griefing"); got != "eve is banned for 1 hour." {
			t.Error(got)
		}
		if code := eve.ended(); code != wire.FailBanned {
			t.Errorf("her session ended with %q", code)
		}
		took := time.Since(entered)
		t.Logf("the session on another node ended after %v", took)
		if took > everywhere {
			t.Errorf("it ended after %v", took)
		}
		agree(t, first, second, third)
		for _, d := range []*daemon{first, second, third} {
			for _, name := range []string{"eve", "innocent"} {
				if code := dialWithKey(t, d.Game, name, "eve's key").ended(); code != wire.FailBanned {
					t.Errorf("joining as %s ends with %q", name, code)
				}
			}
		}
	})
	t.Run("a role", func(t *testing.T) {
		gus := join(t, third.Game, "gus", 1)
		gus.put(above(place, 1), chunk.Brick)
		if got := ada.command("set guests visitor"); got != "The role of guests is now visitor." {
			t.Error(got)
		}
		gus.until("the role of a visitor", func() bool { return gus.Permissions.Role == "visitor" })
		seq := gus.edit(above(place, 2), chunk.Brick)
		gus.until("an answer to the edit", func() bool { _, ok := gus.Acks[seq]; return ok })
		if got := gus.Acks[seq].Error; got != wire.RefusedNotAllowed {
			t.Errorf("a visitor's edit is answered %q", got)
		}
		gus.command("say hello") // only with a key
		if got := gus.command("help"); !strings.Contains(got, "/help") {
			t.Error(got)
		}
	})
	t.Run("a mute, and a line for all", func(t *testing.T) {
		loud := joinWithKey(t, third.Game, "loud", "loud's key")
		loud.command("register")
		if got := ada.command("mute loud 1h shouting"); got != "loud is muted for 1 hour." {
			t.Error(got)
		}
		if got := ada.command("say be kind"); got != "ada: be kind" {
			t.Error(got)
		}
		loud.until("the line for all", func() bool { return loud.Notices[len(loud.Notices)-1] == "ada: be kind" })
		before := len(loud.Notices)
		loud.send(sessionmsg.Chat{Text: "HELLO"})
		loud.until("the refusal", func() bool { return len(loud.Notices) > before })
		if got := loud.Notices[before]; got != "You are muted by ada (1 hour left): shouting." {
			t.Error(got)
		}
	})
	t.Run("restarts", func(t *testing.T) {
		third.kill()
		const warned = "gus is banned for good.\nNobody called gus has registered that name, or is playing now: is it written correctly?"
		if got := first.operate("ban", "gus"); got != warned {
			t.Error(got)
		}
		third.start()
		agree(t, first, third)
		if code := dialSession(t, third.Game, "gus", 1).ended(); code != wire.FailBanned {
			t.Errorf("after a restart of the node a banned guest is answered %q", code)
		}
		if code := dialWithKey(t, third.Game, "eve", "eve's key").ended(); code != wire.FailBanned {
			t.Errorf("after a restart of the node a banned player is answered %q", code)
		}
	})
	t.Run("lists", func(t *testing.T) {
		var bans []sanction.Sanction
		third.ask("bans", &bans)
		if len(bans) != 3 || bans[0].Target != "gus" || bans[1].Target != "loud" || bans[2].Target != "eve" {
			t.Errorf("bans %+v", bans)
		}
		var roles admin.Roles
		third.ask("roles", &roles)
		if len(roles.Members) != 1 || roles.Members[0].Name != "ada" || roles.Settings.Guests != policy.Visitor {
			t.Errorf("roles %+v", roles)
		}
		var audit []admin.AuditEntry
		third.ask("audit", &audit)
		var commands []string
		for _, e := range audit[len(audit)-5:] {
			commands = append(commands, e.By+": "+e.Command)
		}
		if got := strings.Join(commands, "; "); got != "ada: set guests visitor; loud: register; ada: mute loud 1h shouting; ada: say be kind; : ban gus" {
			t.Error(got)
		}
	})
	t.Run("a role that the owner defines", func(t *testing.T) {
		hal := joinWithKey(t, second.Game, "hal", "hal's key")
		hal.command("register")
		third.operate("role", "create", "helper", "builder", "allow=mute", "deny=claim")
		agree(t, first, second, third)
		if got := ada.command("role hal helper"); got != "hal has the role helper." {
			t.Error(got)
		}
		may := func(name string) bool {
			return slices.ContainsFunc(hal.Permissions.Commands, func(c sessionmsg.CommandHelp) bool { return c.Name == name })
		}
		hal.until("the role", func() bool { return hal.Permissions.Role == "helper" && may("mute") && !may("claim") && !may("ban") })
		if got := hal.command("mute gus 1m"); got != "gus is muted for 1 minute." {
			t.Error(got)
		}
		first.operate("role", "create", "helper", "builder", "build=no")
		hal.until("the changed role", func() bool { return !may("mute") && may("claim") })
		at := hal.Welcome.Pose
		seq := hal.edit(grid.Pos{X: int32(at.X) + 1, Y: int32(at.Y) + 3, Z: int32(at.Z)}, chunk.Brick)
		hal.until("an answer to the edit", func() bool { _, ok := hal.Acks[seq]; return ok })
		if got := hal.Acks[seq].Error; got != wire.RefusedNotAllowed {
			t.Errorf("an edit of a role that may not build is answered %q", got)
		}
		agree(t, first, second, third)
		var roles admin.Roles
		third.ask("roles", &roles)
		if len(roles.Defined) != 1 || roles.Defined[0].Name != "helper" || roles.Defined[0].Build || len(roles.Members) != 2 || roles.Members[1].Role.String() != "helper" {
			t.Errorf("roles %+v", roles)
		}
		if table := third.operate("roles"); !regexp.MustCompile(`\nROLE +ABOVE +OPTIONS\nhelper +builder +build=no$`).MatchString(table) {
			t.Errorf("voxeld roles prints:\n%s", table)
		}
		ada.command("role delete helper")
		hal.until("the role of a builder", func() bool { return hal.Permissions.Role == "builder" })
	})
}

// agree waits until all nodes know what one of them knows.
func agree(t *testing.T, nodes ...*daemon) {
	t.Helper()
	known := func(d *daemon) int {
		var all []admin.AuditEntry
		d.ask("audit", &all)
		return len(all)
	}
	most := 0
	for _, d := range nodes {
		most = max(most, known(d))
	}
	for _, d := range nodes {
		eventually(t, "the node on "+d.ip+" knows all commands", patience, func() bool { return known(d) >= most })
	}
}

func above(pos grid.Pos, by int32) grid.Pos { return grid.Pos{X: pos.X, Y: pos.Y + by, Z: pos.Z} }
