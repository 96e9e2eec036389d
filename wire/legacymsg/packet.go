package legacymsg

import (
	"fmt"
	"math"
	"strconv"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Ids of VoxelPopuli's packets (§3.2.2.2, table 3.4; numbers as its client has them).
const (
	idRegister    = 1
	idDeregister  = 2
	idMove        = 3
	idChunkData   = 5
	idTime        = 6
	idBlockChange = 7
)

// SlabHeight is the height of VoxelPopuli's world, in blocks.
const SlabHeight = 32

// Slab is the content of a chunk as VoxelPopuli's client sees it: 32×32×32 blocks, each 0 to 3, indexed by SlabIndex.
type Slab [32 * 32 * SlabHeight]byte

// SlabIndex returns VoxelPopuli's index of a block: x changes slowest, z fastest, each from 0 to 31.
func SlabIndex(x, y, z int) int { return 1024*x + 32*y + z }

// SlabOf returns a chunk as VoxelPopuli's client sees it: the 32 blocks of each column from height base up, each as the
// nearest of its own blocks. Above the chunk's top and below its bottom there is air. The lowest layer has stone in
// place of air, because in a column without ground that client falls for ever.
func SlabOf(c *chunk.Chunk, base int) *Slab {
	slab := new(Slab)
	for z := range grid.ChunkSize {
		for x := range grid.ChunkSize {
			slab[SlabIndex(x, 0, z)] = byte(chunk.Stone)
		}
	}
	for y := max(base, 0); y < min(base+SlabHeight, c.Height()); y++ {
		for z := range grid.ChunkSize {
			for x := range grid.ChunkSize {
				if block := byte(c.Get(chunk.IndexOf(x, y, z)).Original()); block != 0 {
					slab[SlabIndex(x, y-base, z)] = block
				}
			}
		}
	}
	return slab
}

// Packet is one of VoxelPopuli's packets, after a connect. Both sides use the same forms.
type Packet interface{ packet() }

// PlayerRegister reports that the player is now in the chunk.
type PlayerRegister struct {
	Player string
	Chunk  grid.ChunkPos
}

// PlayerDeregister reports that the player has left the chunk. From a client it also saves the player.
type PlayerDeregister struct {
	Player string
	Chunk  grid.ChunkPos
}

// PlayerMove is a player's position, in world blocks, and direction. Yaw is in degrees, in Unity's convention: see
// YawOfOriginal. A client may omit it; then HasYaw is false.
type PlayerMove struct {
	Player  string
	X, Y, Z float64
	Yaw     float64
	HasYaw  bool
}

// ChunkContents holds all blocks of a chunk.
type ChunkContents struct {
	Chunk  grid.ChunkPos
	Blocks *Slab
}

// TimeOfDay is the world's time, in minutes since midnight.
type TimeOfDay struct{ Minutes float64 }

// BlockWrite sets a block, in world blocks. The client sends it to all its chunks; the one that contains Pos applies
// it. Pos.Y may lie outside of the slab: the original server ignores it then. Player may be empty.
type BlockWrite struct {
	Player string
	Pos    grid.Pos
	Block  uint16
}

func (PlayerRegister) packet()   {}
func (PlayerDeregister) packet() {}
func (PlayerMove) packet()       {}
func (ChunkContents) packet()    {}
func (TimeOfDay) packet()        {}
func (BlockWrite) packet()       {}

// YawOfOriginal converts VoxelPopuli's yaw (degrees, 0 along +Z, 90 along +X) into a Pose's (radians, 0 along +Z, π/2
// along −X). Unity's axes are left-handed and ours right-handed, so the sense of rotation changes.
func YawOfOriginal(degrees float64) float32 {
	return float32(-math.Remainder(degrees, 360) * math.Pi / 180)
}

// OriginalYaw is the inverse of YawOfOriginal, from 0 to below 360. It rounds to a ten-thousandth of a degree, which a
// Pose's float32 can represent, so that original clients receive the value that was sent.
func OriginalYaw(yaw float32) float64 {
	degrees := math.Round(math.Mod(-float64(yaw)*180/math.Pi, 360)*1e4) / 1e4
	if degrees < 0 {
		degrees += 360
	}
	if degrees == 0 || degrees == 360 { // minus zero, or a tiny negative number plus 360
		return 0
	}
	return degrees
}

// DecodePacket decodes any packet, without its newline. Every error is an *Error.
func DecodePacket(line []byte) (Packet, error) {
	if len(line) > wire.MaxServerLine {
		return nil, wire.Refuse(wire.FailTooLong, "a line has at most %d bytes", wire.MaxServerLine)
	}
	var o wire.Object
	if refused := o.ParseJSON(line); refused != nil {
		return nil, refused
	}
	id := o.Integer("type", math.MinInt32, math.MaxInt32)
	args := make([]float64, 4)
	if id == idChunkData {
		args = make([]float64, 2+len(Slab{}))
	}
	args = args[:o.Numbers("args", args)]
	var name string
	if o.Has("player") {
		if name = o.Text("player", wire.MaxLine); name != "" {
			name = o.PlayerName("player")
		}
	}
	if err := o.Done(); err != nil {
		return nil, err
	}
	p, refused := decodePacket(id, args, name)
	if refused != nil {
		return nil, refused
	}
	return p, nil
}

func decodePacket(id int64, args []float64, name string) (Packet, *wire.Error) {
	n := len(args)
	switch id {
	case idChunkData:
		return decodeChunkContents(args)
	case idRegister, idDeregister:
		if n != 2 {
			return nil, wrongCount(id, "2 numbers: X, Z", n)
		}
		at, err := wire.ChunkPosOf(args[0], args[1], "args")
		if err != nil {
			return nil, err
		}
		if id == idRegister {
			return PlayerRegister{Player: name, Chunk: at}, nil
		}
		return PlayerDeregister{Player: name, Chunk: at}, nil
	case idMove:
		if n != 3 && n != 4 {
			return nil, wrongCount(id, "3 or 4 numbers: x, y, z and yaw", n)
		}
		m := PlayerMove{Player: name, X: args[0], Y: args[1], Z: args[2], HasYaw: n == 4}
		if m.HasYaw {
			m.Yaw = args[3]
		}
		return m, nil
	case idTime:
		if n != 1 {
			return nil, wrongCount(id, "1 number: minutes", n)
		}
		return TimeOfDay{Minutes: args[0]}, nil
	case idBlockChange:
		if n != 4 {
			return nil, wrongCount(id, "4 numbers: x, y, z, block", n)
		}
		for _, v := range args {
			if v != math.Trunc(v) || v < math.MinInt32 || v > math.MaxInt32 {
				return nil, wire.Refuse(wire.FailBadValue, "packet %d: %g is not a whole number of 32 bits", id, v)
			}
		}
		if args[3] < 0 || args[3] > math.MaxUint16 {
			return nil, wire.Refuse(wire.FailBadValue, "packet %d: unknown block id %g", id, args[3])
		}
		pos := grid.Pos{X: int32(args[0]), Y: int32(args[1]), Z: int32(args[2])}
		return BlockWrite{Player: name, Pos: pos, Block: uint16(args[3])}, nil
	default:
		return nil, wire.Refuse(wire.FailUnknownMessage, "unknown packet id %d", id)
	}
}

func wrongCount(id int64, want string, n int) *wire.Error {
	return wire.Refuse(wire.FailBadValue, "packet %d has %s; not %d numbers", id, want, n)
}

func decodeChunkContents(args []float64) (Packet, *wire.Error) {
	if want := 2 + len(Slab{}); len(args) != want {
		return nil, wrongCount(idChunkData, fmt.Sprintf("%d numbers: X, Z and the blocks", want), len(args))
	}
	at, err := wire.ChunkPosOf(args[0], args[1], "args")
	if err != nil {
		return nil, err
	}
	c := ChunkContents{Chunk: at, Blocks: new(Slab)}
	for i, v := range args[2:] {
		if v != math.Trunc(v) || v < 0 || v > math.MaxUint8 {
			return nil, wire.Refuse(wire.FailBadValue, "packet %d: unknown block id %g", idChunkData, v)
		}
		c.Blocks[i] = byte(v)
	}
	return c, nil
}

// AppendPacket appends a packet and its newline. Names must be empty or satisfy player.CheckName, and numbers must be
// finite; otherwise it returns an error and appends nothing.
func AppendPacket(dst []byte, p Packet) ([]byte, error) {
	switch p := p.(type) {
	case PlayerRegister:
		return appendPacket(dst, idRegister, p.Player, float64(p.Chunk.X), float64(p.Chunk.Z))
	case PlayerDeregister:
		return appendPacket(dst, idDeregister, p.Player, float64(p.Chunk.X), float64(p.Chunk.Z))
	case PlayerMove:
		// Always include the yaw: the released client reads the fourth number without checking that it exists.
		return appendPacket(dst, idMove, p.Player, p.X, p.Y, p.Z, p.Yaw)
	case ChunkContents:
		return AppendChunkData(dst, p.Chunk, p.Blocks), nil
	case TimeOfDay:
		return appendPacket(dst, idTime, "", p.Minutes)
	case BlockWrite:
		return appendPacket(dst, idBlockChange, p.Player,
			float64(p.Pos.X), float64(p.Pos.Y), float64(p.Pos.Z), float64(p.Block))
	default:
		return dst, fmt.Errorf("encode packet: %T is not a packet", p)
	}
}

// AppendChunkData appends CHUNK_DATA and its newline: about 65 KB, in one pass.
func AppendChunkData(dst []byte, at grid.ChunkPos, blocks *Slab) []byte {
	dst = append(dst, `{"type":5,"args":[`...)
	dst = strconv.AppendInt(dst, int64(at.X), 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(at.Z), 10)
	for _, b := range blocks {
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, uint64(b), 10)
	}
	return append(dst, `],"player":""}`+"\n"...)
}

func appendPacket(dst []byte, id int64, name string, args ...float64) ([]byte, error) {
	if name != "" {
		// A name needs no quoting: it holds only letters, digits, '_' and '-'.
		if err := player.CheckName(name); err != nil {
			return dst, fmt.Errorf("encode packet %d: %w", id, err)
		}
	}
	for _, v := range args {
		if !wire.Finite(v) {
			return dst, fmt.Errorf("encode packet %d: %g cannot be represented in JSON", id, v)
		}
	}
	dst = append(dst, `{"type":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"args":[`...)
	for i, v := range args {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	dst = append(dst, `],"player":"`...)
	dst = append(dst, name...)
	return append(dst, "\"}\n"...), nil
}
