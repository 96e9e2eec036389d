package chaos

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// session is one connection of a player, over the session protocol. One goroutine reads; everything else belongs to
// the player's goroutine.
type session struct {
	node    *Node
	conn    net.Conn
	inbox   chan message  // closed when the connection has ended
	quit    chan struct{} // closed by close
	welcome sessionmsg.Welcome
	pose    motion.Pose
	chunks  map[grid.ChunkPos]*chunk.Chunk
	streams map[grid.ChunkPos]int // of Sights, by chunk
}

// message is a received message and its time.
type message struct {
	at time.Time
	sessionmsg.FromServer
}

const (
	dialLimit    = 2 * time.Second
	welcomeLimit = 8 * time.Second // a node asks the network for the player's record, which may take 3 s
)

// join opens a session, and returns after the welcome.
func join(ctx context.Context, n *Node, name string, view int) (*session, error) {
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(dial, "tcp", n.Game)
	if err != nil {
		return nil, fmt.Errorf("join node %d: %w", n.Number, err)
	}
	s := &session{
		node: n, conn: conn, inbox: make(chan message, 256), quit: make(chan struct{}),
		chunks: make(map[grid.ChunkPos]*chunk.Chunk), streams: make(map[grid.ChunkPos]int),
	}
	go s.read()
	if err := s.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: view, Encoding: "json"}); err != nil {
		s.close()
		return nil, err
	}
	limit := time.NewTimer(welcomeLimit)
	defer limit.Stop()
	for {
		select {
		case m, open := <-s.inbox:
			switch m := m.FromServer.(type) {
			case sessionmsg.Welcome:
				s.welcome, s.pose = m, m.Pose
				return s, nil
			case sessionmsg.Failure:
				s.close()
				return nil, fmt.Errorf("join node %d: %s: %s", n.Number, m.Code, m.Message)
			case sessionmsg.Reconnect:
				s.close()
				return nil, fmt.Errorf("join node %d: %s", n.Number, m.Reason)
			}
			if !open {
				s.close()
				return nil, fmt.Errorf("join node %d: connection closed", n.Number)
			}
		case <-limit.C:
			s.close()
			return nil, fmt.Errorf("join node %d: no welcome within %v", n.Number, welcomeLimit)
		case <-ctx.Done():
			s.close()
			return nil, ctx.Err()
		}
	}
}

// close ends the session, and awaits its reader.
func (s *session) close() {
	close(s.quit)
	s.conn.Close() //nolint:errcheck // it may be broken
	for range s.inbox {
	}
}

// read forwards what arrives. It skips unknown messages, which are newer than this driver.
func (s *session) read() {
	defer close(s.inbox)
	in := bufio.NewReaderSize(s.conn, 64<<10)
	for {
		data, err := wire.ReadLine(in, wire.MaxServerLine)
		if err != nil {
			return
		}
		m, err := sessionmsg.DecodeServer(data)
		if err != nil {
			continue
		}
		select {
		case s.inbox <- message{time.Now(), m}:
		case <-s.quit:
			return
		}
	}
}

func (s *session) send(m sessionmsg.FromClient) error {
	data, err := sessionmsg.EncodeClient(m)
	if err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return fmt.Errorf("send to node %d: %w", s.node.Number, err)
	}
	if _, err := s.conn.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("send to node %d: %w", s.node.Number, err)
	}
	return nil
}

// apply applies a message to the session's land, and returns the block changes to record.
func (s *session) apply(m sessionmsg.FromServer) ([]sessionmsg.BlockChange, error) {
	switch m := m.(type) {
	case sessionmsg.ChunkData:
		plain, err := wire.UnpackChunk(m.Data)
		if err != nil {
			return nil, fmt.Errorf("chunk from node %d: %w", s.node.Number, err)
		}
		if s.chunks[m.Chunk], err = chunk.Decode(plain); err != nil {
			return nil, fmt.Errorf("chunk from node %d: %w", s.node.Number, err)
		}
		delete(s.streams, m.Chunk)
	case sessionmsg.ChunkGone:
		delete(s.chunks, m.Chunk)
		delete(s.streams, m.Chunk)
	case sessionmsg.Correction:
		s.pose = m.Pose
	case sessionmsg.Frame:
		var all []sessionmsg.BlockChange
		for _, raw := range m.Chunks {
			piece, err := sessionmsg.DecodePiece(raw)
			if err != nil {
				return nil, fmt.Errorf("piece from node %d: %w", s.node.Number, err)
			}
			for _, b := range piece.Blocks {
				if c := s.chunks[piece.Chunk]; c != nil {
					c.Set(chunk.At(grid.Pos{X: b.X, Y: b.Y, Z: b.Z}), chunk.Block(b.Block))
				}
			}
			all = append(all, piece.Blocks...)
		}
		return all, nil
	}
	return nil, nil
}

// hover is the height at which players fly: above all blocks.
const hover = worldHeight + .25

const (
	worldHeight = 32
	// flySpeed is in blocks per second, below the 20 that the rules allow in each direction.
	flySpeed = 17.
	// tickInterval is the interval of a player's moves and edits.
	tickInterval = 100 * time.Millisecond
)

// fly takes one step towards a place at hover height: up first, then straight there. It reports whether the player
// has arrived.
func (s *session) fly(x, z float64) (arrived bool, err error) {
	const step = flySpeed * float64(tickInterval) / float64(time.Second)
	p := s.pose
	dx, dy, dz := x-p.X, hover-p.Y, z-p.Z
	way := math.Hypot(dx, dz)
	switch {
	case dy > 0:
		p.Y += min(step, dy)
	case way == 0:
		return true, nil
	case way <= step:
		p.X, p.Z = x, z
	default:
		p.X, p.Z = p.X+dx/way*step, p.Z+dz/way*step
	}
	s.pose = p
	return false, s.send(sessionmsg.Move{Pose: p})
}

// loaded reports whether the chunk of a position has arrived.
func (s *session) loaded(pos grid.Pos) bool { return s.chunks[pos.Chunk()] != nil }

// reaches reports whether the position is within the player's reach. The rules measure from the eyes to the block.
func (s *session) reaches(pos grid.Pos) bool {
	const eyes, arm = 1.62, 8
	gap := func(eye float64, low int32) float64 { return max(0, float64(low)-eye, eye-float64(low+1)) }
	return math.Hypot(math.Hypot(gap(s.pose.X, pos.X), gap(s.pose.Z, pos.Z)), gap(s.pose.Y+eyes, pos.Y)) <= arm
}
