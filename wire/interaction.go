package wire

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
)

// Interactions between players: hits and gifts. Between nodes they travel like chat (ChatEvent) and carry the
// same clock, because a chat line may answer a hit. In sessions they are messages of their own, which older clients
// ignore.

// MaxGift is the most blocks that one gift can hold.
const MaxGift = 64

// Hit strikes a player within reach.
type Hit struct {
	Player string `json:"player"` // id, hex
}

// Gift gives blocks of one kind to a player within reach.
type Gift struct {
	Player string `json:"player"` // id, hex
	Block  uint16 `json:"block"`
	Count  uint8  `json:"count"` // 1 to MaxGift
}

func (Hit) fromClient()  {}
func (Gift) fromClient() {}

// Struck reports a hit to every client that has the attacker in view.
type Struck struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	To     string `json:"to"` // the player who was hit
	ToName string `json:"to_name"`
}

// Given reports a gift to every client that has the giver in view.
type Given struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	To     string `json:"to"` // the player who received it
	ToName string `json:"to_name"`
	Block  uint16 `json:"block"`
	Count  uint8  `json:"count"`
}

// Denied answers a Hit or a Gift that was refused.
type Denied struct {
	Interaction string `json:"deed"` // the type of the message
	Player      string `json:"player"`
	Error       string `json:"error"` // one of the Denied… codes
}

func (Struck) fromServer() {}
func (Given) fromServer()  {}
func (Denied) fromServer() {}

// Codes of Denied.Error. Codes that are shared with edits have the same meaning there.
const (
	// DeniedUnknownPlayer: no player with that id is in view.
	DeniedUnknownPlayer = "unknown_player"
	// DeniedSelf: players cannot hit themselves or give to themselves.
	DeniedSelf = "self"
	// DeniedOutOfReach: too far from the player's eyes.
	DeniedOutOfReach = RefusedOutOfReach
	// DeniedBehindBlock: solid blocks are in the way.
	DeniedBehindBlock = "behind_block"
	// DeniedRate: too many per second.
	DeniedRate = RefusedRate
	// DeniedUnknownBlock: the block id does not exist.
	DeniedUnknownBlock = RefusedUnknownBlock
	// DeniedNotPlaceable: players cannot have this block.
	DeniedNotPlaceable = RefusedNotPlaceable
	// DeniedUnavailable: the land here is unreachable, or the session is about to move to another node.
	DeniedUnavailable = RefusedUnavailable
)

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
		return refuse(FailBadName, "%v", err)
	}
	switch {
	case d.Kind == 0:
		return refuse(FailBadValue, "the interaction has no kind")
	case d.Kind == InteractionHit && (d.Block != 0 || d.Count != 0):
		return refuse(FailBadValue, "a hit cannot have blocks")
	case d.Kind == InteractionGift && (d.Block == 0 || d.Count == 0 || d.Count > MaxGift):
		return refuse(FailBadValue, "a gift of %d blocks with id %d; want 1 to %d blocks of one kind", d.Count, d.Block, MaxGift)
	}
	return nil
}

// ChatText returns the chat line that nodes and clients without support for interactions show.
func (d Interaction) ChatText() string {
	if d.Kind == InteractionGift {
		return fmt.Sprintf("gives %s %d × %s", d.ToName, d.Count, d.Block.Name())
	}
	return "hits " + d.ToName
}

// ClientMessage returns the session message for the event if it is an interaction of a known kind. Otherwise ok is false, and the
// event is shown as a chat line.
func (u *ChatEvent) ClientMessage() (m FromServer, ok bool) {
	if u.Interaction == nil {
		return nil, false
	}
	from, to := u.Player.String(), u.Interaction.To.String()
	switch u.Interaction.Kind {
	case InteractionHit:
		return Struck{Player: from, Name: u.Name, To: to, ToName: u.Interaction.ToName}, true
	case InteractionGift:
		return Given{Player: from, Name: u.Name, To: to, ToName: u.Interaction.ToName, Block: uint16(u.Interaction.Block), Count: u.Interaction.Count}, true
	default:
		return nil, false
	}
}

// playerID reads a player id in the form that the server writes.
func (o *object) playerID(field string) string {
	text := o.text(field, 2*len(player.ID{}))
	if id, err := player.ParseID(text); o.err == nil && (err != nil || id.String() != text) {
		o.fail(refuse(FailBadValue, "%q must be a player's id, %d bytes in hex", field, len(id)))
	}
	return text
}
