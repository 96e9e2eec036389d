package bot

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// originalServer implements the original protocol: flat ground with its top at 10; every player was last at place.
type originalServer struct {
	t         *testing.T
	address   netip.AddrPort
	x, y, z   float64
	holes     map[grid.Pos]bool                                 // columns without ground, at y 0
	dht       func(queries int) (closed bool)                   // before the n-th answer; may be nil
	connected func(c *net.TCPConn, at grid.ChunkPos)            // after CHUNK_DATA; may be nil
	received  func(c *net.TCPConn, v visit, p legacymsg.Packet) // may be nil
	served    sync.WaitGroup

	mu     sync.Mutex
	visits map[grid.ChunkPos]int
	got    map[grid.ChunkPos]int // packets
}

// visit is the n-th connection to a chunk, and how many packets arrived on it.
type visit struct {
	at         grid.ChunkPos
	n, packets int
}

func (s *originalServer) open() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().(*net.TCPAddr).AddrPort()
	s.visits, s.got = make(map[grid.ChunkPos]int), make(map[grid.ChunkPos]int)
	s.served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.served.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	})
	s.t.Cleanup(func() { l.Close(); s.served.Wait() })
}

// serve ignores errors of the connection: players come and go.
func (s *originalServer) serve(c *net.TCPConn) {
	defer c.Close()
	in := bufio.NewReader(c)
	h, err := legacymsg.ReadHandshake(in)
	if err != nil {
		return
	}
	io.WriteString(c, legacymsg.AnswerOK) //nolint:errcheck // as above
	if h.Purpose == legacymsg.PurposeDHT {
		s.answer(c, in)
		return
	}
	c.Write(legacymsg.AppendChunkData(nil, h.Chunk, s.slab(h.Chunk))) //nolint:errcheck // as above
	s.mu.Lock()
	s.visits[h.Chunk]++
	v := visit{at: h.Chunk, n: s.visits[h.Chunk]}
	s.mu.Unlock()
	if s.connected != nil {
		s.connected(c, h.Chunk)
	}
	for {
		line, err := wire.ReadLine(in, wire.MaxLine)
		if err != nil {
			return
		}
		p, err := legacymsg.DecodePacket(line)
		if err != nil {
			s.t.Error(err)
			return
		}
		s.mu.Lock()
		s.got[h.Chunk]++
		s.mu.Unlock()
		v.packets++
		if s.received != nil {
			s.received(c, v, p)
		}
	}
}

func (s *originalServer) answer(c net.Conn, in *bufio.Reader) {
	for n := 1; ; n++ {
		q, err := legacymsg.ReadQuery(in)
		if err != nil || s.dht != nil && s.dht(n) {
			return
		}
		reply := legacymsg.AppendChunkAddress(nil, s.address)
		if _, where := q.(legacymsg.WhereIsPlayer); where {
			if reply, err = legacymsg.AppendPlayerPlace(nil, s.x, s.y, s.z); err != nil {
				s.t.Error(err)
			}
		}
		c.Write(reply) //nolint:errcheck // as above
	}
}

func (s *originalServer) slab(at grid.ChunkPos) *legacymsg.Slab {
	slab := new(legacymsg.Slab)
	for x := range grid.ChunkSize {
		for z := range grid.ChunkSize {
			o := at.Origin()
			for y := range 10 {
				if !s.holes[grid.Pos{X: o.X + int32(x), Z: o.Z + int32(z)}] {
					slab[legacymsg.SlabIndex(x, y, z)] = byte(chunk.Stone)
				}
			}
		}
	}
	return slab
}

// run plays one wanderer who hardly moves, until ctx is done or the player is lost.
func (s *originalServer) run(ctx context.Context) Report {
	r, err := Run(ctx, Options{
		Target: s.address.String(), Mode: Wander, Protocol: Original, Players: 1, Rate: 200, Speed: 0.01, Duration: time.Minute,
	})
	if err != nil {
		s.t.Log(err)
	}
	return r
}

