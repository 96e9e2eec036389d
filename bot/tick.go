package bot

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// tickReader reads the frames of a session in CBOR. It belongs to the goroutine that reads.
type tickReader struct {
	names map[uint32]string // player ids by index
	watch *probeReader
	now   arrival // what the current frame adds to
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
