package main

import (
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/classicclient"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	classicBots = flag.Int("classic.bots", 4, "how many clients of Classic walk in TestClassicPlayers")
	classicWalk = flag.Duration("classic.walk", 20*time.Second, "how long they walk")
)

// classicPort is where the daemons of these tests serve Classic.
const classicPort = ":25565"

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

func (p *classicPlayer) say(line string) {
	p.t.Helper()
	if err := p.Say(line); err != nil {
		p.t.Fatal(err)
	}
}

// hears waits until the chat has a text, however it is wrapped.
func (p *classicPlayer) hears(text string) {
	p.t.Helper()
	p.until("the line "+text, func(s *classicclient.State) bool {
		return strings.Contains(strings.ReplaceAll(strings.Join(s.Chat, " "), "&7> &f", ""), text)
	})
}

// ended returns why the connection has ended; empty if it has not.
func (p *classicPlayer) ended() (why string) {
	p.Look(func(s *classicclient.State) {
		if s.Err != nil {
			why = s.Kicked + " " + s.Err.Error()
		}
	})
	return why
}

func (p *classicPlayer) place() (x, y float64) {
	p.t.Helper()
	p.Look(func(s *classicclient.State) {
		if s.Err != nil {
			p.t.Fatalf("a player is disconnected: %v, %q", s.Err, s.Kicked)
		}
		y = s.Self.Y
		if n, _ := fmt.Sscan(s.Status, &x); n != 1 {
			x = math.NaN()
		}
	})
	return x, y
}

func (p *classicPlayer) self() (at classicclient.Place) {
	p.Look(func(s *classicclient.State) { at = s.Self })
	return at
}

func (p *classicPlayer) step(dx, dy float64) {
	at := p.self()
	p.Move(classicclient.Place{X: at.X + dx, Y: at.Y + dy, Z: at.Z}) //nolint:errcheck // the reader sees the end
}

func (p *classicPlayer) work(build bool) {
	at, id := p.self(), byte(0)
	if build {
		id = 4
	}
	p.Build(int(at.X), int(at.Y)+1, int(at.Z)+3, id) //nolint:errcheck // the reader sees the end
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
	if err := p.Move(p.self()); err != nil { // what comes before the first move is ignored
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

// Players of Classic on two nodes and one in the browser's protocol see one another, and what they build and say; they
// walk over the border of a region while its leader is killed, and nobody is disconnected.
func TestClassicPlayers(t *testing.T) {
	t.Parallel()
	w := newGameWorld(t, "--classicube", classicPort)
	start, others, session := w.start, w.others, w.session
	ada := joinClassic(t, others[0], "ada", classicclient.Usual)
	bob := joinClassic(t, others[1], "bob", classicclient.Usual)

	for _, p := range []*classicPlayer{ada, bob} {
		p.until("the others", func(s *classicclient.State) bool { return len(s.Players) >= 3 })
	}
	session.until("the players of Classic", func() bool { return len(session.Avatars) >= 3 })

	above := grid.Pos{X: start.X, Y: start.Y + 3, Z: start.Z + 1}
	ada.build(above, chunk.Brick)
	w.until("ada's block", above, chunk.Brick)
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
	ada.hears("out of reach")

	ada.say("good &4morning")
	w.hears("ada", "good morning")
	session.send(sessionmsg.Chat{Text: "hello & welcome"})
	bob.hears("browser&f: hello + welcome")

	crowd := []*classicPlayer{ada, bob}
	for i := len(crowd); i < *classicBots; i++ {
		crowd = append(crowd, joinClassic(t, others[i%2], fmt.Sprint("walker", i), classicclient.Usual))
	}
	t.Logf("%d players walk from %v to the border at %v, for %v", len(crowd), start, w.border, *classicWalk)
	walk(t, crowd, w.border, *classicWalk, func() { w.leader.kill() })
}

// A node reports to a server list under the name of its world.
func TestServerList(t *testing.T) {
	t.Parallel()
	reports := make(chan url.Values, 100)
	list := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm() //nolint:errcheck // an empty report is seen below
		reports <- r.PostForm
	}))
	defer list.Close()
	ip := takeAddress(t)
	d := newDaemon(t, kit.Options{IP: ip, Args: []string{"--classicube", ip + classicPort, "--classicube-list", list.URL}})
	d.init()
	d.start()
	if r := <-reports; ":"+r.Get("port") != classicPort || r.Get("name") != "Commons" || r.Get("users") != "0" {
		t.Errorf("the list is told %v", r)
	}
}

// A client without extensions, or one that is a page, plays as well. Names that a guest may not have are refused with a
// reason, and so is another version; who plays while their node drains is told where to go on.
func TestClassicEnds(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--classicube", classicPort)
	plain := joinClassic(t, all[0], "plain", nil)
	plain.hears("You are at")

	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}
	c, err := dialer.DialContext(t.Context(), "tcp", all[0].ip+classicPort)
	if err != nil {
		t.Fatal(err)
	}
	thief, err := classicclient.New(c, classicclient.Options{Name: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(thief.Leave)
	(&classicPlayer{Client: thief, t: t}).hears("The name plain is taken: you are the guest")
	if why := plain.ended(); why != "" {
		t.Errorf("a stranger has taken the place of a guest who plays: %s", why)
	}

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

	drainUnder(t, all[0], all[1], classicPort, plain.ended, onPage.ended)
}
