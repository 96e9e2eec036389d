package crowd

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	enter(c net.Conn, target, name string, o *Options) (at arrival, early []byte, err error)
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
	height int    // of the world, in blocks
	bytes  uint64 // that were received
	view   int    // chunks in each direction
	chunks int    // that were received
}

// session is the session protocol in CBOR.
type session struct{}

func (session) enter(c net.Conn, target, name string, o *Options) (a arrival, early []byte, err error) {
	if o.Fresh {
		target += "?hashes="
	}
	s, err := sessionclient.Open(c, target)
	if err != nil {
		return a, nil, err
	}
	seed := sha256.Sum256([]byte(name))
	key := ed25519.NewKeyFromSeed(seed[:])
	join := sessionmsg.Join{Name: name, View: o.View, Encoding: sessionmsg.EncodingCBOR, Key: hex.EncodeToString(key.Public().(ed25519.PublicKey))}
	if _, err := s.Join(join); err != nil {
		return a, nil, err
	}
	welcome, err := s.Enter(func(m sessionclient.Message) (err error) {
		a.bytes += uint64(m.Size) //nolint:gosec // a size
		switch m := m.FromServer.(type) {
		case sessionmsg.Challenge:
			_, err = s.Send(sessionclient.Prove(key, m))
		case sessionmsg.Welcome:
			_, err = s.Send(sessionmsg.Ping{})
		case sessionmsg.ChunkHash:
			_, err = s.Send(sessionmsg.ChunkRequest{X: m.Chunk.X, Z: m.Chunk.Z})
		case sessionmsg.ChunkData:
			a.chunks++
			err = o.Heights.add(m)
		}
		return err
	})
	a.player, a.pose, a.height, a.view = welcome.Player, welcome.Pose, grid.ChunkSize*welcome.Sections, welcome.View
	a.bytes += uint64(len(s.Buffered()))
	return a, s.Buffered(), err
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

func (floor) enter(net.Conn, string, string, *Options) (arrival, []byte, error) {
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
