package player

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Login proves to everybody that the owner of a key opened a session at a gateway. The nonce of the gateway's challenge
// is a hash of the gateway's peer id, the time and the salt, so the answer of the owner's client is a signature over
// these.
type Login struct {
	Key       [ed25519.PublicKeySize]byte `cbor:"1,keyasint"`
	At        int64                       `cbor:"2,keyasint"` // Unix milliseconds, by the gateway's clock
	Salt      [16]byte                    `cbor:"3,keyasint"` // random
	Signature [ed25519.SignatureSize]byte `cbor:"4,keyasint"` // of ProofText(Nonce(gateway), world id)
}

// Nonce returns the nonce of the gateway's challenge: the SHA-256, in hex, of "voxeld login 1\x00", the time as u64,
// big-endian, the salt, and the gateway's peer id.
func (l Login) Nonce(gateway string) string {
	b := append([]byte("voxeld login 1\x00"), binary.BigEndian.AppendUint64(nil, uint64(l.At))...)
	b = append(append(b, l.Salt[:]...), gateway...)
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:])
}

// Proves reports whether the owner of the key has signed that they opened a session at the gateway, in a world.
func (l Login) Proves(gateway, worldID string) bool {
	return ed25519.Verify(l.Key[:], ProofText(l.Nonce(gateway), worldID), l.Signature[:])
}

// Player returns the id of the key's owner.
func (l Login) Player() ID { return IDOf(l.Key[:]) }
