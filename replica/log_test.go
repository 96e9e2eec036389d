package replica

import (
	"errors"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/kv"
)

// TestLogAgainstTwin compares log with raft's own MemoryStorage under random appends, overwrites, compactions and
// reloads.
func TestLogAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk()
		conf := &configuration{Index: foundingIndex, Next: 2, Members: []member{{ID: 1, Peer: "me"}}}
		l, err := loadLog(d, 7, state{term: 1, commit: 1, applied: 1, start: 1, startTerm: 1}, conf)
		if err != nil {
			t.Fatal(err)
		}
		twin := raft.NewMemoryStorage()
		if err := twin.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf.confState(),
		}}); err != nil {
			t.Fatal(err)
		}
		term := uint64(1)

		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				from := l.last + 1
				if rapid.Bool().Draw(t, "overwrite") {
					from = rapid.Uint64Range(l.start+1, l.last+1).Draw(t, "from")
				}
				term += rapid.Uint64Range(0, 1).Draw(t, "newer")
				if from <= l.last {
					term++ // only a newer leader overwrites
				}
				var entries []*raftpb.Entry
				for i := range rapid.Uint64Range(1, 5).Draw(t, "n") {
					data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")
					if len(data) == 0 {
						data = nil // as in a new leader's entry
					}
					entries = append(entries, &raftpb.Entry{Index: new(from + i), Term: new(term), Data: data})
				}
				if err := d.Commit(l.appendWrites(nil, entries)); err != nil {
					t.Fatal(err)
				}
				l.append(entries)
				if err := twin.Append(entries); err != nil {
					t.Fatal(err)
				}
			},
			"compact": func(t *rapid.T) {
				to := rapid.Uint64Range(l.start, l.last).Draw(t, "to")
				if err := d.Commit(l.compactWrites(nil, to)); err != nil {
					t.Fatal(err)
				}
				l.compact(to)
				if err := twin.Compact(to); err != nil && !errors.Is(err, raft.ErrCompacted) {
					t.Fatal(err)
				}
			},
			"shorten": func(t *rapid.T) {
				l.shorten(rapid.Uint64Range(0, l.last).Draw(t, "keep"), rapid.IntRange(0, 500).Draw(t, "bytes"))
			},
			"reload": func(t *rapid.T) {
				var err error
				if l, err = loadLog(d, 7, state{term: term, start: l.start, startTerm: l.startTerm}, conf); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) { sameLog(t, l, twin) },
		})
	})
}

func sameLog(t *rapid.T, l *log, twin *raft.MemoryStorage) {
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	twinFirst, _ := twin.FirstIndex()
	twinLast, _ := twin.LastIndex()
	if first != twinFirst || last != twinLast {
		t.Fatalf("indexes %d to %d, the twin has %d to %d", first, last, twinFirst, twinLast)
	}
	for i := first - min(first, 2); i <= last+1; i++ {
		a, errA := l.Term(i)
		b, errB := twin.Term(i)
		if a != b || errA != errB {
			t.Fatalf("term of %d: %d, %v; the twin returned %d, %v", i, a, errA, b, errB)
		}
	}
	if first > last {
		return
	}
	for _, size := range []uint64{0, 30, 1 << 20} {
		a, errA := l.Entries(first, last+1, size)
		b, errB := twin.Entries(first, last+1, size)
		if len(a) != len(b) || errA != errB {
			t.Fatalf("%d entries, %v; the twin has %d, %v", len(a), errA, len(b), errB)
		}
		for i := range a {
			if a[i].GetIndex() != b[i].GetIndex() || a[i].GetTerm() != b[i].GetTerm() || string(a[i].GetData()) != string(b[i].GetData()) {
				t.Fatalf("entry %v; the twin has %v", a[i], b[i])
			}
		}
	}
	if _, err := l.Entries(first-1, last+1, 1); !errors.Is(err, raft.ErrCompacted) {
		t.Fatalf("a compacted entry: %v", err)
	}
}

func TestRecords(t *testing.T) {
	s := state{term: 9, vote: 2, commit: 8, applied: 7, start: 5, startTerm: 3}
	if got, err := decodeState(encodeState(s)); err != nil || got != s {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, wrong := range []state{
		{term: 1, commit: 1, applied: 2},
		{term: 1, commit: 3, applied: 2, start: 3},
		{term: 1, startTerm: 2},
		{term: maxNumber + 1},
		{term: 1, commit: maxNumber + 1},
	} {
		if _, err := decodeState(encodeState(wrong)); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("decoded %+v", wrong)
		}
	}
	for _, wrong := range []configuration{
		{},
		{Next: 2, Members: []member{{ID: 2, Peer: "a"}}},
		{Next: 3, Members: []member{{ID: 2, Peer: "a"}, {ID: 1, Peer: "b"}}},
		{Next: 3, Members: []member{{ID: 1, Peer: "a"}, {ID: 2, Peer: "a"}}},
		{Next: 3, Members: []member{{ID: 0, Peer: "a"}}},
		{Next: 99, Members: make([]member, maxMembers+1)},
	} {
		encoded, err := encodeConfiguration(&wrong)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeConfiguration(encoded); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("decoded %+v", wrong)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(logKey(7, 3), encodeEntry(&raftpb.Entry{Term: new(uint64(2)), Data: []byte("edit")}))
	f.Add([]byte{}, encodeState(state{term: 9, commit: 8, applied: 7, start: 5, startTerm: 3}))
	c := &configuration{Index: 1, Next: 3, Members: []member{{1, "a"}, {2, "b"}}}
	encoded, err := encodeConfiguration(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, encoded)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if e, err := decodeEntry(key, value); err == nil {
			if again, err := decodeEntry(key, encodeEntry(e)); err != nil || !proto.Equal(e, again) {
				t.Fatalf("%v, %v, %v", e, again, err)
			}
		}
		if s, err := decodeState(value); err == nil && string(encodeState(s)) != string(value) {
			t.Fatalf("%+v", s)
		}
		if c, err := decodeConfiguration(value); err == nil {
			encoded, err := encodeConfiguration(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decodeConfiguration(encoded); err != nil {
				t.Fatal(err)
			}
		}
	})
}
