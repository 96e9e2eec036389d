package gameserver

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// classic is a connection of VoxelPopuli's own client to one chunk (§3.2.2.2). Its player may hold many
// of them; he is registered on the one whose chunk he stands in. The reader owns it.
type classic struct {
	g     *Gateway
	at    grid.ChunkPos
	id    player.ID
	name  string
	out   *outbox
	feed  *feed
	moves *rate.Limiter
	edits *rate.Limiter

	mu struct {
		sync.Mutex
		registered bool
		motion     *player.Motion // nil until his first move, since he registered, tells where he is
		pose       wire.Pose
	}
}

// serveClassic plays with an original client, after the handshake was answered with ok.
func (g *Gateway) serveClassic(ctx context.Context, c net.Conn, in *bufio.Reader, h wire.Handshake) error {
	line := &lineConn{Conn: c, in: in} // packets bring their newline
	s := &classic{
		g: g, at: h.Chunk, id: player.GuestID(h.Player), name: h.Player, out: newOutbox(line.cut),
		moves: rate.NewLimiter(movesPerSecond, movesAtOnce),
		edits: rate.NewLimiter(g.editRate(), editsAtOnce),
	}
	var writer sync.WaitGroup
	writer.Go(func() { g.pump(s.out, line) })
	defer writer.Wait()
	end := func() { s.out.end(nil) } // the original protocol has no words for why
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	silent := time.AfterFunc(silence, end)
	defer silent.Stop()

	g.mu.Lock()
	g.mu.classics[s] = struct{}{}
	g.mu.Unlock()
	wakeUp(g.came)
	g.peopled()
	g.metrics.classics.Inc()
	s.feed = g.watch(s.at, s)
	defer s.leave()
	for {
		data, err := line.read()
		if err != nil {
			return err
		}
		silent.Reset(silence)
		g.metrics.received(len(data))
		packet, err := wire.DecodeClientPacket(data)
		if err != nil {
			return err
		}
		if err := s.hear(ctx, packet); err != nil {
			return err
		}
	}
}

func (s *classic) leave() {
	s.deregister()
	s.feed.unwatch(s.at, s)
	s.g.metrics.classics.Dec()
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	delete(s.g.mu.classics, s)
}

func (s *classic) hear(ctx context.Context, packet wire.Packet) error {
	switch p := packet.(type) {
	case wire.PlayerRegister:
		if err := s.check(p.Player); err != nil {
			return err
		}
		return s.register(ctx, p)
	case wire.PlayerDeregister:
		if err := s.check(p.Player); err != nil {
			return err
		}
		s.deregister()
	case wire.PlayerMove:
		if err := s.check(p.Player); err != nil {
			return err
		}
		return s.move(p)
	case wire.BlockWrite:
		if err := s.check(p.Player); err != nil {
			return err
		}
		s.write(p)
	}
	return nil
}

// check refuses packets in another player's name.
func (s *classic) check(name string) error {
	if name != "" && name != s.name {
		return &wire.Error{Code: wire.FailBadName, Message: "send packets under the name that you connected with"}
	}
	return nil
}

// register brings the player's body into the chunk, to where he was last seen if that is in it.
func (s *classic) register(ctx context.Context, p wire.PlayerRegister) error {
	if p.Chunk != s.at {
		return &wire.Error{Code: wire.FailUnexpected, Message: "register on the connection to the chunk that you are in"}
	}
	if _, registered := s.presence(); registered {
		return nil
	}
	pose := s.entry(ctx)
	s.mu.Lock()
	s.mu.registered, s.mu.pose, s.mu.motion = true, pose, nil
	s.mu.Unlock()
	s.g.mu.Lock()
	s.g.mu.guests[s.id] = append(s.g.mu.guests[s.id], s)
	s.g.mu.Unlock()
	s.feed.enter(wire.Body{Player: s.id, Name: s.name, Guest: true, Pose: pose}, s) // never closed: we watch
	return nil
}

