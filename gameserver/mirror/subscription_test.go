package mirror

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A link that begins late, or again, watches chunks in the order in which players began to.
func TestResumeKeepsTheOrder(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	var want []grid.ChunkPos
	for i := range int32(16) {
		pos := grid.ChunkPos{X: i * 7 % 16, Z: i}
		sub.watch(pos, &recorderSub{})
		want = append(want, pos)
	}
	onlyFeed(sub).resume(soundLink())
	if got := onlyFeed(sub).takeOut().Watch; !slices.Equal(got, want) {
		t.Errorf("asks for %v, want %v", got, want)
	}
}

// A result changes the land before the region's next tick sends the delta, also land that is folded.
func TestAnswerChangesFoldedLand(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	pos := grid.Pos{X: 3, Y: 25, Z: 4}
	ann, whom := player.GuestID("ann"), &recorderSub{}
	sub.watch(pos.Chunk(), whom)
	mc := sub.mu.chunks[pos.Chunk()]
	land, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := land.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := wire.PackChunk(encoded)
	if err != nil {
		t.Fatal(err)
	}
	mc.land.blocks, mc.land.version, mc.land.latest = land, 1, snapshot{version: 1, packed: packed}
	mc.land.fold()
	if mc.land.blocks != nil || !mc.land.known() {
		t.Fatal("the land is not folded")
	}
	sub.Edit(nodemsg.Intent{Player: ann, Seq: 1, Pos: pos, Block: chunk.Brick}, whom)
	if err := sub.Apply(nodemsg.FromRegion{Tick: 1, Results: []nodemsg.EditResult{{Player: ann, Seq: 1, Block: chunk.Brick}}}); err != nil {
		t.Fatal(err)
	}
	if b, known := sub.Block(pos); !known || b != chunk.Brick {
		t.Errorf("block is %v, want brick", b)
	}
	if mc.land.fold(); mc.land.folded {
		t.Error("folded into what was packed before the answer")
	}
}

// A lone edit is sent by the goroutine that requests it; while others are pending, or sending would block, the sender
// sends it with whatever else has been collected.
func TestEditAloneIsSentAtOnce(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	onlyFeed(sub).resume(soundLink())
	onlyFeed(sub).takeOut()
	drain := func() (rushed bool) {
		select {
		case <-onlyFeed(sub).wake:
		default:
		}
		select {
		case <-onlyFeed(sub).flushNow:
			return true
		default:
			return false
		}
	}
	drain()
	link := &promptOne{}
	onlyFeed(sub).sender.setLink(link)
	ann := player.GuestID("ann")
	ask := func(seq uint64) {
		sub.Edit(nodemsg.Intent{Player: ann, Seq: seq, Pos: grid.Pos{Y: int32(seq)}, Block: chunk.Brick}, &recorderSub{})
	}
	answer := func(seq uint64) {
		if err := sub.Apply(nodemsg.FromRegion{Tick: 1, Results: []nodemsg.EditResult{{Player: ann, Seq: seq}}}); err != nil {
			t.Fatal(err)
		}
	}
	if ask(1); len(link.sent) != 1 || len(link.sent[0].Edits) != 1 || drain() {
		t.Fatalf("sent %+v by the asker", link.sent)
	}
	if ask(2); len(link.sent) != 1 || !drain() {
		t.Error("the second was not left to the sender")
	}
	onlyFeed(sub).takeOut()
	answer(1)
	answer(2)
	link.waits = true
	if ask(3); !drain() || len(onlyFeed(sub).takeOut().Edits) != 1 {
		t.Error("an edit that the link has no room for was not left to the sender")
	}
	answer(3)
	link.waits = false
	onlyFeed(sub).sender.Lock() // the sender has taken something out, and is about to send it
	if ask(4); len(link.sent) != 1 || !drain() {
		t.Error("an edit has overtaken what is being sent")
	}
	onlyFeed(sub).sender.Unlock()
	answer(4)
	onlyFeed(sub).sender.setLink(nil)
	if ask(5); !drain() {
		t.Error("an edit was not left to the sender of a link that is not prompt")
	}
}

// promptOne is a link that can send without blocking.
type promptOne struct {
	sent  []nodemsg.ToRegion
	waits bool
}

func (p *promptOne) TrySend(take func() nodemsg.ToRegion) bool {
	if !p.waits {
		p.sent = append(p.sent, take())
	}
	return !p.waits
}

