package crowd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var testCell = grid.CellAt(grid.ChunkPos{X: -3, Z: 3}, grid.FoundingLabel)

// poseIn returns a pose in the chunk, different for each step.
func poseIn(at grid.ChunkPos, step int) motion.Pose {
	return motion.Pose{X: float64(at.X)*32 + .5, Y: float64(step), Z: float64(at.Z)*32 + 31.5}
}

func bodyIn(id byte, at grid.ChunkPos, step int) nodemsg.Body {
	return nodemsg.Body{Player: player.ID{id}, Name: fmt.Sprint("p", id), Pose: poseIn(at, step)}
}

// of returns a link of a node that has no other.
func of(link uint64) Owner { return Owner{Link: link, Peer: fmt.Sprint("node ", link)} }

// mirror is a gateway's mirror of the bodies in each chunk.
type mirror map[grid.ChunkPos]map[player.ID]nodemsg.Body

func (l mirror) apply(n *nodemsg.ChunkDelta) {
	there := l[n.Chunk]
	for _, id := range n.Leave {
		delete(there, id)
	}
	for _, b := range n.Enter {
		there[b.Player] = b
	}
	for _, m := range n.Moves {
		b, known := there[m.Player]
		if !known {
			panic("a move of somebody unknown")
		}
		b.Pose = m.Pose
		there[m.Player] = b
	}
}

// A mirror that starts with a chunk's bodies and applies its deltas has the chunk's bodies after each tick.
func TestDeltasKeepMirrorsCurrent(t *testing.T) {
	area := testCell.Area()
	chunks := []grid.ChunkPos{
		{X: area.MinX, Z: area.MinZ},
		{X: area.MinX + 1, Z: area.MinZ},
		{X: area.MaxX - 1, Z: area.MaxZ - 1},
		{X: area.MaxX, Z: area.MinZ}, // not of this cell
	}
	rapid.Check(t, func(t *rapid.T) {
		c := New(testCell)
		c.inserts = rapid.IntRange(0, 3).Draw(t, "inserts")
		owner := make(map[player.ID]uint64) // the players inside, and the link that owns each
		all := mirror{}
		for _, at := range chunks {
			all[at] = make(map[player.ID]nodemsg.Body)
		}
		for tick := range rapid.IntRange(1, 10).Draw(t, "ticks") {
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				link := rapid.Uint64Range(1, 3).Draw(t, "link")
				id := rapid.ByteRange(1, 4).Draw(t, "player")
				at := rapid.SampledFrom(chunks).Draw(t, "chunk")
				step := rapid.IntRange(0, 1000).Draw(t, "step")
				switch rapid.SampledFrom([]string{"enter", "move", "move", "leave", "lost"}).Draw(t, "what") {
				case "enter":
					c.Enter(of(link), bodyIn(id, at, step))
					if testCell.Contains(at) {
						owner[player.ID{id}] = link
					}
				case "move":
					c.Move(link, nodemsg.BodyMove{Player: player.ID{id}, Pose: poseIn(at, step)})
				case "leave":
					c.Leave(link, player.ID{id})
					if owner[player.ID{id}] == link {
						delete(owner, player.ID{id})
					}
				case "lost":
					c.LeaveAll(link)
					maps.DeleteFunc(owner, func(_ player.ID, by uint64) bool { return by == link })
				}
			}
			// A mirror that starts now has the whole chunk and none of this tick's deltas.
			before := make(mirror)
			for _, at := range chunks {
				before[at] = make(map[player.ID]nodemsg.Body)
				for _, b := range c.Inside(at) {
					before[at][b.Player] = b
				}
			}
			for _, n := range c.Flush() {
				all.apply(n)
			}
			if !reflect.DeepEqual(all, before) {
				t.Fatalf("tick %d: viewers see %v, and inside are %v", tick, all, before)
			}
			inside := 0
			for _, bodies := range before {
				inside += len(bodies)
				for id := range bodies {
					if _, in := owner[id]; !in {
						t.Fatalf("tick %d: %v is a ghost", tick, id)
					}
				}
			}
			if inside != c.Len() || c.Len() != len(owner) || len(before[chunks[3]]) > 0 {
				t.Fatalf("tick %d: %d bodies in the chunks, %d in the crowd, %d entered", tick, inside, c.Len(), len(owner))
			}
			owned := make(map[string]int)
			for _, link := range owner {
				owned[of(link).Peer]++
			}
			if !maps.Equal(owned, c.owned) {
				t.Fatalf("tick %d: bodies of the nodes: %v, want %v", tick, c.owned, owned)
			}
		}
		for link := range uint64(4) {
			c.LeaveAll(link)
		}
		c.Flush()
		if c.Len() != 0 || len(c.inside) != 0 || len(c.changes) != 0 {
			t.Fatalf("when all are gone there remain %d bodies, %d chunks, %d deltas", c.Len(), len(c.inside), len(c.changes))
		}
	})
}

