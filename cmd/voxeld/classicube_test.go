package main

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/classicclient"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	classicBots = flag.Int("classic.bots", 4, "how many clients of Classic walk in TestClassicPlayers")
	classicWalk = flag.Duration("classic.walk", 20*time.Second, "how long they walk")
)

// classicPort is where the daemons of these tests serve Classic.
const classicPort = ":25565"

// gameCluster starts daemons of one world that serve other games: served has the option of each, and its port.
func gameCluster(t *testing.T, n int, served ...string) (all []*daemon) {
	t.Helper()
	token := ""
	for range n {
		ip := takeAddress(t)
		var args []string
		for game := range slices.Chunk(served, 2) {
			args = append(args, game[0], ip+game[1])
		}
		if token != "" {
			args = append(args, "--join", token)
		}
		d := newDaemon(t, kit.Options{IP: ip, Args: args})
		if token == "" {
			d.init()
		}
		d.start()
		if token == "" {
			token = d.invite()
		}
		all = append(all, d)
	}
	return all
}

// classicPlayer is a player with a client of Classic.
type classicPlayer struct {
	*classicclient.Client
	t *testing.T
}

func joinClassic(t *testing.T, d *daemon, name string, extensions []string) *classicPlayer {
	t.Helper()
	c, err := classicclient.Dial(d.ip+classicPort, classicclient.Options{Name: name, Extensions: extensions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.Look(func(s *classicclient.State) {
				t.Logf("%s: packets %v, chat %q, at %v %q, %v", name, s.Packets, s.Chat, s.Self, s.Status, s.Err)
			})
		}
		c.Leave()
	})
	p := &classicPlayer{Client: c, t: t}
	p.until("the level", func(s *classicclient.State) bool { return s.Levels > 0 && s.Puts > 0 })
	return p
}

// until waits for something, standing where the player is.
func (p *classicPlayer) until(what string, condition func(s *classicclient.State) bool) {
	p.t.Helper()
	eventually(p.t, what, patience, func() (ok bool) {
		var at classicclient.Place
		levels := 0
		p.Look(func(s *classicclient.State) {
			if s.Err != nil {
				p.t.Fatalf("disconnected before %s: %v, %q", what, s.Err, s.Kicked)
			}
			at, levels, ok = s.Self, s.Levels, condition(s)
		})
		if !ok && levels > 0 {
			p.Move(at) //nolint:errcheck // the reader sees the end
		}
		return ok
	})
}

// origin returns the block of the world at the level's corner.
func (p *classicPlayer) origin() (o grid.Pos) {
	p.t.Helper()
	p.until("coordinates", func(s *classicclient.State) bool {
		var x, y, z int32
		if _, err := fmt.Sscan(s.Status, &x, &y, &z); err != nil {
			return false
		}
		o = grid.Pos{X: x - int32(math.Floor(s.Self.X)), Z: z - int32(math.Floor(s.Self.Z))}
		return o == o.Chunk().Origin()
	})
	return o
}

// build places a block of ours at a position of the world.
func (p *classicPlayer) build(pos grid.Pos, b chunk.Block) {
	p.t.Helper()
	o := p.origin()
	var at classicclient.Place
	p.Look(func(s *classicclient.State) { at = s.Self })
	if err := p.Move(at); err != nil { // what comes before the first move is ignored
		p.t.Fatal(err)
	}
	if err := p.Build(int(pos.X-o.X), int(pos.Y), int(pos.Z-o.Z), blocktable.ToClassic(b, blocktable.ClassicCustom)); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the player sees a block.
func (p *classicPlayer) sees(pos grid.Pos, b chunk.Block) {
	p.t.Helper()
	o := p.origin()
	p.until(fmt.Sprintf("%s at %v", b.Name(), pos), func(*classicclient.State) bool { return true })
	eventually(p.t, fmt.Sprintf("%s at %v", b.Name(), pos), patience, func() bool {
		return p.Block(int(pos.X-o.X), int(pos.Y), int(pos.Z-o.Z)) == blocktable.ToClassic(b, blocktable.ClassicCustom)
	})
}

// Players of Classic on two nodes and one in the browser's protocol see one another, and what they build and say; they walk over the border
// of a region while its leader is killed, and nobody is disconnected.
func TestClassicPlayers(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 4, "--classicube", classicPort)
	scout := join(t, all[0].Game, "scout", 1)
	start := scout.Pose.Block()
	leader, others := leaderOf(t, all, start.Chunk())
	session := join(t, others[0].Game, "browser", 2)
	ada := joinClassic(t, others[0], "ada", classicclient.Usual)
	bob := joinClassic(t, others[1], "bob", classicclient.Usual)

	for _, p := range []*classicPlayer{ada, bob} {
		p.until("the others", func(s *classicclient.State) bool { return len(s.Players) >= 3 })
	}
	session.until("the players of Classic", func() bool { return len(session.Avatars) >= 3 })

	above := grid.Pos{X: start.X, Y: start.Y + 3, Z: start.Z + 1}
	ada.build(above, chunk.Brick)
	session.until("ada's block", func() bool { b, known := session.Block(above); return known && b == chunk.Brick })
	bob.sees(above, chunk.Brick)
	beside := grid.Pos{X: above.X + 1, Y: above.Y, Z: above.Z}
	session.put(beside, chunk.Lamp)
	ada.sees(beside, chunk.Lamp)
	bob.build(above, chunk.Air)
	ada.sees(above, chunk.Air)
	top := grid.Pos{X: above.X, Y: above.Y + 1, Z: above.Z}
	for _, half := range []grid.Pos{above, top} {
		session.put(half, chunk.Door)
		bob.sees(half, chunk.Door)
	}
	o := bob.origin()
	if err := bob.Use(int(top.X-o.X), int(top.Y), int(top.Z-o.Z), 45); err != nil {
		t.Fatal(err)
	}
	session.until("the open door", func() bool {
		lower, _ := session.Block(above)
		upper, _ := session.Block(top)
		return lower == upper && lower == chunk.Door.Used()
	})
	far := grid.Pos{X: start.X + 40, Y: above.Y, Z: start.Z} // out of reach: it is put back
	ada.build(far, chunk.Brick)
	ada.until("the refusal", func(s *classicclient.State) bool {
		return slices.ContainsFunc(s.Chat, func(line string) bool { return strings.Contains(line, "out of reach") })
	})

	if err := ada.Say("good &4morning", false); err != nil {
		t.Fatal(err)
	}
	session.until("ada's line", func() bool {
		return slices.ContainsFunc(session.Received, func(l sessionmsg.ChatLine) bool { return l.Name == "ada" && l.Text == "good morning" })
	})
	session.send(sessionmsg.Chat{Text: "hello & welcome"})
	bob.until("the session's line", func(s *classicclient.State) bool {
		return slices.ContainsFunc(s.Chat, func(line string) bool { return strings.Contains(line, "browser&f: hello + welcome") })
	})

	crowd := []*classicPlayer{ada, bob}
	for i := len(crowd); i < *classicBots; i++ {
		crowd = append(crowd, joinClassic(t, others[i%2], fmt.Sprint("walker", i), classicclient.Usual))
	}
	border := start.X
	for cell := grid.CellAt(start.Chunk(), grid.FoundingLabel); grid.CellAt((grid.Pos{X: border, Z: start.Z}).Chunk(), grid.FoundingLabel) == cell; {
		border++
	}
	t.Logf("%d players walk from %v to the border at %d, for %v", len(crowd), start, border, *classicWalk)
	walk(t, crowd, float64(border), *classicWalk, func() { leader.kill() })
}

