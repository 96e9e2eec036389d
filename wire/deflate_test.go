package wire_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func TestPackChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "encoded")
		packed, err := wire.PackChunk(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.UnpackChunk(packed)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("came back as %x, %v", got, err)
		}
	})
	// A decompression bomb is refused at its limit.
	packed, err := wire.PackChunk(make([]byte, wire.MaxChunkBytes+1))
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(packed))
	}
	_, err = wire.UnpackChunk(packed)
	if code := wiretest.CodeOf(t, err); code != wire.FailTooLong {
		t.Errorf("bomb: %v", err)
	}
	_, err = wire.UnpackChunk([]byte{0xff})
	if code := wiretest.CodeOf(t, err); code != wire.FailBadValue {
		t.Errorf("no deflate: %v", err)
	}
}
