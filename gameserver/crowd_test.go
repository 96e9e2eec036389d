package gameserver

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// strollers are players who walk about in one chunk, at 4 blocks/s, in straight legs of one to four seconds, up and
// down over hills with steps of half a block. Each moves at a rate of its own, as clients do. A tick contains the moves
// that arrived until the subscription sent its last message to the region: of two ticks one may contain none, and the
// other one two.
type strollers struct {
	rng       *rand.Rand
	bodies    []nodemsg.Body
	legs      []int
	next      []float64 // the tick at which each moves next
	jitter    float64   // maximum delay of moves, in ticks
	tick      float64
	inTransit [][]sent // moves that have not reached the region
	moves     []nodemsg.BodyMove
	hills     *hills // climbed instead; nil for none
}

// sent is a move in transit.
type sent struct {
	pose motion.Pose
	came float64 // the tick at which the gateway has it
}

func newStrollers(n int, jitter float64) *strollers {
	s := &strollers{rng: rand.New(rand.NewPCG(1, 2)), legs: make([]int, n), inTransit: make([][]sent, n), jitter: jitter}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("p", i)
	}
	slices.SortFunc(names, func(a, b string) int { // the order in which regions send them
		one, other := player.GuestID(a), player.GuestID(b)
		return bytes.Compare(one[:], other[:])
	})
	for _, name := range names {
		s.bodies = append(s.bodies, nodemsg.Body{
			Player: player.GuestID(name), Name: name,
			Pose: motion.Pose{X: 1 + 30*s.rng.Float64(), Y: 64, Z: 1 + 30*s.rng.Float64()},
		})
		s.next = append(s.next, s.rng.Float64())
	}
	return s
}

// step moves everybody by a tick, and returns the moves that reach the region until its end.
func (s *strollers) step() []nodemsg.BodyMove {
	s.moves = s.moves[:0]
	s.tick++
	events := s.tick - s.rng.Float64()*float64(mirror.SendPause)/float64(region.TickEvery)
	for i := range s.bodies {
		for ; s.next[i] <= s.tick; s.next[i]++ {
			s.walk(i)
			s.inTransit[i] = append(s.inTransit[i], sent{s.bodies[i].Pose, s.next[i] + s.jitter*s.rng.Float64()})
		}
		n := 0
		for n < len(s.inTransit[i]) && s.inTransit[i][n].came <= events {
			n++
		}
		if n > 0 {
			s.moves = append(s.moves, nodemsg.BodyMove{Player: s.bodies[i].Player, Pose: s.inTransit[i][n-1].pose})
			s.inTransit[i] = slices.Delete(s.inTransit[i], 0, n)
		}
	}
	return s.moves
}

func (s *strollers) walk(i int) {
	if s.hills != nil {
		s.hills.climb(i, &s.bodies[i].Pose, s.rng)
		return
	}
	p := &s.bodies[i].Pose
	if s.legs[i]--; s.legs[i] <= 0 {
		p.Yaw, s.legs[i] = float32(2*math.Pi*s.rng.Float64()), 20+s.rng.IntN(60)
	}
	const step = 4. / 20
	x, z := p.X-step*math.Sin(float64(p.Yaw)), p.Z+step*math.Cos(float64(p.Yaw))
	if x < .3 || x > 31.7 || z < .3 || z > 31.7 {
		s.legs[i] = 0
		return
	}
	p.X, p.Z = x, z
	p.Y = 64 + math.Floor(4*math.Sin(x/9)*math.Cos(z/7))/2
}

// avatarView is a client's picture of the avatars, from tick frames alone.
type avatarView struct {
	t       testing.TB
	client  *client // receives everything, if not nil
	scene   sessionmsg.AvatarDecoder
	players map[uint32]player.ID // also of those who have left
	frames  int
	bytes   int
	records int
}

func newAvatarView(t testing.TB) *avatarView {
	return &avatarView{t: t, players: make(map[uint32]player.ID)}
}

func (e *avatarView) Send(data []byte) error {
	if data[0] != sessionmsg.TickFrame {
		return nil
	}
	e.frames++
	e.bytes += len(sessionmsg.AppendMessage(nil, data))
	return e.scene.Read(data, e)
}

func (e *avatarView) Flush() error { return nil }

func (e *avatarView) Tick(uint16) {}

func (e *avatarView) Delta(n *sessionmsg.TickDelta) {
	for _, a := range n.Enter {
		e.players[a.Index] = a.Player
	}
	if e.client != nil {
		e.client.apply(e.piece(n))
	}
}

