package raftframe

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestSnapshotOfALengthThatIsNotThere: a length costs no memory before the bytes have arrived.
func TestSnapshotOfALengthThatIsNotThere(t *testing.T) {
	taken := 0
	d := decoder{r: bytes.NewReader(make([]byte, 100)), budget: func(n int) error { taken += n; return nil }}
	if d.bytes(maxValue, maxValue); !errors.Is(d.failed(), io.ErrUnexpectedEOF) || taken > 64<<10 {
		t.Fatalf("%v after %d bytes", d.err, taken)
	}
}
