package gameserver

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements subscriber for sessions: what subscriptions publish goes into the session's outbox, encoded once for all
// sessions where it is the same for all.

func (s *session) wantsEveryMove() bool { return !s.binary }

func (s *session) hasRoom(sub *subscription, mc *mirrorChunk) bool {
	return s.out.hasRoom(waiting{sub, mc})
}

func (s *session) sendChunk(mc *mirrorChunk, _ bool) {
	s.out.putChunk(mc.latest.message(mc.at, s.binary))
	if len(mc.bodies) == 0 {
		return
	}
	if s.binary {
		if delta := s.g.interest.entering(mc.at, mc.bodies); len(delta.Enter) > 0 {
			s.out.piece(mc.tick, sessionmsg.AppendDelta(nil, delta))
			s.out.miss() // the next frame contains how they move
		}
		return
	}
	piece := sessionmsg.Piece{Chunk: mc.at}
	for _, b := range s.g.interest.present(mc.at, mc.bodies.Bodies()) {
		piece.Enter = append(piece.Enter, avatarOf(b))
	}
	if len(piece.Enter) > 0 {
		s.out.piece(mc.tick, encodedPiece(piece))
	}
}

func (s *session) sendDelta(delta *chunkDelta) {
	if len(delta.Chat) > 0 {
		s.clock.NoteSeen(delta.stamp, s.g.now())
	}
	switch {
	case delta.interaction != nil: // a message of its own, after the pieces that came before it: older clients ignore it
		form := &delta.piece
		if s.binary {
			form = &delta.tickPiece
		}
		if *form == nil {
			*form = encodedIn(s.binary, delta.interaction)
		}
		s.out.put(*form)
	case !s.binary && len(delta.Moves) > 0 && s.out.behind(waiting{delta.sub, delta.chunk}):
		calm := delta.ChunkDelta // encoded for this session alone: few are late, and seldom
		if calm.Moves = nil; len(calm.Enter)+len(calm.Leave)+len(calm.Blocks)+len(calm.Chat) > 0 {
			s.out.piece(delta.tick, encodedPiece(pieceOf(calm)))
		}
	case !s.binary:
		if delta.piece == nil {
			delta.piece = encodedPiece(pieceOf(delta.ChunkDelta))
		}
		s.out.piece(delta.tick, delta.piece)
	case delta.tickNews != nil:
		if delta.tickPiece == nil {
			delta.tickPiece = sessionmsg.AppendDelta(nil, delta.tickNews)
		}
		s.out.piece(delta.tick, delta.tickPiece)
	}
}

func (s *session) sendResult(r nodemsg.EditResult) *outbox {
	if r.Refused != "" {
		s.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	waits := s.out.putDeferred(encodedIn(s.binary, sessionmsg.Ack{Seq: r.Seq, Block: uint16(r.Block), Error: r.Refused}))
	s.edits.answered(r.Seq)
	if !waits {
		return nil
	}
	return s.out
}

// noticePause is the time in which a repeated notice of several subscriptions is sent once.
const noticePause = 5 * time.Second

func (s *session) sendNotice(text string) {
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
		p.Says = append(p.Says, sessionmsg.Said{Player: u.Player.String(), Name: u.Name, Text: u.Text})
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
