package crowd

import (
	"bufio"
	littleEndian "encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// codec is a protocol's codec: everything in this package that depends on the encoding.
type codec interface {
	// enter opens the connection, and returns when the player is in the world. Chunks that arrive on the way go to
	// the height map.
	enter(c net.Conn, in *bufio.Reader, name string, view int, land *HeightMap) (arrival, error)
	// appendMove encodes a move.
	appendMove(dst []byte, pose motion.Pose) ([]byte, error)
	// split splits the first whole message off what was received; message is nil if it is incomplete.
	split(received []byte) (message, rest []byte, err error)
	// decode decodes a message for a sample. It calls see for each avatar that it shows, and reports whether it is a
	// frame with any. The scene keeps the state of earlier messages.
	decode(scene *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error)
	// chunk reports whether a message contains a whole chunk, and which.
	chunk(message []byte) (at grid.ChunkPos, ok bool)
}

// arrival is the state of a player on entering the world.
type arrival struct {
	player string // id
	pose   motion.Pose
	height int     // of the world, in blocks
	grain  float64 // positions are sent as multiples of it, in blocks; 0: unrounded
}

// floorCodec is the framing of the floor program (bench/floor): moves of a fixed size, and frames with a length prefix of
// four bytes, little-endian. Their contents are arbitrary.
type floorCodec struct{ move []byte }

func (floorCodec) enter(net.Conn, *bufio.Reader, string, int, *HeightMap) (arrival, error) {
	x, z := rand.Float64()*30+1, rand.Float64()*30+1 // the position is not used
	return arrival{pose: motion.Pose{X: x, Y: 300, Z: z}, height: 128}, nil
}

func (b floorCodec) appendMove(dst []byte, _ motion.Pose) ([]byte, error) {
	return append(dst, b.move...), nil
}

func (floorCodec) split(received []byte) (message, rest []byte, err error) {
	if len(received) < 4 {
		return nil, received, nil
	}
	n := 4 + int(littleEndian.LittleEndian.Uint32(received))
	if len(received) < n {
		return nil, received, nil
	}
	return received[4:n], received[n:], nil
}

func (floorCodec) decode(*sessionmsg.AvatarDecoder, []byte, func(string, motion.Pose)) (bool, error) {
	return true, nil
}

func (floorCodec) chunk([]byte) (at grid.ChunkPos, ok bool) { return at, false }

// cborCodec is the session protocol in CBOR.
type cborCodec struct{}

func (cborCodec) enter(c net.Conn, in *bufio.Reader, name string, view int, land *HeightMap) (a arrival, err error) {
	join, err := sessionmsg.EncodeClient(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: view, Encoding: sessionmsg.EncodingCBOR})
	if err != nil {
		return a, err
	}
	if _, err := c.Write(append(join, '\n')); err != nil {
		return a, fmt.Errorf("send join: %w", err)
	}
	for {
		message, err := readMessage(in)
		if err != nil {
			return a, fmt.Errorf("await welcome: %w", err)
		}
		switch m := message.(type) {
		case sessionmsg.Welcome:
			a = arrival{player: m.Player, pose: m.Pose, height: 32 * m.Sections}
		case sessionmsg.ChunkData:
			if err := land.add(m); err != nil {
				return a, err
			}
			if m.Chunk == chunkOf(a.pose) && a.player != "" {
				return a, nil
			}
		case sessionmsg.Failure:
			return a, errors.New(m.Code + ": " + m.Message)
		}
	}
}

// readMessage reads the next message that is not a tick frame.
func readMessage(in *bufio.Reader) (sessionmsg.FromServer, error) {
	for {
		message, err := sessionmsg.ReadMessage(in, nil, wire.MaxServerLine)
		if err != nil {
			return nil, err
		}
		if message[0] != sessionmsg.TickFrame {
			return sessionmsg.DecodeServerCBOR(message)
		}
	}
}

func (cborCodec) appendMove(dst []byte, pose motion.Pose) ([]byte, error) {
	return sessionmsg.AppendMove(append(dst, 33), pose), nil
}

func (cborCodec) split(received []byte) (message, rest []byte, err error) {
	size, n := lengthOf(received)
	switch {
	case n < 0 || size > wire.MaxServerLine:
		return nil, nil, errors.New("message too long")
	case n == 0 || len(received) < n+size:
		return nil, received, nil
	}
	return received[n : n+size], received[n+size:], nil
}

// lengthOf decodes the length prefix of a message. n is 0 if the prefix is incomplete, and negative if it is invalid.
func lengthOf(b []byte) (size, n int) {
	for i := range b {
		if i == 4 {
			return 0, -1
		}
		size |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return size, i + 1
		}
	}
	return 0, 0
}

func (cborCodec) decode(scene *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error) {
	if len(message) == 0 || message[0] != sessionmsg.TickFrame {
		return false, nil
	}
	if err := scene.Read(message, nil); err != nil {
		return false, err
	}
	scene.Each(0, func(id player.ID, pose motion.Pose) { see(id.String(), pose) })
	return true, nil
}

func (cborCodec) chunk(message []byte) (at grid.ChunkPos, ok bool) {
	if len(message) == 0 || message[0] == sessionmsg.TickFrame {
		return at, false
	}
	decoded, err := sessionmsg.DecodeServerCBOR(message)
	if err != nil {
		return at, false
	}
	data, ok := decoded.(sessionmsg.ChunkData)
	return data.Chunk, ok
}
