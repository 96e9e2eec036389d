package sessionmsg

import (
	"encoding/binary"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Tick frames hold the changes of one tick, in bytes, for sessions with the encoding "cbor". docs/protocol.md describes
// them byte by byte. A frame is a head and any number of pieces. Each piece is encoded once and copied into the frames
// of all sessions that need it.

const (
	// TickFrame is the first byte of a tick frame. No CBOR map starts with it.
	TickFrame = 0x01
	// ClientMove is the first byte of a client's move.
	ClientMove = 0x02

	// CellSize is the width of a motion cell, in blocks.
	CellSize = 8
	// CellsPerChunk is how many cells a chunk has.
	CellsPerChunk = (grid.ChunkSize / CellSize) * (grid.ChunkSize / CellSize)

	// PlaceUnit is the number of place units in a block.
	PlaceUnit = 32
	// TickVelocityUnit is the number of velocity units in a speed of one block a tick.
	TickVelocityUnit = 128
	// ClimbUnit is the number of climb units in a speed of one block a tick. Falling is faster than walking.
	ClimbUnit = 64
	// TickExtrapolation is how long a client extrapolates an avatar by its velocity and climb, in ticks.
	TickExtrapolation = 40

	// MaxAvatarIndex bounds the indices that stand for avatars.
	MaxAvatarIndex = 1<<20 - 1

	pieceEnter  = 1 << 0
	pieceLeave  = 1 << 1
	pieceBlocks = 1 << 2
	pieceChat   = 1 << 3
	pieceChunk  = 0x20 // the chunk of the motion pieces that follow
	pieceTick   = 0x21 // the tick of what follows
	pieceMotion = 0x80 // plus the cell in the low four bits

	motionStorey   = 4 * PlaceUnit // unit of height in the base of a motion piece
	motionGap      = 0x07          // index minus the previous one minus 1; 7: a varint with the rest follows
	motionAcross   = 0x08
	motionHeight   = 0x30 // encoding of the height; 0: none
	motionLevel    = 0x10 // one byte; the climb is 0
	motionClimb    = 0x20 // one byte, then the climb
	motionTall     = 0x30 // two bytes, then the climb
	motionVelocity = 0x40
	motionFacing   = 0x80

	cellUnits  = CellSize * PlaceUnit
	chunkUnits = grid.ChunkSize * PlaceUnit
	guestBit   = 0x80 // in the length byte of a name
	skinBit    = 0x40 // in the length byte of a name: a skin follows the name
	stanceBit  = 0x20 // likewise: a stance, after the skin
)

// Place is the quantised pose of an avatar in tick frames. X, Y and Z are in 1/32 of a block: X and Z from the chunk's
// corner, Y from 64 blocks below the world's bottom. Yaw has 256 units per turn, Pitch 127 per right angle.
type Place struct {
	X, Z, Y uint16
	Yaw     uint8
	Pitch   int8
}

// PlaceOf quantises a pose, which must be within the chunk and the bounds of poses.
func PlaceOf(at grid.ChunkPos, p motion.Pose) Place {
	corner := at.Origin()
	return Place{
		X: units(p.X-float64(corner.X), chunkUnits-1), Z: units(p.Z-float64(corner.Z), chunkUnits-1),
		Y:     units(p.Y-motion.MinY, math.MaxUint16),
		Yaw:   uint8(int64(math.Round(math.Mod(float64(p.Yaw), 2*math.Pi) / (2 * math.Pi) * 256))),
		Pitch: int8(max(-127, min(127, math.Round(float64(p.Pitch)/(math.Pi/2)*127)))),
	}
}

func units(blocks float64, most int) uint16 {
	return uint16(max(0, min(float64(most), math.Round(blocks*PlaceUnit))))
}

// Pose returns the place in world coordinates.
func (p Place) Pose(at grid.ChunkPos) motion.Pose {
	corner := at.Origin()
	return motion.Pose{
		X: float64(corner.X) + float64(p.X)/PlaceUnit, Y: float64(p.Y)/PlaceUnit + motion.MinY, Z: float64(corner.Z) + float64(p.Z)/PlaceUnit,
		Yaw: float32(float64(p.Yaw) / 256 * 2 * math.Pi), Pitch: float32(float64(p.Pitch) / 127 * math.Pi / 2),
	}
}

// Cell returns the motion cell of the place, 0 to 15, along X first.
func (p Place) Cell() uint8 {
	return uint8(p.Z/cellUnits)*(grid.ChunkSize/CellSize) + uint8(p.X/cellUnits)
}

// Motion is a change of an avatar's place. Components that it lacks are unchanged and 0 here. Without HasAcross the
// avatar continues at its velocity; with it, from the new X and Z. The velocity comes only with HasAcross. Height
// continues by the climb, which always comes with HasHeight.
type Motion struct {
	Index uint32
	Place
	VelocityX, VelocityZ int8 // in 1/128 block a tick
	Climb                int8 // in 1/64 block a tick

	HasAcross, HasHeight, HasVelocity, HasFacing bool
}

// TickDelta lists the changes of one chunk other than motion. It is never dropped.
type TickDelta struct {
	Chunk  grid.ChunkPos
	Enter  []TickAvatar
	Leave  []uint32 // indices
	Blocks []nodemsg.BlockAt
	Chat   []nodemsg.ChatEvent // without their Chunk, which is that of the delta
}

// TickAvatar is a player's full avatar, and the index that stands for it from now on.
type TickAvatar struct {
	Index  uint32
	Player player.ID
	Name   string
	Guest  bool
	Skin   player.Skin    // 0 for clients that do not understand skins
	Stance nodemsg.Stance // likewise
	Place
}

// AppendTick starts a frame. Only the low 16 bits of the tick are sent.
func AppendTick(dst []byte, tick uint64) []byte {
	return binary.LittleEndian.AppendUint16(append(dst, TickFrame), uint16(tick))
}

// AppendLaterTick sets a later tick for the pieces that follow in the frame.
func AppendLaterTick(dst []byte, tick uint64) []byte {
	return binary.LittleEndian.AppendUint16(append(dst, pieceTick), uint16(tick))
}

func appendTickChunk(dst []byte, at grid.ChunkPos) []byte {
	return binary.AppendVarint(binary.AppendVarint(dst, int64(at.X)), int64(at.Z))
}

// AppendDelta appends the changes of a chunk. The caller must keep lists within their limits (MaxBodies, MaxBlocks),
// and names and texts valid: the receiver refuses others.
func AppendDelta(dst []byte, n *TickDelta) []byte {
	head := len(dst)
	dst = appendTickChunk(append(dst, 0), n.Chunk)
	if len(n.Enter) > 0 {
		dst[head] |= pieceEnter
		dst = binary.AppendUvarint(dst, uint64(len(n.Enter)))
		for i := range n.Enter {
			dst = appendAvatar(dst, &n.Enter[i])
		}
	}
	if len(n.Leave) > 0 {
		dst[head] |= pieceLeave
		dst = binary.AppendUvarint(dst, uint64(len(n.Leave)))
		for _, index := range n.Leave {
			dst = binary.AppendUvarint(dst, uint64(index))
		}
	}
	if len(n.Blocks) > 0 {
		dst[head] |= pieceBlocks
		dst = binary.AppendUvarint(dst, uint64(len(n.Blocks)))
		for _, b := range n.Blocks {
			dst = append(dst, byte(b.At), byte(b.At>>8), byte(b.At>>16))
			dst = binary.AppendUvarint(dst, uint64(b.Block))
		}
	}
	if len(n.Chat) > 0 {
		dst[head] |= pieceChat
		dst = binary.AppendUvarint(dst, uint64(len(n.Chat)))
		for _, u := range n.Chat {
			dst = append(dst, u.Player[:]...)
			dst = append(append(dst, byte(len(u.Name))), u.Name...)
			dst = append(binary.AppendUvarint(dst, uint64(len(u.Text))), u.Text...)
		}
	}
	if dst[head] == 0 {
		return dst[:head] // there is no empty piece
	}
	return dst
}

func appendAvatar(dst []byte, a *TickAvatar) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.Index))
	dst = append(dst, a.Player[:]...)
	length := byte(len(a.Name))
	if a.Guest {
		length |= guestBit
	}
	if a.Skin != 0 {
		length |= skinBit
	}
	if a.Stance != (nodemsg.Stance{}) {
		length |= stanceBit
	}
	dst = append(append(dst, length), a.Name...)
	if a.Skin != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(a.Skin))
	}
	if length&stanceBit != 0 {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(a.Stance.Held))
		dst = append(dst, 0)
		if a.Stance.Sneaks {
			dst[len(dst)-1] = 1
		}
	}
	dst = binary.LittleEndian.AppendUint16(dst, a.X)
	dst = binary.LittleEndian.AppendUint16(dst, a.Y)
	dst = binary.LittleEndian.AppendUint16(dst, a.Z)
	return append(dst, a.Yaw, byte(a.Pitch))
}

