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
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// legacyConn is a connection of VoxelPopuli's own client to one chunk (§3.2.2.2). A client holds up to 82 connections and sends
// only on the one to the chunk that its player is in; there the player is registered. The reader owns it.
type legacyConn struct {
	g      *Gateway
	at     grid.ChunkPos
	party  *party
	who    atomic.Pointer[guest] // the player; nil until the first registration on this connection
	out    *outbox
	sub    *mirror.Subscription
	edits  *rate.Limiter
	latest *legacymsg.PlayerMove  // read, but not yet applied; nil for none
	shown  map[player.ID]struct{} // players that the client was sent. The subscription's lock guards it.

	mu struct {
		sync.Mutex
		registered bool
		motion     *player.Motion // nil from registration until the first move
		pose       motion.Pose
	}
}

// readPause is the minimum time between two reads of a connection. It bounds the decoding work that one client can cause; of the
// moves that arrived meanwhile only the newest counts.
const readPause = 25 * time.Millisecond

// serveLegacy serves an original client after the handshake was answered with ok. Most of a client's connections stay silent for
// as long as it runs, so only TCP's keepalive ends a silent one.
func (g *Gateway) serveLegacy(ctx context.Context, c net.Conn, in *bufio.Reader, h legacymsg.Handshake) error {
	line := &resetConn{lineConn{Conn: c, in: in}} // packets include their newline
	defer line.cut()
	lc := &legacyConn{g: g, at: h.Chunk, out: newOutbox(line.cut), edits: rate.NewLimiter(g.editRate(), editsAtOnce)}
	lc.shown = make(map[player.ID]struct{})
	lc.out.owner = lc
	var writer sync.WaitGroup
	writer.Go(func() { g.runWriter(lc.out, line) })
	defer writer.Wait()
	defer lc.end()
	stop := context.AfterFunc(ctx, lc.end)
	defer stop()

	lc.party = g.join(partyOf(h.Player, c.RemoteAddr()))
	defer g.quit(lc.party)
	lc.sub = g.mirror.Watch(lc.at, lc)
	g.mu.Lock()
	g.mu.legacyConns[lc] = struct{}{}
	g.mu.Unlock()
	g.legacyCame.Set()
	g.wakeFrameLoop()
	g.metrics.legacyConns.Inc()
	defer lc.leave()
	if lc.sub.LedElsewhere() {
		return region.ErrNotHere // since the handshake
	}
	for {
		data, err := line.read()
		if err != nil {
			return err
		}
		g.metrics.received(len(data))
		packet, err := legacymsg.DecodeClientPacket(data)
		if err != nil {
			return err
		}
		if err := lc.handle(ctx, packet); err != nil {
			return err
		}
		if !line.ready() {
			lc.applyMove()
			time.Sleep(readPause)
		}
	}
}

// end closes the connection. The original protocol cannot send a reason; the client sees a reset, and queries dht again.
func (lc *legacyConn) end() { lc.out.end(nil) }

func (lc *legacyConn) leave() {
	lc.deregister()
	lc.sub.Unwatch(lc.at, lc)
	lc.g.metrics.legacyConns.Dec()
	lc.g.mu.Lock()
	defer lc.g.mu.Unlock()
	delete(lc.g.mu.legacyConns, lc)
}

// handle applies a packet; nil is one without an effect. Names in packets are ignored, except for the name that a player
// registers under: all other packets apply to the player registered on the connection.
func (lc *legacyConn) handle(ctx context.Context, packet legacymsg.Packet) error {
	if m, ok := packet.(legacymsg.PlayerMove); ok {
		lc.latest = &m
		return nil
	}
	lc.applyMove()
	switch p := packet.(type) {
	case legacymsg.PlayerRegister:
		return lc.register(ctx, p.Player)
	case legacymsg.PlayerDeregister:
		lc.deregister()
	case legacymsg.BlockWrite:
		lc.write(ctx, p)
	}
	return nil
}

