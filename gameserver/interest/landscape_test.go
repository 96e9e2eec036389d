package interest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// defaultBudget is in bytes a second.
const defaultBudget = 19_200

func newIndex(budget int) *Index {
	return New(Options{Budget: float64(budget) / 20, RememberTicks: 40})
}

// landscape is an index of walkers spread over a square of chunks, driven tick by tick. A region, which covers all of
// it, sends the chunks that are watched.
type landscape struct {
	t        testing.TB
	ix       *Index
	rng      *rand.Rand
	width    float64 // blocks along each side
	walkers  []walker
	tourists []*tourist
	chunks   map[grid.ChunkPos]*watchedChunk
}

// watchedChunk is a chunk with subscribers.
type watchedChunk struct {
	in       Occupants
	moved    []*Occupant
	watchers map[*tourist]bool
}

// walker walks at 4 blocks/s, and sends a move in each tick while walking and one after stopping.
type walker struct {
	nodemsg.Body
	legs  int     // ticks until the walker turns or rests
	speed float64 // blocks a tick; 0 rests
	rests bool    // the region has sent that it rests
}

// tourist is the CBOR session of one of the walkers, and the state of its client.
type tourist struct {
	View
	walker int
	pose   motion.Pose
	view   int
	sights map[grid.ChunkPos]bool
	asleep bool // it does not read
	missed bool // it lacks earlier motion
	queue  []message
	motion []byte
	client *sessionmsg.AvatarDecoder // nil for a client that keeps nothing
	bytes  int
}

// message is a piece of a frame, or, if that is nil, that a chunk is out of view.
type message struct {
	piece []byte
	gone  grid.ChunkPos
}

