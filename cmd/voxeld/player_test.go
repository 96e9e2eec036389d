package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// tester is a player with a session over TCP, in JSON.
type tester struct {
	*sessionclient.Player
	t       *testing.T
	sending sync.Mutex
	seq     uint64
	failure string                // code of the Failure that ended it
	sentOn  *sessionmsg.Reconnect // the last one

	Avatars  map[string]motion.Pose
	Acks     map[uint64]sessionmsg.Ack
	Received []sessionmsg.ChatLine
	names    map[string]string // by player id

	key         ed25519.PrivateKey // nil for a guest
	commands    uint64             // the sequence number of the last one
	Notices     []string
	Permissions sessionmsg.Permissions // the last one
}

// joinWithKey joins as the owner of a key that follows from a text.
func joinWithKey(t *testing.T, address, name, secret string) *tester {
	t.Helper()
	p := dialWithKey(t, address, name, secret)
	p.until("a welcome", func() bool { return p.Welcome.Player != "" })
	return p
}

func dialWithKey(t *testing.T, address, name, secret string) *tester {
	t.Helper()
	seed := sha256.Sum256([]byte(secret))
	key := ed25519.NewKeyFromSeed(seed[:])
	p := dial(t, address, sessionmsg.Join{Name: name, View: 1, Encoding: sessionmsg.EncodingJSON, Key: hex.EncodeToString(key.Public().(ed25519.PublicKey))})
	p.key = key
	return p
}

// command sends a command, and returns the answer.
func (p *tester) command(text string) string {
	p.t.Helper()
	before := len(p.Notices)
	p.enter(text)
	p.until("an answer to /"+text, func() bool { return len(p.Notices) > before })
	return p.Notices[before]
}

// enter sends a command, signed if the player has a key.
func (p *tester) enter(text string) {
	p.t.Helper()
	m := sessionmsg.Command{Text: text}
	if p.key != nil {
		p.commands = max(p.commands+1, uint64(time.Now().UnixMicro()))
		act := nodemsg.Act{Seq: p.commands, Name: p.Welcome.Name, Text: text}
		m.Seq, m.Signature = act.Seq, hex.EncodeToString(ed25519.Sign(p.key, policy.SignedText(p.Welcome.World, act)))
	}
	p.send(m)
}

func join(t *testing.T, address, name string, view int) *tester {
	t.Helper()
	p := dialSession(t, address, name, view)
	p.until("a welcome", func() bool { return p.Welcome.Player != "" })
	return p
}

func dialSession(t *testing.T, address, name string, view int) *tester {
	t.Helper()
	return dial(t, address, sessionmsg.Join{Name: name, View: view, Encoding: sessionmsg.EncodingJSON})
}

func dial(t *testing.T, address string, as sessionmsg.Join) *tester {
	t.Helper()
	c, err := sessionclient.Dial(t.Context(), address, as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &tester{
		Player: sessionclient.NewPlayer(c), t: t,
		Avatars: make(map[string]motion.Pose), Acks: make(map[uint64]sessionmsg.Ack), names: make(map[string]string),
	}
}

func (p *tester) send(m sessionmsg.FromClient) {
	p.t.Helper()
	if err := p.trySend(m); err != nil {
		p.t.Fatalf("%v (ended with %q)", err, p.failure)
	}
}

func (p *tester) trySend(m sessionmsg.FromClient) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	_, err := p.Send(m)
	return err
}

// keepAlive pings, as all clients do, until the connection or the test ends: a test may do something else for longer
// than a client may be silent.
func (p *tester) keepAlive() {
	ticker := time.NewTicker(15 * time.Second)
	defer ticker.Stop()
	for err := error(nil); err == nil; err = p.trySend(sessionmsg.Ping{}) {
		select {
		case <-ticker.C:
		case <-p.t.Context().Done():
			return
		}
	}
}