// Two edits of one block may be in one message: the delta of the later one, and the result of the earlier one. The
// mirror keeps the later one.
func TestResultDoesNotUndoDelta(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	pos := grid.Pos{X: 3, Y: 25, Z: 4}
	ann, whom := player.GuestID("ann"), &recorderSub{}
	sub.watch(pos.Chunk(), whom)
	land, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
	if err != nil {
		t.Fatal(err)
	}
	mc := sub.mu.chunks[pos.Chunk()]
	mc.hasState, mc.land.blocks, mc.land.version = true, land, 1
	sub.Edit(nodemsg.Intent{Player: ann, Seq: 1, Pos: pos, Block: chunk.Brick}, whom)
	delta := nodemsg.ChunkDelta{Chunk: pos.Chunk(), Blocks: []nodemsg.BlockAt{{At: chunk.At(pos), Block: chunk.Glass}}}
	if err := sub.Apply(nodemsg.FromRegion{
		Tick: 1, Chunks: []nodemsg.ChunkDelta{delta}, Results: []nodemsg.EditResult{{Player: ann, Seq: 1, Block: chunk.Brick}},
	}); err != nil {
		t.Fatal(err)
	}
	if b, known := sub.Block(pos); !known || b != chunk.Glass {
		t.Errorf("block is %v, want glass", b)
	}
}

// A region sends more of a tick early when there is a result to send. The gateway makes one frame a tick all the same.
func TestOneFrameATick(t *testing.T) {
	m, ticked := newTestMirror(), 0
	m.Ticked = func(*Subscription) { ticked++ }
	region := onlyFeed(newSubscription(m, grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)))
	for _, c := range []struct {
		tick uint64
		want int // calls
	}{{7, 1}, {7, 1}, {7, 1}, {8, 2}, {8, 2}} {
		if err := region.apply(nodemsg.FromRegion{Tick: c.tick}); err != nil {
			t.Fatal(err)
		}
		if ticked != c.want {
			t.Errorf("after a frame of tick %d, %d ticks were reported, want %d", c.tick, ticked, c.want)
		}
	}
}

// Between the newest state and the rebuilt chunk, a subscriber gets who enters and leaves, and what is built; a new one
// does not. None gets anything twice.
func TestDeltasWhileAChunkIsRebuilt(t *testing.T) {
	pos := grid.ChunkPos{}
	sub := newSubscription(newTestMirror(), grid.CellAt(pos, grid.FoundingLabel))
	has, waits := &recorderSub{}, &recorderSub{}
	sub.watch(pos, has)
	body := func(name string, x float64) nodemsg.Body {
		return nodemsg.Body{Player: player.GuestID(name), Name: name, Pose: motion.Pose{X: x}}
	}
	needsUpdate := func(delta nodemsg.ChunkDelta) {
		t.Helper()
		if err := sub.Apply(nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{delta}}); err != nil {
			t.Fatal(err)
		}
	}
	needsUpdate(nodemsg.ChunkDelta{State: &nodemsg.ChunkState{Bodies: []nodemsg.Body{body("ann", 1), body("bob", 1), body("eve", 1)}}})
	mc := sub.mu.chunks[pos]
	mc.queued = false
	sub.m.builder.build(mc, newBuffers())
	if has.wholes != 1 || len(has.applied) != 0 {
		t.Fatalf("%d chunks and %d news at first", has.wholes, len(has.applied))
	}

	sub.watch(pos, waits)
	edits := []nodemsg.BlockAt{{At: 5, Block: chunk.Brick}}
	needsUpdate(nodemsg.ChunkDelta{State: &nodemsg.ChunkState{Edits: edits, Bodies: []nodemsg.Body{body("ann", 1), body("bob", 2), body("zoe", 1)}}})
	form := func() any {
		defer func() { mc.land.forms = nil }()
		return mc.BlocksForm("codec", func(blocks *chunk.Chunk) any { return blocks.Get(6) })
	}
	if got := form(); got == nil || got == chunk.Glass {
		t.Errorf("before the change, block 6 is %v", got)
	}
	needsUpdate(nodemsg.ChunkDelta{Leave: []player.ID{player.GuestID("ann")}, Blocks: []nodemsg.BlockAt{{At: 6, Block: chunk.Glass}}})
	if got := form(); got != chunk.Glass {
		t.Errorf("while the chunk is rebuilt, block 6 is %v", got)
	}
	sub.m.builder.applyEdits(mc, nil, newBuffers())
	needsUpdate(nodemsg.ChunkDelta{Leave: []player.ID{player.GuestID("zoe")}, Enter: []nodemsg.Body{body("bob", 3)}, Blocks: []nodemsg.BlockAt{{At: 7, Block: chunk.Glass}}})
	if len(has.applied) != 3 || len(waits.applied) != 0 {
		t.Fatalf("%d news, and %d for the newcomer", len(has.applied), len(waits.applied))
	}
	if d := has.applied[0]; len(d.Enter) != 2 || len(d.Change.Entered) != 1 || d.Change.Entered[0].Name != "zoe" || len(d.Change.Left) != 1 || d.Change.Left[0].Name != "eve" {
		t.Errorf("the difference is %+v", d)
	}
	if n := has.applied[2]; len(n.Change.Entered) != 0 || len(n.Change.Left) != 1 || n.Change.Left[0].Name != "zoe" {
		t.Errorf("zoe's leaving is sent as %+v", n)
	}
	sub.m.builder.build(mc, newBuffers())
	if has.wholes != 2 || has.again != 1 || waits.wholes != 1 || waits.again != 0 {
		t.Errorf("chunks: %d, %d of them anew; newcomer: %d, %d", has.wholes, has.again, waits.wholes, waits.again)
	}
	for i, want := range map[chunk.Index]chunk.Block{5: chunk.Brick, 6: chunk.Glass, 7: chunk.Glass} {
		if got := mc.land.load().Get(i); got != want {
			t.Errorf("block %d is %v, want %v", i, got, want)
		}
	}

	// The same state again changes nothing.
	needsUpdate(nodemsg.ChunkDelta{State: &nodemsg.ChunkState{
		Edits:  []nodemsg.BlockAt{{At: 5, Block: chunk.Brick}, {At: 6, Block: chunk.Glass}, {At: 7, Block: chunk.Glass}},
		Bodies: []nodemsg.Body{body("bob", 3)},
	}})
	sub.m.builder.build(mc, newBuffers())
	if len(has.applied) != 3 || has.wholes != 2 {
		t.Errorf("an unchanged state is sent: %d news, %d chunks", len(has.applied), has.wholes)
	}
}