// register adds the player's body to the chunk, at the last known place if that is in the chunk.
func (lc *legacyConn) register(ctx context.Context, name string) error {
	if _, registered := lc.presence(); registered {
		return nil
	}
	who, err := lc.party.claim(ctx, lc, name)
	if err != nil {
		return err
	}
	lc.sub.Serialize(func() { lc.unshow(who.body(motion.Pose{})) }) // the client may have been shown this body as somebody else's
	pose := lc.entryPose(who)
	lc.mu.Lock()
	lc.mu.registered, lc.mu.pose, lc.mu.motion = true, pose, nil
	lc.mu.Unlock()
	lc.g.mirror.Enter(who.body(pose), lc) // never closed: this connection watches it
	return nil
}

// entryPose returns the assumed place of a player who registers, until their first move.
func (lc *legacyConn) entryPose(who *guest) motion.Pose {
	if pose, known := who.place(); known && pose.Chunk() == lc.at {
		return pose
	}
	middle := lc.at.Origin()
	x, z := middle.X+grid.ChunkSize/2, middle.Z+grid.ChunkSize/2
	return motion.Pose{X: float64(x) + .5, Y: float64(lc.g.Terrain.Surface(x, z)), Z: float64(z) + .5}
}

// deregister removes the player's body and saves the player.
func (lc *legacyConn) deregister() {
	p, registered := lc.presence()
	if !registered {
		return
	}
	lc.mu.Lock()
	lc.mu.registered = false
	lc.mu.Unlock()
	lc.sub.Leave(p.Player, lc)
	lc.party.release(lc.who.Load(), p.Pose)
	lc.g.players.Save(p)
}

// presence returns the registered player and their place, and reports whether there is one.
func (lc *legacyConn) presence() (players.Presence, bool) {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if !lc.mu.registered {
		return players.Presence{}, false
	}
	who := lc.who.Load()
	return players.Presence{Player: who.id, Name: who.label, Guest: true, Pose: lc.mu.pose}, true
}

// entryWays is the maximum distance, in chunks, of a player's first move from the chunk that they register in.
const entryWays = 2

// applyMove moves the player to the newest place that was read. A place that the rules do not allow is ignored: the original
// protocol has no correction.
func (lc *legacyConn) applyMove() {
	p := lc.latest
	lc.latest = nil
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if p == nil || !lc.mu.registered {
		return
	}
	pose := motion.Pose{X: p.X, Y: p.Y + float64(lc.g.World.OriginalBase), Z: p.Z, Yaw: lc.mu.pose.Yaw}
	if p.HasYaw {
		pose.Yaw = legacymsg.YawOfOriginal(p.Yaw)
	}
	if lc.mu.motion == nil { // the first move sets the place
		if pose.Chunk().Distance(lc.at) > entryWays {
			lc.g.metrics.corrections.WithLabelValues(player.TooFast).Inc()
			return
		}
		lc.mu.motion = player.NewMotion(lc.g.rules, lc.g.now(), pose.X, pose.Y, pose.Z)
	}
	if ok, reason := lc.mu.motion.Check(lc.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, 0); !ok {
		lc.g.metrics.corrections.WithLabelValues(reason).Inc()
		return
	}
	lc.mu.pose = pose
	if lc.sub.Move(lc.who.Load().id, pose, lc, false) {
		lc.sub.Wake()
	}
}

// write requests a block change. The client sends each change to all its connections; the one whose chunk contains the block
// applies it. The slab's lowest layer is always shown as solid (legacymsg.SlabOf), and cannot be changed.
func (lc *legacyConn) write(ctx context.Context, p legacymsg.BlockWrite) {
	pos := p.Pos
	if pos.Y < 0 || pos.Y >= world.OriginalHeight || pos.Chunk() != lc.at {
		return
	}
	floor := pos.Y == 0
	pos.Y += lc.g.World.OriginalBase
	block := chunk.Block(p.Block)
	there, loaded := lc.sub.Block(pos)
	refused := checkBlockChange(there, block)
	var by player.ID
	switch {
	case !loaded:
		refused = wire.RefusedNotLoaded
	case floor:
		refused = wire.RefusedUnbreakable
	case refused == "":
		by, refused = lc.checkBuilder(ctx, pos, block)
	}
	if refused == "" && !lc.edits.Allow() {
		refused = wire.RefusedRate
	}
	if refused != "" {
		lc.g.metrics.refusals.WithLabelValues(refused).Inc()
		return
	}
	lc.sub.Edit(nodemsg.Intent{Player: by, Seq: lc.g.nextSeq(), Pos: pos, Block: block}, lc)
}
