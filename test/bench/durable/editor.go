package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	"github.com/voxelpopuli/voxeld/player"
)

// editor is who a writer is: a guest, or the owner of a key.
type editor struct {
	name string
	key  ed25519.PrivateKey // nil for a guest
}

func newEditor(w int, keys bool) editor {
	e := editor{name: writerName(w)}
	if keys {
		seed := sha256.Sum256([]byte(e.name))
		e.key = ed25519.NewKeyFromSeed(seed[:])
	}
	return e
}

func (e editor) public() ed25519.PublicKey { return e.key.Public().(ed25519.PublicKey) }

func (e editor) id() player.ID {
	if e.key == nil {
		return player.GuestID(e.name)
	}
	return player.IDOf(e.public())
}

func writerName(w int) string { return fmt.Sprintf("writer%d", w) }
