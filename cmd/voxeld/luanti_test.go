package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/classicclient"
	"github.com/voxelpopuli/voxeld/test/testkit/luanticlient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	luantiBots = flag.Int("luanti.bots", 4, "how many clients of Luanti walk in TestLuantiPlayers")
	luantiWalk = flag.Duration("luanti.walk", 20*time.Second, "how long they walk")
)

// luantiPort is where the daemons of these tests serve Luanti.
const luantiPort = ":30000"

// luantiPlayer is a player with a client of Luanti.
type luantiPlayer struct {
	*luanticlient.Client
	t *testing.T
}

func joinLuanti(t *testing.T, d *daemon, o luanticlient.Options) *luantiPlayer {
	t.Helper()
	c, err := luanticlient.Dial(d.ip+luantiPort, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.Look(func(s *luanticlient.State) {
				t.Logf("%s: packets %v, chat %q, at %v, players %v, %q, %v", o.Name, s.Packets, s.Chat, s.Self, s.Players, s.Kicked, s.Err)
			})
		}
		c.Leave()
	})
	p := &luantiPlayer{Client: c, t: t}
	p.until("land", func(s *luanticlient.State) bool {
		at := luanticlient.Node{X: int(s.Self.X), Y: int(s.Self.Y), Z: int(s.Self.Z)}
		_, known := s.Block(at)
		return known && s.Puts > 0
	})
	return p
}

// until waits for something, standing where the player is.
func (p *luantiPlayer) until(what string, condition func(s *luanticlient.State) bool) {
	p.t.Helper()
	eventually(p.t, what, patience, func() (ok bool) {
		var at luanticlient.Place
		inside := false
		p.Look(func(s *luanticlient.State) {
			if s.Err != nil {
				p.t.Fatalf("disconnected before %s: %v, %q", what, s.Err, s.Kicked)
			}
			at, inside, ok = s.Self, s.Puts > 0, condition(s)
		})
		if !ok && inside {
			p.Move(at)
		}
		return ok
	})
}

// hears waits until the chat has a text.
func (p *luantiPlayer) hears(text string) {
	p.t.Helper()
	p.until("the line "+text, func(s *luanticlient.State) bool { return strings.Contains(strings.Join(s.Chat, "\n"), text) })
}

// ended returns why the connection has ended; empty if it has not.
func (p *luantiPlayer) ended() (why string) {
	p.Look(func(s *luanticlient.State) {
		if s.Err != nil {
			why = s.Kicked + " " + s.Err.Error()
		}
	})
	return why
}

func (p *luantiPlayer) self() (at luanticlient.Place) {
	p.t.Helper()
	p.Look(func(s *luanticlient.State) {
		if s.Err != nil {
			p.t.Fatalf("a player is disconnected: %v, %q", s.Err, s.Kicked)
		}
		at = s.Self
	})
	return at
}

func (p *luantiPlayer) place() (x, y float64) { at := p.self(); return at.X, at.Y }

func (p *luantiPlayer) step(dx, dy float64) {
	at := p.self()
	p.Move(luanticlient.Place{X: at.X + dx, Y: at.Y + dy, Z: at.Z})
}

func (p *luantiPlayer) work(build bool) {
	at := p.self()
	n := luanticlient.Node{X: int(at.X), Y: int(at.Y) + 1, Z: int(at.Z) + 3}
	if build {
		p.Build(brick, n, n)
	} else {
		p.Dig(n)
	}
}

// nodeAt returns where a block is in the game, whose Z runs the other way.
func nodeAt(pos grid.Pos) luanticlient.Node {
	return luanticlient.Node{X: int(pos.X), Y: int(pos.Y), Z: -int(pos.Z) - 1}
}

// sees waits until the player sees a block.
func (p *luantiPlayer) sees(pos grid.Pos, b chunk.Block) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s at %v", b.Name(), pos), func(s *luanticlient.State) bool {
		id, known := s.Block(nodeAt(pos))
		return known && id == blocktable.ToLuanti(b)
	})
}

// brick is the slot in which bricks are at first.
const brick = 2

// Players of Luanti on two nodes and one in the browser's protocol see one another, and what they build and say; they
// walk over the border of a region while its leader is killed, and nobody is disconnected.
func TestLuantiPlayers(t *testing.T) {
	t.Parallel()
	w := newGameWorld(t, "--luanti", luantiPort)
	start, others, session := w.start, w.others, w.session
	ada := joinLuanti(t, others[0], luanticlient.Options{Name: "ada"})
	bob := joinLuanti(t, others[1], luanticlient.Options{Name: "bob", Register: true})
	ada.Look(func(s *luanticlient.State) {
		if s.Nodes < 30 || len(s.Media) < 40 || !strings.Contains(s.Inventory, "voxeld:brick") {
			t.Errorf("%d nodes, %d files, inventory %q", s.Nodes, len(s.Media), s.Inventory)
		}
	})

	for _, p := range []*luantiPlayer{ada, bob} {
		p.until("the others", func(s *luanticlient.State) bool { return len(s.Players) >= 4 }) // and themselves
	}
	session.until("the players of Luanti", func() bool { return len(session.Avatars) >= 3 })

	above := grid.Pos{X: start.X, Y: start.Y + 3, Z: start.Z + 1}
	beside := grid.Pos{X: above.X + 1, Y: above.Y, Z: above.Z}
	ada.Build(brick, nodeAt(beside), nodeAt(above))
	w.until("ada's block", above, chunk.Brick)
	bob.sees(above, chunk.Brick)
	session.put(beside, chunk.Lamp)
	ada.sees(beside, chunk.Lamp)
	bob.Dig(nodeAt(above))
	ada.sees(above, chunk.Air)
	far := grid.Pos{X: start.X + 40, Y: above.Y, Z: start.Z} // out of reach: it is put back
	ada.Build(brick, nodeAt(far), nodeAt(far))
	ada.hears("out of reach")

	ada.Say("good morning ✓")
	w.hears("ada", "good morning ✓")
	session.send(sessionmsg.Chat{Text: "hello & welcome"})
	bob.hears("browser: hello & welcome")

	crowd := []*luantiPlayer{ada, bob}
	for i := len(crowd); i < *luantiBots; i++ {
		crowd = append(crowd, joinLuanti(t, others[i%2], luanticlient.Options{Name: fmt.Sprint("walker", i)}))
	}
	t.Logf("%d players walk from %v to the border at %v, for %v", len(crowd), start, w.border, *luantiWalk)
	walk(t, crowd, w.border, *luantiWalk, func() { w.leader.kill() })
}

