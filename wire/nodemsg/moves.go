package nodemsg

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Moves lists the newest poses of avatars. In CBOR they are one byte string, 54 bytes each: a gateway handles thousands
// per second, and decoding them as maps took longer than all its other work.
type Moves []BodyMove

const (
	bodyMoveBytes = 16 + 3*8 + 2*4 + 3*2
	longString    = 0x5a // CBOR head of a byte string with a four-byte length
	movesHead     = 1 + 4
)

// MarshalCBOR writes the byte string: for each move the player's id; x, y and z as float64; yaw and pitch as float32;
// the velocity along x, y and z as int16. Numbers are little-endian.
func (m Moves) MarshalCBOR() ([]byte, error) {
	b := make([]byte, 0, movesHead+len(m)*bodyMoveBytes)
	b = append(b, longString)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m)*bodyMoveBytes))
	for i := range m {
		p := &m[i].Pose
		b = append(b, m[i].Player[:]...)
		for _, v := range [...]float64{p.X, p.Y, p.Z} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Yaw))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Pitch))
		for _, v := range [...]int16{m[i].Velocity.X, m[i].Velocity.Y, m[i].Velocity.Z} {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	return b, nil
}

// UnmarshalCBOR reads what MarshalCBOR wrote. It does not validate the poses; the message does.
func (m *Moves) UnmarshalCBOR(data []byte) error {
	var b []byte
	if len(data) >= movesHead && data[0] == longString && uint64(binary.BigEndian.Uint32(data[1:])) == uint64(len(data)-movesHead) {
		b = data[movesHead:] // without a copy
	} else if err := wire.CBORDecoding.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("read moves: %w", err)
	}
	if len(b)%bodyMoveBytes != 0 || len(b) > wire.MaxBodies*bodyMoveBytes {
		return wire.Refuse(wire.FailBadValue, "moves of %d bytes", len(b))
	}
	*m = make(Moves, len(b)/bodyMoveBytes)
	for i := range *m {
		move := b[i*bodyMoveBytes:]
		(*m)[i] = BodyMove{Player: player.ID(move[:16]), Pose: motion.Pose{
			X:     math.Float64frombits(binary.LittleEndian.Uint64(move[16:])),
			Y:     math.Float64frombits(binary.LittleEndian.Uint64(move[24:])),
			Z:     math.Float64frombits(binary.LittleEndian.Uint64(move[32:])),
			Yaw:   math.Float32frombits(binary.LittleEndian.Uint32(move[40:])),
			Pitch: math.Float32frombits(binary.LittleEndian.Uint32(move[44:])),
		}, Velocity: motion.Velocity{
			X: int16(binary.LittleEndian.Uint16(move[48:])),
			Y: int16(binary.LittleEndian.Uint16(move[50:])),
			Z: int16(binary.LittleEndian.Uint16(move[52:])),
		}}
	}
	return nil
}
