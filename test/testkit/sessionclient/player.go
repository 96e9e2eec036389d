package sessionclient

import (
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Player is a player in JSON, with the land that they see. A goroutine reads their messages into Inbox until the
// connection ends; the player's own goroutine receives them and calls Apply.
type Player struct {
	*Conn
	Inbox   <-chan Arrival // closed when the connection has ended
	Welcome sessionmsg.Welcome
	Pose    motion.Pose // as the server knows it
	Chunks  map[grid.ChunkPos]*chunk.Chunk

	quit chan struct{} // closed by Leave
}

// Arrival is a message, and when it was received. Err is set for one that cannot be decoded.
type Arrival struct {
	sessionmsg.FromServer
	At  time.Time
	Err error
}

// NewPlayer starts to read a session whose Join has been sent.
func NewPlayer(c *Conn) *Player {
	inbox := make(chan Arrival, 1024)
	p := &Player{Conn: c, Inbox: inbox, Chunks: make(map[grid.ChunkPos]*chunk.Chunk), quit: make(chan struct{})}
	go func() { // ends with the connection; Leave awaits it
		defer close(inbox)
		for {
			m, err := c.Read()
			if err != nil && m.Size == 0 {
				return
			}
			select {
			case inbox <- Arrival{m.FromServer, m.At, err}:
			case <-p.quit:
				return
			}
		}
	}()
	return p
}

// Leave ends the session, and awaits its reader.
func (p *Player) Leave() {
	close(p.quit)
	p.Close() //nolint:errcheck // it may be broken
	for range p.Inbox {
	}
}

// Apply applies a message to what the player sees. It returns the pieces of a frame, decoded.
func (p *Player) Apply(m sessionmsg.FromServer) ([]sessionmsg.Piece, error) {
	switch m := m.(type) {
	case sessionmsg.Welcome:
		p.Welcome, p.Pose = m, m.Pose
	case sessionmsg.ChunkData:
		plain, err := wire.UnpackChunk(m.Data)
		if err == nil {
			p.Chunks[m.Chunk], err = chunk.Decode(plain)
		}
		if err != nil {
			return nil, fmt.Errorf("chunk %v: %w", m.Chunk, err)
		}
	case sessionmsg.ChunkGone:
		delete(p.Chunks, m.Chunk)
	case sessionmsg.Correction:
		p.Pose = m.Pose
	case sessionmsg.Frame:
		pieces := make([]sessionmsg.Piece, len(m.Chunks))
		for i, raw := range m.Chunks {
			var err error
			if pieces[i], err = sessionmsg.DecodePiece(raw); err != nil {
				return nil, err
			}
			for _, b := range pieces[i].Blocks {
				if c := p.Chunks[pieces[i].Chunk]; c != nil {
					c.Set(chunk.At(grid.Pos{X: b.X, Y: b.Y, Z: b.Z}), chunk.Block(b.Block))
				}
			}
		}
		return pieces, nil
	}
	return nil, nil
}

// Block returns the block that the player sees at a position; false while its chunk has not arrived.
func (p *Player) Block(pos grid.Pos) (chunk.Block, bool) {
	c := p.Chunks[pos.Chunk()]
	if c == nil {
		return chunk.Air, false
	}
	return c.Get(chunk.At(pos)), true
}
