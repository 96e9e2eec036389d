package wire

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
)

// Messages between a gateway and the leader of a region that it follows. One ordered stream per pair:
// 4-byte big-endian length, then one CBOR value. In one process they travel as values.

// Hello opens a link: which region the gateway wants to follow.
type Hello struct {
	Region uint64    `cbor:"1,keyasint"`
	Cell   grid.Cell `cbor:"2,keyasint"`
	// Reading says that nobody was found who leads the region: a member whose disk refuses writes may show it for a while.
	Reading bool `cbor:"3,keyasint,omitempty"`
}

// ToRegion is what a gateway has for a region. Any list may be empty.
// The lists take effect in the order of the fields.
type ToRegion struct {
	Unwatch []grid.ChunkPos `cbor:"1,keyasint,omitempty"`
	Watch   []grid.ChunkPos `cbor:"2,keyasint,omitempty"`
	Enter   []Body          `cbor:"3,keyasint,omitempty"`
	Moves   Moves           `cbor:"4,keyasint,omitempty"`
	Leave   []player.ID     `cbor:"5,keyasint,omitempty"`
	Edits   []Intent        `cbor:"6,keyasint,omitempty"`
	Says    []Utterance     `cbor:"7,keyasint,omitempty"`
}

// Empty tells whether there is nothing in the message.
func (m *ToRegion) Empty() bool {
	return len(m.Unwatch)+len(m.Watch)+len(m.Enter)+len(m.Moves)+len(m.Leave)+len(m.Edits)+len(m.Says) == 0
}

// FromRegion is what a region has for one gateway, once a tick; ticks without news are not sent.
type FromRegion struct {
	Tick    uint64       `cbor:"1,keyasint"`
	Chunks  []ChunkNews  `cbor:"2,keyasint,omitempty"`
	Results []EditResult `cbor:"3,keyasint,omitempty"`
	// Closed ends the link: the region is not led here (any more). The gateway asks again where it is.
	Closed string `cbor:"4,keyasint,omitempty"`
	// Leader, with Closed, is who leads the region now, as far as the sender knows; empty if it does not.
	Leader string `cbor:"5,keyasint,omitempty"`
	// Alive says that the frame tells nothing but that its sender lives, which is said several times a second.
	// The first frame without it tells a gateway that it has its seat.
	Alive bool `cbor:"6,keyasint,omitempty"`
}

// ChunkNews is what happened in one watched chunk. State comes first when it is there.
type ChunkNews struct {
	Chunk  grid.ChunkPos `cbor:"1,keyasint"`
	State  *ChunkState   `cbor:"2,keyasint,omitempty"`
	Enter  []Body        `cbor:"3,keyasint,omitempty"`
	Leave  []player.ID   `cbor:"4,keyasint,omitempty"`
	Moves  Moves         `cbor:"5,keyasint,omitempty"`
	Blocks []BlockAt     `cbor:"6,keyasint,omitempty"`
	Says   []Utterance   `cbor:"7,keyasint,omitempty"`
	// Base comes with a chunk's first edit: the hash of the generated terrain that its edits lie on from now on.
	Base []byte `cbor:"8,keyasint,omitempty"`
}

// ChunkState is the whole state of a chunk, the answer to a Watch: edits over terrain, and who is there.
// Base is the hash of the generated terrain that the edits lie on, empty when the chunk was never edited.
type ChunkState struct {
	Base   []byte    `cbor:"1,keyasint,omitempty"`
	Edits  []BlockAt `cbor:"2,keyasint,omitempty"`
	Bodies []Body    `cbor:"3,keyasint,omitempty"`
}

// Body is an avatar between nodes.
type Body struct {
	Player player.ID `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint"`
	Guest  bool      `cbor:"3,keyasint,omitempty"`
	Pose   Pose      `cbor:"4,keyasint"`
	// Said is the number of the player's last chat line, or where he began to count (vclock.Owner.Done). Whoever sees him
	// come waits for none up to it. 0 of a gateway that does not count.
	Said uint64 `cbor:"5,keyasint,omitempty"`
	// Gateway is the peer id of the player's gateway, if it tells others how he moves (DESIGN §8); else empty.
	Gateway string `cbor:"6,keyasint,omitempty"`
	// Way is how he goes on from the pose.
	Way Way `cbor:"7,keyasint,omitzero"`
}

// BodyMove is an avatar's newest pose between nodes, and how he goes on from there.
type BodyMove struct {
	Player player.ID `cbor:"1,keyasint"`
	Pose   Pose      `cbor:"2,keyasint"`
	Way    Way       `cbor:"3,keyasint"`
}

// BlockAt is a block in a chunk: At counts as chunk.Index does.
type BlockAt struct {
	At    chunk.Index `cbor:"1,keyasint"`
	Block chunk.Block `cbor:"2,keyasint"`
}

// Intent is an edit that a gateway has checked and asks the region to commit.
type Intent struct {
	Player player.ID   `cbor:"1,keyasint"`
	Seq    uint64      `cbor:"2,keyasint"`
	Pos    grid.Pos    `cbor:"3,keyasint"`
	Block  chunk.Block `cbor:"4,keyasint"`
}

// EditResult tells the gateway what became of an Intent. Refused is empty when it is committed.
type EditResult struct {
	Player  player.ID   `cbor:"1,keyasint"`
	Seq     uint64      `cbor:"2,keyasint"`
	Block   chunk.Block `cbor:"3,keyasint"`
	Refused string      `cbor:"4,keyasint,omitempty"`
}

// Utterance is a chat line between nodes, or what its speaker does to another player.
type Utterance struct {
	Player player.ID     `cbor:"1,keyasint"`
	Name   string        `cbor:"2,keyasint"`
	Chunk  grid.ChunkPos `cbor:"3,keyasint"`
	Text   string        `cbor:"4,keyasint"`
	// Wall is when it was said, in milliseconds since 1970 by the clock of the speaker's gateway.
	Wall int64 `cbor:"5,keyasint,omitempty"`
	// Stamp is the line's number and what the speaker knew, as vclock.Stamp.Append writes it; MaxStamp bytes at most.
	// Older gateways send none, and older regions pass none on.
	Stamp []byte `cbor:"6,keyasint,omitempty"`
	// Deed is what the player does, if he does something; Text is then its Words, for nodes that do not know deeds.
	Deed *Deed `cbor:"7,keyasint,omitempty"`
}

// AuthorOf is a player as clocks name him.
func AuthorOf(id player.ID) vclock.ID { return vclock.ID(id[:]) }

// Clock reads the stamp. It reports false if there is none, or one that is not the speaker's: such a line is not Valid.
func (u *Utterance) Clock() (vclock.Stamp, bool) {
	if len(u.Stamp) == 0 || len(u.Stamp) > MaxStamp {
		return vclock.Stamp{}, false
	}
	s, rest, err := vclock.DecodeStamp(u.Stamp)
	return s, err == nil && len(rest) == 0 && s.Author == AuthorOf(u.Player)
}
