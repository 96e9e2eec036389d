package legacymsg

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// DecodeClientPacket decodes a line from an original client, as leniently as VoxelPopuli's own server does. The packet
// is nil if it has no effect: an unknown type, a type that only servers send (CHUNK_DATA, TIME), or meaningless
// arguments. The chunk of a register or deregister is ignored, because the connection determines it. Block coordinates
// are rounded down. Player is whatever the client wrote; the caller interprets it. Every error is an *Error and means
// that the line is not a packet.
func DecodeClientPacket(line []byte) (Packet, error) {
	if len(line) > wire.MaxLine {
		return nil, wire.Refuse(wire.FailTooLong, "a line has at most %d bytes", wire.MaxLine)
	}
	var o wire.Object
	if refused := o.Parse(line); refused != nil {
		return nil, refused
	}
	id := o.Integer("type", math.MinInt32, math.MaxInt32)
	if o.Err != nil {
		return nil, o.Err
	}
	var args [4]float64
	n := leadingNumbers(rawOr(&o, "args", "[]"), args[:])
	name := textOf(rawOr(&o, "player", `""`))
	switch {
	case id == idRegister:
		return PlayerRegister{Player: name}, nil
	case id == idDeregister:
		return PlayerDeregister{Player: name}, nil
	case id == idMove && n >= 3:
		return PlayerMove{Player: name, X: args[0], Y: args[1], Z: args[2], Yaw: args[3], HasYaw: n == 4}, nil
	case id == idBlockChange && n == 4:
		return blockWriteOf(name, args), nil
	}
	return nil, nil
}

// blockWriteOf returns the BLOCK_CHANGE with these arguments, or nil if they do not name a position and a block.
func blockWriteOf(name string, args [4]float64) Packet {
	for i := range args {
		args[i] = math.Floor(args[i])
		if args[i] < math.MinInt32 || args[i] > math.MaxInt32 {
			return nil
		}
	}
	if args[3] < 0 || args[3] > math.MaxUint16 {
		return nil
	}
	pos := grid.Pos{X: int32(args[0]), Y: int32(args[1]), Z: int32(args[2])}
	return BlockWrite{Player: name, Pos: pos, Block: uint16(args[3])}
}

// leadingNumbers parses the finite numbers at the start of an array, at most len(dst), and returns their count. Any
// other value has none. raw must have been scanned before, so that its syntax is valid.
func leadingNumbers(raw []byte, dst []float64) (n int) {
	s := wire.Scanner{Data: raw}
	if !s.Accept('[') {
		return 0
	}
	for s.SkipSpace(); n < len(dst); s.SkipSpace() {
		start := s.At
		if !s.SkipNumber() {
			break
		}
		v, err := wire.ParseFinite(raw[start:s.At], "args", 64)
		if err != nil {
			break
		}
		dst[n] = v
		n++
		if s.SkipSpace(); !s.Accept(',') {
			break
		}
	}
	return n
}

// textOf returns the text of a JSON string, and "" for any other value.
func textOf(raw []byte) string {
	if raw[0] != '"' {
		return ""
	}
	text, ok := wire.Unquote(raw)
	if !ok {
		return ""
	}
	return string(text)
}

// rawOr returns the value of a field, or a default if the field is missing.
func rawOr(o *wire.Object, name, otherwise string) []byte {
	if o.Has(name) {
		return o.Raw(name)
	}
	return []byte(otherwise)
}
