package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// under returns the position n blocks below the player's feet, moved by dx and dz.
func under(p *tester, n, dx, dz int32) grid.Pos {
	pose := p.Welcome.Pose
	return grid.Pos{X: int32(floor(pose.X)) + dx, Y: int32(floor(pose.Y)) - n, Z: int32(floor(pose.Z)) + dz}
}

func floor(v float64) int {
	n := int(v)
	if float64(n) > v {
		n--
	}
	return n
}

// Two players on one node see each other's edits, moves and chat.
func TestPlayersShareAWorld(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 3)
	bob := join(t, d.Game, "bob", 3)
	place := under(ann, 1, 1, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(place); return ok })
	bob.until("the ground", func() bool { _, ok := bob.at(place); return ok })
	ann.put(place, chunk.Brick)
	bob.sees(place, chunk.Brick)
	bob.put(place, chunk.Air)
	ann.sees(place, chunk.Air)

	ann.walkTo(ann.Welcome.Pose.X+5, ann.Welcome.Pose.Z)
	bob.until("ann walked", func() bool { return bob.Avatars["ann"].X == ann.Welcome.Pose.X })
	ann.send(sessionmsg.Chat{Text: "hello"})
	bob.until("ann said hello", func() bool {
		return len(bob.Received) == 1 && bob.Received[0].Text == "hello" && bob.Received[0].Name == "ann"
	})
}

// After the node was killed, acknowledged edits are there, and the player stands where they left.
func TestKilledNodeForgetsNothing(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 2)
	place := under(ann, 1, 1, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(place); return ok })
	var places []grid.Pos
	for i := range int32(10) {
		at := under(ann, 1+i/5, i%5-2, 2)
		places = append(places, at)
		ann.put(at, chunk.Planks)
	}
	d.kill()
	d.start()
	ann = join(t, d.Game, "ann", 2)
	for _, at := range places {
		ann.sees(at, chunk.Planks)
	}

	start := ann.Welcome.Pose
	ann.walkTo(start.X+6, start.Z+3)
	ann.leave()
	eventually(t, "ann left", patience, func() bool { return len(d.players()) == 0 })
	d.kill()
	d.start()
	again := join(t, d.Game, "ann", 2)
	if p := again.Welcome.Pose; p.X != start.X+6 || p.Z != start.Z+3 {
		t.Errorf("ann returned to %v, %v; they left at %v, %v", p.X, p.Z, start.X+6, start.Z+3)
	}
}

func (d *daemon) players() []json.RawMessage {
	var all []json.RawMessage
	d.ask("players", &all)
	return all
}

// locate asks a node, as an original client does, which address serves a chunk.
func locate(t *testing.T, address string, pos grid.ChunkPos) string {
	t.Helper()
	c := dialOriginal(t, address)
	c.send(`{"type":"dht"}`)
	c.expect("ok")
	return c.whereIsChunk(pos)
}

// Two daemons share the leadership of one world. A player on either edits what the other leads. Both are killed
// and come back with every acknowledged edit, and with the player where they left.
func TestTwoDaemonsOneWorld(t *testing.T) {
	t.Parallel()
	a := startDaemon(t)
	b := startDaemon(t, "--join", a.invite())
	if a.Status.WorldID != b.Status.WorldID {
		t.Fatalf("two worlds: %s and %s", a.Status.WorldID, b.Status.WorldID)
	}
	// Cells of several domains, until each daemon leads one.
	led := make(map[string]grid.ChunkPos)
	for i := int32(0); len(led) < 2 && i < 40; i++ {
		pos := grid.ChunkPos{X: (i%7)*64 + 16*(i%4), Z: (i / 7) * 64}
		led[locate(t, a.Game, pos)] = pos
		if other := locate(t, b.Game, pos); led[other] != pos {
			t.Fatalf("the daemons disagree about chunk %v", pos)
		}
	}
	if len(led) < 2 || led[a.Game] == led[b.Game] {
		t.Fatalf("one daemon leads everything: %v", led)
	}
	onB, onA := led[b.Game], led[a.Game]
	t.Logf("%s leads %v, %s leads %v", a.Game, onA, b.Game, onB)

	// Original clients stay in one chunk; each node's gateway follows the other's region for a session.
	far := place(t, a, "ann", onB)
	ann := join(t, a.Game, "ann", 1)
	near := place(t, b, "bob", onA)
	bob := join(t, b.Game, "bob", 1)
	ann.until("land led by b", func() bool { _, ok := ann.at(far); return ok })
	bob.until("land led by a", func() bool { _, ok := bob.at(near); return ok })
	ann.put(far, chunk.Brick)
	bob.put(near, chunk.Glass)
	left := ann.Welcome.Pose
	ann.leave()
	bob.leave()
	eventually(t, "ann and bob left", patience, func() bool { return len(a.players())+len(b.players()) == 0 })

	a.kill()
	b.kill()
	a.start()
	b.start()
	ann = join(t, a.Game, "ann", 1)
	bob = join(t, b.Game, "bob", 1)
	ann.sees(far, chunk.Brick)
	bob.sees(near, chunk.Glass)
	if ann.Welcome.Pose != left {
		t.Errorf("ann returned to %+v; they left at %+v", ann.Welcome.Pose, left)
	}
	// And each sees what the other built, through the other daemon.
	ann.leave()
	eventually(t, "ann left", patience, func() bool { return len(a.players()) == 0 })
	ann = join(t, b.Game, "ann", 1)
	ann.sees(far, chunk.Brick)
	if ann.Welcome.Pose != left {
		t.Errorf("on the other daemon ann returned to %+v; they left at %+v", ann.Welcome.Pose, left)
	}
}

