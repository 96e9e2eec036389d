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

// classic is a connection of VoxelPopuli's own client to one chunk (§3.2.2.2). A client holds up to 82 connections
// and sends only on the one to the chunk that its player stands in: there the player is registered. The reader owns it.
type classic struct {
	g      *Gateway
	at     grid.ChunkPos
	party  *party
	who    atomic.Pointer[guest] // whose it is; nil until the player has registered here once
	out    *outbox
	feed   *feed
	edits  *rate.Limiter
	latest *wire.PlayerMove       // read, but not yet applied; nil for none
	shown  map[player.ID]struct{} // whom the client has been told of. The feed's lock guards it.

	mu struct {
		sync.Mutex
		registered bool
		motion     *player.Motion // nil until the player's first move, since they registered, says where they are
		pose       wire.Pose
	}
}

// readPause is how long a connection is not read after it was. It bounds what one client can make a gateway decode;
// of the moves that have come meanwhile only the newest counts.
const readPause = 25 * time.Millisecond

// serveClassic plays with an original client, after the handshake was answered with ok. The client is silent on most
// of its connections for as long as it plays, so that nothing but TCP's keepalive ends a silent one.
func (g *Gateway) serveClassic(ctx context.Context, c net.Conn, in *bufio.Reader, h wire.Handshake) error {
	line := &resetConn{lineConn{Conn: c, in: in}} // packets bring their newline
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

// end closes the connection. The original protocol has no words for why; the client sees a reset, and asks dht again.
func (s *classic) end() { s.out.end(nil) }

func (s *classic) leave() {
	s.deregister()
	s.feed.unwatch(s.at, s)
	s.g.metrics.classics.Dec()
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	delete(s.g.mu.classics, s)
}

// take acts on a packet; nil is one without an effect. The names in packets do not matter, but for the one that a player
// registers under: everything else is done by whoever is registered.
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

// register brings the player's body into the chunk, to where they were last seen if that is in it.
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
	s.feed.enter(who.body(pose), s) // never closed: we watch
	return nil
}

// entry is where a player who registers is taken to be, until their first move says where they are.
func (s *classic) entry(who *guest) wire.Pose {
	if pose, known := who.place(); known && world.ChunkOf(pose) == s.at {
		return pose
	}
	middle := s.at.Origin()
	x, z := middle.X+grid.ChunkSize/2, middle.Z+grid.ChunkSize/2
	return wire.Pose{X: float64(x) + .5, Y: float64(s.g.Terrain.Surface(x, z)), Z: float64(z) + .5}
}

// deregister takes the player's body out and saves them.
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

// presence returns who is registered here, and where, and reports whether anybody is.
func (s *classic) presence() (presence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.registered {
		return presence{}, false
	}
	return presence{body: s.who.Load().body(wire.Pose{}), pose: s.mu.pose}, true
}

// entryWays is how many chunks away from the chunk that he registers in a player's first move may lie.
const entryWays = 2

// applyMove takes the player to the newest place that was read. A place that the rules do not allow is passed over: the
// original protocol has no correction.
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
	if s.mu.motion == nil { // the first move tells where he is
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

// write asks for a block change. The client sends each to all its connections: the one that holds the block applies it.
// The slab's lowest layer is shown as solid wherever it is not (wire.SlabOf), and stays as it is.
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
