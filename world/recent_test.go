package world

import (
	"reflect"
	"testing"
)

func TestRecentJudges(t *testing.T) {
	r := &recent{}
	for seq := uint64(10); seq < 10+2*recentWindow; seq += 2 {
		r.add(use{seq, 7}, seq)
	}
	for _, c := range []struct {
		use  use
		want freshness
	}{
		{use{10, 7}, repeated},
		{use{10, 8}, stale}, // another edit with a used number
		{use{11, 7}, fresh}, // a gap within the window
		{use{9, 7}, stale},  // below a full window: too old to check
		{use{10 + 2*recentWindow, 7}, fresh},
	} {
		if got := r.classify(c.use); got != c.want {
			t.Errorf("use %v is judged %d, want %d", c.use, got, c.want)
		}
	}
	r.add(use{11, 7}, 500)
	if r.classify(use{10, 7}) != stale || r.classify(use{11, 7}) != repeated || len(r.uses) != recentWindow || r.last != 500 {
		t.Errorf("after an addition: %d uses, last %d", len(r.uses), r.last)
	}
	if (&recent{}).classify(use{0, 0}) != fresh {
		t.Error("the first sequence ever is not fresh")
	}
}

func FuzzDecodeRecent(f *testing.F) {
	full := &recent{last: 1 << 40}
	for i := range uint64(recentWindow) {
		full.add(use{i * i << 20, uint32(i)}, 1<<40)
	}
	f.Add(full.encode())
	f.Add((&recent{}).encode())
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := decodeRecent(data)
		if !ok {
			return
		}
		if len(r.uses) > recentWindow {
			t.Fatalf("%d uses", len(r.uses))
		}
		for i, u := range r.uses {
			if i > 0 && u.seq <= r.uses[i-1].seq {
				t.Fatalf("sequences %d, %d do not ascend", r.uses[i-1].seq, u.seq)
			}
		}
		if again, ok := decodeRecent(r.encode()); !ok || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v", r, again)
		}
	})
}