// place makes a player leave from the middle of a chunk, over the original protocol, so that their next session
// starts there. It returns a block near that place.
func place(t *testing.T, on *daemon, name string, pos grid.ChunkPos) grid.Pos {
	t.Helper()
	c := dialOriginal(t, locate(t, on.Game, pos))
	c.send(fmt.Sprintf(`{"type":"connect","chunk":[%d,%d],"player":%q}`, pos.X, pos.Z, name))
	c.expect("ok")
	c.packet(5)
	c.send(fmt.Sprintf(`{"type":1,"args":[%d,%d],"player":%q}`+"\n", pos.X, pos.Z, name))
	c.packet(6)
	middle := pos.Origin()
	middle.X, middle.Y, middle.Z = middle.X+16, 20, middle.Z+16
	c.send(fmt.Sprintf(`{"type":3,"args":[%d.5,%d,%d.5,0],"player":%q}`+"\n", middle.X, middle.Y, middle.Z, name))
	c.send(fmt.Sprintf(`{"type":2,"args":[%d,%d],"player":%q}`+"\n", pos.X, pos.Z, name))
	var at grid.Pos
	eventually(t, name+" is saved", patience, func() bool {
		q := dialOriginal(t, on.Game)
		q.send(`{"type":"dht"}`)
		q.expect("ok")
		x, y, z := q.whereIsPlayer(name)
		q.conn.Close()
		at = grid.Pos{X: int32(x) + 1, Y: int32(y), Z: int32(z)}
		return x == float64(middle.X)+.5 && z == float64(middle.Z)+.5
	})
	at.Y += originalBase(t, on, pos)
	return at
}

// Thirty-two GENERATEs of the same untouched chunk, from four nodes at once, found one region.
func TestGenerateMakesOneRegion(t *testing.T) {
	a := startDaemon(t)
	token := a.invite()
	nodes := []*daemon{a, startDaemon(t, "--join", token), startDaemon(t, "--join", token), startDaemon(t, "--join", token)}
	for round := range int32(3) {
		pos := grid.ChunkPos{X: 1000 + 200*round, Z: -777}
		var mu sync.Mutex
		answers := make(map[string]int)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				address := nodes[i%len(nodes)].Game
				c, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				fmt.Fprintf(c, `{"type":"generate","chunk":[%d,%d]}`, pos.X, pos.Z)
				buf := make([]byte, 8)
				n, err := c.Read(buf)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprint(string(buf[:n]), err)]++
			})
		}
		wg.Wait()
		if answers["ok<nil>"] != 32 {
			t.Fatalf("chunk %v: answers %v, want 32 times ok", pos, answers)
		}
		places := make(map[string]bool)
		for _, n := range nodes {
			places[locate(t, n.Game, pos)] = true
		}
		if len(places) != 1 {
			t.Fatalf("chunk %v lives on %v", pos, places)
		}
	}
	if n := a.metric("voxeld_regions_founded_total"); n != 3 {
		t.Errorf("%v regions were founded for 3 chunks far apart", n)
	}
}

// originalBase returns the height of the lowest block that original clients see. It derives it from outside: from
// the height at which a session sees a player who left over the original protocol.
func originalBase(t *testing.T, d *daemon, _ grid.ChunkPos) int32 {
	t.Helper()
	q := dialOriginal(t, d.Game)
	q.send(`{"type":"dht"}`)
	q.expect("ok")
	probe := join(t, d.Game, "probe", 1)
	y := probe.Welcome.Pose.Y
	probe.leave()
	base := int32(0)
	eventually(t, "the probe is saved", patience, func() bool {
		x, seen, z := q.whereIsPlayer("probe")
		base = int32(y - seen)
		return x != 0 || z != 0
	})
	return base
}
