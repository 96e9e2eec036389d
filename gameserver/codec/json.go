package codec

import (
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

type jsonCodec struct{}

func (jsonCodec) IsText() bool        { return true }
func (jsonCodec) HasTickFrames() bool { return false }
func (jsonCodec) IsMove([]byte) bool  { return false }

func (jsonCodec) Decode(message []byte) (sessionmsg.FromClient, error) {
	return sessionmsg.DecodeClient(message)
}

func (jsonCodec) Encode(m sessionmsg.FromServer) []byte { return must(sessionmsg.EncodeServer(m)) }

func (c jsonCodec) Delta(d *mirror.Delta) []byte {
	return d.Form(c, func() any { return must(sessionmsg.EncodePiece(PieceOf(d.ChunkDelta))) }).([]byte)
}

func (jsonCodec) Calm(d *mirror.Delta) []byte {
	calm := d.ChunkDelta
	if calm.Moves = nil; len(calm.Enter)+len(calm.Leave)+len(calm.Blocks)+len(calm.Chat) == 0 {
		return nil
	}
	return must(sessionmsg.EncodePiece(PieceOf(calm)))
}

func (jsonCodec) Occupants(c *mirror.Chunk, index Index) []byte {
	present := index.Present(c.At(), c.Occupants().Bodies())
	if len(present) == 0 {
		return nil
	}
	return must(sessionmsg.EncodePiece(PieceOf(nodemsg.ChunkDelta{Chunk: c.At(), Enter: present})))
}

// AppendFrame appends the pieces, with the tick of the last one's region.
func (jsonCodec) AppendFrame(dst []byte, f Frame) []byte {
	return sessionmsg.AppendFrame(dst, f.PieceTick, f.Pieces...)
}

// PieceOf returns the delta of a chunk as clients are sent it in JSON.
func PieceOf(n nodemsg.ChunkDelta) sessionmsg.Piece {
	p := sessionmsg.Piece{Chunk: n.Chunk}
	for _, id := range n.Leave {
		p.Leave = append(p.Leave, id.String())
	}
	for _, b := range n.Enter {
		p.Enter = append(p.Enter, sessionmsg.Avatar{
			Player: b.Player.String(), Name: b.Name, Guest: b.Guest, Pose: b.Pose, Skin: b.Skin, Held: uint16(b.Stance.Held), Sneaks: b.Stance.Sneaks,
		})
	}
	for _, m := range n.Moves {
		p.Moves = append(p.Moves, sessionmsg.AvatarMove{Player: m.Player.String(), Pose: m.Pose})
	}
	for _, b := range n.Blocks {
		pos := b.At.Pos(n.Chunk)
		p.Blocks = append(p.Blocks, sessionmsg.BlockChange{X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b.Block)})
	}
	for _, u := range n.Chat {
		p.Chat = append(p.Chat, sessionmsg.ChatLine{Player: u.Player.String(), Name: u.Name, Text: u.Text})
	}
	return p
}
