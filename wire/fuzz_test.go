package wire_test

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("one\r\n\n two \nthree"), 3)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most &= 63
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			line, err := wire.ReadLine(r, most)
			if err != nil {
				break
			}
			if len(line) == 0 || len(line) > most || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("line %q of %q", line, data)
			}
		}
	})
}

func FuzzUnpackChunk(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 0, 1, 0, 0, 0}, make([]byte, 70000)} {
		packed, err := wire.PackChunk(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := wire.UnpackChunk(data)
		if err != nil {
			wiretest.RefusedOnly(t, err)
			return
		}
		if len(b) > wire.MaxChunkBytes {
			t.Fatalf("%d bytes", len(b))
		}
	})
}
