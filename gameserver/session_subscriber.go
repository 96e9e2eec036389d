package gameserver

import (
	"sync"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements mirror.Subscriber for sessions: what subscriptions publish goes into the session's outbox,
// encoded once for all sessions where it is the same for all.

// WantsEveryMove reports whether the session has no tick frames.
func (s *session) WantsEveryMove() bool { return !s.codec.HasTickFrames() }

// Predictable returns true.
func (s *session) Predictable() bool { return true }

// HasRoom reports whether the client can take another whole chunk.
func (s *session) HasRoom(c *mirror.Chunk) bool { return s.out.HasRoom(c) }

// SendChunk sends a chunk, or its hash to a client that may have it, with everybody who is in it.
func (s *session) SendChunk(c *mirror.Chunk, _ bool) {
	if s.client.chunks.Offer(c.At()) {
		s.out.PutChunk(c.PackedForm(hashOf{s.codec}, func(packed []byte) any {
			return s.codec.Encode(sessionmsg.ChunkHash{Chunk: c.At(), Hash: sessionmsg.HashChunk(packed)})
		}).([]byte))
	} else {
		s.out.PutChunk(c.PackedForm(s.codec, func(packed []byte) any {
			return s.codec.Encode(sessionmsg.ChunkData{Chunk: c.At(), Data: packed})
		}).([]byte))
	}
	if signs := c.Signs(); len(signs) > 0 {
		s.out.PutChunk(s.codec.Encode(sessionmsg.SignsOf(c.At(), signs)))
	}
	if len(c.Occupants()) == 0 {
		return
	}
	if piece := s.codec.Occupants(c, s.g.interest); piece != nil {
		s.out.Piece(c.Tick(), piece)
		s.out.Miss() // the next tick frame, if there are any, contains how they move
	}
}

// hashOf is the form of a chunk of which a codec encodes the hash.
type hashOf struct{ codec codec.Codec }

// SendDelta sends the delta of a chunk in view.
func (s *session) SendDelta(d *mirror.Delta) {
	if len(d.Chat) > 0 {
		s.clock.NoteSeen(d.Stamp, s.g.now())
	}
	if d.Interaction != nil { // a message of its own, after the pieces that came before it: older clients ignore it
		s.out.Put(d.Form(s.codec, func() any { return s.codec.Encode(d.Interaction) }).([]byte))
		return
	}
	var piece []byte
	if s.WantsEveryMove() && len(d.Moves) > 0 && s.out.Behind(d.Of) {
		piece = s.codec.Calm(d) // for this session alone: few are late, and seldom
	} else {
		piece = s.codec.Delta(d)
	}
	if piece != nil {
		s.out.Piece(d.Tick, piece)
	}
	if len(d.Signs) > 0 { // likewise
		s.out.Put(d.Form(signsIn{s.codec}, func() any { return s.codec.Encode(sessionmsg.SignsOf(d.Chunk, d.Signs)) }).([]byte))
	}
}

// signsIn is the form of a delta of which a codec encodes the texts of signs.
type signsIn struct{ codec codec.Codec }

// SendResult sends the result of an edit.
func (s *session) SendResult(r nodemsg.EditResult) (waits bool) {
	if r.Refused != "" {
		s.g.metrics.refusals.WithLabelValues(wire.RefusalLabel(r.Refused)).Inc()
	}
	waits = s.out.PutDeferred(s.codec.Encode(sessionmsg.Ack{Seq: s.edits.numberOf(r.Seq), Block: uint16(r.Block), Error: r.Refused}))
	s.edits.answered(r.Seq)
	return waits
}

// Flush writes pending results without waking the session's writer.
func (s *session) Flush() {
	w := frameWriters.Get().(*outbox.FrameWriter)
	defer frameWriters.Put(w)
	w.Deliver(s.out)
	s.g.metrics.posted(w)
}

// frameWriters are for goroutines that write now and then.
var frameWriters = sync.Pool{New: func() any { return new(outbox.FrameWriter) }}

// SendNotice sends the player a notice, unless they were sent the same just now.
func (s *session) SendNotice(n sessionmsg.Notice) {
	if s.notice.isNew(n) {
		s.out.Send(n)
	}
}
