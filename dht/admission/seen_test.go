package admission_test

import (
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/dht/admission"
)

// The signature of a certificate is verified once. One that differs in any byte is read anew.
func TestSeenCertificatesAreVerifiedOnce(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	node := w.join(founder, "Ben")
	if err := node.play(t, founder); err != nil {
		t.Fatal(err)
	}
	id := node.host.LibP2P().ID()
	raw := admission.OwnBytes(node.Gate)
	if !admission.ReadsFromSeen(founder.Gate, id, raw) {
		t.Error("the certificate that the node has shown is not known")
	}
	if admission.ReadsFromSeen(founder.Gate, founder.host.LibP2P().ID(), raw) {
		t.Error("it is known as another node's")
	}
	for i := range raw {
		forged := bytes.Clone(raw)
		forged[i] ^= 1
		if admission.ReadsFromSeen(founder.Gate, id, forged) {
			t.Errorf("with another byte %d it is taken for the one that the node has shown", i)
		}
	}
}
