package crowd

import (
	"encoding/binary"
	"math/rand/v2"
	"net"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// protocol is what players say: sessions, or what the floor program takes for one. A carrier frames it.
type protocol interface {
	// enter joins, and returns when the player is in the world. Chunks that arrive on the way go to the height map;
	// what arrived after them is early.
	enter(c net.Conn, target, name string, view int, land *HeightMap) (at arrival, early []byte, err error)
	// appendMove appends a move, without its frame.
	appendMove(dst []byte, pose motion.Pose) []byte
	// decode decodes a message for a sample. It calls see for each avatar that it shows, and reports whether it is a
	// frame with any. The scene keeps the state of earlier messages.
	decode(scene *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error)
}

// arrival is the state of a player on entering the world.
type arrival struct {
	player string // id
	pose   motion.Pose
	height int // of the world, in blocks
}

// session is the session protocol in CBOR.
type session struct{}

func (session) enter(c net.Conn, target, name string, view int, land *HeightMap) (a arrival, early []byte, err error) {
	s, err := sessionclient.Open(c, target)
	if err != nil {
		return a, nil, err
	}
	if _, err := s.Join(sessionmsg.Join{Name: name, View: view, Encoding: sessionmsg.EncodingCBOR}); err != nil {
		return a, nil, err
	}
	welcome, err := s.Enter(func(m sessionclient.Message) error {
		if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
			return land.add(data)
		}
		return nil
	})
	return arrival{player: welcome.Player, pose: welcome.Pose, height: grid.ChunkSize * welcome.Sections}, s.Buffered(), err
}

func (session) appendMove(dst []byte, pose motion.Pose) []byte {
	return sessionmsg.AppendMove(dst, pose)
}

func (session) decode(scene *sessionmsg.AvatarDecoder, message []byte, see func(player string, pose motion.Pose)) (frame bool, err error) {
	if message[0] != sessionmsg.TickFrame {
		return false, nil
	}
	if err := scene.Read(message, nil); err != nil {
		return false, err
	}
	scene.Each(0, func(_ uint32, id player.ID, pose motion.Pose) { see(id.String(), pose) })
	return true, nil
}

// floor is the floor program (test/bench/floor): moves of a fixed size, and frames. Their contents are arbitrary.
type floor struct{ move []byte }

func (floor) enter(net.Conn, string, string, int, *HeightMap) (arrival, []byte, error) {
	x, z := rand.Float64()*30+1, rand.Float64()*30+1 // the position is not used
	return arrival{pose: motion.Pose{X: x, Y: 300, Z: z}, height: 128}, nil, nil
}

func (f floor) appendMove(dst []byte, _ motion.Pose) []byte { return append(dst, f.move...) }

func (floor) decode(*sessionmsg.AvatarDecoder, []byte, func(string, motion.Pose)) (bool, error) {
	return true, nil
}

// floorFrames carries the floor program's messages over TCP: moves as they are, and frames after their length in four
// bytes, little-endian.
type floorFrames struct{}

// Append implements sessionclient.Carrier.
func (floorFrames) Append(dst, message []byte) []byte { return append(dst, message...) }

// Split implements sessionclient.Carrier.
func (floorFrames) Split(received []byte) (message, answer, rest []byte, err error) {
	if len(received) < 4 {
		return nil, nil, received, nil
	}
	n := 4 + int(binary.LittleEndian.Uint32(received))
	if len(received) < n {
		return nil, nil, received, nil
	}
	return received[4:n], nil, received[n:], nil
}

// inbound is what a sample has received.
type inbound struct{ rest []byte } // of a message that is incomplete

// each calls handle with each message that is complete now. Nothing is answered: nodes send no pings, and a sample that
// a node has closed is lost.
func (b *inbound) each(carrier sessionclient.Carrier, received []byte, handle func(message []byte) error) error {
	rest := received
	if len(b.rest) > 0 {
		b.rest = append(b.rest, received...)
		rest = b.rest
	}
	for {
		message, _, left, err := carrier.Split(rest)
		if err != nil {
			return err
		}
		if len(left) == len(rest) {
			break
		}
		rest = left
		if message == nil {
			continue
		}
		if err := handle(message); err != nil {
			return err
		}
	}
	b.rest = append(b.rest[:0], rest...)
	return nil
}
