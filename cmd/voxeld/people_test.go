package main

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A guest's name, place and edits are safe from others while they play, and a registered name from all guests; nobody
// can lock a guest out by edits with high numbers.
func TestGuestsNames(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	gus := join(t, d.Game, "gus", 1)
	answerTo := func(from, name string) string {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := dialer.DialContext(t.Context(), "tcp", d.Game)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, `{"type":"join","version":1,"name":%q,"view":1,"encoding":"json"}`+"\n", name)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	if got := answerTo("127.0.0.2", "gus"); !strings.Contains(got, wire.FailNameTaken) {
		t.Errorf("a stranger takes the name of a guest who plays: %s", got)
	}
	at := gus.Welcome.Pose
	place := grid.Pos{X: int32(math.Floor(at.X)) + 2, Y: int32(at.Y) + 3, Z: int32(math.Floor(at.Z))}
	gus.put(place, chunk.Brick)
	gus.Leave()
	eventually(t, "the name is free", patience, func() bool { return strings.Contains(answerTo("127.0.0.2", "gus"), `"welcome"`) })
	eventually(t, "the name is free again", patience, func() bool { return strings.Contains(answerTo("127.0.0.1", "gus"), `"welcome"`) })
	thief := dialSession(t, d.Game, "gus", 1)
	thief.until("a welcome", func() bool { return thief.Welcome.Player != "" })
	thief.put(above(place, 1), chunk.Brick) // its land is loaded
	thief.seq = math.MaxUint64 / 2
	seq := thief.edit(above(place, 2), chunk.Brick)
	thief.until("an answer", func() bool { _, ok := thief.Acks[seq]; return ok })
	if got := thief.Acks[seq].Error; got != wire.RefusedStale {
		t.Errorf("an edit with a huge number is answered %q", got)
	}
	thief.Leave()
	again := join(t, d.Game, "gus", 1)
	again.put(above(place, 3), chunk.Brick)
	ada := joinWithKey(t, d.Game, "ada", "ada's key")
	ada.command("register")
	if got := answerTo("127.0.0.1", "Ada"); !strings.Contains(got, wire.FailNameTaken) {
		t.Errorf("a guest joins under a registered name: %s", got)
	}
}

// Private lines and lines to the world reach players on other nodes, a home follows its player there, and what admins
// set on one node holds on the others.
func TestPeople(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	second := startDaemon(t, "--join", first.invite())
	ada := joinWithKey(t, first.Game, "ada", "ada's key")
	bob := joinWithKey(t, second.Game, "bob", "bob's key")
	at := ada.Welcome.Pose
	if got := ada.command("sethome"); !strings.HasPrefix(got, "This is your home") {
		t.Error(got)
	}
	t.Run("a line for one player", func(t *testing.T) {
		var got string
		eventually(t, "the nodes know each other", patience, func() bool {
			got = ada.command("msg Bob hi there")
			return got == "to bob: hi there"
		})
		bob.until("the line", func() bool { return len(bob.Notices) > 0 && bob.Notices[len(bob.Notices)-1] == "from ada: hi there" })
		if got := ada.command("msg bob \U0001fae9"); got != "to bob: ?" { // newer than Go's Unicode
			t.Errorf("a line with a new emoji is answered %q", got)
		}
		bob.until("that line", func() bool { return bob.Notices[len(bob.Notices)-1] == "from ada: ?" })
		if got := ada.command("world \U0001f30d"); got != "world ada: \U0001f30d" {
			t.Errorf("a line to the world is answered %q", got)
		}
		bob.until("the line to the world", func() bool { return bob.Notices[len(bob.Notices)-1] == "world ada: \U0001f30d" })
		if got := ada.command("say \U0001fae9"); !strings.HasPrefix(got, "That command contains a character") {
			t.Errorf("a signed command with a new emoji is answered %q", got)
		}
		if got := bob.command("who"); got != "On this node: bob." {
			t.Error(got)
		}
		bob.until("who is elsewhere", func() bool { return bob.Notices[len(bob.Notices)-1] == "On other nodes: ada." })
	})
	t.Run("a border, a spawn and a warp", func(t *testing.T) {
		x, y, z := int32(math.Floor(at.X)), int32(at.Y), int32(math.Floor(at.Z))
		corner := grid.Pos{X: x + 1, Y: y, Z: z + 1}
		if got := first.place("set", "border", fmt.Sprintf("%d,%d", x-40, z-40), fmt.Sprintf("%d,%d", corner.X, corner.Z)); !strings.HasPrefix(got, "The border of the world is at") {
			t.Error(got)
		}
		first.place("setspawn", fmt.Sprint(x-1), fmt.Sprint(y+2), fmt.Sprint(z))
		first.place("setwarp", "market", fmt.Sprint(x), fmt.Sprint(y), fmt.Sprint(z))
		agree(t, first, second)
		seq := bob.edit(grid.Pos{X: corner.X + 1, Y: y + 3, Z: z}, chunk.Brick)
		bob.until("an answer", func() bool { _, ok := bob.Acks[seq]; return ok })
		if got := bob.Acks[seq].Error; got != wire.RefusedOutsideBorder {
			t.Errorf("an edit outside the border is answered %q", got)
		}
		zoe := joinWithKey(t, second.Game, "zoe", "zoe's key")
		if got := zoe.Welcome.Pose; got.X != float64(x)-.5 || int32(got.Y) != y+2 {
			t.Errorf("a new player starts at %+v", got)
		}
		if got := zoe.command("warps"); got != "market" {
			t.Errorf("warps: %s", got)
		}
	})
	t.Run("a home on another node", func(t *testing.T) {
		ada.Leave()
		ada = joinWithKey(t, second.Game, "ada", "ada's key")
		ada.send(sessionmsg.Command{Text: "home"}) // answered with a notice only if she has none
		if got := ada.command("time"); !strings.HasPrefix(got, "It is ") {
			t.Error(got)
		}
	})
	t.Run("no original clients", func(t *testing.T) {
		if got := first.operate("set", "original", "off"); got != "VoxelPopuli's own clients may not play." {
			t.Error(got)
		}
		agree(t, first, second)
		for _, handshake := range []string{`{"type":"connect","chunk":[0,0],"player":"old"}`, `{"type":"generate","chunk":[0,0]}`} {
			old := dialOriginal(t, second.Game)
			old.send(handshake)
			old.expect("no")
		}
	})
}

// place carries out an operator's command whose arguments may begin with a minus.
func (d *daemon) place(command string, args ...string) string {
	d.t.Helper()
	out, errs, code := voxeld(d.t, append([]string{command, "--data-dir", d.dir, "--"}, args...)...)
	if code != 0 {
		d.t.Fatalf("voxeld %s %q: exit %d: %s", command, args, code, errs)
	}
	return strings.TrimSpace(out)
}
