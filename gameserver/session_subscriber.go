package gameserver

import (
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements mirror.Subscriber for sessions: what subscriptions publish goes into the session's outbox, encoded once for all
// sessions where it is the same for all.

// The codecs of sessions, for mirror.Delta.Form.
type (
	jsonCodec struct{}
	cborCodec struct{}
)

func (s *session) codec() any {
	if s.binary {
		return cborCodec{}
	}
	return jsonCodec{}
}

// WantsEveryMove reports whether the session is in JSON: only CBOR sessions have tick frames.
func (s *session) WantsEveryMove() bool { return !s.binary }

// Predictable returns true.
func (s *session) Predictable() bool { return true }

// HasRoom reports whether the client can take another whole chunk.
func (s *session) HasRoom(c *mirror.Chunk) bool { return s.out.hasRoom(c) }

// SendChunk sends a chunk with everybody who is in it.
func (s *session) SendChunk(c *mirror.Chunk, _ bool) {
	s.out.putChunk(c.PackedForm(s.codec(), func(packed []byte) any {
		return encodedIn(s.binary, sessionmsg.ChunkData{Chunk: c.At(), Data: packed})
	}).([]byte))
	if len(c.Occupants()) == 0 {
		return
	}
	if s.binary {
		if delta := s.g.interest.entering(c.At(), c.Occupants()); len(delta.Enter) > 0 {
			s.out.piece(c.Tick(), sessionmsg.AppendDelta(nil, delta))
			s.out.miss() // the next frame contains how they move
		}
		return
	}
	piece := sessionmsg.Piece{Chunk: c.At()}
	for _, b := range s.g.interest.Present(c.At(), c.Occupants().Bodies()) {
		piece.Enter = append(piece.Enter, avatarOf(b))
	}
	if len(piece.Enter) > 0 {
		s.out.piece(c.Tick(), encodedPiece(piece))
	}
}

// SendDelta sends the delta of a chunk in view.
func (s *session) SendDelta(d *mirror.Delta) {
	if len(d.Chat) > 0 {
		s.clock.NoteSeen(d.Stamp, s.g.now())
	}
	switch {
	case d.Interaction != nil: // a message of its own, after the pieces that came before it: older clients ignore it
		s.out.put(d.Form(s.codec(), func() any { return encodedIn(s.binary, d.Interaction) }).([]byte))
	case !s.binary && len(d.Moves) > 0 && s.out.behind(d.Of):
		calm := d.ChunkDelta // encoded for this session alone: few are late, and seldom
		if calm.Moves = nil; len(calm.Enter)+len(calm.Leave)+len(calm.Blocks)+len(calm.Chat) > 0 {
			s.out.piece(d.Tick, encodedPiece(pieceOf(calm)))
		}
	case !s.binary:
		s.out.piece(d.Tick, d.Form(jsonCodec{}, func() any { return encodedPiece(pieceOf(d.ChunkDelta)) }).([]byte))
	case d.ForTick != nil:
		s.out.piece(d.Tick, d.Form(cborCodec{}, func() any { return sessionmsg.AppendDelta(nil, d.ForTick) }).([]byte))
	}
}

// SendResult sends the result of an edit.
func (s *session) SendResult(r nodemsg.EditResult) (waits bool) {
	if r.Refused != "" {
		s.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	waits = s.out.putDeferred(encodedIn(s.binary, sessionmsg.Ack{Seq: r.Seq, Block: uint16(r.Block), Error: r.Refused}))
	s.edits.answered(r.Seq)
	return waits
}

// Flush writes pending results without waking the session's writer.
func (s *session) Flush() {
	w := frameWriters.Get().(*frameWriter)
	defer frameWriters.Put(w)
	w.deliver(s.out)
	s.g.metrics.posted(w)
}

// frameWriters are for goroutines that write now and then.
var frameWriters = sync.Pool{New: func() any { return new(frameWriter) }}

// noticePause is the time in which a repeated notice of several subscriptions is sent once.
const noticePause = 5 * time.Second

// SendNotice sends the player a text, unless they were sent the same just now.
func (s *session) SendNotice(text string) {
	s.mu.Lock()
	again := text == s.mu.notice && time.Since(s.mu.noticed) < noticePause
	if !again {
		s.mu.notice, s.mu.noticed = text, time.Now()
	}
	s.mu.Unlock()
	if !again {
		s.sendText(text)
	}
}

// sendText sends the player a notice.
func (s *session) sendText(text string) { s.out.send(sessionmsg.Notice{Text: text}) }

func pieceOf(n nodemsg.ChunkDelta) sessionmsg.Piece {
	p := sessionmsg.Piece{Chunk: n.Chunk}
	for _, id := range n.Leave {
		p.Leave = append(p.Leave, id.String())
	}
	for _, b := range n.Enter {
		p.Enter = append(p.Enter, avatarOf(b))
	}
	for _, m := range n.Moves {
		p.Moves = append(p.Moves, sessionmsg.AvatarMove{Player: m.Player.String(), Pose: m.Pose})
	}
	for _, b := range n.Blocks {
		pos := posOf(n.Chunk, b)
		p.Blocks = append(p.Blocks, sessionmsg.BlockChange{X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b.Block)})
	}
	for _, u := range n.Chat {
		p.Chat = append(p.Chat, sessionmsg.ChatLine{Player: u.Player.String(), Name: u.Name, Text: u.Text})
	}
	return p
}

func posOf(at grid.ChunkPos, b nodemsg.BlockAt) grid.Pos { return b.At.Pos(at) }

func avatarOf(b nodemsg.Body) sessionmsg.Avatar {
	return sessionmsg.Avatar{Player: b.Player.String(), Name: b.Name, Guest: b.Guest, Pose: b.Pose}
}

// encodedPiece returns a piece as JSON; like encodedIn, it panics only on what no checked message has.
func encodedPiece(p sessionmsg.Piece) []byte {
	data, err := sessionmsg.EncodePiece(p)
	if err != nil {
		panic(err)
	}
	return data
}
