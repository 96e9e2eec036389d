package policy

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// SignedText returns what the author of an act signs: the lines "voxeld command 1", or "voxeld operator command 1", the
// world's id, the sequence number, the player's name or the number of the charter, and the command, with a line feed
// between them and none at the end. Of the command seen it is what a player signs who logs in (player.Login).
func SignedText(world string, a nodemsg.Act) []byte {
	if login, gateway, is := loginOf(a); is {
		return player.ProofText(login.Nonce(gateway), world)
	}
	if a.Operator {
		return fmt.Appendf(nil, "voxeld operator command 1\n%s\n%d\n%d\n%s", world, a.Seq, a.Charter, a.Text)
	}
	return fmt.Appendf(nil, "voxeld command 1\n%s\n%d\n%s\n%s", world, a.Seq, a.Name, a.Text)
}

// ErrUnknownCharter is returned by an Issued that does not have the charter yet.
var ErrUnknownCharter = errors.New("the charter is not known yet")

// Issued reports whether a charter of the world makes the node of a key an issuer. In an open world every node is one.
type Issued func(charter uint64, node ed25519.PublicKey) (bool, error)

// Signed reports whether the author has signed the act.
func Signed(world string, a nodemsg.Act) bool {
	return ed25519.Verify(a.Key, SignedText(world, a), a.Signature)
}

// Verify returns an error unless the author has signed the act, and is an issuer if the act is an operator's. The act
// then counts for nothing, on every node; after ErrUnknownCharter only until the charter is known: all acts must be
// applied again then.
func Verify(world string, a nodemsg.Act, issued Issued) error {
	if !Signed(world, a) {
		return notice.New("bad_command_signature", "the signature of the command is wrong")
	}
	if !a.Operator {
		return nil
	}
	ok, err := issued(a.Charter, a.Key)
	if err == nil && !ok {
		err = notice.New("only_issuers", "only operators whose node gives out tokens may do that: see voxeld peers")
	}
	return err
}

// authorOf returns the player whose key signs the act.
func authorOf(a nodemsg.Act) player.ID { return player.IDOf(a.Key) }
