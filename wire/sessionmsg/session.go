package sessionmsg

import (
	"encoding/json"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// SessionVersion is the version of the session protocol in Join and Welcome. JSON is unchanged since the first version,
// which is supported too; the second version changes the encoding of heights in tick frames.
const (
	SessionVersion = 2
	firstVersion   = 1
)

// Encodings of a session, in Join.Encoding.
const (
	EncodingJSON = "json"
	EncodingCBOR = "cbor"
)

// Messages of a session, in JSON one object each: over TCP one per line, over WebSocket one per text frame. Every
// message has its name in "type". docs/protocol.md describes each field.

// FromClient is any message that a session's client may send.
type FromClient interface {
	clientType() string // the name in "type"
}

// Join opens a session. Key is the player's Ed25519 public key in hex; empty means a guest.
type Join struct {
	Version  int    `json:"version"`
	Name     string `json:"name"`
	View     int    `json:"view"`     // chunks in each direction, 1 to MaxView
	Encoding string `json:"encoding"` // EncodingJSON or EncodingCBOR, of everything after this message
	Key      string `json:"key,omitempty"`
}

// Prove answers a Challenge with the hex Ed25519 signature of ProofText(nonce, world id).
type Prove struct {
	Signature string `json:"signature"`
}

// Move reports the player's current pose.
type Move struct {
	motion.Pose
}

// Edit requests one block change. Seq grows with each edit of this player, across all sessions. A player with a key
// signs player.EditText if the Welcome has Signed set.
type Edit struct {
	Seq   uint64 `json:"seq"`
	X     int32  `json:"x"`
	Y     int32  `json:"y"`
	Z     int32  `json:"z"`
	Block uint16 `json:"block"`

	Signature string `json:"signature,omitempty"` // in hex
	Text      string `json:"text,omitempty"`      // of a sign
}

// Bulk requests that many blocks of the chunk at X, Z are changed: all of them, or none. Only players whose role may
// change so many have it granted (Permissions.Bulk). Seq is counted with that of edits. A player with a key signs
// player.BulkText.
type Bulk struct {
	Seq  uint64 `json:"seq"`
	X    int32  `json:"x"`
	Z    int32  `json:"z"`
	Runs string `json:"runs"` // a nodemsg.Bulk in hex

	Signature string `json:"signature,omitempty"` // in hex
}

// Chat sends a chat line to everybody who sees the player: 1 to 256 bytes of printable UTF-8.
type Chat struct {
	Text string `json:"text"`
}

// View changes the view distance, in chunks.
type View struct {
	View int `json:"view"`
}

// Stance says what the player holds, and whether they sneak, for others to see. At first they hold nothing and stand.
type Stance struct {
	Held   uint16 `json:"held"` // a block
	Sneaks bool   `json:"sneaks"`
}

// Ping requests a Pong with the same nonce.
type Ping struct {
	Nonce uint64 `json:"nonce"`
}

func (Join) clientType() string   { return "join" }
func (Prove) clientType() string  { return "prove" }
func (Move) clientType() string   { return "move" }
func (Edit) clientType() string   { return "edit" }
func (Bulk) clientType() string   { return "bulk" }
func (Chat) clientType() string   { return "chat" }
func (View) clientType() string   { return "view" }
func (Stance) clientType() string { return "stance" }
func (Ping) clientType() string   { return "ping" }

// FromServer is any message that a session's server may send.
type FromServer interface {
	serverType() string // the name in "type"
}

// Challenge asks for proof that the client owns the key. Nonce is 32 random bytes in hex.
type Challenge struct {
	Nonce string `json:"nonce"`
	World string `json:"world"`
}

// Welcome starts a session.
type Welcome struct {
	Version    int         `json:"version"`
	World      string      `json:"world"`      // world id, hex
	WorldName  string      `json:"world_name"` // for people
	Sections   int         `json:"sections"`   // height = 32 * sections
	Player     string      `json:"player"`     // this player's id, hex
	Name       string      `json:"name"`
	Guest      bool        `json:"guest"`
	NextSeq    uint64      `json:"next_seq"` // the Seq to use for the first Edit
	Pose       motion.Pose `json:"pose"`
	View       int         `json:"view"` // granted, at most MaxView
	Reach      float64     `json:"reach"`
	TickMS     int         `json:"tick_ms"`
	TimeOfDay  float64     `json:"time_of_day"`       // game minutes since midnight, now
	DayMS      int64       `json:"day_ms"`            // how long 1440 game minutes last
	Gateway    string      `json:"gateway"`           // peer id of the serving node
	URL        string      `json:"url,omitempty"`     // which others open to reach this gateway's page
	ServerName string      `json:"server_version"`    // version of the daemon
	Map        bool        `json:"map,omitempty"`     // this gateway answers NearbyRequest and MapRequest
	Signed     bool        `json:"signed,omitempty"`  // players with a key sign their edits
	People     bool        `json:"people,omitempty"`  // this gateway answers PeopleRequest
	Stances    bool        `json:"stances,omitempty"` // this gateway takes Stance
	Textures   string      `json:"textures"`          // the world's texture pack is at /textures/ and this; empty for none
}

// Frame holds the changes of one tick in the chunks in view. Each element of Chunks is an encoded Piece, made once for
// all sessions.
type Frame struct {
	Tick   uint64            `json:"tick"`
	Chunks []json.RawMessage `json:"chunks"`
}

// Piece holds the changes of one chunk in one tick. Empty lists are omitted.
type Piece struct {
	Chunk  grid.ChunkPos `json:"chunk"`
	Enter  []Avatar      `json:"enter,omitempty"`
	Leave  []string      `json:"leave,omitempty"` // player ids; remove one only if it entered this chunk last
	Moves  []AvatarMove  `json:"moves,omitempty"`
	Blocks []BlockChange `json:"blocks,omitempty"`
	Chat   []ChatLine    `json:"says,omitempty"`
}

// Avatar is a player's body, in full.
type Avatar struct {
	Player string `json:"player"` // id, hex
	Name   string `json:"name"`
	Guest  bool   `json:"guest,omitempty"`
	motion.Pose
	Skin   player.Skin `json:"skin,omitempty"`
	Held   uint16      `json:"held,omitempty"` // the block in their hand
	Sneaks bool        `json:"sneaks,omitempty"`
}

// AvatarMove is a known avatar's newest pose.
type AvatarMove struct {
	Player string `json:"player"`
	motion.Pose
}

// BlockChange is a committed edit.
type BlockChange struct {
	X     int32  `json:"x"`
	Y     int32  `json:"y"`
	Z     int32  `json:"z"`
	Block uint16 `json:"block"`
}

// ChatLine is a chat line.
type ChatLine struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// Ack confirms that an Edit is committed. With Error the edit was refused, and Block is the current block.
type Ack struct {
	Seq   uint64 `json:"seq"`
	Block uint16 `json:"block"`
	Error string `json:"error,omitempty"` // one of the Refused… codes
}

// Correction moves the player back to the server's position.
type Correction struct {
	motion.Pose
	Reason string `json:"reason"`
}

// Pong answers a Ping.
type Pong struct {
	Nonce     uint64  `json:"nonce"`
	TimeOfDay float64 `json:"time_of_day"`
}

// Notice shows the player a message that is not an error.
type Notice notice.Notice

// Channels of a Line.
const (
	ChannelWorld = "world" // to all players of the world
	ChannelFrom  = "from"  // to this player alone
	ChannelTo    = "to"    // of this player, to another one alone, who was shown it
)

// Line is a line of chat that is not of the land around: those come with the chunk in which they were sent (ChatLine).
type Line struct {
	Channel string `json:"channel"`
	Player  string `json:"player,omitempty"` // who sent it, hex; empty on ChannelTo
	Name    string `json:"name"`             // of who sent it or, on ChannelTo, to whom it was sent
	Text    string `json:"text"`
	// At is when a line to the world was sent, in Unix milliseconds by the clock of its author's gateway, which may be
	// wrong. With Player it names the line: one that was shown before is shown again after a reconnection.
	At int64 `json:"at,omitempty"`
	// Earlier means that the line was sent before the player came.
	Earlier bool `json:"earlier,omitempty"`
}

// CodeLandUnconfirmed is the code of LandUnconfirmed.
const CodeLandUnconfirmed = "land_last_confirmed"

// Notices about land that cannot be reached, or can be reached again.
var (
	LandAway = Notice(notice.New("land_away", "The land here cannot be reached at the moment. Your edits wait."))
	LandBack = Notice(notice.New("land_back", "The land here can be reached again."))
)

// LandUnconfirmed returns the notice to those who are shown land of which no majority confirms that it is the newest,
// as it last was then.
func LandUnconfirmed(asOf time.Time) Notice {
	return Notice(notice.New(CodeLandUnconfirmed, "The land here cannot be confirmed at the moment: newer changes may be missing. It was last confirmed at {time:time}.", asOf))
}

// Failure ends or refuses a session, with a code for programs and a message for people: what to do.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Notice is the message, if it says more than the code.
	Notice *notice.Notice `json:"notice,omitempty"`
}

