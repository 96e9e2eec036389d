package player

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// ID identifies a player: the beginning of a hash. In text and JSON it is 32 lower-case hex digits, in CBOR 16 bytes.
type ID [16]byte

const keyPrefix = "/player/"

// IDOf returns the id of the player who owns the key: the first 16 bytes of SHA-256("key\x00" + key).
func IDOf(key ed25519.PublicKey) ID { return hashed("key\x00", key) }

// GuestID returns the id of all guests with that name: the first 16 bytes of SHA-256("guest\x00" + name).
func GuestID(name string) ID { return hashed("guest\x00", []byte(name)) }

func hashed(kind string, what []byte) ID {
	hash := sha256.Sum256(append([]byte(kind), what...))
	return ID(hash[:len(ID{})])
}

// ParseID parses the output of String.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != hex.EncodedLen(len(id)) || strings.ToLower(text) != text {
		return ID{}, fmt.Errorf("parse player id %q: want %d lower-case hex digits", clip(text), hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ID{}, fmt.Errorf("parse player id %q: %w", text, err)
	}
	return id, nil
}

// String returns the id in hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Compare returns how the bytes of two ids compare, as slices.Compare does.
func (id ID) Compare(other ID) int { return slices.Compare(id[:], other[:]) }

// Key returns the DHT key of the player's record, /player/<hex>.
func (id ID) Key() string { return keyPrefix + id.String() }

// MarshalText returns the same text as String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText accepts the same text as ParseID.
func (id *ID) UnmarshalText(text []byte) error {
	read, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = read
	return nil
}

// MarshalBinary returns the 16 bytes. CBOR encoders prefer it to MarshalText.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary reads exactly 16 bytes.
func (id *ID) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return fmt.Errorf("read player id: %d bytes, want %d", len(b), len(id))
	}
	*id = ID(b)
	return nil
}

// clip bounds the input quoted in an error message, in bytes.
func clip(text string) string { return text[:min(len(text), 64)] }
