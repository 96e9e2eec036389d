package gameserver

import (
	"bufio"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// classic is a connection of VoxelPopuli's own client to one chunk (§3.2.2.2). A client holds up to 82 connections and sends only
// on the one to the chunk that its player is in; there the player is registered. The reader owns it.
type classic struct {
	g      *Gateway
	at     grid.ChunkPos
	party  *party
	who    atomic.Pointer[guest] // the player; nil until the first registration on this connection
	out    *outbox
	feed   *feed
	edits  *rate.Limiter
	latest *wire.PlayerMove       // read, but not yet applied; nil for none
	shown  map[player.ID]struct{} // players that the client was sent. The subscription's lock guards it.

	mu struct {
		sync.Mutex
		registered bool
		motion     *player.Motion // nil from registration until the first move
		pose       wire.Pose
	}
}

// readPause is the minimum time between two reads of a connection. It bounds the decoding work that one client can cause; of the
// moves that arrived meanwhile only the newest counts.
const readPause = 25 * time.Millisecond

// serveClassic serves an original client after the handshake was answered with ok. Most of a client's connections stay silent for
// as long as it runs, so only TCP's keepalive ends a silent one.
func (g *Gateway) serveClassic(ctx context.Context, c net.Conn, in *bufio.Reader, h wire.Handshake) error {
	line := &resetConn{lineConn{Conn: c, in: in}} // packets include their newline
	defer line.cut()
	s := &classic{g: g, at: h.Chunk, out: newOutbox(line.cut), edits: rate.NewLimiter(g.editRate(), editsAtOnce)}
	s.shown = make(map[player.ID]struct{})
	s.out.owner = s
	var writer sync.WaitGroup
	writer.Go(func() { g.pump(s.out, line) })
	defer writer.Wait()
	defer s.end()
	stop := context.AfterFunc(ctx, s.end)
	defer stop()

	s.party = g.join(partyOf(h.Player, c.RemoteAddr()))
	defer g.quit(s.party)
	s.feed = g.watch(s.at, s)
	g.mu.Lock()
	g.mu.classics[s] = struct{}{}
	g.mu.Unlock()
	wakeUp(g.came)
	g.peopled()
	g.metrics.classics.Inc()
	defer s.leave()
	if s.feed.ledElsewhere() {
		return region.ErrNotHere // since the handshake
	}
	for {
		data, err := line.read()
		if err != nil {
			return err
		}
		g.metrics.received(len(data))
		packet, err := wire.DecodeClientPacket(data)
		if err != nil {
			return err
		}
		if err := s.take(ctx, packet); err != nil {
			return err
		}
		if !line.ready() {
			s.applyMove()
			time.Sleep(readPause)
		}
	}
}

// end closes the connection. The original protocol cannot send a reason; the client sees a reset, and queries dht again.
func (s *classic) end() { s.out.end(nil) }

func (s *classic) leave() {
	s.deregister()
	s.feed.unwatch(s.at, s)
	s.g.metrics.classics.Dec()
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	delete(s.g.mu.classics, s)
}

// take applies a packet; nil is one without an effect. Names in packets are ignored, except for the name that a player registers
// under: all other packets apply to the player registered on the connection.
func (s *classic) take(ctx context.Context, packet wire.Packet) error {
	if m, ok := packet.(wire.PlayerMove); ok {
		s.latest = &m
		return nil
	}
	s.applyMove()
	switch p := packet.(type) {
	case wire.PlayerRegister:
		return s.register(ctx, p.Player)
	case wire.PlayerDeregister:
		s.deregister()
	case wire.BlockWrite:
		s.write(p)
	}
	return nil
}

// register adds the player's body to the chunk, at the last known place if that is in the chunk.
func (s *classic) register(ctx context.Context, name string) error {
	if _, registered := s.presence(); registered {
		return nil
	}
	who, err := s.party.claim(ctx, s, name)
	if err != nil {
		return err
	}
	pose := s.entry(who)
	s.mu.Lock()
	s.mu.registered, s.mu.pose, s.mu.motion = true, pose, nil
	s.mu.Unlock()
	s.feed.enter(who.body(pose), s) // never closed: this connection watches it
	return nil
}

// entry returns the assumed place of a player who registers, until their first move.
func (s *classic) entry(who *guest) wire.Pose {
	if pose, known := who.place(); known && world.ChunkOf(pose) == s.at {
		return pose
	}
	middle := s.at.Origin()
	x, z := middle.X+grid.ChunkSize/2, middle.Z+grid.ChunkSize/2
	return wire.Pose{X: float64(x) + .5, Y: float64(s.g.Terrain.Surface(x, z)), Z: float64(z) + .5}
}

// deregister removes the player's body and saves the player.
func (s *classic) deregister() {
	p, registered := s.presence()
	if !registered {
		return
	}
	s.mu.Lock()
	s.mu.registered = false
	s.mu.Unlock()
	s.feed.leave(p.body.Player, s)
	s.party.release(s.who.Load(), p.pose)
	s.g.keeper.save(p)
}

// presence returns the registered player and their place, and reports whether there is one.
func (s *classic) presence() (presence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.registered {
		return presence{}, false
	}
	return presence{body: s.who.Load().body(wire.Pose{}), pose: s.mu.pose}, true
}

// entryWays is the maximum distance, in chunks, of a player's first move from the chunk that they register in.
const entryWays = 2

// applyMove moves the player to the newest place that was read. A place that the rules do not allow is ignored: the original
// protocol has no correction.
func (s *classic) applyMove() {
	p := s.latest
	s.latest = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || !s.mu.registered {
		return
	}
	pose := wire.Pose{X: p.X, Y: p.Y + float64(s.g.World.OriginalBase), Z: p.Z, Yaw: s.mu.pose.Yaw}
	if p.HasYaw {
		pose.Yaw = wire.YawOfOriginal(p.Yaw)
	}
	if s.mu.motion == nil { // the first move sets the place
		if apart(world.ChunkOf(pose), s.at) > entryWays {
			s.g.metrics.corrections.WithLabelValues(player.TooFast).Inc()
			return
		}
		s.mu.motion = player.NewMotion(s.g.rules, s.g.now(), pose.X, pose.Y, pose.Z)
	}
	if ok, reason := s.mu.motion.Check(s.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, 0); !ok {
		s.g.metrics.corrections.WithLabelValues(reason).Inc()
		return
	}
	s.mu.pose = pose
	if s.feed.move(s.who.Load().id, pose, s, false) {
		wakeUp(s.feed.wake)
	}
}

// write requests a block change. The client sends each change to all its connections; the one whose chunk contains the block
// applies it. The slab's lowest layer is always shown as solid (wire.SlabOf), and cannot be changed.
func (s *classic) write(p wire.BlockWrite) {
	pos := p.Pos
	if pos.Y < 0 || pos.Y >= world.OriginalHeight || pos.Chunk() != s.at {
		return
	}
	floor := pos.Y == 0
	pos.Y += s.g.World.OriginalBase
	block := chunk.Block(p.Block)
	there, loaded := s.feed.block(pos)
	refused := judgeBlocks(there, block)
	var by player.ID
	switch {
	case !loaded:
		refused = wire.RefusedNotLoaded
	case floor:
		refused = wire.RefusedUnbreakable
	case refused == "":
		by, refused = s.judgeBuilder(pos, block)
	}
	if refused == "" && !s.edits.Allow() {
		refused = wire.RefusedRate
	}
	if refused != "" {
		s.g.metrics.refusals.WithLabelValues(refused).Inc()
		return
	}
	s.feed.edit(wire.Intent{Player: by, Seq: s.g.nextSeq(), Pos: pos, Block: block}, s)
}
