package gameserver

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/world"
)

// landscape is a gateway with walkers spread over a square of chunks, driven tick by tick and without goroutines. The region,
// which covers all of it, sends the chunks that are watched.
type landscape struct {
	t             testing.TB
	g             *Gateway
	f             *subscription
	rng           *rand.Rand
	width         float64 // blocks along each side
	walkers       []walker
	tourists      []*visitor
	frameSessions []*session // scratch
	tick          uint64
}

// walker walks at 4 blocks/s, and sends a move in each tick while walking and one after stopping.
type walker struct {
	nodemsg.Body
	legs  int     // ticks until the walker turns or rests
	pace  float64 // blocks a tick; 0 rests
	heard bool    // that it rests
}

// visitor is the CBOR session of one of the walkers, and the state of its client.
type visitor struct {
	*session
	walker int
	sights map[grid.ChunkPos]bool
	eyes   *avatarView
	desk   writeBuffers
	asleep bool // it does not read
}

func newLandscape(t testing.TB, seed uint64, chunks, walkers int) *landscape {
	g := New(options(newLands(), newMemory(), newMemory()))
	c := &landscape{
		t: t, g: g, f: newSubscription(g, grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)),
		rng: rand.New(rand.NewPCG(seed, 1)), width: float64(chunks * grid.ChunkSize),
	}
	for i := range walkers {
		name := fmt.Sprint("p", i)
		w := walker{Body: nodemsg.Body{Player: player.GuestID(name), Name: name}}
		w.Pose = motion.Pose{X: c.width * c.rng.Float64(), Y: 64, Z: c.width * c.rng.Float64()}
		c.walkers = append(c.walkers, w)
	}
	// The order in which regions send them.
	slices.SortFunc(c.walkers, func(a, b walker) int { return bytes.Compare(a.Player[:], b.Player[:]) })
	return c
}

// join creates a session for a walker. Without eyes it is a client that keeps nothing.
func (c *landscape) join(walker, view int, eyes *avatarView) *visitor {
	s := &session{g: c.g, out: newOutbox(func() {}), body: c.walkers[walker].Body, binary: true}
	s.out.owner = s
	s.out.setEncoding(true)
	s.view.Store(int32(view))
	v := &visitor{session: s, walker: walker, sights: make(map[grid.ChunkPos]bool), eyes: eyes}
	c.tourists = append(c.tourists, v)
	c.updateView(v)
	return v
}

// quit ends a session.
func (c *landscape) quit(v *visitor) {
	c.g.interest.remove(v.session)
	for at := range v.sights {
		c.f.unwatch(at, v)
	}
	v.out.markClosed()
	c.tourists = slices.DeleteFunc(c.tourists, func(other *visitor) bool { return other == v })
}

// updateView does what a session does when its player enters another chunk: it watches the chunks around.
func (c *landscape) updateView(v *visitor) {
	v.place(c.walkers[v.walker].Pose)
	at, view := world.ChunkOf(v.currentPose()), v.view.Load()
	for pos := range v.sights {
		if chunkDistance(pos, at) > int64(view)+1 {
			c.f.unwatch(pos, v)
			delete(v.sights, pos)
			v.out.send(sessionmsg.ChunkGone{Chunk: pos})
		}
	}
	for x := -view; x <= view; x++ {
		for z := -view; z <= view; z++ {
			if pos := (grid.ChunkPos{X: at.X + x, Z: at.Z + z}); !v.sights[pos] {
				v.sights[pos] = true
				c.show(v, pos)
			}
		}
	}
}