// AppendMotionChunk sets the chunk of the motion pieces that follow.
func AppendMotionChunk(dst []byte, at grid.ChunkPos) []byte {
	return appendTickChunk(append(dst, pieceChunk), at)
}

// MotionWriter encodes the motion of one cell. Its zero value is ready for Begin.
type MotionWriter struct {
	head  int // start of the open piece
	count int
	last  int64
	base  uint16
	cell  uint8
}

// Begin sets the cell and the base height, in units of a Place, for avatars with a one-byte height. Nothing is written
// before the first Append.
func (w *MotionWriter) Begin(cell uint8, lowest uint16) {
	*w = MotionWriter{cell: cell, base: min(lowest/motionStorey, math.MaxUint8) * motionStorey, last: -1}
}

// Append appends an avatar of the cell. Indices must be in ascending order.
func (w *MotionWriter) Append(dst []byte, m *Motion) []byte {
	if w.count == 0 || w.count == math.MaxUint8 {
		w.head, w.count, w.last = len(dst), 0, -1
		dst = append(dst, pieceMotion|w.cell, 0, byte(w.base/motionStorey))
	}
	w.count++
	dst[w.head+1] = byte(w.count)
	gap := int64(m.Index) - w.last - 1
	w.last = int64(m.Index)
	head := len(dst)
	if gap < motionGap {
		dst = append(dst, byte(gap))
	} else {
		dst = binary.AppendUvarint(append(dst, motionGap), uint64(gap-motionGap))
	}
	if m.HasAcross {
		dst[head] |= motionAcross
		dst = append(dst, byte(m.X%cellUnits), byte(m.Z%cellUnits))
	}
	switch low := m.Y >= w.base && m.Y-w.base <= math.MaxUint8; {
	case !m.HasHeight:
	case low && m.Climb == 0:
		dst[head] |= motionLevel
		dst = append(dst, byte(m.Y-w.base))
	case low:
		dst[head] |= motionClimb
		dst = append(dst, byte(m.Y-w.base), byte(m.Climb))
	default:
		dst[head] |= motionTall
		dst = append(binary.LittleEndian.AppendUint16(dst, m.Y), byte(m.Climb))
	}
	if m.HasVelocity {
		dst[head] |= motionVelocity
		dst = append(dst, byte(m.VelocityX), byte(m.VelocityZ))
	}
	if m.HasFacing {
		dst[head] |= motionFacing
		dst = append(dst, m.Yaw, byte(m.Pitch))
	}
	return dst
}

