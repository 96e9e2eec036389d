package luanti

import (
	"net"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Ways to log in. The client's Login wants the first, and its Register the second: the other one is an error to it.
const (
	authSRP      = 1 << 1 // with a password that the server has a verifier of
	authFirstSRP = 1 << 2 // by sending such a verifier
)

// maxTries is how many packets of a handshake are read.
const maxTries = 32

// readLogin reads the client's handshake, and returns the name, and the verifier of the password that the client has
// proved to know, or has chosen for a name that is not known. There is none for an empty password, nor for a name that
// is known without: clients cannot go without, so these are sent random numbers with which to make their proof.
func readLogin(c net.Conn, look func(name string) (*player.Verifier, bool, error)) (name string, proved *player.Verifier, err error) {
	var verifier *player.Verifier
	var known bool
	var login *srpLogin
	buffer := make([]byte, maxPacket)
	for range maxTries {
		n, err := c.Read(buffer)
		if err != nil {
			return "", nil, err
		}
		f := fields{rest: buffer[:n]}
		command := f.u16()
		switch {
		case n < 2, command == fromNothing, command == fromInit && name != "":
			// The first packet of a connection, or one that was sent again.
		case command == fromInit:
			if name, err = readInit(&f); err != nil {
				return "", nil, err
			}
			if verifier, known, err = look(name); err != nil {
				return "", nil, err
			}
			way := uint32(authFirstSRP)
			if known {
				way = authSRP
			}
			hello := begin(toHello).u8(serialization).u16(0).u16(protocolVersion).u32(way).text(name)
			if _, err := c.Write(hello); err != nil {
				return "", nil, err
			}
		case name == "":
			return "", nil, wire.Refuse(wire.FailUnexpected, "Your client did not say who you are.")
		case command == fromFirstSRP && !known:
			proved, err = chosen(&f)
			return name, proved, err
		case command == fromSRPBytesA && known && login == nil:
			if login, err = newSRPLogin(name, f.text(), verifier); err != nil {
				return "", nil, err
			}
			if _, err := c.Write(begin(toSRPBytesB).bytes(login.salt).bytes(login.b)); err != nil {
				return "", nil, err
			}
		case command == fromSRPBytesM && login != nil:
			if !login.proves(f.text()) {
				return "", nil, wire.Refuse(wire.FailNameTaken, "That is not the password of %s. If the name is not yours, choose another one.", name)
			}
			return name, verifier, nil
		default:
			return "", nil, wire.Refuse(wire.FailUnexpected, "Your client sent packet %d before it had logged in.", command)
		}
	}
	return "", nil, wire.Refuse(wire.FailUnexpected, "Your client did not log in.")
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
