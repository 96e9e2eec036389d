package luanti

import (
	"crypto/rand"
	"net"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Ways to log in. The client's Login wants the first, and its Register the second: the other one is an error to it.
const (
	authSRP      = 1 << 1 // with a password that the server has a verifier of
	authFirstSRP = 1 << 2 // by sending such a verifier
)

// srpBytes is the length of a number in SRP, and saltBytes that of a salt.
const srpBytes, saltBytes = 256, 16

// maxTries is how many packets of a handshake are read.
const maxTries = 32

// readLogin reads the client's handshake, and returns the name. Players are guests: whatever their password is, it is
// not checked, and nothing of it is kept. Clients cannot go without, so they are sent numbers with which they can make
// their proof; those whose name is not known send a verifier.
func readLogin(c net.Conn, known func(name string) bool) (name string, err error) {
	buffer := make([]byte, maxPacket)
	for range maxTries {
		n, err := c.Read(buffer)
		if err != nil {
			return "", err
		}
		f := fields{rest: buffer[:n]}
		command := f.u16()
		switch {
		case n < 2, command == fromNothing, command == fromInit && name != "":
			// The first packet of a connection, or one that was sent again.
		case command == fromInit:
			if name, err = readInit(&f); err != nil {
				return "", err
			}
			way := uint32(authFirstSRP)
			if known(name) {
				way = authSRP
			}
			hello := begin(toHello).u8(serialization).u16(0).u16(protocolVersion).u32(way).text(name)
			if _, err := c.Write(hello); err != nil {
				return "", err
			}
		case name == "":
			return "", wire.Refuse(wire.FailUnexpected, "Your client did not say who you are.")
		case command == fromSRPBytesA:
			random := make([]byte, saltBytes+srpBytes)
			rand.Read(random)
			random[saltBytes] = 1 + random[saltBytes]&0x7f // less than the group's prime, and not 0
			if _, err := c.Write(begin(toSRPBytesB).bytes(random[:saltBytes]).bytes(random[saltBytes:])); err != nil {
				return "", err
			}
		case command == fromSRPBytesM, command == fromFirstSRP:
			return name, nil
		default:
			return "", wire.Refuse(wire.FailUnexpected, "Your client sent packet %d before it had logged in.", command)
		}
	}
	return "", wire.Refuse(wire.FailUnexpected, "Your client did not log in.")
}

// readInit reads a client's first packet.
func readInit(f *fields) (name string, err error) {
	f.u8()  // the newest version of map blocks
	f.u16() // ways to compress, of which there are none
	oldest, newest := f.u16(), f.u16()
	name = f.text()
	switch {
	case f.short:
		return "", wire.Refuse(wire.FailBadValue, "Your client's first packet is cut off.")
	case oldest > protocolVersion || newest < protocolVersion:
		return "", wire.Refuse(wire.FailWrongVersion, "This server speaks Luanti protocol %d, as versions 5.6 to 5.15 do. Your client speaks %d to %d: use another version.", protocolVersion, oldest, newest)
	case player.CheckName(name) != nil:
		return "", wire.Refuse(wire.FailBadName, "Choose a name of 1 to %d letters, digits, _ and -.", player.MaxName)
	}
	return name, nil
}
