package crowd

import (
	littleEndian "encoding/binary"
	"errors"
	"math/rand/v2"
	"net"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// codec is a protocol's codec: everything in this package that depends on the encoding.
type codec interface {
	// enter opens the connection, and returns when the player is in the world. Chunks that arrive on the way go to
	// the height map; what arrived after them is early.
	enter(c net.Conn, name string, view int, land *HeightMap) (at arrival, early []byte, err error)
	// appendMove encodes a move.
	appendMove(dst []byte, pose motion.Pose) ([]byte, error)
	// split splits the first whole message off what was received; message is nil if it is incomplete.
	split(received []byte) (message, rest []byte, err error)
	// decode decodes a message for a sample. It calls see for each avatar that it shows, and reports whether it is a
	// frame with any. The scene keeps the state of earlier messages.
	decode(scene *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error)
}

// arrival is the state of a player on entering the world.
type arrival struct {
	player string // id
	pose   motion.Pose
	height int     // of the world, in blocks
	grain  float64 // positions are sent as multiples of it, in blocks; 0: unrounded
	// Positions are sent relative to this corner.
	cornerX, cornerZ float64
	head             []byte // before each move
	// hear returns what the client answers to what it has received; nil if it answers nothing.
	hear func(received []byte) (reply []byte, err error)
}

// floorCodec is the framing of the floor program (test/bench/floor): moves of a fixed size, and frames with a length prefix of
// four bytes, little-endian. Their contents are arbitrary.
type floorCodec struct{ move []byte }

func (floorCodec) enter(net.Conn, string, int, *HeightMap) (arrival, []byte, error) {
	x, z := rand.Float64()*30+1, rand.Float64()*30+1 // the position is not used
	return arrival{pose: motion.Pose{X: x, Y: 300, Z: z}, height: 128}, nil, nil
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

// cborCodec is the session protocol in CBOR.
type cborCodec struct{}

func (cborCodec) enter(c net.Conn, name string, view int, land *HeightMap) (arrival, []byte, error) {
	return enterSession(c, name, view, func(m sessionclient.Message) error {
		if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
			return land.add(data)
		}
		return nil
	})
}

// enterSession joins, and returns when the player is in the world. It calls each with every message on the way, and
// returns what arrived after them.
func enterSession(c net.Conn, name string, view int, each func(sessionclient.Message) error) (a arrival, early []byte, err error) {
	s := sessionclient.New(c)
	if _, err := s.Join(sessionmsg.Join{Name: name, View: view, Encoding: sessionmsg.EncodingCBOR}); err != nil {
		return a, nil, err
	}
	welcome, err := s.Enter(each)
	return arrival{player: welcome.Player, pose: welcome.Pose, height: grid.ChunkSize * welcome.Sections}, s.Buffered(), err
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
	scene.Each(0, func(_ uint32, id player.ID, pose motion.Pose) { see(id.String(), pose) })
	return true, nil
}

// errPutBack is the error of a player whose move was refused: then the crowd does not do what it should.
var errPutBack = errors.New("the server put the player back")

// unsampled is what codecs without samples have in common.
type unsampled struct{}

func (unsampled) split(received []byte) (message, rest []byte, err error) { return nil, received, nil }

func (unsampled) decode(*sessionmsg.AvatarDecoder, []byte, func(string, motion.Pose)) (bool, error) {
	return false, nil
}

// inbound is what a player receives over TCP.
type inbound struct {
	rest  []byte // of a message that is incomplete
	split func(received []byte) (message, rest []byte, err error)
}

// each calls handle with each message that is complete now.
func (b *inbound) each(received []byte, handle func(message []byte) error) error {
	rest := received
	if len(b.rest) > 0 {
		b.rest = append(b.rest, received...)
		rest = b.rest
	}
	for {
		message, left, err := b.split(rest)
		if err != nil {
			return err
		}
		if message == nil {
			break
		}
		rest = left
		if err := handle(message); err != nil {
			return err
		}
	}
	b.rest = append(b.rest[:0], rest...)
	return nil
}

// packetStream is arrival.hear of a game over TCP.
type packetStream struct {
	inbound
	// read returns what the client answers; nil for nothing.
	read func(packet []byte) (reply []byte, err error)
}

func (s *packetStream) hear(received []byte) (reply []byte, err error) {
	err = s.each(received, func(packet []byte) error {
		answer, err := s.read(packet)
		reply = append(reply, answer...)
		return err
	})
	return reply, err
}
