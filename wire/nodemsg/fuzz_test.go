package nodemsg

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

// fuzzCBOR checks a property of every message between nodes: a decoded message is valid, and survives a round trip.
func fuzzCBOR[T interface{ Valid() error }](t *testing.T, data []byte) {
	t.Helper()
	v, err := wire.DecodeCBOR[T](data, wire.MaxFrame)
	if err != nil {
		wiretest.RefusedOnly(t, err)
		return
	}
	if err := v.Valid(); err != nil {
		t.Fatalf("%+v was taken: %v", v, err)
	}
	var stream bytes.Buffer
	if err := wire.WriteFrame(&stream, v); err != nil {
		t.Fatal(err)
	}
	frame := bytes.Clone(stream.Bytes())
	again, err := wire.ReadFrame[T](bufio.NewReader(&stream), wire.MaxFrame)
	if err != nil {
		t.Fatalf("%+v became %x: %v", v, frame, err)
	}
	if err := wire.WriteFrame(&stream, again); err != nil || !bytes.Equal(stream.Bytes(), frame) {
		t.Fatalf("%x became %x, %v", frame, stream.Bytes(), err)
	}
}

func FuzzLink(f *testing.F) {
	for _, v := range []interface{ Valid() error }{Hello{Region: 7, Cell: aCell}, aToRegion(), provenEdits(), bulkEdit(), aFromRegion(), signs(), FromRegion{}} {
		b, err := wire.EncodeCBOR(v, wire.MaxFrame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzCBOR[Hello](t, data)
		fuzzCBOR[ToRegion](t, data)
		fuzzCBOR[FromRegion](t, data)
	})
}

func FuzzNode(f *testing.F) {
	for _, v := range append(nodeMessages(), laterMessages()...) {
		b, err := wire.EncodeCBOR(v, wire.MaxQuestion)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzCBOR[Question](t, data)
		fuzzCBOR[Answer](t, data)
		fuzzCBOR[HandoffRequest](t, data)
		fuzzCBOR[HandoffOffer](t, data)
		if o, err := DecodeHandoffOffer(data); err == nil {
			for _, game := range []string{"", "minecraft"} {
				if at, _ := o.Gateway(game); at.Valid() != nil {
					t.Fatalf("%+v offers what clients refuse: %v", o, at.Valid())
				}
			}
		}
		fuzzCBOR[Fetch](t, data)
		fuzzCBOR[Fetched](t, data)
		fuzzCBOR[SignedIncarnation](t, data)
		fuzzCBOR[Lineage](t, data)
		fuzzCBOR[PlayersRequest](t, data)
		fuzzCBOR[PlayersAnswer](t, data)
		if r, err := DecodeRegion(data); err == nil {
			if again, err := EncodeRegion(r); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%x became %x, %v", data, again, err)
			}
		}
		if p, err := DecodePlayerRecord(data); err == nil {
			if again, err := EncodePlayerRecord(p); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%x became %x, %v", data, again, err)
			}
		}
	})
}