// AppendMove appends a client's Move in 33 bytes: the byte ClientMove; x, y and z as float64; yaw and pitch as float32.
func AppendMove(dst []byte, p motion.Pose) []byte {
	dst = append(dst, ClientMove)
	for _, v := range [...]float64{p.X, p.Y, p.Z} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(p.Yaw))
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(p.Pitch))
}

const moveBytes = 1 + 3*8 + 2*4

// DecodeMove decodes what AppendMove wrote. The pose has the same bounds as in JSON.
func DecodeMove(data []byte) (motion.Pose, error) {
	if len(data) != moveBytes || data[0] != ClientMove {
		return motion.Pose{}, wire.Refuse(wire.FailBadValue, "a move has %d bytes, not %d", moveBytes, len(data))
	}
	p := motion.Pose{
		X:     math.Float64frombits(binary.LittleEndian.Uint64(data[1:])),
		Y:     math.Float64frombits(binary.LittleEndian.Uint64(data[9:])),
		Z:     math.Float64frombits(binary.LittleEndian.Uint64(data[17:])),
		Yaw:   math.Float32frombits(binary.LittleEndian.Uint32(data[25:])),
		Pitch: math.Float32frombits(binary.LittleEndian.Uint32(data[29:])),
	}
	return p, wire.CheckPose(p)
}

// blockIndexBytes is the length of a chunk.Index in a frame; the blocks of the tallest column fit.
const blockIndexBytes = 3

var _ = [1]struct{}{}[wire.ColumnBlocks>>(8*blockIndexBytes)] // does not compile if they do not fit

func blockIndex(b []byte) chunk.Index {
	return chunk.Index(b[0]) | chunk.Index(b[1])<<8 | chunk.Index(b[2])<<16
}
