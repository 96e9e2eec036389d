package players

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A Gateway is a node that players can use.
type Gateway struct {
	Number int
	Game   string      // host:port
	Serves func() bool // reports whether sessions may try it; any goroutine may call it
}

// session is one connection of a player to a node. It belongs to the player's goroutine.
type session struct {
	*sessionclient.Player
	node    *Gateway
	streams map[grid.ChunkPos]int // of Sights, by chunk
}

const (
	dialLimit    = 2 * time.Second
	welcomeLimit = 8 * time.Second // a node asks the network for the player's record, which may take 1.5 s
)

// join opens a session, and returns after the welcome.
func join(ctx context.Context, n *Gateway, name string, view int) (*session, error) {
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	c, err := sessionclient.Dial(dial, n.Game, sessionmsg.Join{Name: name, View: view, Encoding: sessionmsg.EncodingJSON})
	if err != nil {
		return nil, fmt.Errorf("join node %d: %w", n.Number, err)
	}
	s := &session{Player: sessionclient.NewPlayer(c), node: n, streams: make(map[grid.ChunkPos]int)}
	if err := s.awaitWelcome(ctx); err != nil {
		s.Leave()
		return nil, fmt.Errorf("join node %d: %w", n.Number, err)
	}
	return s, nil
}

func (s *session) awaitWelcome(ctx context.Context) error {
	limit := time.NewTimer(welcomeLimit)
	defer limit.Stop()
	for s.Welcome.Player == "" {
		select {
		case m, open := <-s.Inbox:
			if !open {
				return errors.New("connection closed")
			}
			switch m := m.FromServer.(type) {
			case sessionmsg.Failure:
				return errors.New(m.Code + ": " + m.Message)
			case sessionmsg.Reconnect:
				return fmt.Errorf("%w: %s", errRedirected, m.Reason)
			}
			if _, err := s.apply(m.FromServer); err != nil {
				return err
			}
		case <-limit.C:
			return fmt.Errorf("no welcome within %v", welcomeLimit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *session) send(m sessionmsg.FromClient) error {
	err := s.SetWriteDeadline(time.Now().Add(5 * time.Second))
	if err == nil {
		_, err = s.Send(m)
	}
	if err != nil {
		return fmt.Errorf("send to node %d: %w", s.node.Number, err)
	}
	return nil
}

// apply applies a message to the session's land, and returns the block changes to record.
func (s *session) apply(m sessionmsg.FromServer) (changes []sessionmsg.BlockChange, err error) {
	pieces, err := s.Apply(m)
	if err != nil {
		return nil, fmt.Errorf("from node %d: %w", s.node.Number, err)
	}
	switch m := m.(type) {
	case sessionmsg.ChunkData:
		delete(s.streams, m.Chunk)
	case sessionmsg.ChunkGone:
		delete(s.streams, m.Chunk)
	}
	for _, piece := range pieces {
		changes = append(changes, piece.Blocks...)
	}
	return changes, nil
}

// hover is the height at which players fly: above all blocks.
const hover = worldHeight + .25

const (
	// flySpeed is in blocks per second, below the 20 that the rules allow in each direction.
	flySpeed = 17.
	// tickInterval is the interval of a player's moves and edits.
	tickInterval = 100 * time.Millisecond
)

// fly takes one step towards a place at hover height: up first, then straight there. It reports whether the player
// has arrived.
func (s *session) fly(x, z float64) (arrived bool, err error) {
	const step = flySpeed * float64(tickInterval) / float64(time.Second)
	p := s.Pose
	dx, dy, dz := x-p.X, hover-p.Y, z-p.Z
	distance := math.Hypot(dx, dz)
	switch {
	case dy > 0:
		p.Y += min(step, dy)
	case distance == 0:
		return true, nil
	case distance <= step:
		p.X, p.Z = x, z
	default:
		p.X, p.Z = p.X+dx/distance*step, p.Z+dz/distance*step
	}
	s.Pose = p
	return false, s.send(sessionmsg.Move{Pose: p})
}

// loaded reports whether the chunk of a position has arrived.
func (s *session) loaded(pos grid.Pos) bool { return s.Chunks[pos.Chunk()] != nil }

// reaches reports whether the position is within the player's reach. The rules measure from the eyes to the block.
func (s *session) reaches(pos grid.Pos) bool {
	const eyeHeight, arm = 1.62, 8
	gap := func(eye float64, low int32) float64 { return max(0, float64(low)-eye, eye-float64(low+1)) }
	return math.Hypot(math.Hypot(gap(s.Pose.X, pos.X), gap(s.Pose.Z, pos.Z)), gap(s.Pose.Y+eyeHeight, pos.Y)) <= arm
}
