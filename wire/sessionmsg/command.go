package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/grid"
)

// Messages about roles and commands (package policy).

// Command is a command without its slash: 1 to 256 bytes, as a Chat, but perhaps with characters that wire.Known
// replaces. Commands that change the world's policy are signed with the player's key (policy.SignedText); Seq then
// grows from command to command: microseconds since 1970.
type Command struct {
	Text      string `json:"text"`
	Seq       uint64 `json:"seq,omitempty"`
	Signature string `json:"signature,omitempty"` // in hex
}

// Permissions is the player's role, their registered name, and the commands that they may use. It follows the Welcome,
// and is sent again when it changes.
type Permissions struct {
	Role     string        `json:"role"`
	Name     string        `json:"name"`     // that is registered to the player's key, or empty
	Commands []CommandHelp `json:"commands"` // that they may use
	// Bulk is how many blocks the player may change in one operation by bulk edits; 0: none.
	Bulk int `json:"bulk,omitempty"`
}

// CommandHelp describes a command.
type CommandHelp struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // talk, move, build, claims, moderation or admin
	Usage string `json:"usage,omitempty"` // its arguments
	Help  string `json:"help"`
}

// MaxClaims is the most claims in a Claims, and ClaimRadius how many chunks around the player's are looked through.
const (
	MaxClaims   = 64
	ClaimRadius = 8
)

// Claims lists the claims in the chunks around the player, nearest chunks first, at most MaxClaims. It follows the
// Permissions if there are any, and is sent again when it changes.
type Claims struct {
	Claims []Claim `json:"claims"`
}

// Claim is land that a player keeps: the blocks from Min to Max, both included.
type Claim struct {
	Owner  string   `json:"owner"` // the registered name, or the player's id in hex
	Name   string   `json:"name"`
	Min    grid.Pos `json:"min"`
	Max    grid.Pos `json:"max"`
	Member bool     `json:"member,omitempty"` // the receiver is its owner, or a member
	Build  bool     `json:"build,omitempty"`  // the receiver may build in it, if their role lets them build at all
	Enter  bool     `json:"enter,omitempty"`  // the receiver may enter it
}

// MaxPreviewChunks is the most chunks in a RollbackPreview.
const MaxPreviewChunks = 1024

// RollbackPreview is what a rollback would do, in answer to /rollback. A Notice has the same as a text.
type RollbackPreview struct {
	Command string         `json:"command"` // orders it, signed like any other
	Of      string         `json:"of"`      // whose changes it undoes
	Blocks  int            `json:"blocks"`  // that it would change
	Min     grid.Pos       `json:"min"`     // where, both corners included
	Max     grid.Pos       `json:"max"`
	Columns []PreviewChunk `json:"columns,omitempty"` // where blocks would change; at most MaxPreviewChunks
}

// PreviewChunk is the set of columns of a chunk in which blocks would change: bit z·32 + x, the lowest bit of a byte
// first.
type PreviewChunk struct {
	X    int32  `json:"x"` // of the chunk
	Z    int32  `json:"z"`
	Bits []byte `json:"bits"` // 128 bytes
}

// MaxHistory is the most changes in a History, and MaxHistorySide how many blocks its box has along X and Z at most.
const (
	MaxHistory     = 1000
	MaxHistorySide = 3 * grid.ChunkSize
)

// History is who changed blocks of a box, newest first, in answer to /inspect with two corners.
type History struct {
	Min   grid.Pos `json:"min"` // the box, both corners included
	Max   grid.Pos `json:"max"`
	Until int64    `json:"until"` // no change is later, in Unix milliseconds; 0: no limit
	Skip  int      `json:"skip"`  // how many changes were left out, the newest
	Names []string `json:"names"` // who has made these changes
	// Changes has HistoryFields numbers for each change: its time in Unix milliseconds, the index of its author in
	// Names, X, Y, Z, and the ids of the block before and after. There are MaxHistory changes at most.
	Changes []int64 `json:"changes"`
	More    bool    `json:"more,omitempty"`    // there are older changes
	Missing bool    `json:"missing,omitempty"` // a part of the box did not answer
}

// HistoryFields is the number of numbers of a change in a History.
const HistoryFields = 7

func (Command) clientType() string { return "command" }

// Its name in messages is from before.
func (Permissions) serverType() string     { return "standing" }
func (Claims) serverType() string          { return "claims" }
func (RollbackPreview) serverType() string { return "rollback" }
func (History) serverType() string         { return "history" }
