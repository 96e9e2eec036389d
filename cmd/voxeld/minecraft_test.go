package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	minecraftBots = flag.Int("minecraft.bots", 3, "how many clients of Minecraft fly in TestMinecraftPlayers")
	minecraftWalk = flag.Duration("minecraft.walk", 15*time.Second, "how long they fly")
)

const (
	// minecraftPort is where the daemons of these tests serve Minecraft.
	minecraftPort = ":25566"
	// minecraftClient has the client, and its packages.
	minecraftClient = "../../test/e2e/minecraft/"
)

// minecraftClients are players of Minecraft in a process of their own: players.mjs says how it is driven.
type minecraftClients struct {
	t  *testing.T
	in io.WriteCloser

	mu struct {
		sync.Mutex
		number  int
		waiting map[int]chan minecraftAnswer
	}
}

type minecraftAnswer struct {
	Result json.RawMessage
	Error  string
}

// startMinecraftClients starts the process. make test installs its packages where it can.
func startMinecraftClients(t *testing.T) *minecraftClients {
	t.Helper()
	if _, err := os.Stat(minecraftClient + "node_modules/mineflayer"); err != nil {
		t.Skip("mineflayer is missing: run npm --prefix test/e2e/minecraft ci")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing")
	}
	process := exec.CommandContext(t.Context(), node, minecraftClient+"players.mjs")
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	process.Stderr = &errs
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	c := &minecraftClients{t: t, in: in}
	c.mu.waiting = make(map[int]chan minecraftAnswer)
	var reader sync.WaitGroup
	reader.Go(func() { c.read(out) })
	t.Cleanup(func() {
		in.Close()
		reader.Wait()
		if err := process.Wait(); err != nil && t.Context().Err() == nil || errs.Len() > 0 {
			t.Errorf("the clients end with %v, %s", err, errs.String())
		}
	})
	return c
}

// read passes the answers on.
func (c *minecraftClients) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var number int
		var a minecraftAnswer
		if err := json.Unmarshal(lines.Bytes(), &[]any{&number, &a.Result, &a.Error}); err != nil {
			c.t.Errorf("the clients print %q", lines.Text())
			return
		}
		c.mu.Lock()
		if to := c.mu.waiting[number]; to != nil {
			to <- a
		}
		delete(c.mu.waiting, number)
		c.mu.Unlock()
	}
}

// minecraftPlayer is a player with a client of Minecraft.
type minecraftPlayer struct {
	*minecraftClients
	name string
}

// minecraftView is what a player sees.
type minecraftView struct {
	Spawned                bool
	Ended                  string
	Forced, Changed, Built int
	Opened                 int // forms of signs
	Chat, Online           []string
	At                     []float64
	Time                   int
	Bodies                 []struct {
		Name    string
		X, Y, Z float64
		Held    string // an item
		Sneaks  bool
	}
}

// do makes the player do something, and waits until it is done.
func (p *minecraftPlayer) do(what string, arguments ...any) (result json.RawMessage) {
	p.t.Helper()
	answer := make(chan minecraftAnswer, 1)
	p.mu.Lock()
	p.mu.number++
	number := p.mu.number
	p.mu.waiting[number] = answer
	line, err := json.Marshal(append([]any{number, p.name, what}, arguments...))
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	select {
	case a := <-answer:
		if a.Error != "" {
			p.t.Fatalf("%s cannot %s %v: %s", p.name, what, arguments, a.Error)
		}
		return a.Result
	case <-time.After(patience):
		p.t.Fatalf("%s does not %s", p.name, what)
		return nil
	}
}

func (p *minecraftPlayer) look() (v minecraftView) {
	p.t.Helper()
	if err := json.Unmarshal(p.do("look"), &v); err != nil {
		p.t.Fatal(err)
	}
	return v
}

