package actor

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

func playerNumber(n int) player.ID { return player.ID{byte(n >> 16), byte(n >> 8), byte(n), 15: 255} }

// largeBody returns a body that takes as many bytes as any.
func largeBody(n int) nodemsg.Body {
	return nodemsg.Body{
		Player: playerNumber(n), Name: strings.Repeat("x", wire.MaxName), Said: wire.MaxDone, Skin: math.MaxUint32,
		Pose:     motion.Pose{X: 1.1, Y: 2.1, Z: 3.1, Yaw: 1.1, Pitch: 1.1},
		Gateway:  strings.Repeat("1", wire.MaxPeerID),
		Velocity: motion.Velocity{X: math.MinInt16, Y: math.MinInt16, Z: math.MinInt16},
	}
}

// largeLine returns a chat line that takes as many bytes as any.
func largeLine(n int) nodemsg.ChatEvent {
	stamp, err := vclock.NewOwner(nodemsg.ChatAuthor(playerNumber(n)), wire.MaxDone-1).Act().Append(nil)
	if err != nil {
		panic(err) // only if it has many entries
	}
	return nodemsg.ChatEvent{
		Player: playerNumber(n), Name: strings.Repeat("x", wire.MaxName), Text: strings.Repeat("x", wire.MaxChat), Wall: wire.MaxDone, Stamp: stamp,
		Interaction: &nodemsg.Interaction{
			Kind: nodemsg.InteractionGift, To: playerNumber(n), ToName: strings.Repeat("x", wire.MaxName), Block: math.MaxUint16, Count: nodemsg.MaxGift,
		},
	}
}

// A gateway that watches a chunk in which nodes that lie show as many players as they may, with the longest texts, gets
// all of them, and the chat. Frames that exceed wire.MaxFrame would not be sent.
func TestLargeFramesAreDivided(t *testing.T) {
	h, _, link := linked()
	at := grid.ChunkPos{}
	var all []player.ID
	for n := range wire.MaxBodies {
		owner := crowd.Owner{Link: 2, Peer: "M"}
		if n%4 == 0 {
			owner = crowd.Owner{Link: 3, Peer: "N"}
		}
		h.contents.crowd.Enter(owner, largeBody(n))
		all = append(all, playerNumber(n))
	}
	say := func() {
		for n := range all {
			h.contents.crowd.Chat(string(rune('a'+n%8)), largeLine(n))
		}
	}
	say()
	h.watch(link.subscriber, at)
	seen := make(map[player.ID]bool)
	lines := 0
	receive := func() (frames int) {
		t.Helper()
		h.publish()
		got, _ := link.subscriber.out.Drain()
		for _, f := range got {
			if _, err := wire.EncodeCBOR(f, wire.MaxFrame); err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Chunks {
				entered := d.Enter
				if d.State != nil {
					clear(seen)
					entered = d.State.Bodies
				}
				for _, b := range entered {
					seen[b.Player] = true
				}
				for _, id := range d.Leave {
					delete(seen, id)
				}
				lines += len(d.Chat)
			}
		}
		return len(got)
	}
	if frames := receive(); frames < 2 || len(seen) != len(all) || lines != 1024 {
		t.Errorf("the gateway sees %d of %d players, and %d chat lines, by %d frames", len(seen), len(all), lines, frames)
	}
	say()
	for n := range all {
		h.contents.crowd.Move(2+uint64((3-n%4)/3), nodemsg.BodyMove{Player: all[n], Pose: motion.Pose{X: grid.ChunkSize, Y: 1, Z: 1}})
	}
	if receive(); len(seen) != 0 || lines != 2*1024 {
		t.Errorf("the gateway sees %d players after they have left, and %d chat lines", len(seen), lines)
	}
}

