package history

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

var (
	ada = player.GuestID("ada")
	bob = player.GuestID("bob")
	eve = player.GuestID("eve")

	mallory = player.GuestID("mallory")
)

var everywhere = grid.Box{Max: grid.Pos{X: 31, Y: 1023, Z: 31}}

// records decodes a whole log.
func records(t interface{ Fatal(...any) }, l *Log) (all []Record) {
	for _, data := range l.Segments(0) {
		if err := Decode(data, func(r Record) { all = append(all, r) }); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func genRecords(t *rapid.T) []Record {
	players := []player.ID{ada, bob, eve, Author(7)}
	var all []Record
	now := int64(1_700_000_000_000)
	for range rapid.IntRange(0, 400).Draw(t, "records") {
		now += Resolution * rapid.Int64Range(0, 100_000).Draw(t, "later")
		r := Record{
			Time: now, Player: rapid.SampledFrom(players).Draw(t, "player"), Guest: rapid.SampledFrom([]string{"", "eve"}).Draw(t, "guest"),
			At:  chunk.Index(rapid.IntRange(0, chunk.MaxSections*chunk.SectionBlocks-1).Draw(t, "at")),
			Old: chunk.Block(rapid.Uint16Range(0, 40).Draw(t, "old")), New: chunk.Block(rapid.Uint16Range(0, 40).Draw(t, "new")),
		}
		if rapid.Bool().Draw(t, "natural") {
			r.Old = Natural
		}
		all = append(all, r)
	}
	return all
}

// A log has what was added, also when it is loaded again at any point; and both go on to the same bytes.
func TestLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := genRecords(t)
		again := rapid.IntRange(0, len(all)).Draw(t, "again")
		kept, loaded := &Log{}, &Log{}
		for i, r := range all {
			if i == again {
				kept.All(func(number uint32, data []byte, _ int64) {
					if err := loaded.Load(number, data); err != nil {
						t.Fatal(err)
					}
				})
			}
			number, before := kept.Next()
			kept.Add(r)
			if !bytes.HasPrefix(kept.Segment(number), before) || len(kept.Segment(number)) == len(before) {
				t.Fatalf("segment %d did not grow", number)
			}
			if i >= again {
				loaded.Add(r)
			}
		}
		if again < len(all) && !slices.EqualFunc(kept.Segments(0), loaded.Segments(0), bytes.Equal) {
			t.Fatal("a log that was loaded again goes on differently")
		}
		if got := records(t, kept); !slices.Equal(got, all) {
			t.Fatalf("read %v, want %v", got, all)
		}
		size := 0
		for !kept.Empty() {
			number, data, last := kept.Oldest()
			if number != uint32(size) || !bytes.Equal(data, kept.Segment(number)) || last < 0 {
				t.Fatalf("the oldest segment is %d", number)
			}
			kept.DropOldest()
			size++
		}
		if kept.Size() != 0 {
			t.Fatalf("an empty log has %d bytes", kept.Size())
		}
	})
}

func TestTimesDoNotDecrease(t *testing.T) {
	var l Log
	for _, at := range []int64{5000, 3000, -1, 1 << 62, 7000} {
		l.Add(Record{Time: at, Player: ada, New: chunk.Stone})
	}
	got := records(t, &l)
	for i, want := range []int64{5000, 5000, 5000, maxTime, maxTime} {
		if got[i].Time != want {
			t.Errorf("time %d is %d, want %d", i, got[i].Time, want)
		}
	}
}

