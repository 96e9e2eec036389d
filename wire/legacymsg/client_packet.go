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
	if refused := o.ParseJSON(line); refused != nil {
		return nil, refused
	}
	id := o.Integer("type", math.MinInt32, math.MaxInt32)
	if o.Err != nil {
		return nil, o.Err
	}
	var args [4]float64
	n := o.Numbers("args", args[:]) // those before the first mistake, and none if there is no array
	name := o.LenientText("player")
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
