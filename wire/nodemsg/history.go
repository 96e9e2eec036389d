package nodemsg

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages about the history of a region's blocks.

// Limits of questions about history.
const (
	// HistoryPage is the most records in one answer.
	HistoryPage = 500
	// MaxHistorySkip is the most records that can be skipped.
	MaxHistorySkip = 100_000
	// MaxRegionChunks is the most chunks of a region.
	MaxRegionChunks = 1 << (grid.MaxLabel - grid.FoundingLabel)
)

// HistoryRequest asks the leader of a region who changed which blocks. A region that is closed is opened for it, if the
// asked node is a member of it. The answer is History.
type HistoryRequest struct {
	Region uint64    `cbor:"1,keyasint"`
	Min    grid.Pos  `cbor:"2,keyasint"` // corners of a box, both part of it
	Max    grid.Pos  `cbor:"3,keyasint"`
	Since  int64     `cbor:"4,keyasint,omitempty"` // Unix milliseconds
	Until  int64     `cbor:"5,keyasint,omitempty"` // the same; 0 means no limit
	Player player.ID `cbor:"6,keyasint,omitzero"`  // zero: everybody
	// Newest lists the newest changes first. Skip leaves out as many of them as were listed before, Most bounds those
	// that are listed.
	Newest bool `cbor:"7,keyasint,omitempty"`
	Skip   int  `cbor:"8,keyasint,omitempty"`
	Most   int  `cbor:"9,keyasint,omitempty"`
	// Rollback asks what undoing these changes would do, or has done, instead: the number of the rollback, or -1 for
	// one that is not ordered.
	Rollback int64 `cbor:"10,keyasint,omitempty"`
	// Others are further players, if Player is not zero.
	Others []player.ID `cbor:"11,keyasint,omitempty"`
	// After, with Rollback -1, is the number of the mark of a claim: what is older would not be undone.
	After int64 `cbor:"12,keyasint,omitempty"`
}

// Players returns those whose changes are requested; none: everybody's.
func (r HistoryRequest) Players() []player.ID {
	if r.Player == (player.ID{}) {
		return nil
	}
	return append([]player.ID{r.Player}, r.Others...)
}

// HistoryAnswer answers a HistoryRequest.
type HistoryAnswer struct {
	Records []HistoryRecord `cbor:"1,keyasint,omitempty"`
	More    bool            `cbor:"2,keyasint,omitempty"` // there are more records
	// Of a rollback: how many blocks it has changed, how many it has yet to change and in which columns, and whether it
	// is complete.
	Changed int            `cbor:"3,keyasint,omitempty"`
	Left    int            `cbor:"4,keyasint,omitempty"`
	Columns []ChunkColumns `cbor:"5,keyasint,omitempty"`
	Done    bool           `cbor:"6,keyasint,omitempty"`
}

// HistoryRecord is one change of a block. Guest is the player's name if they are a guest. Old is history.Natural if no
// player had changed the block before.
type HistoryRecord struct {
	_      struct{} `cbor:",toarray"`
	Time   int64    // Unix milliseconds
	Player player.ID
	Guest  string
	At     grid.Pos
	Old    chunk.Block
	New    chunk.Block
}

// ChunkColumns is a set of columns of blocks in a chunk: bit z·32 + x, the lowest bit of a byte first.
type ChunkColumns struct {
	_     struct{} `cbor:",toarray"`
	Chunk grid.ChunkPos
	Bits  [grid.ChunkSize * grid.ChunkSize / 8]byte
}

// Set adds the column of a block.
func (c *ChunkColumns) Set(at chunk.Index) {
	bit := at % (grid.ChunkSize * grid.ChunkSize)
	c.Bits[bit/8] |= 1 << (bit % 8)
}

// Valid returns an error if the box is not one in the world, or a number is out of bounds.
func (r HistoryRequest) Valid() error {
	if r.Min.X > r.Max.X || r.Min.Y > r.Max.Y || r.Min.Z > r.Max.Z {
		return wire.Refuse(wire.FailBadValue, "the first corner of the box must not be greater than the second")
	}
	if r.Since < 0 || r.Until < 0 || r.Skip < 0 || r.Skip > MaxHistorySkip || r.Most < 0 || r.Most > HistoryPage || r.Rollback < -1 || r.After < 0 {
		return wire.Refuse(wire.FailBadValue, "a history request from %d until %d, for %d changes after %d", r.Since, r.Until, r.Most, r.Skip)
	}
	if len(r.Others) >= wire.MaxHistoryPlayers || len(r.Others) > 0 && r.Player == (player.ID{}) {
		return wire.Refuse(wire.FailBadValue, "a history request for %d further players: at most %d in all are allowed", len(r.Others), wire.MaxHistoryPlayers)
	}
	return firstError(checkRegionID(r.Region), checkChunk(r.Min.Chunk()), checkChunk(r.Max.Chunk()))
}

// maxHistory is above the number of changes that any region can have.
const maxHistory = 1 << 40

// Valid returns an error if the answer is invalid.
func (a HistoryAnswer) Valid() error {
	if a.Changed < 0 || a.Left < 0 || a.Changed > maxHistory || a.Left > maxHistory {
		return wire.Refuse(wire.FailBadValue, "%d blocks changed, %d left", a.Changed, a.Left)
	}
	return firstError(
		checkList(a.Records, HistoryPage, HistoryRecord.Valid),
		checkList(a.Columns, MaxRegionChunks, func(c ChunkColumns) error { return checkChunk(c.Chunk) }),
	)
}

// Valid returns an error if the time, the name or the position is invalid.
func (r HistoryRecord) Valid() error {
	if r.Time < 0 || r.Guest != "" && player.GuestID(r.Guest) != r.Player {
		return wire.Refuse(wire.FailBadValue, "a change at %d by the guest %q", r.Time, r.Guest)
	}
	if r.At.Y < 0 || r.At.Y >= wire.MaxSections*grid.ChunkSize {
		return wire.Refuse(wire.FailBadValue, "a change at height %d", r.At.Y)
	}
	return checkChunk(r.At.Chunk())
}
