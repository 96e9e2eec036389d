package luanti

import (
	"bytes"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file shows the texts of signs: the client shows that of the sign at which its player looks.

// writeSigns sets texts of signs, and shows them if the client has their chunk; else it is sent them with that.
func (cl *Client) writeSigns(m sessionmsg.Signs) error {
	l := cl.mu.lands[m.Chunk]
	if l == nil {
		return nil
	}
	shown := signList(len(m.Signs))
	for _, s := range m.Signs {
		pos := grid.Pos{X: s.X, Y: s.Y, Z: s.Z}
		l.signs[chunk.At(pos)] = s.Text
		shown = shown.node(cl.mu.origin.node(pos)).sign(s.Text)
	}
	if !l.sent {
		return nil
	}
	return cl.putSigns(shown)
}

// putBack shows a block as it is, with the text that it may have: the client has shown what its player asked for.
func (cl *Client) putBack(pos grid.Pos, b chunk.Block) error {
	cl.showBlock(pos, b)
	l := cl.mu.lands[pos.Chunk()]
	if l == nil {
		return nil
	}
	text, written := l.signs[chunk.At(pos)]
	if !written {
		return nil
	}
	return cl.putSigns(signList(1).node(cl.mu.origin.node(pos)).sign(text))
}

// putSigns sends a list of the metadata of nodes.
func (cl *Client) putSigns(shown packet) error {
	var deflated bytes.Buffer
	if err := deflate(&deflated, shown); err != nil {
		return err
	}
	cl.put(begin(toNodeMetadata).blob(deflated.Bytes()))
	return nil
}

// signList begins a list of the metadata of nodes, each after its place.
func signList(n int) packet {
	const version = 2
	return packet{}.u8(version).u16(uint16(n)) //nolint:gosec // a chunk has few signs
}

// sign appends the metadata of a sign: a text, which is not private, and no inventory.
func (p packet) sign(text string) packet {
	p = p.u32(1).text("infotext").blob([]byte(strings.ReplaceAll(text, "\x1b", ""))).u8(0)
	return append(p, "EndInventory\n"...)
}
