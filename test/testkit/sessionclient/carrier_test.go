package sessionclient_test

import (
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
)

// A message is split off when its last byte has arrived, and not before; the rest stays.
func TestCarriersSplit(t *testing.T) {
	for name, carrier := range map[string]sessionclient.Carrier{"lines": sessionclient.Lines{}, "prefixed": sessionclient.Prefixed{}} {
		for _, size := range []int{1, 127, 128, 20_000} {
			message := bytes.Repeat([]byte("m"), size)
			sent := carrier.Append(nil, message)
			for n := range sent {
				got, _, rest, err := carrier.Split(sent[:n])
				if got != nil || len(rest) != n || err != nil {
					t.Fatalf("%s, %d of %d bytes: %d and %d bytes, %v", name, n, len(sent), len(got), len(rest), err)
				}
			}
			got, _, rest, err := carrier.Split(append(sent, "rest"...))
			if !bytes.Equal(got, message) || string(rest) != "rest" || err != nil {
				t.Errorf("%s of %d bytes: got %d, rest %q, %v", name, size, len(got), rest, err)
			}
		}
		endless := bytes.Repeat([]byte{0xff}, wire.MaxServerLine+1)
		if _, _, _, err := carrier.Split(endless); err == nil {
			t.Errorf("%s: takes a message without an end", name)
		}
	}
}
