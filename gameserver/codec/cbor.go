package codec

import (
	"slices"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

type cborCodec struct{ looks Looks }

func (cborCodec) IsText() bool        { return false }
func (cborCodec) HasTickFrames() bool { return true }

func (cborCodec) IsMove(message []byte) bool {
	return len(message) > 0 && message[0] == sessionmsg.ClientMove
}

func (cborCodec) Decode(message []byte) (sessionmsg.FromClient, error) {
	return sessionmsg.DecodeClientCBOR(message)
}

func (cborCodec) Encode(m sessionmsg.FromServer) []byte { return must(sessionmsg.EncodeServerCBOR(m)) }

func (c cborCodec) Delta(d *mirror.Delta) []byte {
	if d.ForTick == nil {
		return nil
	}
	return d.Form(c, func() any { return c.encode(*d.ForTick) }).([]byte)
}

// Calm returns the same as Delta: its moves come with the tick's motion.
func (c cborCodec) Calm(d *mirror.Delta) []byte { return c.Delta(d) }

func (c cborCodec) Occupants(of *mirror.Chunk, index Index) []byte {
	delta := index.Entering(of.At(), of.Occupants())
	if len(delta.Enter) == 0 {
		return nil
	}
	return c.encode(*delta)
}

// encode returns the piece of a delta.
func (c cborCodec) encode(n sessionmsg.TickDelta) []byte {
	if c.looks != (Looks{Skins: true, Stances: true}) {
		n.Enter = slices.Clone(n.Enter)
		for i := range n.Enter {
			if !c.looks.Skins {
				n.Enter[i].Skin = 0
			}
			if !c.looks.Stances {
				n.Enter[i].Stance = nodemsg.Stance{}
			}
		}
	}
	return sessionmsg.AppendDelta(nil, &n)
}

// AppendFrame appends the pieces and then the motion, with the tick of the frame loop.
func (cborCodec) AppendFrame(dst []byte, f Frame) []byte {
	dst = sessionmsg.AppendTick(dst, f.Tick)
	for _, p := range f.Pieces {
		dst = append(dst, p...)
	}
	return append(dst, f.Motion...)
}
