package gameserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// inMiddle makes the world's spawn the middle of a founding cell.
func inMiddle(o *Options) { o.World.Spawn = middle }

// While the land is divided down to single chunks and merged again under two players who stand in different parts of
// it, their edits and chat are answered promptly and once, they do not lose sight of each other for a moment, no chunk
// is sent anew unless it was edited, and they are told nothing.
func TestDivisionIsInvisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, inMiddle)
		ann, bob := r.join("ann", 1), r.join("bob", 1)
		bob.goTo(-1, 25, -1)
		pass(time.Second)
		wholes := ann.mu.wholes
		here := middle.Chunk()
		there := grid.ChunkPos{X: here.X - 1, Z: here.Z - 1}
		steps := []func(){
			func() { r.lands.divide(here) },
			func() { r.lands.divide(here); r.lands.divide(there) },
			func() {
				for range grid.MaxLabel {
					r.lands.divide(here)
					r.lands.divide(there)
				}
			},
			func() { r.lands.merge(there) },
			func() { r.lands.divide(there); r.lands.merge(here) },
			func() {
				for range grid.MaxLabel {
					r.lands.merge(here)
				}
			},
		}
		for i, step := range steps {
			block := chunk.Brick + chunk.Block(i%2)
			before := ann.put(grid.Pos{X: middle.X + 3, Y: 25, Z: middle.Z + 3}, block) // on its way to the region
			step()
			after := []uint64{
				ann.put(grid.Pos{X: middle.X + 3, Y: 26, Z: middle.Z + 3}, block),
				ann.put(grid.Pos{X: middle.X - 3, Y: 26, Z: middle.Z - 3}, block),
				ann.put(grid.Pos{X: middle.X - 3, Y: 26, Z: middle.Z + 3}, block),
			}
			bob.goTo(-1.1, 25, -1-float64(i%2)/4)
			ann.send(sessionmsg.Chat{Text: fmt.Sprint(i)})
			pass(mirror.FirstRetry / 2)
			for _, seq := range append(after, before) {
				if ack := ann.answer(seq); ack.Error != "" {
					t.Errorf("step %d: edit %d is refused: %+v", i, seq, ack)
				}
			}
			for range 40 {
				pass(50 * time.Millisecond)
				for _, c := range []*client{ann, bob} {
					c.look(func() {
						if len(c.mu.avatars) != 2 {
							t.Errorf("step %d: %d avatars are seen", i, len(c.mu.avatars))
						}
					})
				}
			}
			bob.look(func() {
				if len(bob.mu.said) != i+1 {
					t.Errorf("step %d: bob received %q", i, bob.mu.said)
				}
			})
			ann.look(func() {
				if at := ann.mu.avatars[guestID("bob").String()].Pose.Z; at != float64(middle.Z)-1-float64(i%2)/4 {
					t.Errorf("step %d: bob is at %v", i, at)
				}
			})
			ann.sees(r.lands, 1)
			bob.sees(r.lands, 1)
		}
		for _, c := range []*client{ann, bob} {
			if len(c.mu.notices) > 0 || c.mu.ended {
				t.Errorf("notices %q, ended: %v", c.mu.notices, c.mu.ended)
			}
		}
		for _, pos := range ann.mu.order[wholes:] {
			if pos != here && pos != there && pos != (grid.ChunkPos{X: there.X, Z: here.Z}) {
				t.Errorf("chunk %v was sent anew", pos)
			}
		}
		for e, times := range r.lands.at(here).land.applied {
			if times != 1 {
				t.Errorf("edit %v was applied %d times", e, times)
			}
		}
		pass(2 * mirror.Linger)
		if n := r.lands.followed(here); n != 1 {
			t.Errorf("%d links to the merged region", n)
		}
	})
}

// A player who walks over the border between two parts of a founding cell leaves one region and enters the other.
func TestWalkBetweenDividedRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, inMiddle)
		ann, bob := r.join("ann", 1), r.join("bob", 1)
		here := middle.Chunk()
		beside := grid.ChunkPos{X: here.X - 1, Z: here.Z}
		r.lands.divide(here)
		pass(time.Second)
		for i := range 6 {
			x, from, to := -1.0, here, beside
			if i%2 == 1 {
				x, from, to = 1, beside, here
			}
			ann.send(sessionmsg.Chat{Text: "bye"})
			ann.goTo(x, 25, 1)
			pass(time.Second)
			if n, left := len(r.lands.bodies(to)), len(r.lands.bodies(from)); n+left != 2 || n == 0 {
				t.Errorf("walk %d: %d bodies where ann went, %d where she was", i, n, left)
			}
			bob.look(func() {
				if got := bob.mu.avatars[guestID("ann").String()].Pose.X; got != float64(middle.X)+x {
					t.Errorf("walk %d: bob sees ann at %v", i, got)
				}
				if len(bob.mu.said) != i+1 {
					t.Errorf("walk %d: bob received %q", i, bob.mu.said)
				}
			})
		}
		if n := len(r.lands.bodies(here)); n != 2 {
			t.Errorf("%d bodies, want 2", n)
		}
	})
}

