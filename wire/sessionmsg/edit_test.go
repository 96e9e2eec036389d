package sessionmsg

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The fast path writes the same bytes as the general codec, and reads them back.
func TestShortEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Edit{
			Seq: rapid.Uint64Range(0, mostExact).Draw(t, "seq"), Block: rapid.Uint16().Draw(t, "block"),
			X: rapid.Int32().Draw(t, "x"), Y: rapid.Int32().Draw(t, "y"), Z: rapid.Int32().Draw(t, "z"),
		}
		want, err := encodeNamedCBOR("edit", e)
		if got := encodeEdit(e); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%+v became %x, %x the long way, %v", e, got, want, err)
		}
		if got, ok := cutEdit(want); !ok || got != e {
			t.Fatalf("%+v came back as %+v, %v", e, got, ok)
		}
		a := Ack{Seq: rapid.Uint64().Draw(t, "acknowledged"), Block: e.Block}
		want, err = encodeNamedCBOR("ack", a)
		if got := encodeAck(a); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%+v became %x, %x the long way, %v", a, got, want, err)
		}
		if got, ok := cutAck(want); !ok || got != a {
			t.Fatalf("%+v came back as %+v, %v", a, got, ok)
		}
	})
}

// FuzzShortEdits checks that the general codec reads what the fast path accepts, with the same result.
func FuzzShortEdits(f *testing.F) {
	f.Add(encodeEdit(Edit{Seq: 1 << 40, X: -7, Y: 90, Z: 1 << 30, Block: 4}))
	f.Add(encodeAck(Ack{Seq: 1 << 63, Block: 70}))
	twice := append(appendType(nil, "ack", 2), 0x63, 's', 'e', 'q', 1, 0x63, 's', 'e', 'q', 2)
	f.Add(twice)
	f.Add([]byte{0xa6, 0x64, 't', 'y', 'p', 'e', 0x64, 'e', 'd', 'i', 't', 0x61, 'x', 0x39, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, ok := cutEdit(data); ok {
			if m, err := decodeClientCBOR(data); err != nil || !reflect.DeepEqual(m, e) {
				t.Fatalf("%x: %+v, the long way %+v, %v", data, e, m, err)
			}
		}
		if a, ok := cutAck(data); ok {
			if m, err := decodeServerCBOR[Ack](data); err != nil || !reflect.DeepEqual(m, a) {
				t.Fatalf("%x: %+v, the long way %+v, %v", data, a, m, err)
			}
		}
	})
}
