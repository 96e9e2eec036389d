package main

import (
	"crypto/ed25519"
	"crypto/sha256"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
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

func (e editor) sign(world string, seq uint64, pos grid.Pos, block chunk.Block) []byte {
	return ed25519.Sign(e.key, player.EditText(world, seq, pos, uint16(block), ""))
}