// A client without extensions, or one that is a page, plays as well. Names that a guest may not have are refused with a reason, and so is
// another version; who plays while their node drains is told where to go on.
func TestClassicEnds(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--classicube", classicPort)
	plain := joinClassic(t, all[0], "plain", nil)
	plain.until("a line about the place", func(s *classicclient.State) bool {
		return slices.ContainsFunc(s.Chat, func(line string) bool { return strings.Contains(line, "You are at") })
	})

	for name, o := range map[string]classicclient.Options{
		"blanks":  {Name: "with blanks"},
		"version": {Name: "old", Version: 6},
	} {
		c, err := classicclient.Dial(all[0].ip+classicPort, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Leave)
		eventually(t, name+" is refused", patience, func() (kicked bool) {
			c.Look(func(s *classicclient.State) { kicked = s.Kicked != "" && s.Levels == 0 })
			return kicked
		})
	}

	ws, _, err := websocket.Dial(t.Context(), "ws://"+all[0].ip+classicPort, &websocket.DialOptions{Subprotocols: []string{"ClassiCube"}}) //nolint:bodyclose // the library closes it
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(1 << 20)
	page, err := classicclient.New(websocket.NetConn(t.Context(), ws, websocket.MessageBinary), classicclient.Options{Name: "page", Extensions: classicclient.Usual})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(page.Leave)
	onPage := &classicPlayer{Client: page, t: t}
	onPage.until("the level", func(s *classicclient.State) bool { return s.Levels > 0 && len(s.Players) > 0 })

	all[0].drain()
	for _, p := range []*classicclient.Client{plain.Client, page} {
		eventually(t, "the end", patience, func() (ended bool) {
			p.Look(func(s *classicclient.State) { ended = s.Err != nil })
			return ended
		})
		p.Look(func(s *classicclient.State) {
			if !strings.Contains(s.Kicked, "oin again at "+all[1].ip) {
				t.Errorf("the reason is %q", s.Kicked)
			}
		})
	}
}

// walk makes players fly to and fro over a border of regions, at 8 blocks a second, and build. In the middle it calls meanwhile.
func walk(t *testing.T, crowd []*classicPlayer, border float64, during time.Duration, meanwhile func()) {
	t.Helper()
	const step, top = .4, 122
	forward := make([]bool, len(crowd))
	for i := range forward {
		forward[i] = true
	}
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
			var at classicclient.Place
			p.Look(func(s *classicclient.State) {
				if s.Err != nil {
					t.Fatalf("player %d is disconnected: %v, %q", i, s.Err, s.Kicked)
				}
				at = s.Self
				var x float64
				if n, _ := fmt.Sscan(s.Status, &x); n == 1 {
					crossed[i] = crossed[i] || x > border+2
					if !crossed[i] {
						delete(crossed, i)
					}
					if x > border+20 {
						forward[i] = false
					} else if x < border-20 {
						forward[i] = true
					}
				}
			})
			switch {
			case at.Y < top:
				at.Y += step
			case forward[i]:
				at.X += step
			default:
				at.X -= step
			}
			p.Move(at) //nolint:errcheck // the reader sees the end
			if tick%20 == i%20 {
				p.Build(int(at.X), int(at.Y)+1, int(at.Z)+3, byte(tick/20%2)*4) //nolint:errcheck // likewise
			}
		}
	}
	for i, p := range crowd {
		p.Look(func(s *classicclient.State) {
			t.Logf("player %d: %d levels, put %d times, %d blocks changed", i, s.Levels, s.Puts, s.Packets[6])
		})
	}
}