// enterLuanti has a client join for a moment. It returns what its chat had by then, and why it was refused.
func enterLuanti(t *testing.T, d *daemon, o luanticlient.Options) (chat string, err error) {
	t.Helper()
	c, err := luanticlient.Dial(d.ip+luantiPort, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Leave()
	eventually(t, o.Name+" is in, or not", patience, func() (known bool) {
		c.Look(func(s *luanticlient.State) {
			chat = strings.Join(s.Chat, "\n")
			if known = s.Err != nil || s.Kicked != "" || strings.Contains(chat, "password of your game"); known && (s.Err != nil || s.Kicked != "") {
				err = fmt.Errorf("%q: %w", s.Kicked, cmp.Or(s.Err, io.EOF))
			}
		})
		return known
	})
	return chat, err
}

// The password of the game's menu keeps a name: on every node and over a restart, in the browser and in other games,
// others neither get it nor throw out who has it.
func TestLuantiPasswords(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--luanti", luantiPort, "--classicube", classicPort)
	ada := luanticlient.Options{Name: "ada", Password: "correct horse", Register: true}
	stays := joinLuanti(t, all[0], ada)
	stays.hears("keeps the name ada for you")
	open := joinLuanti(t, all[0], luanticlient.Options{Name: "open", Register: true})
	open.hears("is not checked")
	open.Leave()
	ada.Register, ada.Login = false, true
	wrong := ada
	wrong.Password = "wrong horse"
	refused := func(d *daemon) {
		t.Helper()
		eventually(t, "the other node knows the password", patience, func() bool {
			_, err := enterLuanti(t, d, wrong)
			return err != nil && strings.Contains(err.Error(), "not the password of ada")
		})
		if code := dialSession(t, d.Game, "ada", 1).ended(); code != wire.FailNameTaken {
			t.Errorf("a page with the name ends with %q", code)
		}
		cube := joinClassic(t, d, "ada", classicclient.Usual)
		cube.hears("you are the guest ada-")
		cube.Leave()
	}
	refused(all[0])
	refused(all[1])
	stays.Look(func(s *luanticlient.State) {
		if s.Kicked != "" || s.Err != nil {
			t.Errorf("ada was thrown out: %q, %v", s.Kicked, s.Err)
		}
	})
	if chat, err := enterLuanti(t, all[0], ada); err != nil || !strings.Contains(chat, "keeps the name ada") { // in place of the first
		t.Errorf("%v, %s", err, chat)
	}
	all[0].terminate()
	if chat, err := enterLuanti(t, all[1], ada); err != nil || !strings.Contains(chat, "keeps the name ada") {
		t.Errorf("%v, %s", err, chat)
	}
	all[0].start()
	refused(all[0])
	if chat, err := enterLuanti(t, all[0], luanticlient.Options{Name: "open", Login: true, Password: "any"}); err != nil || !strings.Contains(chat, "is not checked") {
		t.Errorf("a name without a password: %v, %s", err, chat)
	}
}

// Names that a guest may not have are refused with a reason, and so is another version; the buttons Login and Register
// do what they say; who plays while their node drains is told where to go on.
func TestLuantiEnds(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--luanti", luantiPort)
	stays := joinLuanti(t, all[0], luanticlient.Options{Name: "stays", Register: true})
	joinLuanti(t, all[0], luanticlient.Options{Name: "back", Register: true}).Leave()
	presses := func(d *daemon, o luanticlient.Options) error { _, err := enterLuanti(t, d, o); return err }
	eventually(t, "who has played may log in at another node", patience, func() bool {
		return presses(all[1], luanticlient.Options{Name: "back", Login: true}) == nil
	})
	for _, o := range []luanticlient.Options{{Name: "stays", Register: true}, {Name: "nobody", Login: true}} {
		if err := presses(all[0], o); err == nil {
			t.Errorf("%+v is served", o)
		}
	}
	for why, o := range map[string]luanticlient.Options{
		"letters":     {Name: "with blanks"},
		"protocol 39": {Name: "old", Version: 36},
	} {
		c, err := luanticlient.Dial(all[0].ip+luantiPort, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Leave)
		eventually(t, o.Name+" is refused", patience, func() (kicked bool) {
			c.Look(func(s *luanticlient.State) { kicked = strings.Contains(s.Kicked, why) && s.Puts == 0 })
			return kicked
		})
	}
	drainUnder(t, all[0], all[1], luantiPort, stays.ended)
}