// until waits for something that the player sees.
func (p *minecraftPlayer) until(what string, condition func(v minecraftView) bool) {
	p.t.Helper()
	eventually(p.t, p.name+" sees "+what, patience, func() bool {
		v := p.look()
		if v.Ended != "" {
			p.t.Fatalf("%s is disconnected before %s: %s", p.name, what, v.Ended)
		}
		return condition(v)
	})
}

// hears waits until the chat has a line.
func (p *minecraftPlayer) hears(text string) {
	p.t.Helper()
	p.until("the line "+text, func(v minecraftView) bool {
		return strings.Contains(strings.Join(v.Chat, "\n"), text)
	})
}

// sees waits until the player sees a block of Minecraft.
func (p *minecraftPlayer) sees(pos grid.Pos, name string) {
	p.t.Helper()
	want, _ := json.Marshal(name)
	eventually(p.t, fmt.Sprintf("%s sees %s at %v", p.name, name, pos), patience, func() bool {
		return string(p.do("block", pos.X, pos.Y, pos.Z)) == string(want)
	})
}

// seesStance waits until the player sees another one with an item in the hand, who sneaks or stands.
func (p *minecraftPlayer) seesStance(name, held string, sneaks bool) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s with %s, sneaking: %v", name, held, sneaks), func(v minecraftView) bool {
		for _, b := range v.Bodies {
			if b.Name == name {
				return b.Held == held && b.Sneaks == sneaks
			}
		}
		return false
	})
}

// seesState waits until a block looks to the player as it should.
func (p *minecraftPlayer) seesState(pos grid.Pos, want map[string]any) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%s sees %v at %v", p.name, want, pos), patience, func() bool {
		var got map[string]any
		if err := json.Unmarshal(p.do("state", pos.X, pos.Y, pos.Z), &got); err != nil {
			p.t.Fatal(err)
		}
		for property, value := range want {
			if got[property] != value {
				return false
			}
		}
		return true
	})
}

func (c *minecraftClients) start(d *daemon, name string, version string) *minecraftPlayer {
	c.t.Helper()
	p := &minecraftPlayer{minecraftClients: c, name: name}
	p.do("join", d.ip, 25566, version)
	return p
}

// join starts a player who plays.
func (c *minecraftClients) join(d *daemon, name string) *minecraftPlayer {
	c.t.Helper()
	p := c.start(d, name, "1.20.2")
	p.until("the world", func(v minecraftView) bool { return v.Spawned && len(v.At) == 3 && v.Forced > 0 })
	at := p.look().At
	below := grid.Pos{X: int32(math.Floor(at[0])), Y: 0, Z: int32(math.Floor(at[2]))}
	p.sees(below, "bedrock")
	return p
}

