package bot

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sessionPlayer uses the session protocol: one connection for the whole world, to one gateway after another if
// gateways redirect the player (follow.go).
type sessionPlayer struct {
	*basePlayer
	conn         *sessionclient.Conn
	key          ed25519.PrivateKey
	signs        string // the world's id if edits are signed; empty at gateways that do not know that
	id           string // hex, from Welcome; empty before
	nextSeq      uint64
	firstSeq     uint64 // of the last Welcome, and when it came
	welcomedAt   time.Time
	pending      map[uint64]sentEdit
	redirectedAt time.Time // since when a redirect is under way; zero otherwise
	welcome      bool      // on this connection
}

type sentEdit struct {
	at     time.Time // first attempt
	pos    grid.Pos
	block  chunk.Block
	moved  bool // the player has changed the gateway since
	resend bool // to be sent again
}

// arrival is what the reading goroutine passes on: a message with its time of arrival, or the error that ended it.
type arrival struct {
	message sessionmsg.FromServer    // nil for blocks
	blocks  []sessionmsg.BlockChange // out of a Frame
	at      time.Time
	err     error
}

func (p *sessionPlayer) run(ctx context.Context) error {
	// The connection outlives the playing time by drainTime, for answers that are under way.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	p.began = time.Now()
	p.pending = make(map[uint64]sentEdit)
	defer func() { p.meter.unanswered(len(p.pending)) }()
	seed := sha256.Sum256(fmt.Appendf(nil, "voxeld bot %d %d", p.Seed, p.index))
	p.key = ed25519.NewKeyFromSeed(seed[:])

	return p.follow(ctx, life)
}

// visit plays a session with one gateway to its end.
func (p *sessionPlayer) visit(ctx, life context.Context, target string) error {
	p.welcome = false
	life, end := context.WithCancel(life)
	defer end()
	cn, err := dial(life, target, p.Timeout)
	if err != nil {
		return err
	}
	if err := cn.within(func() (err error) { p.conn, err = sessionclient.Open(cn, target); return err }); err != nil {
		return err
	}
	p.ground = newGround(unpackSession)
	arrivals, read := make(chan arrival, 64), make(chan struct{})
	size, err := p.conn.Join(sessionmsg.Join{
		Name: p.name, View: p.View, Encoding: string(p.Encoding), Key: hex.EncodeToString(p.key.Public().(ed25519.PublicKey)),
	})
	if err != nil {
		return err
	}
	p.meter.wrote("join", size)
	go func() {
		defer close(read)
		p.read(life, arrivals)
	}()
	defer func() {
		end() // closes the connection, which ends the reader
		<-read
	}()
	return p.loop(ctx, arrivals)
}

func unpackSession(packed []byte) (*chunk.Chunk, error) {
	encoded, err := wire.UnpackChunk(packed)
	if err != nil {
		return nil, err
	}
	return chunk.Decode(encoded)
}

func (p *sessionPlayer) loop(ctx context.Context, arrivals <-chan arrival) error {
	moves, stopMoves := newTicker(p.moveEvery())
	defer func() { stopMoves() }()
	edits, stopEdits := newTicker(p.editEvery())
	defer func() { stopEdits() }()
	joining := time.NewTimer(p.Timeout)
	defer joining.Stop()
	again, stopAgain := newTicker(resendInterval)
	defer stopAgain()
	over, last := ctx.Done(), (<-chan time.Time)(nil)
	for {
		var err error
		select {
		case <-over:
			if len(p.pending) == 0 {
				return nil
			}
			over, moves, edits = nil, nil, nil
			last = time.After(drainTime)
		case <-last:
			return nil
		case <-joining.C:
			if p.since.IsZero() || !p.redirectedAt.IsZero() {
				return &failure{"timeout", "no land under the feet"}
			}
		case <-again:
			err = p.resendRefused()
		case a := <-arrivals:
			err = p.handle(a)
			if err == nil && over == nil && len(p.pending) == 0 {
				return nil
			}
		case <-moves:
			err = p.move()
		case <-edits:
			err = p.edit()
		}
		if err == nil {
			err = p.ground.broken
		}
		if err != nil {
			return err
		}
	}
}

// move walks for one interval and sends the new pose.
func (p *sessionPlayer) move() error {
	if p.since.IsZero() || !p.welcome || !p.walk.step(p.moveEvery(), p.ground) {
		return nil
	}
	now := time.Now()
	if err := p.send("move", sessionmsg.Move{Pose: p.walk.pose}); err != nil {
		return err
	}
	p.probes.write(p.walk.pose, now)
	return nil
}

func (p *sessionPlayer) edit() error {
	if p.since.IsZero() || !p.welcome {
		return nil
	}
	pos, block, ok := p.build.next(p.walk.pose, p.reach, p.ground)
	if !ok {
		return nil
	}
	// Numbers follow the time: a guest of the same name elsewhere would make those that do not look too old.
	seq := max(p.nextSeq, p.firstSeq+uint64(time.Since(p.welcomedAt).Microseconds())) //nolint:gosec // positive
	p.nextSeq = seq + 1
	p.pending[seq] = sentEdit{at: time.Now(), pos: pos, block: block}
	p.meter.edited()
	return p.sendEdit(seq)
}

func (p *sessionPlayer) send(kind string, m sessionmsg.FromClient) error {
	size, err := p.conn.Send(m)
	if err != nil {
		return err
	}
	p.meter.wrote(kind, size)
	return nil
}