// entry is where a player who registers is taken to be, until his first move tells.
func (s *classic) entry(ctx context.Context) wire.Pose {
	record, known, err := s.g.keeper.recall(ctx, s.id)
	if err != nil {
		s.g.Logger.Error("recall player", "player", s.name, "error", err)
	}
	s.g.keeper.expect(record)
	if pose, here := s.g.present(s.id); here {
		record.Pose, known = pose, true
	}
	if known && world.ChunkOf(record.Pose) == s.at {
		return record.Pose
	}
	middle := s.at.Origin()
	x, z := middle.X+grid.ChunkSize/2, middle.Z+grid.ChunkSize/2
	return wire.Pose{X: float64(x) + .5, Y: float64(s.g.Terrain.Surface(x, z)), Z: float64(z) + .5}
}

// deregister takes the player's body out and saves him.
func (s *classic) deregister() {
	p, registered := s.presence()
	if !registered {
		return
	}
	s.mu.Lock()
	s.mu.registered = false
	s.mu.Unlock()
	s.feed.leave(s.id, s)
	s.g.keeper.save(p)
	// Only now: whoever asks where he is finds him here, or on this node's disk.
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	rest := slices.DeleteFunc(s.g.mu.guests[s.id], func(c *classic) bool { return c == s })
	if s.g.mu.guests[s.id] = rest; len(rest) == 0 {
		delete(s.g.mu.guests, s.id)
	}
}

// presence tells who is registered here, and where.
func (s *classic) presence() (presence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence{body: wire.Body{Player: s.id, Name: s.name, Guest: true}, pose: s.mu.pose}, s.mu.registered
}

// entryWays is how many chunks away from the chunk that he registers in a player's first move may lie.
const entryWays = 2

// move takes the player to a new place. A place that the rules do not allow is passed over: the
// original protocol has no correction.
func (s *classic) move(p wire.PlayerMove) error {
	if !s.moves.Allow() {
		return &wire.Error{Code: wire.FailRate, Message: "too many moves a second"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.registered {
		return nil
	}
	pose := wire.Pose{X: p.X, Y: p.Y + float64(s.g.World.OriginalBase), Z: p.Z, Yaw: s.mu.pose.Yaw}
	if p.HasYaw {
		pose.Yaw = wire.YawOfOriginal(p.Yaw)
	}
	if s.mu.motion == nil { // the first move tells where he is
		if apart(world.ChunkOf(pose), s.at) > entryWays {
			s.g.metrics.corrections.WithLabelValues(player.TooFast).Inc()
			return nil
		}
		s.mu.motion = player.NewMotion(s.g.rules, s.g.now(), pose.X, pose.Y, pose.Z)
	}
	if ok, reason := s.mu.motion.Check(s.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, 0); !ok {
		s.g.metrics.corrections.WithLabelValues(reason).Inc()
		return nil
	}
	s.mu.pose = pose
	if s.feed.move(s.id, pose, s, false) {
		wakeUp(s.feed.wake)
	}
	return nil
}

// write asks for a block change. The client sends each to all its connections: the one that holds the
// block applies it.
func (s *classic) write(p wire.BlockWrite) {
	pos := p.Pos
	if pos.Y < 0 || pos.Y >= world.OriginalHeight || pos.Chunk() != s.at {
		return
	}
	pos.Y += s.g.World.OriginalBase
	block := chunk.Block(p.Block)
	there, loaded := s.feed.block(pos)
	refused := judgeBlocks(there, block)
	switch {
	case !loaded:
		refused = wire.RefusedNotLoaded
	case refused == "":
		refused = s.g.judgePlayer(s.id, pos, block)
	}
	switch {
	case refused == "" && !s.edits.Allow():
		refused = wire.RefusedRate
	}
	if refused != "" {
		s.g.metrics.refusals.WithLabelValues(refused).Inc()
		return
	}
	s.feed.edit(wire.Intent{Player: s.id, Seq: s.g.nextSeq(), Pos: pos, Block: block}, s)
}