// Players of Minecraft on two nodes and one in the browser's protocol see one another, and what they build and say;
// they fly over the border of a region while its leader is killed, and nobody is disconnected.
func TestMinecraftPlayers(t *testing.T) {
	t.Parallel()
	clients := startMinecraftClients(t)
	w := newGameWorld(t, "--minecraft", minecraftPort)
	start, others, session := w.start, w.others, w.session
	ada, bob := clients.join(others[0], "ada"), clients.join(others[1], "bob")

	for _, p := range []*minecraftPlayer{ada, bob} {
		p.until("the others", func(v minecraftView) bool { return len(v.Bodies) >= 3 && len(v.Online) >= 4 })
	}
	session.until("the players of Minecraft", func() bool { return len(session.Avatars) >= 3 })

	at := ada.look().At
	ground := grid.Pos{X: int32(math.Floor(at[0])) + 1, Y: int32(math.Floor(at[1])) - 1, Z: int32(math.Floor(at[2])) + 1}
	ada.sees(ground, "grass_block")
	above := grid.Pos{X: ground.X, Y: ground.Y + 1, Z: ground.Z}
	ada.do("choose", "sea_lantern")
	bob.seesStance("ada", "sea_lantern", false)
	ada.do("sneak", true)
	bob.seesStance("ada", "sea_lantern", true)
	ada.do("sneak", false)
	bob.seesStance("ada", "sea_lantern", false)
	session.send(sessionmsg.Stance{Held: uint16(chunk.Brick), Sneaks: true})
	ada.seesStance("browser", "bricks", true)
	ada.do("place", ground.X, ground.Y, ground.Z)
	w.until("ada's block", above, chunk.Lamp)
	bob.sees(above, "sea_lantern")
	beside := grid.Pos{X: above.X + 1, Y: above.Y, Z: above.Z}
	session.put(beside, chunk.Brick)
	ada.sees(beside, "bricks")
	eventually(t, "a sign is acknowledged, as all nodes have said that they know signs", patience, func() bool {
		seq := session.do(sessionmsg.Edit{X: beside.X, Y: beside.Y, Z: beside.Z, Block: uint16(chunk.Sign), Text: "to the\nharbour 🌍"})
		session.until("the answer", func() bool { _, ok := session.Acks[seq]; return ok })
		return session.Acks[seq].Error == ""
	})
	ada.sees(beside, "oak_sign")
	eventually(t, "ada reads the sign", patience, func() bool {
		var lines []string
		err := json.Unmarshal(ada.do("sign", beside.X, beside.Y, beside.Z), &lines)
		return err == nil && slices.Equal(lines, []string{`{"text":"to the"}`, `{"text":"harbour \ud83c\udf0d"}`, `{"text":""}`, `{"text":""}`})
	})
	bob.do("dig", above.X, above.Y, above.Z)
	ada.sees(above, "air")
	ada.do("choose", "oak_sign")
	ada.do("place", ground.X, ground.Y, ground.Z)
	ada.until("the form of a sign", func(v minecraftView) bool { return v.Opened == 1 })
	ada.do("write", above.X, above.Y, above.Z, "Ada's\nhouse")
	eventually(t, "bob reads what ada has written", patience, func() bool {
		var lines []string
		err := json.Unmarshal(bob.do("sign", above.X, above.Y, above.Z), &lines)
		return err == nil && len(lines) == 4 && lines[0] == `{"text":"Ada's"}` && lines[1] == `{"text":"house"}`
	})
	bob.do("use", above.X, above.Y, above.Z)
	bob.until("the form of the sign", func(v minecraftView) bool { return v.Opened == 1 })
	bob.do("dig", above.X, above.Y, above.Z)
	ada.sees(above, "air")

	for block, tag := range map[string]string{"ladder": "climbable", "spruce_fence": "wooden_fences"} {
		if string(ada.do("tagged", block, tag)) != "true" {
			t.Errorf("%s is not %s", block, tag)
		}
	}
	session.put(beside, chunk.Brick)
	fence := grid.Pos{X: beside.X, Y: beside.Y, Z: beside.Z + 1}
	session.put(fence, chunk.PlankFence)
	ada.seesState(fence, map[string]any{"north": true, "south": false})
	session.put(fence, chunk.PlankFenceGate+5)
	ada.seesState(fence, map[string]any{"facing": "west", "open": true})
	session.put(fence, chunk.PineTrapdoor+6)
	ada.seesState(fence, map[string]any{"facing": "north", "half": "top", "open": false})
	corner := chunk.PineTrapdoor + 16 + 18 // of stone, inner, upside down
	session.put(fence, corner)
	ada.seesState(fence, map[string]any{"facing": "south", "half": "top", "shape": "inner_right"})
	ada.do("choose", "oak_door")
	ada.do("place", ground.X, ground.Y, ground.Z)
	top := grid.Pos{X: above.X, Y: above.Y + 1, Z: above.Z}
	door := func(open bool) {
		t.Helper()
		session.until("the door", func() bool {
			lower, known := session.Block(above)
			upper, _ := session.Block(top)
			return known && lower == upper && lower.Door() && lower.Solid() != open
		})
		for _, p := range []*minecraftPlayer{ada, bob} {
			p.seesState(above, map[string]any{"half": "lower", "open": open})
			p.seesState(top, map[string]any{"half": "upper", "open": open})
		}
	}
	door(false)
	bob.do("use", top.X, top.Y, top.Z)
	door(true)
	ada.do("use", above.X, above.Y, above.Z)
	door(false)
	bob.do("dig", top.X, top.Y, top.Z)
	ada.sees(above, "air")
	ada.do("put", ground.X+40, ground.Y+9, ground.Z) // out of reach: it is put back
	ada.hears("out of reach")

	ada.do("say", "good §4morning")
	w.hears("ada", "good §4morning")
	session.send(sessionmsg.Chat{Text: "hello & welcome"})
	bob.hears("<browser> hello & welcome")
	bob.do("say", "/who")
	bob.hears("On this node: bob")

	for yaw := 0.; math.Hypot(ada.look().At[0]-at[0], ada.look().At[2]-at[2]) < 1; yaw++ { // something may be in the way
		if yaw > 20 {
			t.Fatal("ada cannot walk")
		}
		ada.do("step", yaw, 500)
	}
	session.until("that ada has walked", func() bool {
		to, seen := ada.look().At, session.Avatars["ada"]
		return math.Hypot(seen.X-to[0], seen.Z-to[2]) < .1
	})

	crowd := []*minecraftPlayer{ada, bob}
	for i := len(crowd); i < *minecraftBots; i++ {
		crowd = append(crowd, clients.join(others[i%2], fmt.Sprint("walker", i)))
	}
	t.Logf("%d players fly from %v to the border at %v, for %v", len(crowd), start, w.border, *minecraftWalk)
	flyMinecraft(t, crowd, w.border, func(killed func()) {
		<-time.After(*minecraftWalk / 2)
		w.leader.kill()
		killed()
		<-time.After(*minecraftWalk / 2)
	})
}