func (e *avatarView) Motion(at grid.ChunkPos, m *sessionmsg.Motion) {
	e.records++
	if e.client == nil {
		return
	}
	id := e.players[m.Index].String()
	if a, known := e.client.mu.avatars[id]; known && e.client.mu.seenIn[id] == at {
		if p := m.Pose(at); m.HasAcross {
			a.X, a.Z = p.X, p.Z
		}
		if m.HasHeight {
			a.Y = m.Pose(at).Y
		}
		e.client.mu.avatars[id] = a
	}
}

// piece returns the delta as a JSON session gets it.
func (e *avatarView) piece(n *sessionmsg.TickDelta) sessionmsg.Piece {
	delta := nodemsg.ChunkDelta{Chunk: n.Chunk, Blocks: n.Blocks, Chat: n.Chat}
	for _, a := range n.Enter {
		delta.Enter = append(delta.Enter, nodemsg.Body{Player: a.Player, Name: a.Name, Guest: a.Guest, Pose: a.Pose(n.Chunk)})
	}
	for _, index := range n.Leave {
		delta.Leave = append(delta.Leave, e.players[index])
	}
	return codec.PieceOf(delta)
}

// places returns the places that the client predicts for a tick.
func (e *avatarView) places(tick uint64) map[player.ID]motion.Pose {
	all := make(map[player.ID]motion.Pose)
	e.scene.Each(float64(tick-e.scene.Now()), func(_ uint32, id player.ID, pose motion.Pose) { all[id] = pose })
	return all
}

// crowdScene is a gateway with a crowd in one chunk, driven tick by tick and without goroutines.
type crowdScene struct {
	g     *Gateway
	f     *mirror.Subscription
	chunk *mirror.Chunk
	crowd *strollers
	frame nodemsg.FromRegion
}

func newCrowdScene(n int, jitter float64) *crowdScene {
	g := newIdleGateway(options(newLands(), playerstest.NewMemory(), playerstest.NewMemory()))
	h := &crowdScene{g: g, crowd: newStrollers(n, jitter)}
	witness := &recorderSub{}
	h.f = showChunk(g, grid.ChunkPos{}, witness)
	h.chunk = witness.chunk
	h.frame = nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{}}}
	return h
}

// newIdleGateway returns a gateway that starts no goroutines: its subscriptions follow no regions.
func newIdleGateway(o Options) *Gateway {
	g := New(o)
	close(g.stop)
	return g
}

// showChunk makes a subscriber watch a chunk of an idle gateway, and sends it the chunk.
func showChunk(g *Gateway, at grid.ChunkPos, by mirror.Subscriber) *mirror.Subscription {
	sub := g.mirror.Watch(at, by)
	var frame nodemsg.FromRegion // which confirms what is shown
	if _, known := sub.Block(at.Origin()); !known {
		frame.Chunks = []nodemsg.ChunkDelta{{Chunk: at, State: &nodemsg.ChunkState{}}}
	}
	if err := sub.Apply(frame); err != nil {
		panic(err)
	}
	g.mirror.BuildQueued()
	return sub
}

// recorderSub is a subscriber that only records.
type recorderSub struct {
	chunk   *mirror.Chunk
	results []nodemsg.EditResult
}

func (w *recorderSub) SendChunk(c *mirror.Chunk, _ bool) { w.chunk = c }
func (w *recorderSub) HasRoom(*mirror.Chunk) bool        { return true }
func (w *recorderSub) SendDelta(*mirror.Delta)           {}
func (w *recorderSub) WantsEveryMove() bool              { return false }
func (w *recorderSub) Predictable() bool                 { return true }
func (w *recorderSub) Flush()                            {}
func (w *recorderSub) SendNotice(sessionmsg.Notice)      {}

func (w *recorderSub) SendResult(r nodemsg.EditResult) (waits bool) {
	w.results = append(w.results, r)
	return false
}

// addSession creates a session for the i-th stroller, which has read the chunk.
func (h *crowdScene) addSession(i int) *session {
	s := &session{g: h.g, out: outbox.New(func() {}), body: h.crowd.bodies[i], codec: codec.CBOR}
	s.out.SetCodec(codec.CBOR)
	s.view.set(2, 0)
	s.place.moveTo(h.crowd.bodies[i].Pose)
	showChunk(h.g, grid.ChunkPos{}, s)
	discard(s.out)
	return s
}

// discard makes a client read what waits.
func discard(o *outbox.Outbox) {
	var desk outbox.Writer
	if err := desk.WriteNext(o, sinkFunc(func([]byte) error { return nil })); err != nil {
		panic(err)
	}
}

