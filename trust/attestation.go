package trust

import (
	"crypto/ed25519"
	"encoding/binary"
)

// Attestation is a node's statement of what its copy of a group is: as of a log index, it has rows with this checksum.
type Attestation struct {
	World     World
	Group     uint64   // id of a region, or of the catalog
	Recovered uint64   // how often the group was recovered; its log indexes begin anew then
	Index     uint64   // of the log
	Sum       [32]byte // of the rows, as a backup has it
}

// text returns what is signed: the purpose, and the fields in order, integers as u64 big-endian.
func (a Attestation) text() []byte {
	b := append([]byte("voxeld attestation 1\x00"), a.World[:]...)
	b = binary.BigEndian.AppendUint64(b, a.Group)
	b = binary.BigEndian.AppendUint64(b, a.Recovered)
	b = binary.BigEndian.AppendUint64(b, a.Index)
	return append(b, a.Sum[:]...)
}

// Sign returns the Ed25519 signature of the attestation.
func (a Attestation) Sign(s Signer) ([]byte, error) { return s.Sign(a.text()) }

// Verify reports whether the signature of the attestation is that of the key.
func (a Attestation) Verify(k Key, signature []byte) bool {
	return ed25519.Verify(k[:], a.text(), signature)
}
