package admission_test

import (
	"context"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/trust"
)

// Whatever a stranger sends, it is not admitted, and the charter stays.
func FuzzStranger(f *testing.F) {
	w := newWorld(f)
	founder := w.found()
	stranger := w.start().host.PeerID()
	own, err := founder.storage.Get("trust", []byte("certificate"))
	if err != nil {
		f.Fatal(err)
	}
	for _, message := range []map[int]any{
		{1: w.id, 2: 0, 3: [32]byte{}},
		{1: w.id, 2: 1 << 60, 3: [32]byte{}, 4: own},
		{1: w.id, 2: 0, 3: [32]byte{}, 4: own, 5: [][]byte{own}, 6: [][]byte{own}, 8: true},
		{1: w.id, 2: 0, 3: [32]byte{}, 7: trust.Secret{1}},
	} {
		raw, err := cbor.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	before := founder.Charter()
	f.Fuzz(func(t *testing.T, raw []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		founder.Answer(ctx, stranger, raw) //nolint:errcheck // most questions are refused
		if founder.Issues(stranger) || founder.Charter().Number != before.Number || len(founder.Revoked()) > 0 {
			t.Fatal("a stranger changed who may run nodes")
		}
		if _, admitted := founder.Certificate(stranger); admitted {
			t.Fatal("a stranger was admitted")
		}
	})
}