// begin adds everybody.
func (h *crowdScene) begin() error {
	return h.f.Apply(nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Enter: slices.Clone(h.crowd.bodies)}}})
}

// tick moves everybody by a tick, and encodes the tick's motion.
func (h *crowdScene) tick(sessions []*session) error {
	h.walk()
	return h.show(sessions)
}

// walk moves everybody by a tick.
func (h *crowdScene) walk() {
	h.frame.Tick++
	h.frame.Chunks[0].Moves = h.crowd.step()
}

// show encodes the motion of the tick that the region has sent.
func (h *crowdScene) show(sessions []*session) error {
	if err := h.f.Apply(h.frame); err != nil {
		return err
	}
	h.g.buildFrames(1, sessions)
	return nil
}

// jitter is the maximum delay of moves, in ticks: 10 ms.
const jitter = .2

// A session's bytes and what it sees of the others, in crowds of growing size.
func TestCrowdAsSeenBySessions(t *testing.T) {
	for _, c := range []struct {
		players int
		bytes   float64 // a second, at most
		mean    float64 // error within 16 blocks, at most
		error   float64 // the same of its 99th percentile
	}{
		{100, 9500, .01, .05},
		{500, 20000, .035, .25},
		{1500, 20000, .07, .25},
	} {
		t.Run(fmt.Sprint(c.players), func(t *testing.T) {
			h := newCrowdScene(c.players, jitter)
			var sessions []*session
			var desks []outbox.Writer
			var views []*avatarView
			for i := range 8 {
				sessions = append(sessions, h.addSession(i))
				desks = append(desks, outbox.Writer{})
				views = append(views, newAvatarView(t))
			}
			if err := h.begin(); err != nil {
				t.Fatal(err)
			}
			var errors, late []float64 // against what the gateway has just received; against where they are by now
			const warm, ticks = 40, 400
			for tick := range warm + ticks {
				if tick == warm {
					for _, e := range views {
						e.bytes, e.records = 0, 0
					}
				}
				for i, s := range sessions {
					s.place.moveTo(h.crowd.bodies[i].Pose)
				}
				if err := h.tick(sessions); err != nil {
					t.Fatal(err)
				}
				for i, s := range sessions {
					if s.out.Woken() {
						if err := desks[i].WriteNext(s.out, views[i]); err != nil {
							t.Fatal(err)
						}
					}
					if tick < warm {
						continue
					}
					own, moved := h.crowd.bodies[i].Pose, make(map[player.ID]bool)
					for _, m := range h.frame.Chunks[0].Moves {
						moved[m.Player] = true
					}
					places := views[i].places(h.g.interest.ix.Tick())
					for _, b := range h.crowd.bodies {
						p, known := places[b.Player]
						if !known {
							t.Fatalf("session %d does not show %s", i, b.Name)
						}
						truth := sessionmsg.PlaceOf(grid.ChunkPos{}, h.chunk.Occupants().Of(b.Player).Pose).Pose(grid.ChunkPos{})
						if math.Hypot(truth.X-own.X, truth.Z-own.Z) > 16 {
							continue
						}
						late = append(late, max(math.Abs(p.X-b.Pose.X), math.Abs(p.Z-b.Pose.Z)))
						if moved[b.Player] {
							errors = append(errors, max(math.Abs(p.X-truth.X), math.Abs(p.Y-truth.Y), math.Abs(p.Z-truth.Z)))
						}
					}
				}
			}
			bytes, records, sum := 0., 0., 0.
			for _, e := range errors {
				sum += e
			}
			mean := sum / float64(len(errors))
			for _, e := range views {
				bytes += float64(e.bytes) / float64(len(views)) / ticks * 20
				records += float64(e.records) / float64(len(views)) / ticks * 20
			}
			slices.Sort(errors)
			slices.Sort(late)
			p50, p99, most := errors[len(errors)/2], errors[len(errors)*99/100], errors[len(errors)-1]
			t.Logf("%.0f bytes/s, %.0f records/s (%.1f per avatar); error mean %.3f, p50 %.3f, p99 %.3f, max %.3f blocks; with what is on its way p50 %.3f, p99 %.3f",
				bytes, records, records/float64(c.players), mean, p50, p99, most, late[len(late)/2], late[len(late)*99/100])
			if bytes > c.bytes {
				t.Errorf("%.0f bytes a second, want at most %.0f", bytes, c.bytes)
			}
			if mean > c.mean {
				t.Errorf("the mean of the error is %.3f blocks, want at most %.3f", mean, c.mean)
			}
			if p99 > c.error {
				t.Errorf("the 99th percentile of the error is %.3f blocks, want at most %.2f", p99, c.error)
			}
		})
	}
}