// until handles messages until the condition holds.
func (p *tester) until(what string, condition func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !condition() {
		select {
		case m, open := <-p.Inbox:
			if !open {
				p.t.Fatalf("session ended (%q) before: %s", p.failure, what)
			}
			p.receive(m)
		case <-deadline.C:
			p.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// ended waits for the end of the session and returns the code of its failure.
func (p *tester) ended() string {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case m, open := <-p.Inbox:
			if !open {
				return p.failure
			}
			p.receive(m)
		case <-deadline.C:
			p.t.Fatal("the session does not end")
		}
	}
}

func (p *tester) receive(m sessionclient.Arrival) {
	p.t.Helper()
	if m.Err != nil {
		p.t.Errorf("message from server: %v", m.Err)
		return
	}
	pieces, err := p.Apply(m.FromServer)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, piece := range pieces {
		for _, a := range piece.Enter {
			p.names[a.Player] = a.Name
			p.Avatars[a.Name] = a.Pose
		}
		for _, m := range piece.Moves {
			p.Avatars[p.names[m.Player]] = m.Pose
		}
		p.Received = append(p.Received, piece.Chat...)
	}
	switch m := m.FromServer.(type) {
	case sessionmsg.Challenge:
		p.send(sessionclient.Prove(p.key, m))
	case sessionmsg.Notice:
		p.Notices = append(p.Notices, m.Text)
	case sessionmsg.Line:
		if !m.Earlier {
			p.Notices = append(p.Notices, m.Channel+" "+m.Name+": "+m.Text)
		}
	case sessionmsg.Permissions:
		p.Permissions = m
	case sessionmsg.Welcome:
		p.seq = m.NextSeq
		go p.keepAlive() // it ends with the connection
	case sessionmsg.Ack:
		p.Acks[m.Seq] = m
	case sessionmsg.Reconnect:
		p.sentOn = &m
	case sessionmsg.Failure:
		p.failure = m.Code
	}
}

// edit sends a block change and returns its sequence number.
func (p *tester) edit(pos grid.Pos, b chunk.Block) uint64 {
	p.t.Helper()
	return p.do(sessionmsg.Edit{X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b)})
}

// do sends an edit with the next sequence number, which it returns.
func (p *tester) do(e sessionmsg.Edit) uint64 {
	p.t.Helper()
	p.seq++
	e.Seq = p.seq
	if p.key != nil && p.Welcome.Signed {
		e = sessionclient.Sign(p.key, p.Welcome.World, e)
	}
	p.send(e)
	return p.seq
}

// sign signs the edit with the current sequence number.
func (p *tester) sign(world string, pos grid.Pos, b chunk.Block) []byte {
	return ed25519.Sign(p.key, player.EditText(world, p.seq, pos, uint16(b), ""))
}

// put changes a block, once its chunk has arrived, and waits for the acknowledgement.
func (p *tester) put(pos grid.Pos, b chunk.Block) {
	p.t.Helper()
	p.until(fmt.Sprintf("the chunk of %v", pos), func() bool { _, ok := p.at(pos); return ok })
	seq := p.edit(pos, b)
	p.until(fmt.Sprintf("an acknowledgement of %v at %v", b, pos), func() bool { _, ok := p.Acks[seq]; return ok })
	if ack := p.Acks[seq]; ack.Error != "" {
		p.t.Fatalf("edit at %v refused: %s", pos, ack.Error)
	}
}

// at returns the block that the player sees at the position, or false while its chunk has not arrived.
func (p *tester) at(pos grid.Pos) (chunk.Block, bool) { return p.Block(pos) }

// sees waits until the player sees the block at the position.
func (p *tester) sees(pos grid.Pos, want chunk.Block) {
	p.t.Helper()
	p.until(fmt.Sprintf("%v at %v", want.Name(), pos), func() bool { b, ok := p.at(pos); return ok && b == want })
}

// walkTo moves there as fast as the rules allow: up above the land, where nothing is in the way, and then in a
// straight line. The player stays up there.
func (p *tester) walkTo(x, z float64) {
	p.t.Helper()
	pose := p.Welcome.Pose
	const step = .9 // blocks in 1/20 s
	const above = 125
	for tick := time.NewTicker(time.Second / 20); ; <-tick.C {
		dx, dy, dz := x-pose.X, max(0, above-pose.Y), z-pose.Z
		if dy > 0 {
			pose.Y += min(step, dy)
		} else {
			pose.X += max(-step/1.5, min(step/1.5, dx))
			pose.Z += max(-step/1.5, min(step/1.5, dz))
		}
		p.send(sessionmsg.Move{Pose: pose})
		p.drain()
		if dx == 0 && dy == 0 && dz == 0 {
			tick.Stop()
			p.Welcome.Pose = pose
			return
		}
	}
}

// drain handles the messages that have arrived.
func (p *tester) drain() {
	for {
		select {
		case m, open := <-p.Inbox:
			if !open {
				return
			}
			p.receive(m)
		default:
			return
		}
	}
}

func (p *tester) leave() { p.Close() }
