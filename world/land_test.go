package world

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const testHeight = 64

var testCell = grid.CellAt(grid.ChunkPos{X: -3, Z: 3}, grid.FoundingLabel)

func newTestLand() *Land { return NewLand(7, testCell, testHeight) }

// rows is a table that receives Land's writes.
type rows map[string][]byte

func (r rows) store(writes []kv.Write) {
	for _, w := range writes {
		if w.Value == nil {
			delete(r, string(w.Key))
			continue
		}
		r[string(w.Key)] = w.Value
	}
}

func (r rows) load(t interface{ Fatal(...any) }) *Land {
	l := newTestLand()
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if err := l.Load([]byte(key), r[key]); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// model is a simple model of Land: blocks in a map, and every sequence ever used with its edit.
type model struct {
	cell   grid.Cell
	pins   map[grid.ChunkPos][32]byte
	blocks map[grid.Pos]chunk.Block
	texts  map[grid.Pos]string // of signs
	used   map[player.ID]map[uint64]nodemsg.Intent
	window map[player.ID][]uint64 // the newest recentWindow sequences, ascending
}

func newModel() *model {
	return &model{
		cell: testCell, pins: make(map[grid.ChunkPos][32]byte), blocks: make(map[grid.Pos]chunk.Block), texts: make(map[grid.Pos]string),
		used: make(map[player.ID]map[uint64]nodemsg.Intent), window: make(map[player.ID][]uint64),
	}
}

func (w *model) edit(e nodemsg.Intent) nodemsg.EditResult {
	r := nodemsg.EditResult{Player: e.Player, Seq: e.Seq}
	_, pinned := w.pins[e.Pos.Chunk()]
	before, usedBefore := w.used[e.Player][e.Seq]
	window := w.window[e.Player]
	old := len(window) == recentWindow && e.Seq < window[0]
	switch {
	case !w.cell.Contains(e.Pos.Chunk()), e.Pos.Y < 0, e.Pos.Y >= testHeight:
		r.Refused = wire.RefusedOutOfWorld
	case !pinned:
		r.Refused = wire.RefusedUnavailable
	case old, usedBefore && before != e:
		r.Refused = wire.RefusedStale
	case usedBefore:
		r.Block = w.blocks[e.Pos]
	case w.refuses(e) != "":
		r.Refused = w.refuses(e)
	default:
		if w.used[e.Player] == nil {
			w.used[e.Player] = make(map[uint64]nodemsg.Intent)
		}
		w.used[e.Player][e.Seq] = e
		window = append(window, e.Seq)
		slices.Sort(window)
		w.window[e.Player] = window[max(0, len(window)-recentWindow):]
		if e.Bulk != "" {
			for to := range e.Bulk.All() {
				at := to.At.Pos(e.Pos.Chunk())
				w.blocks[at] = to.Block
				delete(w.texts, at)
			}
			break
		}
		w.blocks[e.Pos] = e.Block
		if delete(w.texts, e.Pos); e.Text != "" {
			w.texts[e.Pos] = e.Text
		}
		r.Block = e.Block
	}
	return r
}

// refuses returns why a bulk edit is refused that was not applied before.
func (w *model) refuses(e nodemsg.Intent) string {
	for to, from := range e.Bulk.All() {
		at := to.At.Pos(e.Pos.Chunk())
		there, edited := w.blocks[at]
		switch {
		case at.Y >= testHeight:
			return wire.RefusedOutOfWorld
		case edited && there != from:
			return wire.RefusedChanged
		}
	}
	return ""
}

func (w *model) chunk(pos grid.ChunkPos) (s nodemsg.ChunkState) {
	hash, pinned := w.pins[pos]
	if !pinned {
		return s
	}
	s.Base, s.Edits = hash[:], []nodemsg.BlockAt{}
	for at, b := range w.blocks {
		if at.Chunk() != pos {
			continue
		}
		s.Edits = append(s.Edits, nodemsg.BlockAt{At: chunk.At(at), Block: b})
		if text := w.texts[at]; text != "" {
			s.Signs = append(s.Signs, nodemsg.SignAt{At: chunk.At(at), Text: text})
		}
	}
	slices.SortFunc(s.Edits, func(a, b nodemsg.BlockAt) int { return int(a.At) - int(b.At) })
	slices.SortFunc(s.Signs, func(a, b nodemsg.SignAt) int { return int(a.At) - int(b.At) })
	return s
}

func drawBatch(t *rapid.T) Batch {
	origin := testCell.Area()
	// Two chunks of the cell, and one beside it.
	chunks := []grid.ChunkPos{
		{X: origin.MinX, Z: origin.MinZ}, {X: origin.MaxX - 1, Z: origin.MaxZ - 1}, {X: origin.MaxX, Z: origin.MinZ},
	}
	b := Batch{Time: rapid.Int64Range(1, 3).Draw(t, "time") * 1e12}
	for range rapid.IntRange(0, 2).Draw(t, "pins") {
		b.Pins = append(b.Pins, Pin{
			Chunk: rapid.SampledFrom(chunks).Draw(t, "pinned"), Base: [32]byte{rapid.ByteRange(1, 3).Draw(t, "base")},
		})
	}
	for range rapid.IntRange(0, 40).Draw(t, "edits") {
		at := rapid.SampledFrom(chunks).Draw(t, "chunk").Origin()
		name := rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "player")
		e := nodemsg.Intent{
			Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name},
			Seq: rapid.Uint64Range(0, 150).Draw(t, "seq"),
			Pos: grid.Pos{
				X: at.X + rapid.Int32Range(0, 1).Draw(t, "x"), Z: at.Z,
				Y: rapid.SampledFrom([]int32{-1, 0, 1, testHeight - 1, testHeight}).Draw(t, "y"),
			},
			Block: chunk.Block(rapid.SampledFrom([]uint16{0, 1, 60_000, math.MaxUint16}).Draw(t, "block")),
		}
		if text := rapid.SampledFrom([]string{"", "", "ö", "to the\nharbour"}).Draw(t, "text"); text != "" {
			e.Block, e.Text = chunk.Sign, text
		} else if rapid.IntRange(0, 3).Draw(t, "bulk") == 0 {
			e.Pos, e.Block = e.Pos.Chunk().Origin(), 0
			e.Bulk = drawBulk(t)
		}
		b.Edits = append(b.Edits, e)
	}
	return b
}

