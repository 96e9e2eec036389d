package gameserver

import (
	"runtime"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// onlooker is a session that keeps nothing of what it is sent.
type onlooker struct{ chunks, bytes int }

func (o *onlooker) sendChunk(mc *mirrorChunk, _ bool) {
	o.chunks++
	o.bytes += len(sessionmsg.AppendMessage(nil, mc.latest.message(mc.at, true)))
}
func (o *onlooker) hasRoom(*subscription, *mirrorChunk) bool { return true }
func (o *onlooker) sendDelta(*chunkDelta)                    {}
func (o *onlooker) wantsEveryMove() bool                     { return false }
func (o *onlooker) sendResult(nodemsg.EditResult) *outbox    { return nil }
func (o *onlooker) sendNotice(string)                        {}

// countryside returns a subscription to one region of a gateway over natural land of four sections.
func countryside(t *testing.T) *subscription {
	t.Helper()
	land, err := terrain.New(terrain.Params{Seed: 7, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	o := options(newLands(), newMemory(), newMemory())
	o.World.Sections, o.Terrain = 4, land
	return newSubscription(New(o), grid.CellAt(grid.ChunkPos{X: 2, Z: 2}, grid.FoundingLabel))
}

const natural = 16 // chunks along each side

func eachNatural(do func(at grid.ChunkPos)) {
	for x := range int32(natural) {
		for z := range int32(natural) {
			do(grid.ChunkPos{X: x, Z: z})
		}
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	for range 2 { // what finalizers held is garbage only the second time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What a chunk of natural land costs: on the wire, in memory while it is in view, and when it is not in view any more. Where
// players move blocks are read, and the land is unpacked: here in one chunk of nine.
func TestNaturalLandIsSmall(t *testing.T) {
	const sections = 4 * natural * natural
	sub, eyes, with := countryside(t), &onlooker{}, newBuilderBuffers()
	eachNatural(func(at grid.ChunkPos) { sub.g.terrain(at, with) }) // what generating allocates only once
	sub.g.terrainCache.Purge()
	empty := heapBytes()
	eachNatural(func(at grid.ChunkPos) {
		sub.watch(at, eyes)
		mc := sub.mu.chunks[at]
		mc.hasState = true
		sub.buildAndSend(mc, with)
		if at.X%3 == 1 && at.Z%3 == 1 {
			sub.block(at.Origin())
		}
	})
	sub.g.terrainCache.Purge() // of bounded size, however much land is in view
	loaded := heapBytes() - empty
	if eyes.chunks != natural*natural || sub.mu.chunks[grid.ChunkPos{X: 1, Z: 1}].land == nil {
		t.Fatalf("%d chunks were shown, want %d", eyes.chunks, natural*natural)
	}
	eachNatural(func(at grid.ChunkPos) { sub.unwatch(at, eyes) })
	gone := heapBytes() - empty
	sent, each, left := eyes.bytes/sections, loaded/sections, gone/(natural*natural)
	t.Logf("a section: %d bytes on the wire, %d in memory; a chunk that is not in view: %d", sent, each, left)
	if sent > 1900 {
		t.Errorf("a section of natural land is %d bytes on the wire, want at most 1900", sent)
	}
	if each > 4700 {
		t.Errorf("a loaded section takes %d bytes, want at most 4700", each)
	}
	if left > 128 {
		t.Errorf("a chunk that is not in view takes %d bytes, want at most 128", left)
	}
	runtime.KeepAlive(sub)
	runtime.KeepAlive(with)
}

// A single block change in a tick costs each recipient 16 bytes at most, its frame included.
func TestBlockChangeIsSmall(t *testing.T) {
	for _, at := range []grid.ChunkPos{{}, {X: -60, Z: 60}, {X: 1000, Z: -1000}, {X: -1_000_000, Z: 1_000_000}} {
		g := New(options(newLands(), newMemory(), newMemory()))
		sub := newSubscription(g, grid.CellAt(at, grid.FoundingLabel))
		s := &session{g: g, out: newOutbox(func() {}), binary: true}
		s.out.owner = s
		s.out.setEncoding(true)
		s.view.Store(1)
		sub.watch(at, s)
		mc := sub.mu.chunks[at]
		mc.hasState, mc.land, mc.subscribers[s] = true, ground().Chunk(at), upToDate
		s.place(motion.Pose{X: float64(at.Origin().X) + .5, Y: 64, Z: float64(at.Origin().Z) + .5})
		bytes := 0
		count := sinkFunc(func(data []byte) error {
			bytes += len(sessionmsg.AppendMessage(nil, data))
			return nil
		})
		var d writeBuffers
		for tick := uint64(1); tick <= 3; tick++ {
			news := nodemsg.ChunkDelta{Chunk: at, Blocks: []nodemsg.BlockAt{{At: chunk.Index(tick), Block: chunk.Stone}}}
			if err := sub.apply(nodemsg.FromRegion{Tick: tick, Chunks: []nodemsg.ChunkDelta{news}}); err != nil {
				t.Fatal(err)
			}
			g.interest.buildFrames(1, []*session{s})
			before := bytes
			if err := d.clear(s.out, count); err != nil {
				t.Fatal(err)
			}
			if cost := bytes - before; cost == 0 || cost > 16 {
				t.Errorf("a block in chunk %v costs %d bytes, want 1 to 16", at, cost)
			}
		}
	}
}