// A result is sent once, and a refusal with the block that is there.
func TestRefusalNamesTheBlock(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	place, got := grid.Pos{X: 3, Y: 25, Z: 3}, &recorderSub{}
	sub.watch(place.Chunk(), got)
	c := sub.mu.chunks[place.Chunk()]
	c.land.blocks = ground().Chunk(place.Chunk())
	c.land.blocks.Set(chunk.At(place), chunk.Log)
	sub.Edit(nodemsg.Intent{Player: player.GuestID("bob"), Seq: 5, Pos: place, Block: chunk.Brick}, got)
	refusal := nodemsg.EditResult{Player: player.GuestID("bob"), Seq: 5, Refused: wire.RefusedUnavailable}
	if err := sub.Apply(nodemsg.FromRegion{Tick: 9, Results: []nodemsg.EditResult{refusal, refusal}}); err != nil {
		t.Fatal(err)
	}
	if len(got.results) != 1 || got.results[0].Block != chunk.Log {
		t.Errorf("results %+v, want one that names the log", got.results)
	}
}

// While land is rebuilt, a refusal names the block that subscribers see, and a result changes it. If the delta never
// comes, since the region sends its state instead, the others are sent the chunk again.
func TestResultsWhileLandIsRebuilt(t *testing.T) {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	place, got, ann := grid.Pos{X: 3, Y: 0, Z: 3}, &recorderSub{}, player.GuestID("ann")
	at := place.Chunk()
	sub.watch(at, got)
	apply := func(frame nodemsg.FromRegion) {
		t.Helper()
		if err := sub.Apply(frame); err != nil {
			t.Fatal(err)
		}
	}
	state := func(edits ...nodemsg.BlockAt) nodemsg.FromRegion {
		return nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Chunk: at, State: &nodemsg.ChunkState{Edits: edits}}}}
	}
	apply(state())
	sub.m.BuildQueued()
	apply(state(nodemsg.BlockAt{At: chunk.At(place), Block: chunk.Brick}))
	for seq, refused := range []string{wire.RefusedUnavailable, ""} {
		sub.Edit(nodemsg.Intent{Player: ann, Seq: uint64(seq), Pos: place, Block: chunk.Glass}, got)
		apply(nodemsg.FromRegion{Results: []nodemsg.EditResult{{Player: ann, Seq: uint64(seq), Block: chunk.Glass, Refused: refused}}})
	}
	if was := ground().Chunk(at).Get(chunk.At(place)); was == chunk.Air || got.results[0].Block != was {
		t.Errorf("the refusal names %v, want %v", got.results[0].Block, was)
	}
	if b, known := sub.Block(place); !known || b != chunk.Glass {
		t.Errorf("after the result the block is %v, want glass", b)
	}
	apply(state(nodemsg.BlockAt{At: chunk.At(place), Block: chunk.Glass}))
	if sub.m.BuildQueued(); got.wholes != 2 || got.again != 1 {
		t.Errorf("%d chunks were sent, %d of them again", got.wholes, got.again)
	}
}

// recorderSub is a subscriber that only records.
type recorderSub struct {
	results []nodemsg.EditResult
	wholes  int
	again   int
	applied []*Delta
	notices []sessionmsg.Notice
}

func (w *recorderSub) SendDelta(d *Delta)             { w.applied = append(w.applied, d) }
func (w *recorderSub) HasRoom(*Chunk) bool            { return true }
func (w *recorderSub) WantsEveryMove() bool           { return true }
func (w *recorderSub) Predictable() bool              { return true }
func (w *recorderSub) Flush()                         {}
func (w *recorderSub) SendNotice(n sessionmsg.Notice) { w.notices = append(w.notices, n) }

func (w *recorderSub) SendChunk(_ *Chunk, again bool) {
	w.wholes++
	if again {
		w.again++
	}
}

func (w *recorderSub) SendResult(r nodemsg.EditResult) (waits bool) {
	w.results = append(w.results, r)
	return false
}