// drawBulk draws the runs of a bulk edit of the places where other edits are, too.
func drawBulk(t *rapid.T) nodemsg.Bulk {
	var b []byte
	end := chunk.Index(0)
	for _, y := range []int{1, testHeight - 1, testHeight}[:rapid.IntRange(1, 3).Draw(t, "runs")] {
		block := rapid.SampledFrom([]chunk.Block{0, 1, 60_000})
		r := nodemsg.BulkRun{
			At: chunk.IndexOf(0, y, 0), Count: rapid.IntRange(1, 3).Draw(t, "count"), From: block.Draw(t, "from"), To: block.Draw(t, "to"),
		}
		b, end = nodemsg.AppendRun(b, end, r), r.At+chunk.Index(r.Count)
	}
	return nodemsg.Bulk(b)
}

// Land agrees with its model, has the same outcome on two replicas, and can be restored from its rows at any time.
func TestLandAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		land, replica, simple, stored := newTestLand(), newTestLand(), newModel(), rows{}
		for index := range uint64(rapid.IntRange(1, 12).Draw(t, "batches")) {
			batch := drawBatch(t)
			out, err := land.Apply(index, batch.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if other, err := replica.Apply(index, batch.Encode()); err != nil || !reflect.DeepEqual(other, out) {
				t.Fatalf("two replicas disagree: %+v and %+v, %v", out, other, err)
			}
			for _, p := range batch.Pins {
				if _, pinned := simple.pins[p.Chunk]; !pinned && testCell.Contains(p.Chunk) {
					simple.pins[p.Chunk] = p.Base
				}
			}
			for i, e := range batch.Edits {
				if want := simple.edit(e); out.Results[i] != want {
					t.Fatalf("edit %+v: %+v, and %+v is right", e, out.Results[i], want)
				}
			}
			if rapid.Bool().Draw(t, "stored later") { // together with the changes of the next batch
				continue
			}
			stored.store(land.Writes())
			if rapid.Bool().Draw(t, "restart") {
				land = stored.load(t)
			}
			for pos := range simple.pins {
				if got, want := land.Chunk(pos), simple.chunk(pos); !reflect.DeepEqual(got, want) || !land.Pinned(pos) {
					t.Fatalf("chunk %v: %+v, and %+v is right", pos, got, want)
				}
			}
			if land.Edits() != len(simple.blocks) {
				t.Fatalf("%d edits of %d", land.Edits(), len(simple.blocks))
			}
		}
		stored.store(land.Writes())
		replica.Writes() // so that neither has anything left to store
		if again := stored.load(t); !reflect.DeepEqual(again, replica) {
			t.Fatalf("from its rows the land is %+v, and it was %+v", again, replica)
		}
	})
}

