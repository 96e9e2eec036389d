package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Interactions between players: hits and gifts. Between nodes they travel like chat (ChatEvent) and carry the
// same clock, because a chat line may answer a hit. In sessions they are messages of their own, which older clients
// ignore.

// Hit strikes a player within reach.
type Hit struct {
	Player string `json:"player"` // id, hex
}

// Gift is a gift of blocks of one kind to a player within reach.
type Gift struct {
	Player string `json:"player"` // id, hex
	Block  uint16 `json:"block"`
	Count  uint8  `json:"count"` // 1 to MaxGift
}

func (Hit) clientType() string  { return "hit" }
func (Gift) clientType() string { return "gift" }

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

func (Struck) serverType() string { return "hit" }
func (Given) serverType() string  { return "gift" }
func (Denied) serverType() string { return "denied" }

// Codes of Denied.Error. Codes that are shared with edits have the same meaning there.
const (
	// DeniedUnknownPlayer: no player with that id is in view.
	DeniedUnknownPlayer = "unknown_player"
	// DeniedSelf: players cannot hit themselves or give to themselves.
	DeniedSelf = "self"
	// DeniedOutOfReach: too far from the player's eyes.
	DeniedOutOfReach = wire.RefusedOutOfReach
	// DeniedBehindBlock: solid blocks are in the way.
	DeniedBehindBlock = "behind_block"
	// DeniedRate: too many per second.
	DeniedRate = wire.RefusedRate
	// DeniedUnknownBlock: the block id does not exist.
	DeniedUnknownBlock = wire.RefusedUnknownBlock
	// DeniedNotPlaceable: players cannot have this block.
	DeniedNotPlaceable = wire.RefusedNotPlaceable
	// DeniedUnavailable: the land here is unreachable, or the session is about to move to another node.
	DeniedUnavailable = wire.RefusedUnavailable
)

// InteractionMessage returns the message for the event if it is an interaction of a known kind. Otherwise ok is false,
// and the event is shown as a chat line.
func InteractionMessage(u *nodemsg.ChatEvent) (m FromServer, ok bool) {
	if u.Interaction == nil {
		return nil, false
	}
	from, to := u.Player.String(), u.Interaction.To.String()
	switch u.Interaction.Kind {
	case nodemsg.InteractionHit:
		return Struck{Player: from, Name: u.Name, To: to, ToName: u.Interaction.ToName}, true
	case nodemsg.InteractionGift:
		return Given{Player: from, Name: u.Name, To: to, ToName: u.Interaction.ToName, Block: uint16(u.Interaction.Block), Count: u.Interaction.Count}, true
	default:
		return nil, false
	}
}
