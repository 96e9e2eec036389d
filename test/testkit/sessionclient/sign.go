package sessionclient

import (
	"crypto/ed25519"
	"encoding/hex"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Prove returns the answer to a challenge, which proves that the player has the key.
func Prove(key ed25519.PrivateKey, m sessionmsg.Challenge) sessionmsg.Prove {
	return sessionmsg.Prove{Signature: hex.EncodeToString(ed25519.Sign(key, player.ProofText(m.Nonce, m.World)))}
}

// Sign returns an edit with the signature that a world requires of the player who has the key.
func Sign(key ed25519.PrivateKey, world string, e sessionmsg.Edit) sessionmsg.Edit {
	text := player.EditText(world, e.Seq, grid.Pos{X: e.X, Y: e.Y, Z: e.Z}, e.Block, e.Text)
	e.Signature = hex.EncodeToString(ed25519.Sign(key, text))
	return e
}