// show watches a chunk. The region sends it first if nobody has watched it.
func (c *landscape) show(v *visitor, pos grid.ChunkPos) {
	c.f.watch(pos, v)
	if seen := c.f.mu.chunks[pos]; !seen.hasState {
		seen.hasState = true
		news := nodemsg.ChunkDelta{Chunk: pos}
		for i := range c.walkers {
			if world.ChunkOf(c.walkers[i].Pose) == pos {
				news.Enter = append(news.Enter, c.walkers[i].Body)
			}
		}
		c.applyDeltas(map[grid.ChunkPos]*nodemsg.ChunkDelta{pos: &news})
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.mu.chunks[pos].subscribers[v] = upToDate
	v.sendChunk(c.f.mu.chunks[pos], false)
}

// applyDeltas applies the region's deltas of watched chunks to the subscription.
func (c *landscape) applyDeltas(news map[grid.ChunkPos]*nodemsg.ChunkDelta) {
	frame := nodemsg.FromRegion{Tick: c.tick}
	for at, n := range news {
		if c.f.mu.chunks[at] != nil {
			frame.Chunks = append(frame.Chunks, *n)
		}
	}
	slices.SortFunc(frame.Chunks, func(a, b nodemsg.ChunkDelta) int { return a.Chunk.Compare(b.Chunk) })
	if err := c.f.apply(frame); err != nil {
		c.t.Fatal(err)
	}
}

// walk moves everybody by a tick, applies the moves to the gateway, and updates the watched chunks.
func (c *landscape) walk() {
	c.tick++
	news := make(map[grid.ChunkPos]*nodemsg.ChunkDelta)
	of := func(at grid.ChunkPos) *nodemsg.ChunkDelta {
		if news[at] == nil {
			news[at] = &nodemsg.ChunkDelta{Chunk: at}
		}
		return news[at]
	}
	for i := range c.walkers {
		w := &c.walkers[i]
		before := world.ChunkOf(w.Pose)
		if !c.step(w) {
			continue
		}
		if at := world.ChunkOf(w.Pose); at != before {
			of(before).Leave = append(of(before).Leave, w.Player)
			of(at).Enter = append(of(at).Enter, w.Body)
		} else {
			of(at).Moves = append(of(at).Moves, nodemsg.BodyMove{Player: w.Player, Pose: w.Pose})
		}
	}
	c.applyDeltas(news)
	for _, v := range c.tourists {
		was := world.ChunkOf(v.currentPose())
		if v.place(c.walkers[v.walker].Pose); world.ChunkOf(v.currentPose()) != was {
			c.updateView(v)
		}
	}
}

// step moves a walker by a tick, and reports whether the region sends that.
func (c *landscape) step(w *walker) (events bool) {
	if w.legs--; w.legs <= 0 {
		w.legs, w.pace, w.heard = 20+c.rng.IntN(60), .2, false
		if c.rng.IntN(5) == 0 {
			w.pace = 0
		}
		w.Pose.Yaw = float32(2 * math.Pi * c.rng.Float64())
	}
	if w.pace == 0 {
		events, w.heard = !w.heard, true
		return events
	}
	x, z := w.Pose.X-w.pace*math.Sin(float64(w.Pose.Yaw)), w.Pose.Z+w.pace*math.Cos(float64(w.Pose.Yaw))
	if x < .3 || x > c.width-.3 || z < .3 || z > c.width-.3 {
		w.legs, w.pace = 0, 0
		return true
	}
	w.Pose.X, w.Pose.Z = x, z
	w.Pose.Y = 64 + math.Floor(4*math.Sin(x/9)*math.Cos(z/7))/2
	return true
}

// frame runs a frame.
func (c *landscape) frame() {
	if lost := c.g.interest.takeLost(); len(lost) > 0 {
		c.f.republish(lost)
	}
	c.frameSessions = c.frameSessions[:0]
	for _, v := range c.tourists {
		c.frameSessions = append(c.frameSessions, v.session)
	}
	c.g.interest.buildFrames(1, c.frameSessions)
}

// read makes clients read what they are sent.
func (c *landscape) read() {
	for _, v := range c.tourists {
		if v.asleep || len(v.out.wake) == 0 {
			continue
		}
		if err := v.desk.clear(v.out, v); err != nil {
			c.t.Fatal(err)
		}
	}
}

// write applies what the client is sent.
func (v *visitor) write(data []byte) error {
	if v.eyes == nil {
		return nil
	}
	if data[0] == sessionmsg.TickFrame {
		return v.eyes.write(data)
	}
	m, err := sessionmsg.DecodeServerCBOR(data)
	if gone, is := m.(sessionmsg.ChunkGone); is {
		v.eyes.scene.Gone(gone.Chunk)
	}
	return err
}

func (v *visitor) flush() error { return nil }
