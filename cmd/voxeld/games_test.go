package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/classicclient"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/luanticlient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	gamesBots = flag.Int("games.bots", 2, "how many clients of each game play in TestGamesTogether")
	gamesPlay = flag.Duration("games.play", 20*time.Second, "how long they play")
)

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

// gameWorld is a world of four daemons that serve other games, with a player in the browser's protocol.
type gameWorld struct {
	leader  *daemon   // of the region where players start
	others  []*daemon // not its leader
	session *tester   // on others[0]
	start   grid.Pos
	border  float64 // X of the region's border in the east
}

func newGameWorld(t *testing.T, served ...string) *gameWorld {
	t.Helper()
	all := gameCluster(t, 4, served...)
	w := &gameWorld{start: join(t, all[0].Game, "scout", 1).Pose.Block()}
	w.leader, w.others = leaderOf(t, all, w.start.Chunk())
	w.session = join(t, w.others[0].Game, "browser", 2)
	border := w.start
	for cell := grid.CellAt(w.start.Chunk(), grid.FoundingLabel); grid.CellAt(border.Chunk(), grid.FoundingLabel) == cell; {
		border.X++
	}
	w.border = float64(border.X)
	return w
}

// until waits until the session sees a block.
func (w *gameWorld) until(what string, pos grid.Pos, b chunk.Block) {
	w.session.t.Helper()
	w.session.until(what, func() bool { there, known := w.session.Block(pos); return known && there == b })
}

// hears waits until the session has been sent a line of a player.
func (w *gameWorld) hears(name, text string) {
	w.session.t.Helper()
	w.session.until(name+"'s line", func() bool {
		return slices.ContainsFunc(w.session.Received, func(l sessionmsg.ChatLine) bool { return l.Name == name && l.Text == text })
	})
}

// drainUnder drains a daemon while clients play there, and checks that they are told to go on at another one. A
// client's reason is empty until it has ended.
func drainUnder(t *testing.T, d, other *daemon, port string, reasons ...func() string) {
	t.Helper()
	d.drain()
	for _, reason := range reasons {
		eventually(t, "the end", patience, func() bool { return reason() != "" })
		if why := reason(); !strings.Contains(why, "oin again at "+other.ip+port) {
			t.Errorf("the reason is %q", why)
		}
	}
}

// walker is a player who walks.
type walker interface {
	place() (x, y float64) // in the world; X is not a number while it is not known
	step(dx, dy float64)
	work(build bool) // builds or breaks a block above
}

// walk makes players fly to and fro over a border of regions, at 8 blocks a second, and build. In the middle it calls
// meanwhile.
func walk[W walker](t *testing.T, crowd []W, border float64, during time.Duration, meanwhile func()) {
	t.Helper()
	const step, top = .4, 122
	forward, crossed := slices.Repeat([]bool{true}, len(crowd)), make([]bool, len(crowd))
	begun, done := time.Now(), false
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for tick := 0; time.Since(begun) < during || !done || slices.Contains(crossed, false); tick++ {
		<-ticker.C
		if time.Since(begun) > during+patience {
			t.Fatalf("who has crossed the border: %v", crossed)
		}
		if !done && time.Since(begun) > during/2 {
			done = true
			meanwhile()
		}
		for i, p := range crowd {
			x, y := p.place()
			switch {
			case x > border+20:
				crossed[i], forward[i] = true, false
			case x < border-20:
				forward[i] = true
			}
			switch {
			case y < top:
				p.step(0, step)
			case forward[i]:
				p.step(step, 0)
			default:
				p.step(-step, 0)
			}
			if tick%20 == i%20 {
				p.work(tick/20%2 == 0)
			}
		}
	}
}

// Players of all games, and one in the browser's protocol, see what each of them builds; they cross the border of a
// region, and build, while its leader is killed, and nobody is disconnected. make visitors runs it with 20 of each, for
// five minutes.
func TestGamesTogether(t *testing.T) {
	t.Parallel()
	minecraft := startMinecraftClients(t)
	w := newGameWorld(t, "--classicube", classicPort, "--luanti", luantiPort, "--minecraft", minecraftPort)

	var (
		classics   []*classicPlayer
		luantis    []*luantiPlayer
		minecrafts []*minecraftPlayer
		walkers    []walker
	)
	for i := range *gamesBots {
		at := w.others[i%len(w.others)]
		classics = append(classics, joinClassic(t, at, fmt.Sprint("classic", i), classicclient.Usual))
		luantis = append(luantis, joinLuanti(t, at, luanticlient.Options{Name: fmt.Sprint("luanti", i)}))
		walkers = append(walkers, classics[i], luantis[i])
		minecrafts = append(minecrafts, minecraft.join(at, fmt.Sprint("minecraft", i)))
	}

	pos := grid.Pos{X: w.start.X, Y: w.start.Y + 3, Z: w.start.Z + 1}
	for i, build := range []func(){
		func() { w.session.put(pos, chunk.Brick) },
		func() { classics[0].build(pos, chunk.Brick) },
		func() { luantis[0].Build(brick, nodeAt(pos), nodeAt(pos)) },
		func() { minecrafts[0].do("choose", "bricks"); minecrafts[0].do("put", pos.X, pos.Y, pos.Z, 1) },
	} {
		t.Logf("builder %d", i)
		build()
		w.until("the block", pos, chunk.Brick)
		classics[0].sees(pos, chunk.Brick)
		luantis[0].sees(pos, chunk.Brick)
		minecrafts[0].sees(pos, "bricks")
		pos.Y++
	}

	t.Logf("%d players of each game cross the border at %v, for %v", *gamesBots, w.border, *gamesPlay)
	flyMinecraft(t, minecrafts, w.border, func(killed func()) {
		walk(t, walkers, w.border, *gamesPlay, func() { w.leader.kill(); killed() })
	})
}