func (Challenge) serverType() string  { return "challenge" }
func (Welcome) serverType() string    { return "welcome" }
func (Frame) serverType() string      { return "frame" }
func (Ack) serverType() string        { return "ack" }
func (Correction) serverType() string { return "correction" }
func (Pong) serverType() string       { return "pong" }
func (Notice) serverType() string     { return "notice" }
func (Line) serverType() string       { return "line" }
func (Failure) serverType() string    { return "failure" }

// FailureOf returns the message that reports the error to a client.
func FailureOf(e *wire.Error) Failure {
	m := Failure{Code: e.Code, Message: e.Message}
	if e.Why.Code != "" {
		why := e.Why.Sentence()
		m.Notice = &why
	}
	return m
}

// Reconnect informs a client that this gateway is shutting down or accepts no new sessions, and lists other gateways of
// the world. The player's state is saved. The client must send unacknowledged edits again to the new gateway, with the
// same sequence numbers.
type Reconnect struct {
	// Gateways lists addresses of other gateways, the best first; at most MaxGateways. If empty, no other gateway is
	// known, and this one will be back.
	Gateways []wire.Gateway `json:"homes"`
	Reason   string         `json:"reason"`         // for people, in English
	Code     string         `json:"code,omitempty"` // of the reason, as of a notice
}

func (Reconnect) serverType() string { return "reconnect" }

// Valid returns an error if the message is invalid.
func (r Reconnect) Valid() error {
	if r.Gateways == nil {
		return wire.Refuse(wire.FailMissingField, `"homes" is missing`)
	}
	if len(r.Gateways) > wire.MaxGateways {
		return wire.Refuse(wire.FailBadValue, "at most %d homes, not %d", wire.MaxGateways, len(r.Gateways))
	}
	for _, h := range r.Gateways {
		if err := h.Valid(); err != nil {
			return err
		}
	}
	return wire.CheckText(r.Reason)
}