// Changes lists each block that an edit changed, once for each applied edit and never for a repetition.
func TestLandReportsChanges(t *testing.T) {
	l := newTestLand()
	at := grid.Pos{X: testCell.Area().MinX * 32, Y: 3, Z: testCell.Area().MinZ * 32}
	e := guest(1, 5, at, chunk.Stone)
	other := e
	other.Block = chunk.Dirt
	out, err := l.Apply(2, Batch{Time: 1e12, Pins: []Pin{{Chunk: at.Chunk()}}, Edits: []nodemsg.Intent{e, e, other}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{Chunk: at.Chunk(), BlockAt: nodemsg.BlockAt{At: chunk.At(at), Block: chunk.Stone}}}
	if !slices.Equal(out.Changes, want) {
		t.Errorf("changes %v, want %v", out.Changes, want)
	}
	wantResults := []nodemsg.EditResult{
		{Player: e.Player, Seq: 5, Block: chunk.Stone},
		{Player: e.Player, Seq: 5, Block: chunk.Stone},
		{Player: e.Player, Seq: 5, Refused: wire.RefusedStale},
	}
	if !slices.Equal(out.Results, wantResults) {
		t.Errorf("results %v, want %v", out.Results, wantResults)
	}
}

// The player whose last edit is oldest is dropped first, on disk too.
func TestLandEvictsPlayers(t *testing.T) {
	l, stored := newTestLand(), rows{}
	at := grid.Pos{X: testCell.Area().MinX * 32, Z: testCell.Area().MinZ * 32}
	edits := make([]nodemsg.Intent, 5000+2*rememberedPlayers) // by ascending id: of several at once, the lowest is dropped first
	for n := range edits {
		edits[n] = guest(n, 1, at, chunk.Stone)
	}
	slices.SortFunc(edits, func(a, b nodemsg.Intent) int { return a.Player.Compare(b.Player) })
	id := func(n int) player.ID { return edits[n].Player }
	apply := func(index uint64, from, to int) {
		b := Batch{Time: 1e12, Pins: []Pin{{Chunk: at.Chunk()}}, Edits: edits[from:to]}
		if _, err := l.Apply(index, b.Encode()); err != nil {
			t.Fatal(err)
		}
		stored.store(l.Writes())
	}
	apply(2, 100, 100+rememberedPlayers)
	apply(3, 0, 2)
	if len(l.recents) != rememberedPlayers || l.recents[id(0)] == nil || l.recents[id(100)] != nil || l.recents[id(101)] != nil {
		t.Errorf("%d players are remembered, or the wrong ones", len(l.recents))
	}
	apply(4, 5000, 5000+2*rememberedPlayers)
	if len(l.recents) != rememberedPlayers || l.recents[id(0)] != nil || l.recents[id(5000)] != nil {
		t.Errorf("after a crowd: %d players are remembered, or the wrong ones", len(l.recents))
	}
	if again := stored.load(t); !reflect.DeepEqual(again, l) {
		t.Errorf("from its rows %d players are remembered of %d", len(again.recents), len(l.recents))
	}
}

func TestLandLoadRefuses(t *testing.T) {
	l := newTestLand()
	inside := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	edit := func(pos grid.ChunkPos, at byte) []byte { return append(l.chunkKey(keyEdit, pos), 0, at, 0, 0) }
	if err := l.Load(l.baseKey(inside), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	if err := l.Load(edit(inside, 0), []byte{0, 1}); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string][2][]byte{
		"another region":    {NewLand(8, testCell, 32).baseKey(inside), make([]byte, 32)},
		"outside":           {l.baseKey(grid.ChunkPos{X: 500}), make([]byte, 32)},
		"short base":        {l.baseKey(inside), make([]byte, 31)},
		"edit without base": {edit(grid.ChunkPos{X: inside.X + 1, Z: inside.Z}, 0), []byte{0, 1}},
		"above the world":   {edit(inside, 1), []byte{0, 1}},
		"short block":       {edit(inside, 0), []byte{0}},
		"long text":         {edit(inside, 0), append([]byte{0, 1}, strings.Repeat("x", wire.MaxSignText+1)...)},
		"text not in UTF-8": {edit(inside, 0), []byte{0, 1, 0xff}},
		"garbage sequences": {l.playerKey(player.ID{}), []byte{1, 2, 3}},
		"unknown kind":      {append(l.Prefix(), 'z'), nil},
		"short key":         {[]byte{1}, nil},
	} {
		if err := l.Load(row[0], row[1]); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
}

// Whatever the log holds: no panic, the same outcome on every replica, and the same state from the rows.
func FuzzLandApply(f *testing.F) {
	at := grid.Pos{X: testCell.Area().MinX * 32, Y: 3, Z: testCell.Area().MinZ * 32}
	e := guest(1, 5, at, chunk.Stone)
	good := Batch{Time: 1, Pins: []Pin{{Chunk: at.Chunk()}}, Edits: []nodemsg.Intent{e, e}}.Encode()
	f.Add(good, good)
	sign := nodemsg.Intent{Player: player.GuestID("ada"), Seq: 5, Pos: at, Block: chunk.Sign, Text: "home", Proof: nodemsg.Proof{Name: "ada"}}
	f.Add(good, Batch{Time: 1, Edits: []nodemsg.Intent{sign}}.Encode())
	f.Add(good, bulkExample().Encode())
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a, b, stored := newTestLand(), newTestLand(), rows{}
		for i, entry := range [][]byte{first, second} {
			out, err := a.Apply(uint64(i), entry)
			other, err2 := b.Apply(uint64(i), entry)
			if (err == nil) != (err2 == nil) || !reflect.DeepEqual(out, other) {
				t.Fatalf("two replicas disagree: %+v, %v and %+v, %v", out, err, other, err2)
			}
			writes := a.Writes()
			if other := b.Writes(); !reflect.DeepEqual(writes, other) {
				t.Fatalf("two replicas store %v and %v", writes, other)
			}
			stored.store(writes)
		}
		if again := stored.load(t); !reflect.DeepEqual(again, a) {
			t.Fatalf("from its rows the land is %+v, and it was %+v", again, a)
		}
	})
}

func FuzzLandLoad(f *testing.F) {
	l := newTestLand()
	inside := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	f.Add(l.baseKey(inside), make([]byte, 32))
	f.Add(append(l.chunkKey(keyEdit, inside), 0, 0, 0, 1), []byte{0, 3})
	f.Add(append(l.chunkKey(keyEdit, inside), 0, 0, 0, 1), editRow(chunk.Sign, "home"))
	f.Add(l.playerKey(player.ID{1}), (&recent{uses: []use{{4, 5}}, last: 6}).encode())
	f.Fuzz(func(t *testing.T, key, value []byte) {
		l := newTestLand()
		if err := l.Load(l.baseKey(inside), make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
		if err := l.Load(key, value); err != nil {
			return
		}
		state := l.Chunk(inside)
		if len(state.Base) != 32 || len(state.Edits) != l.Edits() && len(l.pinned) == 1 || len(state.Signs) > wire.MaxSigns {
			t.Fatalf("loaded %d edits, %d texts, base %x", len(state.Edits), len(state.Signs), state.Base)
		}
		for pos, g := range l.pinned {
			for at := range g.edits.All() {
				if !testCell.Contains(pos) || int(at) >= testHeight*1024 {
					t.Fatalf("loaded an edit at %d of chunk %v", at, pos)
				}
			}
		}
	})
}

// A chunk takes no new place once it has MaxEdits: its state would not fit into a message. Places that are edited can
// be changed.
func TestChunksAreFull(t *testing.T) {
	e := newEditor(t)
	pos, _ := corners()
	g := e.land.pinned[pos.Chunk()]
	for i := range chunk.Index(MaxEdits - 1) {
		g.edits.Set(i, chunk.Stone)
	}
	last, next := chunk.Index(MaxEdits-1).Pos(pos.Chunk()), chunk.Index(MaxEdits).Pos(pos.Chunk())
	if e.land.Full(last) {
		t.Error("full before it has all")
	}
	g.edits.Set(chunk.At(last), chunk.Stone)
	if e.land.Full(last) || !e.land.Full(next) {
		t.Errorf("full: an edited place %v, another %v", e.land.Full(last), e.land.Full(next))
	}
	if e.land.Full(grid.Pos{X: pos.X + grid.ChunkSize, Y: 1, Z: pos.Z}) {
		t.Error("a chunk without edits is full")
	}
}

// However many bulk edits a leader has let in together, a chunk gets no more edited blocks than its state may have.
func TestBulkEditsLeaveRoom(t *testing.T) {
	land := NewLand(7, testCell, 1024)
	at := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	batch := Batch{Time: 1e12, Pins: []Pin{{Chunk: at, Base: [32]byte{1}}}}
	const blocks = 2000
	for i := range chunk.Index(MaxEdits/blocks + 3) {
		run := nodemsg.AppendRun(nil, 0, nodemsg.BulkRun{At: 1024 + i*blocks, Count: blocks, To: chunk.Stone})
		batch.Edits = append(batch.Edits, nodemsg.Intent{
			Player: player.GuestID("ada"), Proof: nodemsg.Proof{Name: "ada"}, Seq: uint64(i + 1), Pos: at.Origin(), Bulk: nodemsg.Bulk(run),
		})
	}
	out, err := land.Apply(1, batch.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if last := out.Results[len(out.Results)-1]; last.Refused != wire.RefusedFull || land.Edits() > MaxEdits || land.Edits() < MaxEdits-blocks {
		t.Errorf("%d edited blocks of at most %d; the last edit is refused as %q", land.Edits(), MaxEdits, last.Refused)
	}
}
