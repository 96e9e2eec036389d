package sessionmsg

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func FuzzDecodeClient(f *testing.F) {
	for _, c := range clientMessages {
		f.Add([]byte(c.bytes))
	}
	f.Add([]byte(`{"\u0074ype":"chat","text":"\ud83c\udf0d\n"}`))
	f.Add([]byte(`{"type":"ping","nonce":1e999,"x":[{"a":[null,true,-0.5e-3]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeClient(data)
		if err != nil {
			wiretest.RefusedOnly(t, err)
			return
		}
		// encoding/json must accept everything that the scanner accepts, with the same result.
		if !json.Valid(data) {
			t.Fatalf("%q is taken as %+v, and is no JSON", data, m)
		}
		encoded, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeClient(encoded)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %s and then %+v, %v", m, encoded, again, err)
		}
	})
}

func FuzzDecodeServer(f *testing.F) {
	for _, c := range serverMessages {
		f.Add([]byte(c.bytes))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeServer(data)
		if err != nil {
			wiretest.RefusedOnly(t, err)
			return
		}
		encoded, err := EncodeServer(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeServer(encoded)
		if err != nil || reflect.TypeOf(again) != reflect.TypeOf(m) {
			t.Fatalf("%+v became %s and then %+v, %v", m, encoded, again, err)
		}
		twice, err := EncodeServer(again)
		if err != nil || !bytes.Equal(twice, encoded) {
			t.Fatalf("%s became %s, %v", encoded, twice, err)
		}
		if frame, ok := m.(Frame); ok {
			for _, raw := range frame.Chunks {
				if _, err := DecodePiece(raw); err != nil {
					wiretest.RefusedOnly(t, err)
				}
			}
		}
	})
}
