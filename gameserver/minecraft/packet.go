package minecraft

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
)

// The version that is served.
const (
	protocolVersion = 764
	versionName     = "1.20.2"
)

// Packets, by their first number, in the states of a connection. Numbers are big-endian; a varint has 7 bits in each
// byte, the lowest first.
const (
	// Handshake, status and login, from the client.
	packetHandshake     = 0x00
	packetStatusRequest = 0x00
	packetStatusPing    = 0x01
	packetLoginStart    = 0x00
	packetLoginAck      = 0x03

	// Status and login, to the client.
	packetStatus       = 0x00
	packetStatusPong   = 0x01
	packetOldKick      = 0xff // of versions before 1.7, without the length before it
	packetLoginRefused = 0x00
	packetLoginSuccess = 0x02
	packetCompress     = 0x03

	// Configuration, from the client.
	packetConfigSettings  = 0x00
	packetConfigFinish    = 0x02
	packetConfigKeepAlive = 0x03

	// Configuration, to the client.
	packetConfigRefused  = 0x01
	packetConfigFinished = 0x02
	packetConfigRegistry = 0x05
	packetConfigFeatures = 0x07
	packetConfigTags     = 0x08

	// Play, from the client.
	packetConfirmTeleport  = 0x00
	packetCommand          = 0x04
	packetChat             = 0x05
	packetSettings         = 0x09
	packetInteract         = 0x12
	packetKeepAliveAnswer  = 0x14
	packetMovePosition     = 0x16
	packetMovePositionLook = 0x17
	packetMoveLook         = 0x18
	packetMoveOnGround     = 0x19
	packetDig              = 0x20
	packetPlayerAction     = 0x21
	packetSelectSlot       = 0x2b
	packetSetCreativeSlot  = 0x2e
	packetWriteSign        = 0x31
	packetUseItemOn        = 0x34
	packetUseItem          = 0x35
	lastPlayPacket         = 0x35

	// Play, to the client.
	packetSpawnEntity    = 0x01
	packetAckBlock       = 0x05
	packetBlockEntity    = 0x07
	packetBlock          = 0x09
	packetBatchEnd       = 0x0c
	packetBatchStart     = 0x0d
	packetSlot           = 0x15
	packetDisconnect     = 0x1b
	packetUnloadColumn   = 0x1f
	packetKeepAlive      = 0x24
	packetColumn         = 0x25
	packetLogin          = 0x29
	packetMoveEntity     = 0x2d
	packetOpenSign       = 0x32
	packetAbilities      = 0x36
	packetRemovePlayers  = 0x3b
	packetPlayers        = 0x3c
	packetTeleport       = 0x3e
	packetRemoveEntities = 0x40
	packetTurnHead       = 0x44
	packetCentre         = 0x50
	packetSpawnPoint     = 0x52
	packetEntityData     = 0x54
	packetEquipment      = 0x57
	packetHealth         = 0x59
	packetTime           = 0x60
	packetSystemChat     = 0x67
	packetTeleportEntity = 0x6b
	entityPlayer         = 122
	gameModeCreative     = 1
	playerAddAndList     = 0x01 | 0x04 | 0x08 // actions of packetPlayers: add, with the game mode, in the list
	abilityCreative      = 0x01 | 0x04 | 0x08 // invulnerable, may fly, breaks at once
	interactAttack       = 1
	entityFlags          = 0    // in packetEntityData, as a byte
	entityPose           = 6    // likewise
	dataByte             = 0    // the type
	dataPose             = 20   // likewise
	dataEnd              = 0xff // after the last
	flagSneaks           = 0x02
	poseStands           = 0
	poseSneaks           = 5
	handSlot             = 0 // in packetEquipment
	digStart             = 0
	actionSneak          = 0
	actionStand          = 1
)

// fields are the bytes of a packet that have not been read. After the first that is missing every read returns zero,
// and bad is set.
type fields struct {
	data []byte
	bad  bool
}

func (f *fields) next(n int) []byte {
	if n < 0 || len(f.data) < n {
		f.data, f.bad = nil, true
		return nil
	}
	v := f.data[:n]
	f.data = f.data[n:]
	return v
}

// number reads a number of n bytes.
func (f *fields) number(n int) (v uint64) {
	for _, b := range f.next(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (f *fields) u8() byte     { return byte(f.number(1)) }
func (f *fields) i16() int16   { return int16(f.number(2)) } //nolint:gosec // two's complement
func (f *fields) u64() uint64  { return f.number(8) }
func (f *fields) f32() float32 { return math.Float32frombits(uint32(f.number(4))) } //nolint:gosec // of four bytes
func (f *fields) f64() float64 { return math.Float64frombits(f.u64()) }

// varint reads a number of at most five bytes.
func (f *fields) varint() int32 {
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := f.u8()
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return int32(v) //nolint:gosec // two's complement
		}
	}
	f.data, f.bad = nil, true
	return 0
}

// text reads a string of at most so many characters.
func (f *fields) text(most int) string {
	n := f.varint()
	if int64(n) > int64(most)*utf8.UTFMax {
		f.data, f.bad = nil, true
		return ""
	}
	b := f.next(int(n))
	if !utf8.Valid(b) || utf8.RuneCount(b) > most {
		f.data, f.bad = nil, true
		return ""
	}
	return string(b)
}

// position reads the place of a block: X and Z of 26 bits each, and Y of 12.
func (f *fields) position() grid.Pos {
	v := int64(f.u64())                                                                  //nolint:gosec // two's complement
	return grid.Pos{X: int32(v >> 38), Y: int32(v << 52 >> 52), Z: int32(v << 26 >> 38)} //nolint:gosec // of so many bits
}

// packet builds one packet.
type packet []byte

func begin(kind byte) packet { return append(make(packet, 0, 48), kind) } // room for most of them

func (p packet) u8(v ...byte) packet  { return append(p, v...) }
func (p packet) i16(v int16) packet   { return binary.BigEndian.AppendUint16(p, uint16(v)) } //nolint:gosec // two's complement
func (p packet) i32(v int32) packet   { return binary.BigEndian.AppendUint32(p, uint32(v)) } //nolint:gosec // two's complement
func (p packet) i64(v int64) packet   { return binary.BigEndian.AppendUint64(p, uint64(v)) } //nolint:gosec // two's complement
func (p packet) f32(v float32) packet { return binary.BigEndian.AppendUint32(p, math.Float32bits(v)) }

func (p packet) f64(v ...float64) packet {
	for _, v := range v {
		p = binary.BigEndian.AppendUint64(p, math.Float64bits(v))
	}
	return p
}

func (p packet) varint(v int) packet  { return binary.AppendUvarint(p, uint64(uint32(v))) } //nolint:gosec // two's complement, of 32 bits
func (p packet) text(t string) packet { return append(p.varint(len(t)), t...) }

func (p packet) longs(v []uint64) packet {
	p = p.varint(len(v))
	for _, l := range v {
		p = binary.BigEndian.AppendUint64(p, l)
	}
	return p
}

func (p packet) position(at grid.Pos) packet {
	return p.i64(int64(at.X)<<38 | int64(at.Z)&(1<<26-1)<<12 | int64(at.Y)&(1<<12-1))
}