func TestOneTickOfDeltas(t *testing.T) {
	area := testCell.Area()
	a, b := grid.ChunkPos{X: area.MinX, Z: area.MinZ}, grid.ChunkPos{X: area.MinX + 1, Z: area.MinZ}
	for name, c := range map[string]struct {
		steps func(*Crowd)
		want  []nodemsg.ChunkDelta // of a and b
	}{
		"the newest move counts": {func(c *Crowd) {
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(a, 5)})
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(a, 6)})
		}, []nodemsg.ChunkDelta{{Chunk: a, Moves: []nodemsg.BodyMove{{Player: player.ID{1}, Pose: poseIn(a, 6)}}}}},
		"over a border": {func(c *Crowd) {
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(b, 5)})
		}, []nodemsg.ChunkDelta{{Chunk: a, Leave: []player.ID{{1}}}, {Chunk: b, Enter: []nodemsg.Body{bodyIn(1, b, 5)}}}},
		"over a border and back": {func(c *Crowd) {
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(b, 5)})
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(a, 6)})
		}, []nodemsg.ChunkDelta{{Chunk: a, Enter: []nodemsg.Body{bodyIn(1, a, 6)}}}},
		"came and went": {func(c *Crowd) {
			c.Enter(of(1), bodyIn(2, b, 1))
			c.Leave(1, player.ID{2})
		}, nil},
		"another link may not speak": {func(c *Crowd) {
			c.Move(2, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(a, 5)})
			c.Leave(2, player.ID{1})
			c.LeaveAll(2)
		}, nil},
		"the newer link owns the body": {func(c *Crowd) {
			c.Enter(of(2), bodyIn(1, a, 1))
			c.Move(1, nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(a, 5)})
			c.Leave(1, player.ID{1})
		}, []nodemsg.ChunkDelta{{Chunk: a, Enter: []nodemsg.Body{bodyIn(1, a, 1)}}}},
		"blocks and words in order": {func(c *Crowd) {
			c.Changed(world.Change{Chunk: a, BlockAt: nodemsg.BlockAt{At: 9, Block: chunk.Stone}})
			c.Changed(world.Change{Chunk: a, BlockAt: nodemsg.BlockAt{At: 9, Block: chunk.Air}})
			c.Chat("", nodemsg.ChatEvent{Chunk: a, Text: "eins"})
			c.Chat("", nodemsg.ChatEvent{Chunk: grid.ChunkPos{X: 999}, Text: "elsewhere"})
		}, []nodemsg.ChunkDelta{{
			Chunk: a, Blocks: []nodemsg.BlockAt{{At: 9, Block: chunk.Stone}, {At: 9, Block: chunk.Air}},
			Chat: []nodemsg.ChatEvent{{Chunk: a, Text: "eins"}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			crowd := New(testCell)
			crowd.Enter(of(1), bodyIn(1, a, 0))
			crowd.Flush()
			c.steps(crowd)
			var got []nodemsg.ChunkDelta
			for _, n := range crowd.Flush() {
				got = append(got, *n)
			}
			slices.SortFunc(got, func(a, b nodemsg.ChunkDelta) int { return a.Chunk.Compare(b.Chunk) })
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("deltas %+v, want %+v", got, c.want)
			}
			if again := crowd.Flush(); again != nil {
				t.Errorf("sent twice: %v", again)
			}
		})
	}
}