// The player enters where the dht says, falls to the ground there, registers, and sends a move each frame to the
// chunk where they stand; the eight chunks around get nothing.
func TestOriginalEntersAtTheSpawn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	here := grid.ChunkPos{X: -1, Z: 1}
	var first []legacymsg.Packet
	s := &originalServer{t: t, x: -0.5, y: 32, z: 40}
	s.received = func(_ *net.TCPConn, v visit, p legacymsg.Packet) {
		if v.at == here && v.packets <= 2 {
			first = append(first, p)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if v.packets > 40 && len(s.visits) == 9 {
			cancel()
		}
	}
	s.open()
	r := s.run(ctx)
	if r.Joined != 1 || r.Lost != 0 || r.Chunks.Borders != 0 {
		t.Errorf("report: %+v", r)
	}
	if len(first) != 2 {
		t.Fatalf("sent %+v to %v, want more", first, here)
	}
	if _, registers := first[0].(legacymsg.PlayerRegister); !registers {
		t.Errorf("began with %+v, want a register", first[0])
	}
	if m, moves := first[1].(legacymsg.PlayerMove); !moves || m.X != -0.5 || m.Y != 10 || m.Z != 40 {
		t.Errorf("then sent %+v, want the ground under -0.5, 32, 40", m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.visits) != 9 || len(s.got) != 1 {
		t.Errorf("connected to %v, which got so many packets: %v; want 9, and packets for %v only", s.visits, s.got, here)
	}
}

// Whatever ends the released client also ends the player, with an error that says why: a connection of the dht or of
// any chunk that ends without a reset, or a column without ground.
func TestOriginalIsLostAsTheReleasedClientIs(t *testing.T) {
	moved := make(chan struct{}, 1) // the register and a move have arrived
	received := func(_ *net.TCPConn, v visit, _ legacymsg.Packet) {
		if v.packets == 2 {
			moved <- struct{}{}
		}
	}
	for _, tc := range []struct {
		name   string
		server *originalServer
		code   string
		cause  string
		lost   int // 1: after they had joined
	}{
		{
			name: "a silent neighbour closes", code: "server closed a connection", cause: "chunk 1,0: read line: EOF", lost: 1,
			server: &originalServer{x: 8.5, y: 32, z: 8.5, received: received, connected: func(c *net.TCPConn, at grid.ChunkPos) {
				if at == (grid.ChunkPos{X: 1}) {
					<-moved
					c.CloseWrite()
				}
			}},
		},
		{
			name: "dht closes", code: "dht connection ended", cause: "EOF", lost: 1,
			server: &originalServer{x: 8.5, y: 32, z: 8.5, received: received, dht: func(queries int) bool {
				if queries > 5 { // the player's place, their chunk, and three more
					<-moved
				}
				return queries > 5
			}},
		},
		{
			name: "no ground", code: "no ground", cause: "under 8, -3",
			server: &originalServer{x: 8.5, y: 32, z: -2.5, holes: map[grid.Pos]bool{{X: 8, Z: -3}: true}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.server
			s.t = t
			s.open()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r := s.run(ctx)
			if r.Failures[tc.code] != 1 || r.Lost != tc.lost || !strings.Contains(r.Causes[tc.code], tc.cause) {
				t.Errorf("%d lost, failures %v: %v; want %q, %q", r.Lost, r.Failures, r.Causes, tc.code, tc.cause)
			}
		})
	}
}

// After a reset of the chunk that they stand in, the player asks the dht and connects again, and does not register
// before the next border.
func TestOriginalSurvivesAReset(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	here, visits := grid.ChunkPos{}, 0
	s := &originalServer{t: t, x: 8.5, y: 32, z: 8.5}
	s.connected = func(_ *net.TCPConn, at grid.ChunkPos) {
		if at != here {
			return
		}
		if visits++; visits == 2 {
			time.AfterFunc(500*time.Millisecond, cancel) // 100 frames
		}
	}
	s.received = func(c *net.TCPConn, v visit, p legacymsg.Packet) {
		switch {
		case v.at == here && v.n == 1 && v.packets == 10:
			c.SetLinger(0) //nolint:errcheck // the test would fail
			c.Close()
		case v.at == here && v.n == 2:
			t.Errorf("after the reset the player sends %+v", p)
		}
	}
	s.open()
	r := s.run(ctx)
	if r.Joined != 1 || r.Lost != 0 || r.Chunks.Resets != 1 || r.Chunks.Pause <= 0 {
		t.Errorf("report: %d joined, %v, %+v", r.Joined, r.Causes, r.Chunks)
	}
}

// idlePlayer returns a player who stands in chunk 0, 0, connected to it and to the one east of it. sent returns what
// each of the two received, and closes them.
func idlePlayer(t *testing.T, o Options) (p *originalPlayer, sent func() (here, beside []string)) {
	t.Helper()
	o.Mode, o.Protocol = Wander, Original
	c := &runState{Options: o.withDefaults(), meter: newMeter(), allProbes: &latencyProbes{}}
	p = &originalPlayer{basePlayer: c.newBasePlayer(0), links: make(map[grid.ChunkPos]*link), requests: make(chan grid.ChunkPos, 100)}
	p.ground = newGround(flat(10))
	p.probes = newProbeSender(p.allProbes, p.name, p.rng)
	p.since = time.Now()
	p.walk.pose = motion.Pose{X: 16.5, Y: 10, Z: 16.5}
	p.ground.put(p.here, nil)
	var reading sync.WaitGroup
	lines := make([][]string, 2)
	for i := range lines {
		ours, theirs := net.Pipe()
		p.links[grid.ChunkPos{X: int32(i)}] = &link{requested: true, conn: legacyclient.New(&conn{
			Conn: ours, timeout: time.Minute, stop: func() bool { return true },
		})}
		t.Cleanup(func() { ours.Close() })
		reading.Go(func() {
			for in := bufio.NewScanner(theirs); in.Scan(); {
				lines[i] = append(lines[i], in.Text())
			}
		})
	}
	return p, func() (here, beside []string) {
		for at := range p.links {
			p.drop(at)
		}
		reading.Wait()
		return lines[0], lines[1]
	}
}

// A move is sent each frame, even if the player cannot walk, to the chunk under them only. A block change goes to all
// chunks.
func TestOriginalSendsEveryFrame(t *testing.T) {
	p, sent := idlePlayer(t, Options{Rate: 2, Speed: 100}) // a step of 50 blocks: into unknown land
	was := p.walk.pose
	for range 10 {
		if err := p.move(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if p.walk.pose.X != was.X || p.walk.pose.Z != was.Z {
		t.Fatalf("walked to %+v", p.walk.pose)
	}
	for p.pending == nil {
		if err := p.edit(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	here, beside := sent()
	if len(here) != 11 || len(beside) != 1 || !strings.HasPrefix(beside[0], `{"type":7,`) {
		t.Fatalf("sent %q here and %q beside", here, beside)
	}
	for _, line := range here[:10] {
		if !strings.HasPrefix(line, `{"type":3,`) {
			t.Errorf("sent %s, want a move", line)
		}
	}
}

// A player who crosses a border deregisters on one connection and registers on the other, and the crossing is
// counted.
func TestOriginalCrossesBorders(t *testing.T) {
	p, sent := idlePlayer(t, Options{Rate: 20, Speed: 4})
	p.ground.put(grid.ChunkPos{X: 1}, nil)
	p.walk.pose.X, p.walk.pose.Yaw, p.walk.legLeft = 31.9, -1.5707964, time.Hour // east
	if err := p.move(time.Now()); err != nil {
		t.Fatal(err)
	}
	if p.here != (grid.ChunkPos{X: 1}) || p.meter.report(p.Options, nil).Chunks.Borders != 1 {
		t.Fatalf("is in %v at %+v", p.here, p.walk.pose)
	}
	here, beside := sent()
	if len(here) != 1 || !strings.HasPrefix(here[0], `{"type":2,`) ||
		len(beside) != 2 || !strings.HasPrefix(beside[0], `{"type":1,`) || !strings.HasPrefix(beside[1], `{"type":3,`) {
		t.Errorf("sent %q to the chunk that was left, %q to the other", here, beside)
	}
}

// A player needs ground wherever they walk.
func TestOriginalNeedsGround(t *testing.T) {
	p, _ := idlePlayer(t, Options{Speed: 0.001})
	for y := range int32(10) {
		p.ground.set(grid.Pos{X: 16, Y: y, Z: 16}, chunk.Air)
	}
	var lost *failure
	if err := p.move(time.Now()); !errors.As(err, &lost) || lost.code != "no ground" {
		t.Errorf("over a hole: %v", err)
	}
}
