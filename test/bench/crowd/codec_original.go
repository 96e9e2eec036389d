package crowd

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// originalCodec is VoxelPopuli's own protocol (docs/protocol.md, section 3), with the server of one chunk. Players are
// registered in that chunk, and never leave it.
type originalCodec struct{ at grid.ChunkPos }

// originalGrain is the grid of the positions that players of the original protocol send, in blocks. Its multiples are
// exact in decimal and in binary, so a position that is relayed unchanged equals the one that was sent.
const originalGrain = 1. / 64

// enter connects, waits for the land, registers, and waits for the first TIME, which only registered players receive.
func (o originalCodec) enter(nc net.Conn, name string, _ int, land *HeightMap) (a arrival, early []byte, err error) {
	c := legacyclient.New(nc)
	if _, err := c.Handshake(legacymsg.Handshake{Purpose: legacymsg.PurposeConnect, Chunk: o.at, Player: name}); err != nil {
		return a, nil, err
	}
	line, err := await(c, legacyclient.IsChunkData)
	if err != nil {
		return a, nil, fmt.Errorf("await land: %w", err)
	}
	if err := land.addOriginal(o.at, line); err != nil {
		return a, nil, err
	}
	if _, err := c.Send(legacymsg.PlayerRegister{Player: name, Chunk: o.at}); err != nil {
		return a, nil, err
	}
	if _, err := await(c, legacyclient.IsTime); err != nil {
		return a, nil, fmt.Errorf("await registration: %w", err)
	}
	// The protocol does not transmit the player's position: their first move sets it.
	corner := o.at.Origin()
	place := func(from int32) float64 {
		return float64(from) + edgeInset + rand.Float64()*(grid.ChunkSize-2*edgeInset)
	}
	a = arrival{player: name, pose: motion.Pose{X: place(corner.X), Z: place(corner.Z)}, height: legacymsg.SlabHeight, grain: originalGrain}
	a.pose.Y = land.chunk(o.at).groundHeight(a.pose.X, a.pose.Z)
	return a, c.Buffered(), nil
}

// await returns the next line of a kind, and skips those before it.
func await(c *legacyclient.Conn, kind func(line []byte) bool) ([]byte, error) {
	for {
		line, err := c.ReadLine()
		if err != nil || kind(line) {
			return line, err
		}
	}
}

// appendMove encodes a PLAYER_MOVE without the name, which the server has from the handshake.
func (originalCodec) appendMove(dst []byte, pose motion.Pose) ([]byte, error) {
	return legacymsg.AppendPacket(dst, legacymsg.PlayerMove{X: pose.X, Y: pose.Y, Z: pose.Z, Yaw: legacymsg.OriginalYaw(pose.Yaw)})
}

func (originalCodec) split(received []byte) (message, rest []byte, err error) {
	i := bytes.IndexByte(received, '\n')
	if i > wire.MaxServerLine || i < 0 && len(received) > wire.MaxServerLine {
		return nil, nil, errors.New("line too long")
	}
	if i < 0 {
		return nil, received, nil
	}
	return received[:i], received[i+1:], nil
}

// decode treats TIME as a frame: the server sends one each tick.
func (originalCodec) decode(_ *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error) {
	if legacyclient.IsChunkData(message) { // not worth decoding
		return false, nil
	}
	packet, err := legacymsg.DecodePacket(message)
	if err != nil {
		return false, err
	}
	switch p := packet.(type) {
	case legacymsg.PlayerMove:
		see(p.Player, motion.Pose{X: p.X, Y: p.Y, Z: p.Z, Yaw: legacymsg.YawOfOriginal(p.Yaw)})
	case legacymsg.TimeOfDay:
		return true, nil
	}
	return false, nil
}
