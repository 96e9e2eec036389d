package mirror

import (
	"runtime"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// onlooker is a session that keeps nothing of what it is sent.
type onlooker struct{ chunks, bytes int }

func (o *onlooker) SendChunk(c *Chunk, _ bool) {
	o.chunks++
	o.bytes += len(sessionmsg.AppendMessage(nil, c.PackedForm("CBOR", func(packed []byte) any {
		data, err := sessionmsg.EncodeServerCBOR(sessionmsg.ChunkData{Chunk: c.at, Data: packed})
		if err != nil {
			panic(err)
		}
		return data
	}).([]byte)))
}
func (o *onlooker) HasRoom(*Chunk) bool                { return true }
func (o *onlooker) SendDelta(*Delta)                   {}
func (o *onlooker) WantsEveryMove() bool               { return false }
func (o *onlooker) Predictable() bool                  { return true }
func (o *onlooker) SendResult(nodemsg.EditResult) bool { return false }
func (o *onlooker) Flush()                             {}
func (o *onlooker) SendNotice(sessionmsg.Notice)       {}

// countryside returns a subscription to one region of a gateway over natural land of four sections.
func countryside(t *testing.T) *Subscription {
	t.Helper()
	land, err := terrain.New(terrain.Params{Seed: 7, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	m := newTestMirror()
	m.Options.Terrain = land
	return newSubscription(m, grid.CellAt(grid.ChunkPos{X: 2, Z: 2}, grid.FoundingLabel))
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

// What a chunk of natural land costs: on the wire, in memory while it is in view, and when it is not in view any more.
// Where players move blocks are read, and the land is unpacked: here in one chunk of nine. The heap also holds what the
// runtime and earlier tests keep for a while, so the smallest of some measurements counts.
func TestNaturalLandIsSmall(t *testing.T) {
	sent, each, left := measureLand(t)
	for again := 0; again < 4 && (each > 4700 || left > 128); again++ {
		_, e, l := measureLand(t)
		each, left = min(each, e), min(left, l)
	}
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
}

// measureLand returns the bytes that a section takes on the wire and in memory, and those of a chunk that is not in
// view any more.
func measureLand(t *testing.T) (sent, each, left int64) {
	t.Helper()
	const sections = 4 * natural * natural
	sub, view, with := countryside(t), &onlooker{}, newBuffers()
	eachNatural(func(at grid.ChunkPos) { sub.m.builder.terrain(at, with) }) // what generating allocates only once
	sub.m.builder.cache.Purge()
	empty := heapBytes()
	eachNatural(func(at grid.ChunkPos) {
		sub.watch(at, view)
		mc := sub.mu.chunks[at]
		mc.hasState, mc.shown = true, true
		f := sub.feedAt(at)
		f.beginConfirming()
		f.confirmation.answer(time.Now(), f.confirmation.asked, time.Time{})
		sub.m.builder.build(mc, with)
		if at.X%3 == 1 && at.Z%3 == 1 {
			sub.Block(at.Origin())
		}
	})
	sub.m.builder.cache.Purge() // of bounded size, however much land is in view
	loaded := heapBytes() - empty
	if view.chunks != natural*natural || sub.mu.chunks[grid.ChunkPos{X: 1, Z: 1}].land.blocks == nil {
		t.Fatalf("%d chunks were shown, want %d", view.chunks, natural*natural)
	}
	eachNatural(func(at grid.ChunkPos) { sub.Unwatch(at, view) })
	gone := heapBytes() - empty
	runtime.KeepAlive(sub)
	runtime.KeepAlive(with)
	return int64(view.bytes) / sections, loaded / sections, gone / (natural * natural)
}
