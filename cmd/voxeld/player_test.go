package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// tester is a player with a session over TCP, in JSON, written independently of package bot.
type tester struct {
	t       *testing.T
	conn    net.Conn
	Welcome sessionmsg.Welcome
	seq     uint64
	inbox   chan sessionmsg.FromServer // closed at the end of the session
	failure string                     // code of the Failure that ended it
	sentOn  *sessionmsg.Reconnect      // the last one

	Chunks  map[grid.ChunkPos]*chunk.Chunk
	Avatars map[string]motion.Pose
	Acks    map[uint64]sessionmsg.Ack
	Heard   []sessionmsg.Said
	names   map[string]string // by player id
}

func join(t *testing.T, address, name string, view int) *tester {
	t.Helper()
	p := dialSession(t, address, name, view)
	p.until("a welcome", func() bool { return p.Welcome.Player != "" })
	return p
}

func dialSession(t *testing.T, address, name string, view int) *tester {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &tester{
		t: t, conn: conn, inbox: make(chan sessionmsg.FromServer, 1024),
		Chunks: make(map[grid.ChunkPos]*chunk.Chunk), Avatars: make(map[string]motion.Pose), Acks: make(map[uint64]sessionmsg.Ack),
		names: make(map[string]string),
	}
	go p.read()
	p.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: view, Encoding: "json"})
	return p
}

func (p *tester) read() {
	defer close(p.inbox)
	// An incomplete line at the end of the stream is not a message.
	for in := bufio.NewReaderSize(p.conn, 1<<20); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := sessionmsg.DecodeServer(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			p.t.Errorf("message from server: %v in %.200s", err, line)
			return
		}
		p.inbox <- m
	}
}

func (p *tester) send(m sessionmsg.FromClient) {
	p.t.Helper()
	data, err := sessionmsg.EncodeClient(m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.sendRaw(append(data, '\n'))
}

func (p *tester) sendRaw(data []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(data); err != nil {
		p.t.Fatalf("send: %v (ended with %q)", err, p.failure)
	}
}

// until handles messages until the condition holds.
func (p *tester) until(what string, condition func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !condition() {
		select {
		case m, open := <-p.inbox:
			if !open {
				p.t.Fatalf("session ended (%q) before: %s", p.failure, what)
			}
			p.take(m)
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
		case m, open := <-p.inbox:
			if !open {
				return p.failure
			}
			p.take(m)
		case <-deadline.C:
			p.t.Fatal("the session does not end")
		}
	}
}

func (p *tester) take(m sessionmsg.FromServer) {
	p.t.Helper()
	switch m := m.(type) {
	case sessionmsg.Welcome:
		p.Welcome, p.seq = m, m.NextSeq
	case sessionmsg.ChunkData:
		plain, err := wire.UnpackChunk(m.Data)
		if err != nil {
			p.t.Fatal(err)
		}
		if p.Chunks[m.Chunk], err = chunk.Decode(plain); err != nil {
			p.t.Fatal(err)
		}
	case sessionmsg.ChunkGone:
		delete(p.Chunks, m.Chunk)
	case sessionmsg.Frame:
		for _, raw := range m.Chunks {
			p.takePiece(raw)
		}
	case sessionmsg.Ack:
		p.Acks[m.Seq] = m
	case sessionmsg.Reconnect:
		p.sentOn = &m
	case sessionmsg.Failure:
		p.failure = m.Code
	}
}

func (p *tester) takePiece(raw json.RawMessage) {
	piece, err := sessionmsg.DecodePiece(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range piece.Enter {
		p.names[a.Player] = a.Name
		p.Avatars[a.Name] = a.Pose
	}
	for _, m := range piece.Moves {
		p.Avatars[p.names[m.Player]] = m.Pose
	}
	for _, b := range piece.Blocks {
		pos := grid.Pos{X: b.X, Y: b.Y, Z: b.Z}
		if c := p.Chunks[pos.Chunk()]; c != nil {
			c.Set(chunk.At(pos), chunk.Block(b.Block))
		}
	}
	p.Heard = append(p.Heard, piece.Says...)
}

// edit sends a block change and returns its sequence number.
func (p *tester) edit(pos grid.Pos, b chunk.Block) uint64 {
	p.t.Helper()
	p.seq++
	p.send(sessionmsg.Edit{Seq: p.seq, X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b)})
	return p.seq
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
func (p *tester) at(pos grid.Pos) (chunk.Block, bool) {
	c := p.Chunks[pos.Chunk()]
	if c == nil {
		return chunk.Air, false
	}
	return c.Get(chunk.At(pos)), true
}

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
		case m, open := <-p.inbox:
			if !open {
				return
			}
			p.take(m)
		default:
			return
		}
	}
}

func (p *tester) leave() { p.conn.Close() }
