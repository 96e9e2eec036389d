package gameserver

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A single block change in a tick costs each recipient 16 bytes at most, its frame included.
func TestBlockChangeIsSmall(t *testing.T) {
	for _, at := range []grid.ChunkPos{{}, {X: -60, Z: 60}, {X: 1000, Z: -1000}, {X: -1_000_000, Z: 1_000_000}} {
		g := newIdleGateway(options(newLands(), playerstest.NewMemory(), playerstest.NewMemory()))
		s := &session{g: g, out: outbox.New(func() {}), codec: codec.CBOR}
		s.out.Owner = s
		s.out.SetCodec(codec.CBOR)
		s.view.set(1, 0)
		sub := showChunk(g, at, s)
		discard(s.out)
		s.place.moveTo(motion.Pose{X: float64(at.Origin().X) + .5, Y: 64, Z: float64(at.Origin().Z) + .5})
		bytes := 0
		count := sinkFunc(func(data []byte) error {
			bytes += len(sessionmsg.AppendMessage(nil, data))
			return nil
		})
		var d outbox.Writer
		for tick := uint64(1); tick <= 3; tick++ {
			delta := nodemsg.ChunkDelta{Chunk: at, Blocks: []nodemsg.BlockAt{{At: chunk.Index(tick), Block: chunk.Stone}}}
			if err := sub.Apply(nodemsg.FromRegion{Tick: tick, Chunks: []nodemsg.ChunkDelta{delta}}); err != nil {
				t.Fatal(err)
			}
			g.buildFrames(1, []*session{s})
			before := bytes
			if err := d.WriteNext(s.out, count); err != nil {
				t.Fatal(err)
			}
			if cost := bytes - before; cost == 0 || cost > 16 {
				t.Errorf("a block in chunk %v costs %d bytes, want 1 to 16", at, cost)
			}
		}
	}
}
