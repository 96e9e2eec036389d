package admission

import (
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/trust"
)

// A message is decoded within its bounds, and a decoded one is the same after another round.
func FuzzDecode(f *testing.F) {
	secret := trust.Secret{1}
	f.Add(encode(message{}))
	f.Add(encode(message{World: trust.World{1}, Secret: &secret}))
	f.Add(encode(message{
		World: trust.World{1}, Charter: 3, Certificate: []byte("certificate"), Charters: [][]byte{{1}, {2}}, Revocations: [][]byte{{3}},
		After: []byte{3}, Renew: true, Issued: []byte("issued"), Genesis: []byte("genesis"), Refused: "no",
	}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := decode(raw)
		if err != nil {
			return
		}
		if len(raw) > maxMessage || len(m.Charters) > 512 || len(m.Revocations) > 512 {
			t.Fatalf("%d bytes, %d charters, %d revocations", len(raw), len(m.Charters), len(m.Revocations))
		}
		once := encode(m)
		again, err := decode(once)
		if err != nil && len(once) <= maxMessage {
			t.Fatal(err)
		}
		if err == nil && !bytes.Equal(encode(again), once) {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
}
