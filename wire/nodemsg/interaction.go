package nodemsg

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// MaxGift is the most blocks that one gift can hold.
const MaxGift = 64

// InteractionKind is the kind of an interaction.
type InteractionKind uint8

// The kinds. A node that does not support a kind shows the text of its ChatEvent.
const (
	InteractionHit  InteractionKind = 1
	InteractionGift InteractionKind = 2
)

// String returns the message type of the kind.
func (k InteractionKind) String() string {
	switch k {
	case InteractionHit:
		return "hit"
	case InteractionGift:
		return "gift"
	default:
		return fmt.Sprint("interaction ", uint8(k))
	}
}

// Interaction is an interaction with another player. It takes the place of the text in a ChatEvent.
type Interaction struct {
	Kind   InteractionKind `cbor:"1,keyasint"`
	To     player.ID       `cbor:"2,keyasint"`
	ToName string          `cbor:"3,keyasint"`
	Block  chunk.Block     `cbor:"4,keyasint,omitempty"` // only in a gift
	Count  uint8           `cbor:"5,keyasint,omitempty"` // only in a gift
}

// Valid returns an error if the interaction is invalid. For an unknown kind it checks only the name.
func (d Interaction) Valid() error {
	if err := player.CheckName(d.ToName); err != nil {
		return wire.Refuse(wire.FailBadName, "%v", err)
	}
	switch {
	case d.Kind == 0:
		return wire.Refuse(wire.FailBadValue, "the interaction has no kind")
	case d.Kind == InteractionHit && (d.Block != 0 || d.Count != 0):
		return wire.Refuse(wire.FailBadValue, "a hit cannot have blocks")
	case d.Kind == InteractionGift && (d.Block == 0 || d.Count == 0 || d.Count > MaxGift):
		return wire.Refuse(wire.FailBadValue, "a gift of %d blocks with id %d; want 1 to %d blocks of one kind", d.Count, d.Block, MaxGift)
	}
	return nil
}

// ChatText returns the chat line that clients without support for interactions show.
func (d Interaction) ChatText() string {
	if d.Kind == InteractionGift {
		return fmt.Sprintf("gives %s %d × %s", d.ToName, d.Count, d.Block.Name())
	}
	return "hits " + d.ToName
}
