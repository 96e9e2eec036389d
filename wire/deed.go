package wire

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
)

// Deeds are what players do to one another: hits and gifts. Between nodes they travel as chat does (Utterance), with the
// same clock, since an answer to them may be a word. In sessions they are messages of their own, which clients that do
// not know them pass over.

// MaxGift is the most blocks that are given at once.
const MaxGift = 64

// Hit strikes a player who is in reach.
type Hit struct {
	Player string `json:"player"` // id, hex
}

// Gift hands a player who is in reach some blocks of a kind.
type Gift struct {
	Player string `json:"player"` // id, hex
	Block  uint16 `json:"block"`
	Count  uint8  `json:"count"` // 1 to MaxGift
}

func (Hit) fromClient()  {}
func (Gift) fromClient() {}

// Struck tells of a hit everybody who has in view who did it.
type Struck struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	To     string `json:"to"` // who was hit
	ToName string `json:"to_name"`
}

// Given tells of a gift.
type Given struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	To     string `json:"to"` // whose it is now
	ToName string `json:"to_name"`
	Block  uint16 `json:"block"`
	Count  uint8  `json:"count"`
}

// Denied answers a Hit or a Gift that did not come about.
type Denied struct {
	Deed   string `json:"deed"` // the type of the message
	Player string `json:"player"`
	Error  string `json:"error"` // one of the Denied… codes
}

func (Struck) fromServer() {}
func (Given) fromServer()  {}
func (Denied) fromServer() {}

// Codes of Denied.Error. Those that edits have too mean the same.
const (
	// DeniedUnknownPlayer: nobody of that id is in view.
	DeniedUnknownPlayer = "unknown_player"
	// DeniedSelf: players hit and give to others.
	DeniedSelf = "self"
	// DeniedOutOfReach: too far from the player's eyes.
	DeniedOutOfReach = RefusedOutOfReach
	// DeniedBehindBlock: solid blocks stand between.
	DeniedBehindBlock = "behind_block"
	// DeniedRate: too many a second.
	DeniedRate = RefusedRate
	// DeniedUnknownBlock: no such block id.
	DeniedUnknownBlock = RefusedUnknownBlock
	// DeniedNotPlaceable: players have no such block to give.
	DeniedNotPlaceable = RefusedNotPlaceable
	// DeniedUnavailable: the land here cannot be reached, or the session is about to move to another node.
	DeniedUnavailable = RefusedUnavailable
)

// DeedKind is what was done.
type DeedKind uint8

// The kinds. A node that does not know one shows the words of its Utterance.
const (
	DeedHit  DeedKind = 1
	DeedGift DeedKind = 2
)

// String is the type of the kind's messages.
func (k DeedKind) String() string {
	switch k {
	case DeedHit:
		return "hit"
	case DeedGift:
		return "gift"
	default:
		return fmt.Sprint("deed ", uint8(k))
	}
}

// Deed is what the speaker of an Utterance does to another player, in place of saying something.
type Deed struct {
	Kind   DeedKind    `cbor:"1,keyasint"`
	To     player.ID   `cbor:"2,keyasint"`
	ToName string      `cbor:"3,keyasint"`
	Block  chunk.Block `cbor:"4,keyasint,omitempty"` // of a gift
	Count  uint8       `cbor:"5,keyasint,omitempty"` // of a gift
}

// Valid says what is wrong with the deed. One of a kind that is not known has only a name to be checked.
func (d Deed) Valid() error {
	if err := player.CheckName(d.ToName); err != nil {
		return refuse(FailBadName, "%v", err)
	}
	switch {
	case d.Kind == 0:
		return refuse(FailBadValue, "a deed of no kind")
	case d.Kind == DeedHit && (d.Block != 0 || d.Count != 0):
		return refuse(FailBadValue, "a hit with blocks")
	case d.Kind == DeedGift && (d.Block == 0 || d.Count == 0 || d.Count > MaxGift):
		return refuse(FailBadValue, "a gift of %d blocks of id %d, where 1 to %d of a kind are allowed", d.Count, d.Block, MaxGift)
	}
	return nil
}

// Words are what is shown by nodes and clients that know no deeds: a chat line.
func (d Deed) Words() string {
	if d.Kind == DeedGift {
		return fmt.Sprintf("gives %s %d × %s", d.ToName, d.Count, d.Block.Name())
	}
	return "hits " + d.ToName
}

// Told is the message by which sessions hear of the utterance, if it is a deed of a known kind; else it is to be shown as words.
func (u *Utterance) Told() (m FromServer, ok bool) {
	if u.Deed == nil {
		return nil, false
	}
	from, to := u.Player.String(), u.Deed.To.String()
	switch u.Deed.Kind {
	case DeedHit:
		return Struck{Player: from, Name: u.Name, To: to, ToName: u.Deed.ToName}, true
	case DeedGift:
		return Given{Player: from, Name: u.Name, To: to, ToName: u.Deed.ToName, Block: uint16(u.Deed.Block), Count: u.Deed.Count}, true
	default:
		return nil, false
	}
}

// playerID reads the id of a player, in the form in which the server writes it.
func (o *object) playerID(field string) string {
	text := o.text(field, 2*len(player.ID{}))
	if id, err := player.ParseID(text); o.err == nil && (err != nil || id.String() != text) {
		o.fail(refuse(FailBadValue, "%q must be a player's id, %d bytes in hex", field, len(id)))
	}
	return text
}