// A rollback undoes what the naive reading of its documentation undoes, block for block, and undoing it restores the
// damage.
func TestRollback(t *testing.T) {
	pos := grid.ChunkPos{}
	rapid.Check(t, func(t *rapid.T) {
		var l Log
		blocks := make(map[chunk.Index]chunk.Block)
		type change struct {
			Record
			selected bool
		}
		changes := make(map[chunk.Index][]change)
		job := Rollback{Number: 12, Filter: Filter{Box: grid.Box{Max: grid.Pos{X: 5, Y: 0, Z: 0}}, Since: 2000, Until: 8000, Players: []player.ID{eve, mallory}}}
		for now := range rapid.Int64Range(0, 100).Draw(t, "changes") {
			at := chunk.Index(rapid.IntRange(0, 7).Draw(t, "at"))
			r := Record{Time: now * Resolution, Player: rapid.SampledFrom([]player.ID{ada, eve, mallory}).Draw(t, "player"), At: at, Old: Natural}
			if old, ok := blocks[at]; ok {
				r.Old = old
			}
			r.New = chunk.Block(rapid.IntRange(0, 2).Draw(t, "new"))
			l.Add(r)
			blocks[at] = r.New
			changes[at] = append(changes[at], change{r, r.Player != ada && r.Time >= 2000 && r.Time <= 8000 && at <= 5})
		}
		want := make(map[chunk.Index]chunk.Block)
		for at, all := range changes {
			to := all[len(all)-1].New
			for _, c := range slices.Backward(all) {
				if !c.selected {
					break
				}
				to = c.Old
			}
			if to != blocks[at] {
				want[at] = to
			}
		}
		before := make(map[chunk.Index]chunk.Block)
		apply := func(r Rollback) []Change {
			done, err := r.Changes(pos, l.Segments(0))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done {
				if blocks[c.At] != c.From {
					t.Fatalf("block %d is %d, not %d", c.At, blocks[c.At], c.From)
				}
				before[c.At] = c.From
				blocks[c.At] = c.To
				l.Add(Record{Time: 20_000 + r.Number, Player: Author(r.Number), At: c.At, Old: c.From, New: c.To & 0xff})
			}
			if rest, err := r.Changes(pos, l.Segments(0)); err != nil || len(rest) > 0 {
				t.Fatalf("a rollback that is complete has more to do: %v, %v", rest, err)
			}
			return done
		}
		done := apply(job)
		if len(done) != len(want) {
			t.Fatalf("changes %v, want %v", done, want)
		}
		for _, c := range done {
			if c.To != want[c.At] {
				t.Fatalf("block %d becomes %d, want %d", c.At, c.To, want[c.At])
			}
		}
		damage := make(map[chunk.Index]chunk.Block)
		for _, c := range done {
			damage[c.At] = before[c.At]
		}
		for _, c := range done {
			blocks[c.At] = c.To & 0xff // as it was recorded
		}
		for _, c := range apply(Rollback{Number: 13, Filter: Filter{Box: everywhere, Players: []player.ID{Author(12)}}}) {
			if c.To != damage[c.At] {
				t.Fatalf("undoing makes block %d %d, want %d", c.At, c.To, damage[c.At])
			}
			delete(damage, c.At)
		}
		for at, block := range damage {
			if blocks[at] != block {
				t.Fatalf("undoing left block %d at %d, want %d", at, blocks[at], block)
			}
		}
	})
}

// TestSize bounds the bytes of a change by players who build and dig as people do.
func TestSize(t *testing.T) {
	var l Log
	rng := rand.New(rand.NewPCG(1, 2))
	const changes = 20_000
	at := [3]int{16, 64, 16}
	now := int64(1_700_000_000_000)
	for range changes {
		axis := rng.IntN(3)
		at[axis] = min(max(at[axis]+rng.IntN(3)-1, 0), 31+32*(axis%2))
		now += rng.Int64N(3000)
		who := ada
		if rng.IntN(20) == 0 {
			who = bob
		}
		r := Record{Time: now, Player: who, At: chunk.IndexOf(at[0], at[1], at[2]), Old: Natural, New: chunk.Block(rng.IntN(20))}
		l.Add(r)
	}
	each := float64(l.Size()) / changes
	t.Logf("%.1f bytes a change in segments", each)
	if each > 9 {
		t.Errorf("a change takes %.1f bytes", each)
	}
}

func FuzzSegment(f *testing.F) {
	var l Log
	for i := range 20 {
		l.Add(Record{Time: int64(i) * 1e9, Player: []player.ID{ada, bob}[i%2], At: chunk.Index(i * 1000), Old: Natural, New: chunk.Block(i)})
	}
	f.Add(l.Segment(0))
	l.Mark(7)
	l.Add(Record{Time: 1e12, Player: Author(7), At: 5, Old: chunk.Stone, New: chunk.Air})
	f.Add(l.Segment(0))
	f.Add([]byte{segmentVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []Record
		if err := new(coder).decode(data, func(r Record) { all = append(all, r) }); err != nil || len(all) == 0 {
			return
		}
		var again Log
		for _, r := range all {
			again.Add(r)
		}
		var got []Record
		for _, segment := range again.Segments(0) {
			if err := new(coder).decode(segment, func(r Record) { got = append(got, r) }); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("read %v, wrote %v", all, got)
		}
	})
}