// handle handles an arrival.
func (p *sessionPlayer) handle(a arrival) error {
	if a.err != nil {
		return a.err
	}
	for _, b := range a.blocks {
		p.ground.set(grid.Pos{X: b.X, Y: b.Y, Z: b.Z}, chunk.Block(b.Block))
	}
	switch m := a.message.(type) {
	case sessionmsg.Challenge:
		return p.send("prove", sessionclient.Prove(p.key, m))
	case sessionmsg.Welcome:
		p.id, p.nextSeq, p.reach = m.Player, max(p.nextSeq, m.NextSeq), m.Reach
		p.firstSeq, p.welcomedAt = m.NextSeq, time.Now()
		p.welcome = true
		if p.signs = ""; m.Signed {
			p.signs = m.World
		}
		if p.redirectedAt.IsZero() || farApart(p.walk.pose, m.Pose) {
			p.walk.pose = m.Pose
		}
		p.probes = newProbeSender(p.allProbes, p.id, p.rng)
	case sessionmsg.ChunkData:
		p.ground.put(m.Chunk, m.Data)
		if p.welcome && m.Chunk == p.walk.pose.Chunk() {
			p.entered()
			p.arrived()
		}
		return p.resendIn(m.Chunk)
	case sessionmsg.ChunkGone:
		p.ground.remove(m.Chunk)
	case sessionmsg.Ack:
		p.acked(m, a.at)
	case sessionmsg.Correction:
		p.meter.corrected(m.Reason)
		p.walk.teleport(m.Pose)
	case sessionmsg.Reconnect:
		return &redirect{m}
	case sessionmsg.Failure:
		return &failure{m.Code, m.Message}
	}
	return nil
}

func (p *sessionPlayer) acked(m sessionmsg.Ack, at time.Time) {
	sent, ok := p.pending[m.Seq]
	if !ok {
		return
	}
	if sent.moved && retryable(m.Error) {
		sent.resend = true
		p.pending[m.Seq] = sent
		return
	}
	delete(p.pending, m.Seq)
	if m.Error == "" && p.Acked != nil {
		p.Acked(p.name, m.Seq, sent.pos, sent.block)
	}
	if m.Error == "" && p.Timed != nil {
		p.Timed(sent.pos, sent.at, at)
	}
	p.meter.acknowledged(at.Sub(sent.at), m.Error)
	if m.Error != "" && p.build.placed != nil && *p.build.placed == sent.pos {
		p.build.placed = nil
	}
}

// read is the reading goroutine: it counts messages, measures delays, and passes on what the player needs.
func (p *sessionPlayer) read(ctx context.Context, arrivals chan<- arrival) {
	w := newProbeReader(p.allProbes, p.meter)
	frames := &tickReader{names: make(map[uint32]string), watch: w}
	for {
		a, err := p.readOne(frames)
		if err != nil {
			a.err = err
		} else if a.message == nil && len(a.blocks) == 0 {
			continue
		}
		select {
		case arrivals <- a:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *sessionPlayer) readOne(frames *tickReader) (a arrival, err error) {
	m, err := p.conn.Read()
	if err != nil {
		return a, err
	}
	a.at = m.At
	if m.Tick != nil {
		p.meter.read("frame", m.Size)
		frames.now = a
		err := sessionmsg.ReadTick(m.Tick, frames)
		return frames.now, err
	}
	p.meter.read(kindOf(m.FromServer), m.Size)
	frame, ok := m.FromServer.(sessionmsg.Frame)
	if !ok {
		a.message = m.FromServer
		return a, nil
	}
	for _, raw := range frame.Chunks {
		piece, err := sessionmsg.DecodePiece(raw)
		if err != nil {
			return arrival{}, err
		}
		for _, mv := range piece.Moves {
			frames.watch.observe(mv.Player, mv.X, mv.Z, a.at)
		}
		a.blocks = append(a.blocks, piece.Blocks...)
	}
	return a, nil
}

// kindOf returns the message's name in the report: its "type".
func kindOf(m sessionmsg.FromServer) string {
	switch m.(type) {
	case sessionmsg.Challenge:
		return "challenge"
	case sessionmsg.Welcome:
		return "welcome"
	case sessionmsg.ChunkData:
		return "chunk"
	case sessionmsg.ChunkGone:
		return "chunk_gone"
	case sessionmsg.Frame:
		return "frame"
	case sessionmsg.Ack:
		return "ack"
	case sessionmsg.Struck:
		return "hit"
	case sessionmsg.Given:
		return "gift"
	case sessionmsg.Denied:
		return "denied"
	case sessionmsg.Correction:
		return "correction"
	case sessionmsg.Pong:
		return "pong"
	case sessionmsg.Notice:
		return "notice"
	case sessionmsg.Reconnect:
		return "reconnect"
	case sessionmsg.Failure:
		return "failure"
	default:
		return "unknown"
	}
}

// tickReader reads the frames of a session in CBOR. It belongs to the goroutine that reads.
type tickReader struct {
	names map[uint32]string // player ids by index
	watch *probeReader
	now   arrival // what the current frame adds to
}

// Tick ignores the tick number: bots show no avatars.
func (r *tickReader) Tick(uint16) {}

// Delta applies the changes of a chunk.
func (r *tickReader) Delta(n *sessionmsg.TickDelta) {
	for _, a := range n.Enter {
		r.names[a.Index] = a.Player.String()
	}
	for _, b := range n.Blocks {
		pos := b.At.Pos(n.Chunk)
		r.now.blocks = append(r.now.blocks, sessionmsg.BlockChange{X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b.Block)})
	}
}

// Motion measures the new pose of an avatar.
func (r *tickReader) Motion(at grid.ChunkPos, m *sessionmsg.Motion) {
	if name, known := r.names[m.Index]; known && m.HasAcross {
		p := m.Pose(at)
		r.watch.observe(name, p.X, p.Z, r.now.at)
	}
}