// The parts of a frame have the same contents as the frame, in order, and each is as small as it should be.
func TestDivide(t *testing.T) {
	f := nodemsg.FromRegion{Tick: 7, Results: make([]nodemsg.EditResult, wire.MaxBodies)}
	for x := range int32(2 * wire.MaxWatch) {
		f.Chunks = append(f.Chunks, nodemsg.ChunkDelta{Chunk: grid.ChunkPos{X: x}, Leave: []player.ID{playerNumber(int(x))}})
	}
	large := nodemsg.ChunkDelta{Chunk: grid.ChunkPos{Z: 1}, Base: make([]byte, 32), Blocks: make([]nodemsg.BlockAt, wire.MaxBlocks)}
	for i := range large.Blocks {
		large.Blocks[i] = nodemsg.BlockAt{At: chunk.Index(i), Block: math.MaxUint16}
	}
	for n := range wire.MaxSigns {
		large.Signs = append(large.Signs, nodemsg.SignAt{At: wire.ColumnBlocks - 1, Text: strings.Repeat("x", n)})
	}
	for n := range wire.MaxBodies {
		large.Enter = append(large.Enter, largeBody(n))
		large.Leave = append(large.Leave, playerNumber(n))
		large.Moves = append(large.Moves, nodemsg.BodyMove{Player: playerNumber(n)})
		large.Chat = append(large.Chat, largeLine(n))
	}
	state := nodemsg.ChunkDelta{Chunk: grid.ChunkPos{Z: 2}, State: &nodemsg.ChunkState{Edits: large.Blocks, Bodies: large.Enter, Signs: large.Signs}}
	f.Chunks = append(f.Chunks, large, state)
	var got, gotState nodemsg.ChunkDelta
	small, results := 0, 0
	for _, part := range divideFrame(f) {
		data, err := wire.EncodeCBOR(part, wire.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		hasState := slices.ContainsFunc(part.Chunks, func(d nodemsg.ChunkDelta) bool { return d.State != nil })
		if size := frameSize(&part); part.Tick != f.Tick || len(data) > size || !hasState && size > frameBytes {
			t.Errorf("a part of tick %d takes %d bytes, by the estimate %d", part.Tick, len(data), size)
		}
		results += len(part.Results)
		for _, d := range part.Chunks {
			to := &got
			switch d.Chunk.Z {
			case 0:
				if small++; d.Chunk.X != int32(small-1) {
					t.Fatalf("the deltas are in another order: %v", d.Chunk)
				}
				continue
			case 2:
				to = &gotState
			}
			if len(to.Signs) > 0 && len(d.Blocks) > 0 {
				t.Error("a text comes before its sign")
			}
			to.Chunk = d.Chunk
			if d.State != nil {
				to.State = &nodemsg.ChunkState{Edits: d.State.Edits, Signs: d.State.Signs}
				to.Enter = slices.Clone(d.State.Bodies)
			}
			to.Base = append(to.Base, d.Base...)
			to.Enter = append(to.Enter, d.Enter...)
			to.Leave = append(to.Leave, d.Leave...)
			to.Moves = append(to.Moves, d.Moves...)
			to.Blocks = append(to.Blocks, d.Blocks...)
			to.Signs = append(to.Signs, d.Signs...)
			to.Chat = append(to.Chat, d.Chat...)
		}
	}
	if small != 2*wire.MaxWatch || results != len(f.Results) {
		t.Errorf("%d deltas and %d results", small, results)
	}
	if !reflect.DeepEqual(got, large) {
		t.Error("a delta that was divided has other contents")
	}
	if !slices.Equal(gotState.Enter, state.State.Bodies) || len(gotState.State.Edits) != wire.MaxBlocks || len(gotState.State.Signs) != wire.MaxSigns {
		t.Error("a chunk that was divided has other contents")
	}
}

// The estimate of a frame with all that a message has is no less than its size.
func TestFrameSize(t *testing.T) {
	line := largeLine(1)
	line.Chunk = grid.ChunkPos{X: -grid.Limit, Z: -grid.Limit}
	f := nodemsg.FromRegion{Tick: math.MaxUint64, Results: []nodemsg.EditResult{{Player: playerNumber(1), Seq: math.MaxUint64, Block: math.MaxUint16, Refused: "no"}}}
	f.Chunks = []nodemsg.ChunkDelta{{
		Chunk: line.Chunk, Base: make([]byte, 32), Chat: []nodemsg.ChatEvent{line}, Enter: []nodemsg.Body{largeBody(1)}, Leave: []player.ID{{}},
		Moves: []nodemsg.BodyMove{{}}, Blocks: []nodemsg.BlockAt{{At: wire.ColumnBlocks - 1, Block: math.MaxUint16}},
		Signs: []nodemsg.SignAt{{At: wire.ColumnBlocks - 1, Text: "a"}},
		State: &nodemsg.ChunkState{Base: make([]byte, 32)},
	}}
	data, err := wire.EncodeCBOR(f, wire.MaxFrame)
	if size := frameSize(&f); err != nil || len(data) > size || 2*len(data) < size {
		t.Errorf("%d bytes, by the estimate %d; %v", len(data), size, err)
	}
}
