package nodemsg

import (
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages between gateways about the players who are there.

const (
	// MaxListed is the most players whom a gateway lists by name.
	MaxListed = 100
	// maxPlayers is more players than a gateway can have.
	maxPlayers = 1 << 20
)

// PlayersRequest asks a gateway who plays there. Exactly one field is set.
type PlayersRequest struct {
	List *ListPlayers `cbor:"1,keyasint,omitempty"`
	Find *FindPlayer  `cbor:"2,keyasint,omitempty"`
	Show *PrivateLine `cbor:"3,keyasint,omitempty"`
	Say  *WorldLines  `cbor:"4,keyasint,omitempty"`
}

// Valid returns an error unless exactly one field is set, and is valid.
func (r PlayersRequest) Valid() error {
	return exactlyOne("PlayersRequest", alternativeOf(r.List), alternativeOf(r.Find), alternativeOf(r.Show), alternativeOf(r.Say))
}

// ListPlayers asks for the names of all players.
type ListPlayers struct{}

// Valid always returns nil.
func (ListPlayers) Valid() error { return nil }

// FindPlayer asks for the player whom others see under the name, in any case.
type FindPlayer struct {
	Name string `cbor:"1,keyasint"`
}

// Valid returns an error if the name is invalid.
func (f FindPlayer) Valid() error {
	if err := player.CheckName(f.Name); err != nil {
		return wire.Refuse(wire.FailBadName, "%v", err)
	}
	return nil
}

// PrivateLine is a line of chat that one player is shown.
type PrivateLine struct {
	From  player.ID `cbor:"1,keyasint"`
	Name  string    `cbor:"2,keyasint"` // of its author
	Guest bool      `cbor:"3,keyasint,omitempty"`
	To    player.ID `cbor:"4,keyasint"`
	Text  string    `cbor:"5,keyasint"`
}

// Valid returns an error if the line is invalid.
func (l PrivateLine) Valid() error {
	return firstError(checkPlayer(l.From, l.Name, l.Guest), wire.CheckChat(l.Text))
}

// MaxWorldLines is the most lines in a WorldLines.
const MaxWorldLines = 32

// WorldLines are lines of chat that all players of the gateway are shown, in the order in which their gateway sent them.
type WorldLines struct {
	Lines []WorldLine `cbor:"1,keyasint"`
}

// Valid returns an error if there are no lines, or too many. Each may be invalid: one that this version refuses does
// not hold up the others.
func (l WorldLines) Valid() error {
	if len(l.Lines) == 0 || len(l.Lines) > MaxWorldLines {
		return wire.Refuse(wire.FailBadValue, "%d lines, want 1 to %d", len(l.Lines), MaxWorldLines)
	}
	return nil
}

// WorldLine is a line of chat for all players of the world.
type WorldLine struct {
	Player player.ID `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint"` // of its author
	Guest  bool      `cbor:"3,keyasint,omitempty"`
	Text   string    `cbor:"4,keyasint"`
	Wall   int64     `cbor:"5,keyasint"` // when it was sent, in milliseconds since 1970 by the clock of the author's gateway
	Stamp  []byte    `cbor:"6,keyasint"` // as in ChatEvent, of the author's clock of the world's chat
}

// Event returns the line as a ChatEvent, which has no chunk.
func (l WorldLine) Event() ChatEvent {
	return ChatEvent{Player: l.Player, Name: l.Name, Text: l.Text, Wall: l.Wall, Stamp: l.Stamp}
}

// Valid returns an error if the line is invalid.
func (l WorldLine) Valid() error {
	e := l.Event()
	if _, ok := e.Clock(); !ok {
		return wire.Refuse(wire.FailBadValue, "a line without a clock of its author")
	}
	return firstError(checkPlayer(l.Player, l.Name, l.Guest), wire.CheckChat(l.Text))
}

// PlayersAnswer answers a PlayersRequest.
type PlayersAnswer struct {
	Names   []string     `cbor:"1,keyasint,omitempty"` // for List: some of the players
	Players uint64       `cbor:"2,keyasint,omitempty"` // for List: how many there are
	Found   *FoundPlayer `cbor:"3,keyasint,omitempty"` // for Find: nil if they are not here
	Shown   bool         `cbor:"4,keyasint,omitempty"` // for Show: the player was here
}

// Valid returns an error if the answer is invalid.
func (a PlayersAnswer) Valid() error {
	err := checkList(a.Names, MaxListed, func(name string) error { return FindPlayer{name}.Valid() })
	switch {
	case err != nil:
		return err
	case a.Players > maxPlayers || a.Players < uint64(len(a.Names)):
		return wire.Refuse(wire.FailBadValue, "%d players, and %d names", a.Players, len(a.Names))
	case a.Found != nil:
		return a.Found.Valid()
	}
	return nil
}

// FoundPlayer is a player whom a gateway has found.
type FoundPlayer struct {
	Player player.ID   `cbor:"1,keyasint"`
	Name   string      `cbor:"2,keyasint"`
	Pose   motion.Pose `cbor:"3,keyasint"`
}

// Valid returns an error if the name or the pose is invalid.
func (f FoundPlayer) Valid() error {
	return firstError(FindPlayer{f.Name}.Valid(), wire.CheckPose(f.Pose))
}

// EncodePlayersRequest encodes a valid PlayersRequest in CBOR.
func EncodePlayersRequest(r PlayersRequest) ([]byte, error) {
	return wire.EncodeCBOR(r, wire.MaxQuestion)
}

// DecodePlayersRequest decodes and validates what EncodePlayersRequest wrote.
func DecodePlayersRequest(b []byte) (PlayersRequest, error) {
	return wire.DecodeCBOR[PlayersRequest](b, wire.MaxQuestion)
}

// EncodePlayersAnswer encodes a valid PlayersAnswer in CBOR.
func EncodePlayersAnswer(a PlayersAnswer) ([]byte, error) {
	return wire.EncodeCBOR(a, wire.MaxQuestion)
}

// DecodePlayersAnswer decodes and validates what EncodePlayersAnswer wrote.
func DecodePlayersAnswer(b []byte) (PlayersAnswer, error) {
	return wire.DecodeCBOR[PlayersAnswer](b, wire.MaxQuestion)
}
