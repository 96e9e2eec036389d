package classicube

import (
	"bufio"
	"encoding/binary"
	"io"
	"strings"

	"github.com/voxelpopuli/voxeld/wire"
)

// Packets, by their first byte. Numbers are big-endian, and strings have 64 bytes, filled up with spaces.
const (
	packetIdentification = 0x00
	packetPing           = 0x01
	packetLevelBegin     = 0x02
	packetLevelData      = 0x03
	packetLevelEnd       = 0x04
	packetSetBlockClient = 0x05
	packetSetBlock       = 0x06
	packetSpawn          = 0x07
	packetTeleport       = 0x08
	packetDespawn        = 0x0c
	packetMessage        = 0x0d
	packetDisconnect     = 0x0e
	packetUserType       = 0x0f

	// Of CPE.
	packetExtInfo          = 0x10
	packetExtEntry         = 0x11
	packetClickDistance    = 0x12
	packetCustomBlocks     = 0x13
	packetAddPlayerName    = 0x16
	packetRemovePlayerName = 0x18
	packetEnvColor         = 0x19
	packetHackControl      = 0x20
	packetAddEntity2       = 0x21
	packetPlayerClick      = 0x22
	packetDefineBlockExt   = 0x25
	packetMapProperty      = 0x29
	packetTwoWayPing       = 0x2b
	packetInventoryOrder   = 0x2c
	packetSetHotbar        = 0x2d
)

const (
	protocolVersion = 7
	cpeMark         = 0x42 // in an identification: the client speaks CPE
	textBytes       = 64
	selfID          = 255 // the client's own player
	levelPart       = 1024
)

// sizes has the lengths of the packets that a client may send, without the first byte.
var sizes = map[byte]int{
	packetIdentification: 1 + 2*textBytes + 1, packetSetBlockClient: 8, packetTeleport: 9, packetMessage: 1 + textBytes,
	packetExtInfo: textBytes + 2, packetExtEntry: textBytes + 4, packetCustomBlocks: 1, packetTwoWayPing: 3,
	packetPlayerClick: 14,
}

const largestPacket = 1 + 2*textBytes + 1

// packetReader reads the packets of a client. Its buffer is reused.
type packetReader struct {
	in  *bufio.Reader
	buf [largestPacket]byte
}

// next reads a packet: its first byte, and the rest, which is valid until the next call.
func (r *packetReader) next() (kind byte, body fields, err error) {
	if kind, err = r.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, known := sizes[kind]
	if !known {
		return 0, nil, wire.Refuse(wire.FailUnknownMessage, "Your client sent packet %#x, which this server does not know.", kind)
	}
	if _, err := io.ReadFull(r.in, r.buf[:size]); err != nil {
		return 0, nil, err
	}
	return kind, r.buf[:size], nil
}

// fields are the bytes of a packet that have not been read. Its methods take from the front; the packet has its size.
type fields []byte

func (f *fields) u8() byte {
	v := (*f)[0]
	*f = (*f)[1:]
	return v
}

func (f *fields) u16() uint16 {
	v := binary.BigEndian.Uint16(*f)
	*f = (*f)[2:]
	return v
}

func (f *fields) u32() uint32 {
	v := binary.BigEndian.Uint32(*f)
	*f = (*f)[4:]
	return v
}

func (f *fields) text() string {
	v := (*f)[:textBytes]
	*f = (*f)[textBytes:]
	return decodeText(v)
}

// shortPacket is enough for the packets of every tick.
const shortPacket = 16

// packet builds one packet.
type packet []byte

func begin(kind byte) packet { return append(make(packet, 0, shortPacket), kind) }

func (p packet) u8(v ...byte) packet   { return append(p, v...) }
func (p packet) u16(v uint16) packet   { return binary.BigEndian.AppendUint16(p, v) }
func (p packet) u32(v uint32) packet   { return binary.BigEndian.AppendUint32(p, v) }
func (p packet) text(t string) packet  { return p.line(encodeText(t, false)) }
func (p packet) place(at place) packet { return p.u16(at.x).u16(at.y).u16(at.z).u8(at.yaw, at.pitch) }

// spaces fill up a text.
var spaces = strings.Repeat(" ", textBytes)

// line appends text that is encoded already. What is too long is cut off.
func (p packet) line(t []byte) packet {
	n := min(len(t), textBytes)
	return append(append(p, t[:n]...), spaces[n:]...)
}

// disconnect returns the packet that ends a connection with a reason.
func disconnect(why string) packet { return begin(packetDisconnect).text(why) }
