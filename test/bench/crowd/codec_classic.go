package crowd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"

	"github.com/voxelpopuli/voxeld/motion"
)

// classicCodec is Minecraft Classic without extensions, to the port for which the daemon has --classicube.
type classicCodec struct{ unsampled }

// classicSizes are the lengths of the packets that a server sends, by their first byte, which they include.
var classicSizes = map[byte]int{
	0: 131, 1: 1, 2: 1, 3: 1028, 4: 7, 6: 8, 7: 74, 8: 10, 9: 7, 10: 5, 11: 4, 12: 2, 13: 66, 14: 65, 15: 2,
}

const (
	classicSpawn, classicTeleport, classicMessage, classicDisconnect = 7, 8, 13, 14

	classicSelf = 255
	classicUnit = 32 // to the block
	classicEyes = 51 // of what a client sends, above the feet, in units
	classicOwn  = 29 // of its own place, as the server sends it
)

// enter waits for the level, for the place where the client begins in it, and for the line that says where that is in the world.
func (classicCodec) enter(c net.Conn, name string, _ int, _ *HeightMap) (a arrival, early []byte, err error) {
	hello := fmt.Appendf([]byte{0, 7}, "%-64s%-64s\x00", name, "")
	if _, err := c.Write(hello); err != nil {
		return a, nil, err
	}
	in := bufio.NewReader(c)
	for spawned := false; ; {
		kind, err := in.Peek(1)
		if err != nil {
			return a, nil, err
		}
		size, known := classicSizes[kind[0]]
		if !known {
			return a, nil, fmt.Errorf("unknown packet %d", kind[0])
		}
		packet := make([]byte, size)
		if _, err := io.ReadFull(in, packet); err != nil {
			return a, nil, err
		}
		switch {
		case packet[0] == classicDisconnect:
			return a, nil, errors.New(strings.TrimSpace(string(packet[1:])))
		case packet[0] == classicSpawn && packet[1] == classicSelf:
			at := packet[66:]
			a.pose = motion.Pose{X: classicPlace(at), Y: classicPlace(at[2:]) - float64(classicOwn)/classicUnit, Z: classicPlace(at[4:])}
			spawned = true
		case packet[0] == classicMessage && spawned:
			var x, y, z float64
			if _, text, ok := strings.Cut(string(packet[2:]), "You are at "); !ok {
				continue
			} else if _, err := fmt.Sscan(text, &x, &y, &z); err != nil {
				return a, nil, fmt.Errorf("read where the level is: %w", err)
			}
			// what comes before the client says that it is there is ignored
			start, err := classicCodec{}.appendMove(nil, a.pose)
			if err != nil {
				return a, nil, err
			}
			if _, err := c.Write(start); err != nil {
				return a, nil, err
			}
			a.player, a.height, a.grain = name, 128, 1./classicUnit
			a.hear = (&packetStream{inbound{split: splitClassic}, readClassic}).hear
			a.cornerX, a.cornerZ = x-math.Floor(a.pose.X), z-math.Floor(a.pose.Z)
			a.pose.X += a.cornerX
			a.pose.Z += a.cornerZ
			early, err = in.Peek(in.Buffered())
			return a, early, err
		}
	}
}

func classicPlace(b []byte) float64 {
	return float64(int16(binary.BigEndian.Uint16(b))) / classicUnit //nolint:gosec // two's complement
}

func (classicCodec) appendMove(dst []byte, pose motion.Pose) ([]byte, error) {
	dst = append(dst, classicTeleport, classicSelf)
	for _, v := range [...]float64{pose.X * classicUnit, pose.Y*classicUnit + classicEyes, pose.Z * classicUnit} {
		dst = binary.BigEndian.AppendUint16(dst, uint16(int16(math.Round(v)))) //nolint:gosec // places in a level are small
	}
	yaw := byte(int(math.Round((float64(pose.Yaw)/math.Pi + 1) * 128)))
	return append(dst, yaw, 0), nil
}

func splitClassic(received []byte) (packet, rest []byte, err error) {
	if len(received) == 0 {
		return nil, received, nil
	}
	size, known := classicSizes[received[0]]
	switch {
	case !known:
		return nil, nil, fmt.Errorf("unknown packet %d", received[0])
	case len(received) < size:
		return nil, received, nil
	}
	return received[:size], received[size:], nil
}

func readClassic(packet []byte) (reply []byte, err error) {
	if packet[0] == classicTeleport && packet[1] == classicSelf {
		return nil, errPutBack
	}
	return nil, nil
}
