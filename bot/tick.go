package bot

import (
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// tickReader reads a session in CBOR. It belongs to the goroutine that reads.
type tickReader struct {
	p     *sessionPlayer
	buf   []byte
	names map[uint32]string // player ids by index

	// of the current frame
	watch *probeReader
	now   arrival
}

func (r *tickReader) readOne(w *probeReader) (arrival, error) {
	data, err := sessionmsg.ReadMessage(r.p.conn.in, r.buf, wire.MaxServerLine)
	if err != nil {
		return arrival{}, fmt.Errorf("read message: %w", err)
	}
	r.buf = data
	r.now = arrival{at: time.Now()}
	size := len(data) + lengthBytes(len(data))
	if data[0] == sessionmsg.TickFrame {
		r.p.meter.read("frame", size)
		r.watch = w
		return r.now, sessionmsg.ReadTick(data, r)
	}
	m, err := sessionmsg.DecodeServerCBOR(data)
	if err != nil {
		return arrival{}, err
	}
	r.p.meter.read(kindOf(m), size)
	r.now.message = m
	return r.now, nil
}

// lengthBytes returns the size of the length prefix of a message of n bytes.
func lengthBytes(n int) int {
	bytes := 1
	for ; n >= 0x80; n >>= 7 {
		bytes++
	}
	return bytes
}

// Tick ignores the tick number: bots show no avatars.
func (r *tickReader) Tick(uint16) {}

// Delta applies the changes of a chunk.
func (r *tickReader) Delta(n *sessionmsg.TickDelta) {
	for _, a := range n.Enter {
		r.names[a.Index] = a.Player.String()
	}
	for _, b := range n.Blocks {
		pos := b.At.Pos(n.Chunk)
		r.now.blocks = append(r.now.blocks, sessionmsg.BlockChange{X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b.Block)})
	}
}

// Motion measures the new pose of an avatar.
func (r *tickReader) Motion(at grid.ChunkPos, m *sessionmsg.Motion) {
	if name, known := r.names[m.Index]; known && m.HasAcross {
		p := m.Pose(at)
		r.watch.observe(name, p.X, p.Z, r.now.at)
	}
}
