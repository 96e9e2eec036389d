package minecraft

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"unicode/utf16"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// maxLoginName is the longest name that the game allows, in characters.
const maxLoginName = 16

// What a client wants with its connection.
const (
	wantStatus = 1
	wantLogin  = 2
)

// errStatus ends a connection that was opened for the status.
var errStatus = errors.New("the status was sent")

// Status is what the list of servers shows.
type Status struct {
	Text    string   // the message of the day
	Players []string // the names of who are here
}

const (
	maxSample = 12                                     // names of players that the list of servers is sent, as by the game's own server
	noID      = "00000000-0000-0000-0000-000000000000" // theirs: the client shows names only
)

// icon is web/public/favicon.svg, in the 64 pixels a side that the list of servers shows.
//
//go:embed icon.png
var icon []byte

// readPacket reads a packet of the handshake, of one kind.
func readPacket(in *frameReader, want byte) (fields, error) {
	frame, err := in.next()
	if err != nil {
		return fields{}, err
	}
	f := fields{data: frame}
	if kind := f.varint(); f.bad || kind != int32(want) {
		return f, wire.Refuse(wire.FailUnexpected, "Your client sent packet %#x where %#x was expected.", kind, want)
	}
	return f, nil
}

// readHandshake returns what the client wants with the connection, and its version.
func readHandshake(in *frameReader) (version, want int32, err error) {
	f, err := readPacket(in, packetHandshake)
	if err != nil {
		return 0, 0, err
	}
	version = f.varint()
	f.text(255) // the host that the client has connected to
	f.i16()     // and the port
	want = f.varint()
	if f.bad || want != wantStatus && want != wantLogin {
		return 0, 0, wire.Refuse(wire.FailBadValue, "Your client's handshake cannot be read.")
	}
	return version, want, nil
}

// answerStatus sends the status, and answers a ping.
func answerStatus(c net.Conn, in *frameReader, s Status) error {
	if _, err := readPacket(in, packetStatusRequest); err != nil {
		return err
	}
	online := len(s.Players)
	sample := make([]map[string]string, min(online, maxSample))
	for i := range sample {
		sample[i] = map[string]string{"name": s.Players[i], "id": noID}
	}
	data, err := json.Marshal(map[string]any{
		"version": map[string]any{"name": versionName, "protocol": protocolVersion},
		// There is no limit of players: the list shows room for one more.
		"players":     map[string]any{"online": online, "max": online + 1, "sample": sample},
		"description": textOf(s.Text, ""),
		"favicon":     "data:image/png;base64," + base64.StdEncoding.EncodeToString(icon),
	})
	if err != nil {
		return err
	}
	if _, err := c.Write(appendFrame(nil, begin(packetStatus).text(string(data)), false)); err != nil {
		return err
	}
	f, err := readPacket(in, packetStatusPing)
	if err != nil {
		return errStatus // the client did not ping
	}
	if _, err := c.Write(appendFrame(nil, begin(packetStatusPong).i64(int64(f.u64())), false)); err != nil { //nolint:gosec // the same bytes
		return err
	}
	return errStatus
}

// oldPing is the first byte of the ping of clients before 1.7, and of lists of servers that go by it. No handshake that
// a client sends is so long.
const oldPing = 0xfe

// answerOldPing answers an oldPing, as clients from 1.4 on read it.
func answerOldPing(c net.Conn, s Status) error {
	const theirs = 127 // a version that no such client has
	online := len(s.Players)
	text := utf16.Encode([]rune(fmt.Sprintf("§1\x00%d\x00%s\x00%s\x00%d\x00%d", theirs, versionName, textOf(s.Text, "").Text, online, online+1)))
	p := begin(packetOldKick).i16(int16(len(text))) //nolint:gosec // a world's name is short
	for _, u := range text {
		p = p.i16(int16(u)) //nolint:gosec // two's complement
	}
	if _, err := c.Write(p); err != nil {
		return err
	}
	return errStatus
}

// readLogin returns the name with which a client of a version wants to play.
func readLogin(in *frameReader, version int32) (string, error) {
	f, err := readPacket(in, packetLoginStart)
	if err != nil {
		return "", err
	}
	if version != protocolVersion {
		return "", wire.Refuse(wire.FailWrongVersion, "This server speaks Minecraft Java %s: choose that version in the launcher.", versionName)
	}
	name := f.text(maxLoginName) // what follows is the id of an account, which there is none of
	if f.bad || player.CheckName(name) != nil {
		return "", wire.Refuse(wire.FailBadName, "Choose a name of 1 to %d letters, digits, _ and -.", maxLoginName)
	}
	return name, nil
}