// Land that could not be reached for a while, and was divided meanwhile: everybody is told that it is back, in all
// parts of it.
func TestDividedWhileUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, inMiddle)
		ann, bob := r.join("ann", 1), r.join("bob", 1)
		bob.goTo(-2, 25, 2)
		pass(time.Second)
		here := middle.Chunk()
		r.lands.down(true)
		pass(mirror.NoticeAfter + time.Second)
		edit := bob.put(grid.Pos{X: middle.X - 3, Y: 25, Z: middle.Z + 3}, chunk.Brick)
		r.lands.divide(here)
		r.lands.divide(here)
		r.lands.down(false)
		pass(10 * time.Second)
		for _, c := range []*client{ann, bob} {
			if len(c.mu.notices) != 2 {
				t.Errorf("notices %q, want one that it is away and one that it is back", c.mu.notices)
			}
		}
		if ack := bob.answer(edit); ack.Error != "" {
			t.Errorf("edit is refused: %+v", ack)
		}
		// Now a part alone is merged with one that nobody sees, and then cannot be reached.
		r.lands.merge(here)
		pass(10 * time.Second)
		if len(ann.mu.notices)+len(bob.mu.notices) != 4 {
			t.Errorf("notices %q and %q of a merge", ann.mu.notices, bob.mu.notices)
		}
	})
}

// Many goroutines watch, walk and build at once while the land under them is divided and merged, and some searches find
// regions that are no more. In the end every edit was answered and applied once, and the regions have exactly the
// bodies and the watched chunks that there are.
func TestDivisionUnderLoad(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, inMiddle)
			players := make([]*builder, 8)
			var wg sync.WaitGroup
			for i := range players {
				players[i] = &builder{name: fmt.Sprint("player", i), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
				wg.Go(func() { players[i].run(r.g.mirror) })
			}
			wg.Go(func() { shake(r.lands, rand.New(rand.NewPCG(seed, 99))) })
			wg.Wait()
			pass(3 * mirror.LastRetry)

			watched := make(map[grid.ChunkPos]bool)
			for _, p := range players {
				if len(p.results) != int(p.seq) {
					t.Errorf("%s has %d results of %d edits", p.name, len(p.results), p.seq)
				}
				for _, result := range p.results {
					if n := r.lands.applied(guestID(p.name).String(), result.Seq); n > 1 || result.Refused != "" {
						t.Errorf("edit %+v was applied %d times", result, n)
					}
				}
				for pos := range p.watches {
					watched[pos] = true
				}
				at := p.pose.Chunk()
				if !slices.ContainsFunc(r.lands.bodies(at), func(b nodemsg.Body) bool { return b.Player == guestID(p.name) && b.Pose == p.pose }) {
					t.Errorf("%s is not at %v: %+v", p.name, p.pose, r.lands.bodies(at))
				}
			}
			if got := r.lands.watching(); len(got) != len(watched) || slices.ContainsFunc(got, func(pos grid.ChunkPos) bool { return !watched[pos] }) {
				t.Errorf("regions show %v, but %v are watched", got, watched)
			}
			bodies := 0
			for x := range int32(2 * reach) {
				for z := range int32(2 * reach) {
					bodies += len(r.lands.bodies(grid.ChunkPos{X: middle.Chunk().X - reach + x, Z: middle.Chunk().Z - reach + z}))
				}
			}
			if bodies != len(players) {
				t.Errorf("%d bodies, want %d", bodies, len(players))
			}
			for _, p := range players {
				p.leave()
			}
		})
	}
}

// reach is how many chunks around the middle are used by TestDivisionUnderLoad.
const reach = 2

// shake divides and merges land around the middle at random.
func shake(l *lands, rng *rand.Rand) {
	for range 150 {
		at := grid.ChunkPos{X: middle.Chunk().X - reach + rng.Int32N(2*reach), Z: middle.Chunk().Z - reach + rng.Int32N(2*reach)}
		switch rng.IntN(6) {
		case 0, 1, 2:
			l.divide(at)
		case 3, 4:
			l.merge(at)
		default:
			l.stale(1 + rng.IntN(3))
		}
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
	}
	l.stale(0)
}

// builder is a player who walks and builds at random.
type builder struct {
	recorderSub
	name    string
	rng     *rand.Rand
	seq     uint64
	pose    motion.Pose
	body    *mirror.Subscription
	watches map[grid.ChunkPos]*mirror.Subscription
}

func (b *builder) run(m *mirror.Mirror) {
	id := guestID(b.name)
	b.watches, b.pose = make(map[grid.ChunkPos]*mirror.Subscription), b.place()
	b.body = m.Enter(nodemsg.Body{Player: id, Name: b.name, Pose: b.pose}, b)
	for range 300 {
		b.pose = b.place()
		at := b.pose.Chunk()
		switch sub := b.watches[at]; {
		case sub == nil:
			b.watches[at] = m.Watch(at, b)
		case b.rng.IntN(4) == 0:
			sub.Unwatch(at, b)
			delete(b.watches, at)
		default:
			b.seq++
			sub.Edit(nodemsg.Intent{Player: id, Seq: b.seq, Pos: grid.Pos{X: int32(b.pose.X), Y: 20, Z: int32(b.pose.Z)}, Block: chunk.Brick}, b)
		}
		if b.rng.IntN(20) == 0 {
			b.body.Leave(id, b)
			b.body = m.Enter(nodemsg.Body{Player: id, Name: b.name, Pose: b.pose}, b)
		} else if b.body.Move(id, b.pose, b, false) {
			b.body.Wake()
		}
		time.Sleep(time.Duration(b.rng.IntN(60)) * time.Millisecond)
	}
}

// place returns a random place around the middle.
func (b *builder) place() motion.Pose {
	random := func(middle int32) float64 {
		return float64(middle) + (2*b.rng.Float64()-1)*reach*grid.ChunkSize
	}
	return motion.Pose{X: random(middle.X), Y: 25, Z: random(middle.Z)}
}

func (b *builder) leave() {
	b.body.Leave(guestID(b.name), b)
	for pos, sub := range b.watches {
		sub.Unwatch(pos, b)
	}
}
