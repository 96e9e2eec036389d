package classicube

import (
	"bufio"
	"net"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Extensions that the server understands.
const (
	extClickDistance  = "ClickDistance"
	extCustomBlocks   = "CustomBlocks"
	extPlayerList     = "ExtPlayerList"
	extEnvColors      = "EnvColors"
	extMapAspect      = "EnvMapAspect"
	extMessageTypes   = "MessageTypes"
	extHackControl    = "HackControl"
	extFullCP437      = "FullCP437"
	extLongerMessages = "LongerMessages"
	extTwoWayPing     = "TwoWayPing"
	extFastMap        = "FastMap"
	extInventoryOrder = "InventoryOrder"
	extSetHotbar      = "SetHotbar"
	extPlayerClick    = "PlayerClick"
	extHeldBlock      = "HeldBlock"
	extBlockDefs      = "BlockDefinitions"
	extBlockDefsExt   = "BlockDefinitionsExt"
)

var extensions = []struct {
	name    string
	version uint32
}{
	{extClickDistance, 1},
	{extCustomBlocks, 1},
	{extPlayerList, 2},
	{extEnvColors, 1},
	{extMapAspect, 1},
	{extMessageTypes, 1},
	{extHackControl, 1},
	{extFullCP437, 1},
	{extLongerMessages, 1},
	{extTwoWayPing, 1},
	{extFastMap, 1},
	{extInventoryOrder, 1},
	{extSetHotbar, 1},
	{extPlayerClick, 1},
	{extHeldBlock, 1},
	{extBlockDefs, 1},
	{extBlockDefsExt, 2},
}

// maxExtensions is the most extensions that a client may list: ClassiCube has some 40.
const maxExtensions = 256

// features are the extensions that both sides understand.
type features map[string]bool

// level returns which blocks the client has.
func (f features) level() blocktable.ClassicLevel {
	switch {
	case !f[extCustomBlocks]:
		return blocktable.ClassicPlain
	case !f[extBlockDefs] || !f[extBlockDefsExt]:
		return blocktable.ClassicCustom
	}
	return blocktable.ClassicShaped
}

// login is the handshake of a client.
type login struct {
	name     string
	features features
}

// readLogin reads the client's identification, and agrees on extensions.
func readLogin(c net.Conn, in *packetReader) (l login, err error) {
	kind, body, err := in.next()
	if err != nil {
		return l, err
	}
	if kind != packetIdentification {
		return l, wire.Refuse(wire.FailUnexpected, "Your client did not say who you are.")
	}
	version := body.u8()
	name := body.text()
	body.text() // the pass of a central server, which there is none of
	if version != protocolVersion {
		return l, wire.Refuse(wire.FailWrongVersion, "This server speaks Classic protocol 7 (0.30), not %d.", version)
	}
	if player.CheckName(name) != nil {
		return l, wire.Refuse(wire.FailBadName, "Choose a name of 1 to %d letters, digits, _ and -.", player.MaxName)
	}
	l.name = name
	if body.u8() == cpeMark {
		l.features, err = negotiate(c, in)
	}
	return l, err
}

// negotiate sends the server's extensions, and reads the client's.
func negotiate(c net.Conn, in *packetReader) (features, error) {
	hello := begin(packetExtInfo).text("voxeld").u16(uint16(len(extensions)))
	for _, e := range extensions {
		hello = append(hello, begin(packetExtEntry).text(e.name).u32(e.version)...)
	}
	if _, err := c.Write(hello); err != nil {
		return nil, err
	}
	listed, err := expect(in, packetExtInfo)
	if err != nil {
		return nil, err
	}
	listed.text()
	n := listed.u16()
	if n > maxExtensions {
		return nil, wire.Refuse(wire.FailBadValue, "Your client lists %d extensions; at most %d are read.", n, maxExtensions)
	}
	both := make(features)
	for range n {
		entry, err := expect(in, packetExtEntry)
		if err != nil {
			return nil, err
		}
		name, version := entry.text(), entry.u32()
		for _, e := range extensions {
			if e.name == name && e.version == version {
				both[name] = true
			}
		}
	}
	if both[extCustomBlocks] {
		if _, err := c.Write(begin(packetCustomBlocks).u8(1)); err != nil {
			return nil, err
		}
		level, err := expect(in, packetCustomBlocks)
		if err != nil {
			return nil, err
		}
		both[extCustomBlocks] = level.u8() > 0
	}
	return both, nil
}

// expect reads a packet of one kind, during the handshake.
func expect(in *packetReader, want byte) (fields, error) {
	kind, body, err := in.next()
	if err == nil && kind != want {
		err = wire.Refuse(wire.FailUnexpected, "Your client sent packet %#x where %#x was expected.", kind, want)
	}
	return body, err
}

func newPacketReader(c net.Conn) *packetReader {
	return &packetReader{in: bufio.NewReaderSize(c, 4<<10)}
}
