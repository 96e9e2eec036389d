package record

import (
	"bytes"
	"testing"
)

// The cache returns a record only for the same bytes under the same key.
func TestOpenedRecordsAreTheSameBytes(t *testing.T) {
	s := newSigner(t)
	o := newCache(testWorld)
	good := s.seal(t, testWorld, "/chunk/x", []byte("payload"), nil)
	for range 2 {
		got, err := o.open("/chunk/x", good)
		if err != nil || string(got.payload) != "payload" || got.signer.String() != s.id {
			t.Fatalf("opened %q by %s, %v", got.payload, got.signer, err)
		}
	}
	if o.recent.Len() != 1 {
		t.Errorf("%d records are remembered, want 1", o.recent.Len())
	}
	if _, err := o.open("/chunk/y", good); err == nil {
		t.Error("a remembered record can be filed under another key")
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, err := o.open("/chunk/x", bad); err == nil {
			t.Errorf("byte %d of a remembered record can be changed", i)
		}
	}
	if o.recent.Len() != 1 {
		t.Error("a bad record is remembered")
	}
}

// BenchmarkOpen measures the verifications that kad-dht makes while it stores a record: the first one, and the cached
// ones.
func BenchmarkOpen(b *testing.B) {
	s := newSigner(b)
	good := s.seal(b, testWorld, "/player/x", make([]byte, 200), nil)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := open(testWorld, "/player/x", good); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		o := newCache(testWorld)
		for b.Loop() {
			if _, err := o.open("/player/x", good); err != nil {
				b.Fatal(err)
			}
		}
	})
}
