package nodemsg

import (
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func TestPackPiece(t *testing.T) {
	for _, size := range []int{0, 1, MaxPartBytes} {
		packed, err := PackPart(make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := UnpackPart(packed); err != nil || len(got) != size {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	over := make([]byte, MaxPartBytes+1)
	if _, err := PackPart(over); err == nil {
		t.Error("too large a piece is packed")
	}
	bomb, err := wire.NewDeflater().Deflate(over)
	if err != nil {
		t.Fatal(err)
	}
	_, err = UnpackPart(bomb)
	if code := wiretest.CodeOf(t, err); code != wire.FailTooLong {
		t.Errorf("bomb: %v", err)
	}
}