func newLandscape(t testing.TB, seed uint64, chunks, walkers, budget int) *landscape {
	c := &landscape{
		t: t, ix: newIndex(budget), chunks: make(map[grid.ChunkPos]*watchedChunk),
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

// join creates a session for a walker.
func (c *landscape) join(walker, view int, client *sessionmsg.AvatarDecoder) *tourist {
	v := &tourist{walker: walker, pose: c.walkers[walker].Pose, view: view, sights: make(map[grid.ChunkPos]bool), client: client}
	c.tourists = append(c.tourists, v)
	c.updateView(v)
	return v
}

// quit ends a session.
func (c *landscape) quit(v *tourist) {
	c.ix.Remove(&v.View)
	for at := range v.sights {
		c.unwatch(v, at)
	}
	c.tourists = slices.DeleteFunc(c.tourists, func(other *tourist) bool { return other == v })
}

// updateView does what a session does when its player enters another chunk: it watches the chunks around.
func (c *landscape) updateView(v *tourist) {
	at := v.pose.Chunk()
	for pos := range v.sights {
		if pos.Distance(at) > int64(v.view)+1 {
			c.unwatch(v, pos)
			delete(v.sights, pos)
			v.queue = append(v.queue, message{gone: pos})
		}
	}
	for x := -v.view; x <= v.view; x++ {
		for z := -v.view; z <= v.view; z++ {
			if pos := (grid.ChunkPos{X: at.X + int32(x), Z: at.Z + int32(z)}); !v.sights[pos] {
				v.sights[pos] = true
				c.watch(v, pos)
			}
		}
	}
}

// watch sends a session a chunk. The region sends it first if nobody has watched it.
func (c *landscape) watch(v *tourist, pos grid.ChunkPos) {
	w := c.chunks[pos]
	if w == nil {
		w = &watchedChunk{watchers: make(map[*tourist]bool)}
		c.chunks[pos] = w
		n := nodemsg.ChunkDelta{Chunk: pos}
		for i := range c.walkers {
			if c.walkers[i].Pose.Chunk() == pos {
				n.Enter = append(n.Enter, c.walkers[i].Body)
			}
		}
		c.apply(&n)
	}
	w.watchers[v] = true
	v.queue = append(v.queue, message{piece: sessionmsg.AppendDelta(nil, c.ix.Entering(pos, w.in))})
	v.missed = true
}

func (c *landscape) unwatch(v *tourist, pos grid.ChunkPos) {
	w := c.chunks[pos]
	if delete(w.watchers, v); len(w.watchers) == 0 {
		c.ix.ClearChunk(pos, w.in)
		delete(c.chunks, pos)
	}
}

// apply applies a region's delta if its chunk is watched, and publishes it.
func (c *landscape) apply(n *nodemsg.ChunkDelta) {
	w := c.chunks[n.Chunk]
	if w == nil {
		return
	}
	change := w.in.Apply(n, w.moved[:0])
	w.moved = change.Moved
	c.publish(w, c.ix.Apply(n, w.in, change))
}

func (c *landscape) publish(w *watchedChunk, td *sessionmsg.TickDelta) {
	if td == nil {
		return
	}
	for v := range w.watchers {
		v.queue = append(v.queue, message{piece: sessionmsg.AppendDelta(nil, td)})
	}
}

// walk moves everybody by a tick, and updates the watched chunks.
func (c *landscape) walk() {
	deltas := make(map[grid.ChunkPos]*nodemsg.ChunkDelta)
	of := func(at grid.ChunkPos) *nodemsg.ChunkDelta {
		if deltas[at] == nil {
			deltas[at] = &nodemsg.ChunkDelta{Chunk: at}
		}
		return deltas[at]
	}
	for i := range c.walkers {
		w := &c.walkers[i]
		before := w.Pose.Chunk()
		if !c.step(w) {
			continue
		}
		if at := w.Pose.Chunk(); at != before {
			of(before).Leave = append(of(before).Leave, w.Player)
			of(at).Enter = append(of(at).Enter, w.Body)
		} else {
			of(at).Moves = append(of(at).Moves, nodemsg.BodyMove{Player: w.Player, Pose: w.Pose})
		}
	}
	inOrder := make([]*nodemsg.ChunkDelta, 0, len(deltas))
	for _, n := range deltas {
		inOrder = append(inOrder, n)
	}
	slices.SortFunc(inOrder, func(a, b *nodemsg.ChunkDelta) int { return a.Chunk.Compare(b.Chunk) })
	for _, n := range inOrder {
		c.apply(n)
	}
	for _, v := range c.tourists {
		was := v.pose.Chunk()
		if v.pose = c.walkers[v.walker].Pose; v.pose.Chunk() != was {
			c.updateView(v)
		}
	}
}

// step moves a walker by a tick, and reports whether the region sends that.
func (c *landscape) step(w *walker) (sent bool) {
	if w.legs--; w.legs <= 0 {
		w.legs, w.speed, w.rests = 20+c.rng.IntN(60), .2, false
		if c.rng.IntN(5) == 0 {
			w.speed = 0
		}
		w.Pose.Yaw = float32(2 * math.Pi * c.rng.Float64())
	}
	if w.speed == 0 {
		sent, w.rests = !w.rests, true
		return sent
	}
	x, z := w.Pose.X-w.speed*math.Sin(float64(w.Pose.Yaw)), w.Pose.Z+w.speed*math.Cos(float64(w.Pose.Yaw))
	if x < .3 || x > c.width-.3 || z < .3 || z > c.width-.3 {
		w.legs, w.speed = 0, 0
		return true
	}
	w.Pose.X, w.Pose.Z = x, z
	w.Pose.Y = 64 + math.Floor(4*math.Sin(x/9)*math.Cos(z/7))/2
	return true
}

// frame runs a frame.
func (c *landscape) frame() {
	if lost := c.ix.TakeLost(); len(lost) > 0 {
		for at, w := range c.chunks {
			n := nodemsg.ChunkDelta{Chunk: at}
			for _, id := range lost {
				if o := w.in.Of(id); o != nil {
					n.Enter = append(n.Enter, o.Body)
				}
			}
			c.publish(w, c.ix.Apply(&n, w.in, Change{}))
		}
	}
	c.ix.BeginTick(1)
	for _, v := range c.tourists {
		frame, ok := c.ix.Frame(&v.View, v.pose, v.view)
		switch {
		case !ok:
			c.t.Fatal("no frame for a session that has not ended")
		case v.asleep:
			v.missed = true
		default:
			v.motion = frame.Append(v.motion[:0], v.missed)
			v.missed = false
		}
	}
	c.ix.EndTick()
}

// read makes clients read what they are sent.
func (c *landscape) read() {
	for _, v := range c.tourists {
		if v.asleep {
			continue
		}
		for _, m := range v.queue {
			if m.piece != nil {
				c.readFrame(v, m.piece)
			} else if v.client != nil {
				v.client.Gone(m.gone)
			}
		}
		v.queue = v.queue[:0]
		if len(v.motion) > 0 {
			c.readFrame(v, v.motion)
		}
	}
}

func (c *landscape) readFrame(v *tourist, data []byte) {
	if v.client == nil {
		return
	}
	frame := append(sessionmsg.AppendTick(nil, c.ix.tick), data...)
	v.bytes += len(frame)
	if err := v.client.Read(frame, nil); err != nil {
		c.t.Fatal(err)
	}
}

// places returns the places that the client predicts for the newest tick.
func (c *landscape) places(v *tourist) map[player.ID]motion.Pose {
	all := make(map[player.ID]motion.Pose)
	v.client.Each(float64(c.ix.tick-v.client.Now()), func(_ uint32, id player.ID, pose motion.Pose) { all[id] = pose })
	return all
}
