package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/luanticlient"
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

// Players of Luanti on two nodes and one in the browser's protocol see one another, and what they build and say; they walk over the border
// of a region while its leader is killed, and nobody is disconnected.
func TestLuantiPlayers(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 4, "--luanti", luantiPort)
	scout := join(t, all[0].Game, "scout", 1)
	start := scout.Pose.Block()
	leader, others := leaderOf(t, all, start.Chunk())
	session := join(t, others[0].Game, "browser", 2)
	ada := joinLuanti(t, others[0], luanticlient.Options{Name: "ada"})
	bob := joinLuanti(t, others[1], luanticlient.Options{Name: "bob", First: true})
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
	session.until("ada's block", func() bool { b, known := session.Block(above); return known && b == chunk.Brick })
	bob.sees(above, chunk.Brick)
	session.put(beside, chunk.Lamp)
	ada.sees(beside, chunk.Lamp)
	bob.Dig(nodeAt(above))
	ada.sees(above, chunk.Air)
	far := grid.Pos{X: start.X + 40, Y: above.Y, Z: start.Z} // out of reach: it is put back
	ada.Build(brick, nodeAt(far), nodeAt(far))
	ada.until("the refusal", func(s *luanticlient.State) bool {
		return slices.ContainsFunc(s.Chat, func(line string) bool { return strings.Contains(line, "out of reach") })
	})

	ada.Say("good morning ✓")
	session.until("ada's line", func() bool {
		return slices.ContainsFunc(session.Received, func(l sessionmsg.ChatLine) bool { return l.Name == "ada" && l.Text == "good morning ✓" })
	})
	session.send(sessionmsg.Chat{Text: "hello & welcome"})
	bob.until("the session's line", func(s *luanticlient.State) bool { return slices.Contains(s.Chat, "browser: hello & welcome") })

	crowd := []*luantiPlayer{ada, bob}
	for i := len(crowd); i < *luantiBots; i++ {
		crowd = append(crowd, joinLuanti(t, others[i%2], luanticlient.Options{Name: fmt.Sprint("walker", i)}))
	}
	border := start.X
	for cell := grid.CellAt(start.Chunk(), grid.FoundingLabel); grid.CellAt((grid.Pos{X: border, Z: start.Z}).Chunk(), grid.FoundingLabel) == cell; {
		border++
	}
	t.Logf("%d players walk from %v to the border at %d, for %v", len(crowd), start, border, *luantiWalk)
	walkLuanti(t, crowd, float64(border), *luantiWalk, func() { leader.kill() })
}

// Names that a guest may not have are refused with a reason, and so is another version; who plays while their node drains is told where to
// go on.
func TestLuantiEnds(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--luanti", luantiPort)
	stays := joinLuanti(t, all[0], luanticlient.Options{Name: "stays"})
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
	all[0].drain()
	eventually(t, "the end", patience, func() (ended bool) {
		stays.Look(func(s *luanticlient.State) { ended = s.Err != nil })
		return ended
	})
	stays.Look(func(s *luanticlient.State) {
		if !strings.Contains(s.Kicked, "oin again at "+all[1].ip) {
			t.Errorf("the reason is %q", s.Kicked)
		}
	})
}

// walkLuanti makes players fly to and fro over a border of regions, at 8 blocks a second, and build. In the middle it calls meanwhile.
func walkLuanti(t *testing.T, crowd []*luantiPlayer, border float64, during time.Duration, meanwhile func()) {
	t.Helper()
	const step, top = .4, 122
	forward := slices.Repeat([]bool{true}, len(crowd))
	crossed, begun, done := make(map[int]bool), time.Now(), false
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for tick := 0; time.Since(begun) < during || !done || len(crossed) < len(crowd); tick++ {
		<-ticker.C
		if time.Since(begun) > during+patience {
			t.Fatalf("only %v of %d have crossed the border", crossed, len(crowd))
		}
		if !done && time.Since(begun) > during/2 {
			done = true
			meanwhile()
		}
		for i, p := range crowd {
			var at luanticlient.Place
			p.Look(func(s *luanticlient.State) {
				if s.Err != nil {
					t.Fatalf("player %d is disconnected: %v, %q", i, s.Err, s.Kicked)
				}
				at = s.Self
			})
			switch {
			case at.X > border+20:
				crossed[i], forward[i] = true, false
			case at.X < border-20:
				forward[i] = true
			}
			switch {
			case at.Y < top:
				at.Y += step
			case forward[i]:
				at.X += step
			default:
				at.X -= step
			}
			p.Move(at)
			if tick%20 == i%20 {
				n := luanticlient.Node{X: int(at.X), Y: int(at.Y) + 1, Z: int(at.Z) + 3}
				if tick/20%2 == 0 {
					p.Build(brick, n, n)
				} else {
					p.Dig(n)
				}
			}
		}
	}
	for i, p := range crowd {
		p.Look(func(s *luanticlient.State) {
			t.Logf("player %d: %d map blocks, put %d times", i, len(s.Blocks), s.Puts)
		})
	}
}
