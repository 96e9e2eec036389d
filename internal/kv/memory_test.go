package kv_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// A store in memory has what the last write of each key says: no row after a deletion, and an empty one after an empty
// value. Rows are scanned in the order of their keys, and copies do not change.
func TestMemoryKeepsTheLastWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m kv.Memory
		want := make(map[string]string)
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			key := rapid.SampledFrom([]string{"a", "ab", "abc", "b"}).Draw(t, "key")
			value := rapid.SampledFrom([][]byte{nil, {}, []byte("x"), []byte("y")}).Draw(t, "value")
			if err := m.Commit([]kv.Write{{Table: "t", Key: []byte(key), Value: value}}); err != nil {
				t.Fatal(err)
			}
			if want[key] = string(value); value == nil {
				delete(want, key)
			}
		}
		copied := m.Tables()
		prefix := rapid.SampledFrom([]string{"", "a", "ab", "c"}).Draw(t, "prefix")
		for _, s := range []kv.Scanner{&m, copied} {
			var keys []string
			if err := s.Scan("t", []byte(prefix), func(key, value []byte) error {
				keys = append(keys, string(key))
				if w, there := want[string(key)]; !there || w != string(value) || value == nil {
					t.Errorf("%s has %q, want %q", key, value, w)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			number := 0
			for key := range want {
				if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
					number++
				}
			}
			if len(keys) != number || !slices.IsSorted(keys) {
				t.Errorf("scanned %q, want %d rows of %v", keys, number, want)
			}
		}
		if err := m.Commit([]kv.Write{{Table: "t", Key: []byte("c"), Value: []byte("new")}}); err != nil {
			t.Fatal(err)
		}
		if row, _ := copied.Get("t", []byte("c")); row != nil {
			t.Errorf("the copy has %q", row)
		}
	})
}
