package sessionmsg

import (
	"encoding/binary"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// TickReader receives the pieces of a frame, in their order.
type TickReader interface {
	// Tick is called with the low 16 bits of the tick of the pieces that follow, at least once.
	Tick(low uint16)
	// Delta is called with the changes of a chunk. The reader may keep what it points to.
	Delta(n *TickDelta)
	// Motion is called with the motion of one avatar in a chunk. The reader must not keep m.
	Motion(at grid.ChunkPos, m *Motion)
}

// ReadTick decodes a frame. On an *Error, the pieces before it have already been passed to the reader.
func ReadTick(data []byte, to TickReader) error {
	if len(data) < 3 || data[0] != TickFrame {
		return wire.Refuse(wire.FailBadValue, "not a tick frame")
	}
	r := tickBytes{data: data[1:]}
	to.Tick(r.u16())
	var at *grid.ChunkPos // of the motion pieces
	for len(r.data) > 0 && r.err == nil {
		head := r.u8()
		switch {
		case head&pieceMotion != 0:
			if at == nil {
				return wire.Refuse(wire.FailBadValue, "motion in no chunk")
			}
			r.motion(*at, head&^pieceMotion, to)
		case head == pieceTick:
			if tick := r.u16(); r.err == nil {
				to.Tick(tick)
			}
		case head == pieceChunk:
			pos := r.chunkPos()
			at = &pos
		case head > 0 && head < pieceChat<<1:
			n := r.delta(head)
			if r.err == nil {
				to.Delta(&n)
			}
		default:
			r.fail("there is no piece %#x", head)
		}
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// tickBytes reads a frame from the front. After the first error every read returns 0.
type tickBytes struct {
	data []byte
	err  error
}

func (r *tickBytes) fail(format string, args ...any) {
	if r.err == nil {
		r.err = wire.Refuse(wire.FailBadValue, format, args...)
	}
	r.data = nil
}

// next returns the next n bytes, or nil.
func (r *tickBytes) next(n int) []byte {
	if len(r.data) < n {
		r.fail("the frame ends in the middle")
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *tickBytes) u8() uint8 {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *tickBytes) u16() uint16 {
	if b := r.next(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *tickBytes) u32() uint32 {
	if b := r.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// number reads a varint of at most most.
func (r *tickBytes) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most {
		r.fail("a number is too large or cut off")
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *tickBytes) coordinate() int32 {
	v, n := binary.Varint(r.data)
	if n <= 0 || v < -grid.Limit || v >= grid.Limit {
		r.fail("a chunk out of the world")
		return 0
	}
	r.data = r.data[n:]
	return int32(v)
}

func (r *tickBytes) chunkPos() grid.ChunkPos {
	x := r.coordinate()
	return grid.ChunkPos{X: x, Z: r.coordinate()}
}

// length reads the length of a list whose elements take at least least bytes each.
func (r *tickBytes) length(most, least int) int {
	n := int(r.number(uint64(most)))
	if n == 0 || n*least > len(r.data) { // empty lists are not encoded
		r.fail("a list of %d elements in %d bytes", n, len(r.data))
		return 0
	}
	return n
}

const (
	leastAvatar = 1 + 16 + 1 + 1 + 8
	leastChat   = 16 + 1 + 1 + 1 + 1
)

func (r *tickBytes) delta(head uint8) TickDelta {
	n := TickDelta{Chunk: r.chunkPos()}
	if head&pieceEnter != 0 {
		n.Enter = make([]TickAvatar, r.length(wire.MaxBodies, leastAvatar))
		for i := range n.Enter {
			n.Enter[i] = r.avatar()
		}
	}
	if head&pieceLeave != 0 {
		n.Leave = make([]uint32, r.length(wire.MaxBodies, 1))
		for i := range n.Leave {
			n.Leave[i] = uint32(r.number(MaxAvatarIndex))
		}
	}
	if head&pieceBlocks != 0 {
		n.Blocks = make([]nodemsg.BlockAt, r.length(wire.MaxBlocks, blockIndexBytes+1))
		for i := range n.Blocks {
			n.Blocks[i] = r.block()
		}
	}
	if head&pieceChat != 0 {
		n.Chat = make([]nodemsg.ChatEvent, r.length(wire.MaxBodies, leastChat))
		for i := range n.Chat {
			n.Chat[i] = r.chat(n.Chunk)
		}
	}
	return n
}

func (r *tickBytes) id() (id player.ID) {
	copy(id[:], r.next(len(id)))
	return id
}

func (r *tickBytes) name(length uint8) string {
	name := string(r.next(int(length)))
	if err := player.CheckName(name); err != nil {
		r.fail("%v", err)
	}
	return name
}

func (r *tickBytes) avatar() TickAvatar {
	a := TickAvatar{Index: uint32(r.number(MaxAvatarIndex)), Player: r.id()}
	length := r.u8()
	a.Guest = length&guestBit != 0
	a.Name = r.name(length &^ (guestBit | skinBit | stanceBit))
	if length&skinBit != 0 {
		if a.Skin = player.Skin(r.u32()); a.Skin == 0 {
			r.fail("a skin that is none")
		}
	}
	if length&stanceBit != 0 {
		a.Stance = nodemsg.Stance{Held: chunk.Block(r.u16()), Sneaks: r.u8()&1 != 0}
	}
	a.X, a.Y, a.Z = r.u16(), r.u16(), r.u16()
	if a.X >= chunkUnits || a.Z >= chunkUnits {
		r.fail("an avatar outside of its chunk")
	}
	a.Yaw, a.Pitch = r.u8(), int8(r.u8())
	return a
}

func (r *tickBytes) block() nodemsg.BlockAt {
	at := r.next(blockIndexBytes)
	if at == nil {
		return nodemsg.BlockAt{}
	}
	b := nodemsg.BlockAt{At: blockIndex(at), Block: chunk.Block(r.number(math.MaxUint16))}
	if b.At >= wire.ColumnBlocks {
		r.fail("block %d of a column of at most %d blocks", b.At, wire.ColumnBlocks)
	}
	return b
}

func (r *tickBytes) chat(at grid.ChunkPos) nodemsg.ChatEvent {
	u := nodemsg.ChatEvent{Player: r.id(), Chunk: at}
	u.Name = r.name(r.u8())
	u.Text = string(r.next(int(r.number(wire.MaxChat))))
	if err := wire.CheckChat(u.Text); err != nil && r.err == nil {
		r.err, r.data = err, nil
	}
	return u
}

// motion decodes a piece of motion. A crowd makes this part of a frame long, so it must not allocate.
func (r *tickBytes) motion(at grid.ChunkPos, cell uint8, to TickReader) {
	if cell >= CellsPerChunk {
		r.fail("there is no cell %d", cell)
		return
	}
	const row = grid.ChunkSize / CellSize
	cornerX, cornerZ := uint16(cell%row)*cellUnits, uint16(cell/row)*cellUnits
	count := r.u8()
	base := uint16(r.u8()) * motionStorey
	last := int64(-1)
	var m Motion
	for ; count > 0 && r.err == nil; count-- {
		head := r.u8()
		gap := int64(head & motionGap)
		if gap == motionGap {
			gap += int64(r.number(MaxAvatarIndex))
		}
		last += 1 + gap
		m = Motion{
			Index: uint32(last), HasAcross: head&motionAcross != 0, HasHeight: head&motionHeight != 0,
			HasVelocity: head&motionVelocity != 0, HasFacing: head&motionFacing != 0,
		}
		if m.HasVelocity && !m.HasAcross {
			r.fail("a velocity without a place")
		}
		if m.HasAcross {
			m.X, m.Z = cornerX+uint16(r.u8()), cornerZ+uint16(r.u8())
		}
		switch head & motionHeight {
		case motionLevel:
			m.Y = base + uint16(r.u8())
		case motionClimb:
			m.Y, m.Climb = base+uint16(r.u8()), int8(r.u8())
		case motionTall:
			m.Y, m.Climb = r.u16(), int8(r.u8())
		}
		if m.HasVelocity {
			m.VelocityX, m.VelocityZ = int8(r.u8()), int8(r.u8())
		}
		if m.HasFacing {
			m.Yaw, m.Pitch = r.u8(), int8(r.u8())
		}
		if last > MaxAvatarIndex {
			r.fail("an avatar's index is too large")
		}
		if r.err == nil {
			to.Motion(at, &m)
		}
	}
}
