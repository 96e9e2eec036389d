package crowd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/voxelpopuli/voxeld/motion"
)

// minecraftCodec is Minecraft Java 1.20.2. Long packets, which are deflated, are not read.
type minecraftCodec struct{ unsampled }

const (
	minecraftVersion = 764
	minecraftLongest = 2 << 20 // packet

	// Packets from the server, in the order of a login, and then in the game.
	minecraftCompress, minecraftAccepted, minecraftConfigured = 3, 2, 2
	minecraftTeleport, minecraftKeepAlive                     = 0x3e, 0x24
	// Packets from the client, likewise.
	minecraftAcknowledge, minecraftFinish           = 3, 2
	minecraftConfirm, minecraftAlive, minecraftMove = 0, 0x14, 0x17
)

// enter logs in, and waits for the place where the client begins.
func (m minecraftCodec) enter(c net.Conn, name string, _ int, _ *HeightMap) (a arrival, early []byte, err error) {
	hello := append(binary.AppendUvarint([]byte{0}, minecraftVersion), 0, 0, 0, 2) // to no host and port, to log in
	login := append(append([]byte{0, byte(len(name))}, name...), make([]byte, 16)...)
	opening := append([]byte{byte(len(hello))}, hello...)
	if _, err := c.Write(append(append(opening, byte(len(login))), login...)); err != nil {
		return a, nil, err
	}
	in := bufio.NewReader(c)
	if _, err := awaitMinecraft(in, minecraftCompress, 0); err != nil {
		return a, nil, err
	}
	for _, step := range [...]struct{ kind, answer byte }{{minecraftAccepted, minecraftAcknowledge}, {minecraftConfigured, minecraftFinish}} {
		if _, err := awaitMinecraft(in, step.kind, 1); err != nil {
			return a, nil, err
		}
		if _, err := c.Write(minecraftPacket(step.answer, nil)); err != nil {
			return a, nil, err
		}
	}
	at, err := awaitMinecraft(in, minecraftTeleport, 1)
	if err != nil {
		return a, nil, err
	}
	const flags = 3*8 + 2*4 // after the place, and where the player looks
	if _, err := c.Write(minecraftPacket(minecraftConfirm, at[flags+1:])); err != nil {
		return a, nil, err
	}
	for i, v := range []*float64{&a.pose.X, &a.pose.Y, &a.pose.Z} {
		*v = math.Float64frombits(binary.BigEndian.Uint64(at[8*i:]))
	}
	a.player, a.height = name, 128
	a.hear = (&packetStream{inbound{split: splitMinecraft}, readMinecraft}).hear
	early, err = in.Peek(in.Buffered())
	return a, bytes.Clone(early), err
}

// awaitMinecraft returns the fields of the next packet of a kind. It is after so many bytes: one if packets may be deflated.
func awaitMinecraft(in *bufio.Reader, kind byte, after int) ([]byte, error) {
	for {
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		packet := make([]byte, min(size, minecraftLongest))
		if _, err := io.ReadFull(in, packet); err != nil {
			return nil, err
		}
		switch {
		case len(packet) <= after:
			return nil, fmt.Errorf("a packet of %d bytes", size)
		case after == 0 && packet[0] != kind:
			return nil, fmt.Errorf("refused: %q", packet[1:])
		case packet[0] == 0 && after == 1 && packet[1] == kind, after == 0:
			return packet[after+1:], nil
		}
	}
}

func minecraftPacket(kind byte, fields []byte) []byte {
	return append([]byte{byte(2 + len(fields)), 0, kind}, fields...) // all are short, and not deflated
}

// appendMove appends a place, and where the player looks, in degrees.
func (minecraftCodec) appendMove(dst []byte, pose motion.Pose) ([]byte, error) {
	dst = append(dst, 2+3*8+2*4+1, 0, minecraftMove)
	for _, v := range [...]float64{pose.X, pose.Y, pose.Z} {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
	}
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(float64(pose.Yaw)*180/math.Pi)))
	return append(dst, 0, 0, 0, 0, 1), nil // level, on the ground
}

func splitMinecraft(received []byte) (packet, rest []byte, err error) {
	size, n := binary.Uvarint(received)
	switch {
	case n < 0 || size > minecraftLongest:
		return nil, nil, errors.New("packet too long")
	case n == 0 || len(received) < n+int(size):
		return nil, received, nil
	}
	return received[n : n+int(size)], received[n+int(size):], nil
}

// readMinecraft answers the question whether the client is there.
func readMinecraft(packet []byte) (reply []byte, err error) {
	switch {
	case len(packet) < 2 || packet[0] != 0:
	case packet[1] == minecraftTeleport:
		return nil, errPutBack
	case packet[1] == minecraftKeepAlive:
		return minecraftPacket(minecraftAlive, packet[2:]), nil
	}
	return nil, nil
}
