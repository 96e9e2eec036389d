package services

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
)

// Key is the secret of a service: the seed of the Ed25519 key that signs its edits. The policy has the id of that key.
type Key [ed25519.SeedSize]byte

// keyPrefix begins the texts of keys, by which those who search for leaked secrets recognise them.
const keyPrefix = "vxs"

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewKey returns a new key.
func NewKey() (k Key) {
	rand.Read(k[:])
	return k
}

// String returns the key as services send it.
func (k Key) String() string { return keyPrefix + keyEncoding.EncodeToString(k[:]) }

var errKey = errors.New("that is no key of a service")

// ParseKey reads what String returns.
func ParseKey(text string) (k Key, err error) {
	encoded, is := strings.CutPrefix(text, keyPrefix)
	if !is || len(encoded) != keyEncoding.EncodedLen(len(k)) {
		return k, errKey
	}
	if _, err := keyEncoding.Decode(k[:], []byte(encoded)); err != nil || k.String() != text {
		return Key{}, errKey
	}
	return k, nil
}

// private returns the key that signs edits.
func (k Key) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k[:]) }

// ID returns the id of the service, as the policy knows it.
func (k Key) ID() player.ID { return idOf(k.private()) }

func idOf(key ed25519.PrivateKey) player.ID { return player.IDOf(publicOf(key)) }

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }
