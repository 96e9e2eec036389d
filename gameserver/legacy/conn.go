package legacy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// conn is a connection of VoxelPopuli's own client to one chunk (§3.2.2.2). A client holds up to 82 connections and
// sends only on the one to the chunk that its player is in; there the player is registered. The reader owns it.
type conn struct {
	registration
	*Options
	remote net.Addr
	name   string // in the handshake
	link   Link
	sub    *mirror.Subscription
	seqs   *sequence              // of edits
	latest *legacymsg.PlayerMove  // read, but not yet applied; nil for none
	shown  map[player.ID]struct{} // players that the client was sent. The subscription's lock guards it.

	settle   func(ctx context.Context) // founds the land in view of the player who is registered here
	settling sync.WaitGroup
}

// sequence numbers the edits of original clients, whose protocol does not.
type sequence struct{ last atomic.Uint64 }

func (q *sequence) next(now time.Time) uint64 {
	for {
		last := q.last.Load()
		next := max(last+1, uint64(now.UnixMicro())) // as those of sessions (docs/adr/0006)
		if q.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// readPause is the minimum time between two reads of a connection. It bounds the decoding work that one client can
// cause; of the moves that arrived meanwhile only the newest counts.
const readPause = 25 * time.Millisecond

// registerTime bounds a registration, and the wait of a query for a player. A client whose address has registered or
// asked too often is reset at once if it would have to wait longer.
const registerTime = 5 * time.Second

// read handles packets until the connection ends.
func (lc *conn) read(ctx context.Context) error {
	for {
		data, err := lc.link.Read()
		if err != nil {
			return err
		}
		packet, err := legacymsg.DecodeClientPacket(data)
		if err != nil {
			return err
		}
		if err := lc.handle(ctx, packet); err != nil {
			return err
		}
		if !lc.link.Ready() {
			lc.applyMove()
			time.Sleep(readPause)
		}
	}
}

// end closes the connection. The original protocol cannot send a reason; the client sees a reset, and queries dht
// again.
func (lc *conn) end() { lc.link.End() }

// handle applies a packet; nil is one without an effect. Names in packets are ignored, except for the name that a
// player registers under: all other packets apply to the player registered on the connection.
func (lc *conn) handle(ctx context.Context, packet legacymsg.Packet) error {
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
func (lc *conn) register(ctx context.Context, name string) error {
	if _, registered := lc.presence(); registered {
		return nil
	}
	if err := lc.Admit(lc.remote, player.NameFrom(name)); err != nil {
		return err
	}
	settling := ctx
	ctx, cancel := context.WithTimeout(ctx, registerTime) // a client that has left meanwhile is not noticed
	defer cancel()
	if err := lc.client.Wait(ctx, admission.Register); err != nil {
		return err
	}
	who, err := lc.party.claim(ctx, &lc.registration, name)
	if err != nil {
		return err
	}
	if err := lc.Admit(lc.remote, who.label); err != nil {
		lc.party.release(who, who.left)
		return err
	}
	lc.sub.Serialize(func() { lc.unshow(who.body(motion.Pose{})) }) // the client may have been shown this body as somebody else's
	pose := lc.entryPose(who)
	came, known := who.place()
	if !known {
		came = pose
	}
	lc.mu.Lock()
	lc.mu.registered, lc.mu.pose, lc.mu.came, lc.mu.motion = true, pose, came, nil
	lc.mu.Unlock()
	lc.Mirror.Enter(who.body(pose), lc) // never closed: this connection watches it
	lc.settling.Go(func() { lc.settle(settling) })
	return nil
}

// entryPose returns the assumed place of a player who registers, until their first move.
func (lc *conn) entryPose(who *guest) motion.Pose {
	if pose, known := who.place(); known && pose.Chunk() == lc.at {
		return pose
	}
	middle := lc.at.Origin()
	x, z := middle.X+grid.ChunkSize/2, middle.Z+grid.ChunkSize/2
	return motion.Pose{X: float64(x) + .5, Y: float64(lc.Surface(x, z)), Z: float64(z) + .5}
}

// deregister removes the player's body and saves the player.
func (lc *conn) deregister() {
	p, registered := lc.presence()
	if !registered {
		return
	}
	lc.mu.Lock()
	lc.mu.registered = false
	lc.mu.Unlock()
	lc.sub.Leave(p.Player, lc)
	lc.party.release(lc.who.Load(), p.Pose)
	lc.Players.Save(p)
}

// applyMove moves the player to the newest place that was read. A place that the rules do not allow is ignored: the
// original protocol has no correction.
func (lc *conn) applyMove() {
	p := lc.latest
	lc.latest = nil
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if p == nil || !lc.mu.registered {
		return
	}
	pose := motion.Pose{X: p.X, Y: p.Y + float64(lc.World.OriginalBase), Z: p.Z, Yaw: lc.mu.pose.Yaw}
	if p.HasYaw {
		pose.Yaw = legacymsg.YawOfOriginal(p.Yaw)
	}
	from, check := lc.mu.pose, lc.mu.motion
	if check == nil { // the first move sets the place
		if pose.Chunk().Distance(lc.at) > entryDistance {
			lc.Corrections.WithLabelValues(player.TooFast).Inc()
			return
		}
		from = lc.mu.came
		check = player.NewMotion(lc.Rules, lc.Now(), pose.X, pose.Y, pose.Z)
	}
	if ok, reason := check.Check(lc.Now(), pose.X, pose.Y, pose.Z, pose.Yaw, 0); !ok {
		lc.Corrections.WithLabelValues(reason).Inc()
		return
	}
	why := ""
	switch {
	case !lc.MayGo(from, pose):
		why = wire.RefusedOutsideBorder
	case lc.Keeps(from.Block(), pose.Block()):
		why = wire.RefusedClaimed
	}
	if why != "" {
		check.Reset(from.X, from.Y, from.Z) // otherwise the next moves would go on from there
		lc.Corrections.WithLabelValues(why).Inc()
		return
	}
	lc.mu.pose, lc.mu.motion = pose, check
	if lc.sub.Move(lc.who.Load().id, pose, lc, false) {
		lc.sub.Wake()
	}
}

// write requests a block change. The client sends each change to all its connections; the one whose chunk contains the
// block applies it. The slab's lowest layer is always shown as solid (legacymsg.SlabOf), and cannot be changed.
func (lc *conn) write(ctx context.Context, p legacymsg.BlockWrite) {
	pos := p.Pos
	if pos.Y < 0 || pos.Y >= world.OriginalHeight || pos.Chunk() != lc.at {
		return
	}
	floor := pos.Y == 0
	pos.Y += lc.World.OriginalBase
	block := chunk.Block(p.Block)
	there, loaded := lc.sub.Block(pos)
	refused, forbidden := checks.BlockChange(there, block), lc.RefuseEdit(lc.remote, lc.name, pos)
	var by *guest
	switch {
	case !loaded:
		refused = wire.RefusedNotLoaded
	case floor:
		refused = wire.RefusedUnbreakable
	case forbidden != "":
		refused = forbidden
	case refused == "":
		by, refused = lc.checkBuilder(ctx, pos, block)
	}
	if refused == "" {
		refused = lc.RefuseEdit(lc.remote, by.label, pos) // the client may have come under another name
	}
	if refused == "" && (!by.edits.Allow() || !lc.client.Allow(admission.Edit)) {
		refused = wire.RefusedRate
	}
	if refused != "" {
		lc.Refusals.WithLabelValues(refused).Inc()
		return
	}
	lc.Edited(by.id, block)
	lc.sub.Edit(nodemsg.Intent{Player: by.id, Seq: lc.seqs.next(lc.Wall()), Pos: pos, Block: block, Proof: nodemsg.Proof{Name: by.label}}, lc)
}

// endByReset makes a connection end by a reset, whether this gateway closes it or the system does because the process
// has died. The released client treats the end of a stream as an empty read and hangs; after a reset it queries dht
// again.
//
// Such a connection may be silent for hours, so only TCP's keepalive detects that its client is gone: within 25 s.
func endByReset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)                            //nolint:errcheck // otherwise it ends like any other
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{ //nolint:errcheck // otherwise the system's defaults apply
			Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
		})
	}
}