// flyMinecraft makes players fly to and fro over a border of regions, and build, while others play. All must go on to
// cross it, and see blocks change after play has called killed.
func flyMinecraft(t *testing.T, crowd []*minecraftPlayer, border float64, play func(killed func())) {
	t.Helper()
	for _, p := range crowd {
		p.do("fly", border, 122, .4)
	}
	crossed, before := make(map[string]bool), make(map[string]int)
	play(func() {
		for _, p := range crowd {
			before[p.name] = p.look().Changed
		}
	})
	eventually(t, "all cross the border, and see blocks change", patience, func() bool {
		ready := true
		for _, p := range crowd {
			v := p.look()
			if v.Ended != "" {
				t.Fatalf("%s is disconnected: %s", p.name, v.Ended)
			}
			crossed[p.name] = crossed[p.name] || v.At[0] > border+2
			ready = ready && crossed[p.name] && v.Changed > before[p.name]+2
		}
		return ready
	})
	for _, p := range crowd {
		v := p.look()
		t.Logf("%s: put %d times, has built %d times, seen %d blocks change", p.name, v.Forced, v.Built, v.Changed)
	}
}

// Names that a guest may not have are refused with a reason, and so is another version; who plays while their node
// drains is told where to go on.
func TestMinecraftEnds(t *testing.T) {
	t.Parallel()
	clients := startMinecraftClients(t)
	all := gameCluster(t, 2, "--minecraft", minecraftPort)
	ada := clients.join(all[0], "ada")
	for _, c := range []struct{ name, version, want string }{
		{"with blanks", "1.20.2", "letters"},
		{"old", "1.20.1", "1.20.2"},
		{"newer", "1.20.4", "1.20.2"},
	} {
		p := clients.start(all[0], c.name, c.version)
		eventually(t, c.name+" is refused", patience, func() bool {
			v := p.look()
			if v.Spawned {
				t.Fatalf("%s plays", c.name)
			}
			if v.Ended != "" && !strings.Contains(v.Ended, c.want) {
				t.Fatalf("%s is refused with %q", c.name, v.Ended)
			}
			return v.Ended != ""
		})
	}
	drainUnder(t, all[0], all[1], minecraftPort, func() string { return ada.look().Ended })
}