// The lists stay within the limits of a message between nodes, however many players enter, and no node has all of the
// room.
func TestCrowdIsBounded(t *testing.T) {
	c := New(testCell)
	at := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	fill := func(link uint64, first int) {
		for n := first; n < first+maxCrowd+10; n++ {
			c.Enter(of(link), nodemsg.Body{Player: player.ID{byte(n), byte(n >> 8), byte(n >> 16)}, Name: "x", Pose: poseIn(at, 1)})
			c.Chat(of(link).Peer, nodemsg.ChatEvent{Chunk: at, Text: "a", Name: "x"})
		}
	}
	fill(1, 0)
	if c.Len() != maxBodiesOfPeer || c.Len() == maxCrowd {
		t.Fatalf("%d bodies of one node, at most %d", c.Len(), maxBodiesOfPeer)
	}
	if lines := len(c.Flush()[at].Chat); lines != maxChatsOfPeer {
		t.Errorf("%d lines of one node, at most %d", lines, maxChatsOfPeer)
	}
	for n := range 10 {
		fill(uint64(n), 1<<18)
	}
	if c.Len() != maxCrowd || c.owned[of(1).Peer] != maxBodiesOfPeer {
		t.Errorf("%d bodies of at most %d; %d of the first node", c.Len(), maxCrowd, c.owned[of(1).Peer])
	}
	deltas := c.Flush()[at]
	if err := deltas.Valid(); err != nil || len(deltas.Chat) != maxChats {
		t.Errorf("%d lines; %v", len(deltas.Chat), err)
	}
	c.Chat("", nodemsg.ChatEvent{Chunk: at, Text: "a"})
	if deltas := c.Flush()[at]; deltas == nil || len(deltas.Chat) != 1 {
		t.Error("the next tick has no room for words")
	}
	others := nodemsg.Body{Player: player.ID{0, 0, 1 << 18 >> 16}, Name: "x", Pose: poseIn(at, 2)}
	if c.Enter(of(1), others); c.owned[of(1).Peer] != maxBodiesOfPeer || c.bodies[others.Player].owner == of(1) {
		t.Error("a node that has all it may have takes over the body of another one")
	}
	c.Leave(1, player.ID{})
	if c.Enter(of(1), others); c.bodies[others.Player].owner != of(1) {
		t.Error("after one of its players has left, a node cannot have the next")
	}
}

// A crowded chunk where everybody moves three times per tick.
func BenchmarkCrowdTick(b *testing.B) {
	c := New(testCell)
	at := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	for n := range 1000 {
		c.Enter(of(1), nodemsg.Body{Player: player.ID{byte(n), byte(n >> 8)}, Pose: poseIn(at, 1)})
	}
	for b.Loop() {
		for step := range 3 {
			for n := range 1000 {
				c.Move(1, nodemsg.BodyMove{Player: player.ID{byte(n), byte(n >> 8)}, Pose: poseIn(at, step)})
			}
		}
		c.Flush()
	}
}

// All players that one node may have cross the border between two chunks, once in each tick or sixteen times: by as
// many messages as may wait.
func BenchmarkCrossings(b *testing.B) {
	id := func(n int) player.ID { return player.ID{byte(n * 7), byte(n * 7 >> 8), byte(n)} } // in another order
	for _, times := range []int{1, 16} {
		b.Run(fmt.Sprint(times), func(b *testing.B) {
			c := New(testCell)
			at := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
			for n := range maxBodiesOfPeer {
				c.Enter(of(1), nodemsg.Body{Player: id(n), Pose: poseIn(at, 1)})
			}
			for b.Loop() {
				for range times {
					at.X ^= 1
					for n := range maxBodiesOfPeer {
						c.Move(1, nodemsg.BodyMove{Player: id(n), Pose: poseIn(at, 1)})
					}
				}
				c.Flush()
			}
		})
	}
}

// A new subscriber gets a body at its extrapolated pose, until its way ends.
func TestInsideGoesOn(t *testing.T) {
	area := testCell.Area()
	at := grid.ChunkPos{X: area.MinX, Z: area.MinZ}
	velocity := motion.VelocityOf(.25, 0, 0)
	c := New(testCell)
	c.Enter(of(1), bodyIn(1, at, 1))
	c.Tick()
	c.Flush()
	sent := nodemsg.BodyMove{Player: player.ID{1}, Pose: poseIn(at, 2), Velocity: velocity}
	c.Move(1, sent)
	if moves := c.Flush()[at].Moves; len(moves) != 1 || moves[0] != sent {
		t.Errorf("sent %+v, want %+v", moves, sent)
	}
	for tick := range 2 * motion.ExtrapolationTicks {
		want := sent.Pose
		want.X += .25 * float64(min(tick, motion.ExtrapolationTicks))
		if b := c.Inside(at)[0]; b.Pose != want || b.Velocity.Moving() != (tick < motion.ExtrapolationTicks) {
			t.Errorf("after %d ticks: %+v, want %v", tick, b, want)
		}
		c.Tick()
	}
	if len(c.Flush()) > 0 {
		t.Error("an avatar that continues on its way is deltas")
	}
	next := sent
	next.Pose.X += grid.ChunkSize
	c.Move(1, next)
	if n := c.Flush()[grid.ChunkPos{X: at.X + 1, Z: at.Z}]; len(n.Enter) != 1 || n.Enter[0].Velocity != velocity {
		t.Errorf("over the border: %+v", n)
	}
}
