package nodemsg

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages between a gateway and the leader of a region that it follows. Each pair has one ordered stream: 4-byte
// big-endian length, then one CBOR value. Within a process they are passed as values.

// Hello opens a link: it names the region that the gateway wants to follow.
type Hello struct {
	Region uint64    `cbor:"1,keyasint"`
	Cell   grid.Cell `cbor:"2,keyasint"`
	// Reading means that the gateway found no leader. A member whose disk refuses writes may then serve the region
	// read-only for a while.
	Reading bool `cbor:"3,keyasint,omitempty"`
}

// ToRegion is a gateway's message to a region. Any list may be empty. The lists take effect in the order of the fields.
type ToRegion struct {
	Unwatch []grid.ChunkPos `cbor:"1,keyasint,omitempty"`
	Watch   []grid.ChunkPos `cbor:"2,keyasint,omitempty"`
	Enter   []Body          `cbor:"3,keyasint,omitempty"`
	Moves   Moves           `cbor:"4,keyasint,omitempty"`
	Leave   []player.ID     `cbor:"5,keyasint,omitempty"`
	Edits   []Intent        `cbor:"6,keyasint,omitempty"`
	Chat    []ChatEvent     `cbor:"7,keyasint,omitempty"`
	// Confirm, if not 0, asks whether the land that the gateway is shown is the newest. The numbers of questions grow.
	Confirm uint64 `cbor:"8,keyasint,omitempty"`
}

// Empty reports whether the message has no content.
func (m *ToRegion) Empty() bool {
	return len(m.Unwatch)+len(m.Watch)+len(m.Enter)+len(m.Moves)+len(m.Leave)+len(m.Edits)+len(m.Chat) == 0 && m.Confirm == 0
}

// FromRegion is a region's message to one gateway, once per tick; ticks without changes are not sent.
type FromRegion struct {
	Tick    uint64       `cbor:"1,keyasint"`
	Chunks  []ChunkDelta `cbor:"2,keyasint,omitempty"`
	Results []EditResult `cbor:"3,keyasint,omitempty"`
	// Closed ends the link: the region is not, or no longer, led here. The gateway locates it again.
	Closed string `cbor:"4,keyasint,omitempty"`
	// Leader, with Closed, is the region's current leader as far as the sender knows; empty if unknown.
	Leader string `cbor:"5,keyasint,omitempty"`
	// Alive marks a frame without content, a heartbeat that is sent several times a second. The first frame without it
	// confirms the gateway's subscription.
	Alive bool `cbor:"6,keyasint,omitempty"`
	// Quarantined, with Closed, means that the sender keeps the region closed until an operator releases it.
	Quarantined bool `cbor:"12,keyasint,omitempty"`
	// Split, with Closed, is the log index of the entry that split the region: its children have its land.
	Split uint64 `cbor:"7,keyasint,omitempty"`
	// Parent, with Closed, is the region that this one was merged into.
	Parent *Region `cbor:"8,keyasint,omitempty"`
	// Confirmed answers ToRegion.Confirm up to this number: after it was asked, a majority has confirmed that this is
	// the leader, and what was committed before is in this frame or earlier ones; or AsOf is set.
	Confirmed uint64 `cbor:"9,keyasint,omitempty"`
	// AsOf, with Confirmed, means that no majority answers, and since when, by the time of the world in Unix
	// milliseconds.
	AsOf int64 `cbor:"10,keyasint,omitempty"`
}

// ChunkDelta lists the changes of one watched chunk. State, if present, applies before the rest.
type ChunkDelta struct {
	Chunk  grid.ChunkPos `cbor:"1,keyasint"`
	State  *ChunkState   `cbor:"2,keyasint,omitempty"`
	Enter  []Body        `cbor:"3,keyasint,omitempty"`
	Leave  []player.ID   `cbor:"4,keyasint,omitempty"`
	Moves  Moves         `cbor:"5,keyasint,omitempty"`
	Blocks []BlockAt     `cbor:"6,keyasint,omitempty"`
	Chat   []ChatEvent   `cbor:"7,keyasint,omitempty"`
	// Base comes with a chunk's first edit: the hash of the generated terrain under its edits from now on.
	Base []byte `cbor:"8,keyasint,omitempty"`
	// Signs are the new texts of signs, after Blocks. A sign among Blocks without one is blank.
	Signs []SignAt `cbor:"9,keyasint,omitempty"`
}

// ChunkState is the whole state of a chunk, in answer to a Watch: edits over terrain, and the avatars in it. Base is
// the hash of the generated terrain under the edits; it is empty if the chunk was never edited.
type ChunkState struct {
	Base   []byte    `cbor:"1,keyasint,omitempty"`
	Edits  []BlockAt `cbor:"2,keyasint,omitempty"`
	Bodies []Body    `cbor:"3,keyasint,omitempty"`
	Signs  []SignAt  `cbor:"4,keyasint,omitempty"` // those with a text
}

// Body is an avatar between nodes.
type Body struct {
	Player player.ID   `cbor:"1,keyasint"`
	Name   string      `cbor:"2,keyasint"`
	Guest  bool        `cbor:"3,keyasint,omitempty"`
	Pose   motion.Pose `cbor:"4,keyasint"`
	// Said is the number of the player's last chat line, or the number at which they began to count
	// (vclock.Owner.Done). A new observer does not wait for lines up to it. 0 from a gateway that does not count.
	Said uint64 `cbor:"5,keyasint,omitempty"`
	// Gateway is the peer id of the player's gateway if it sends the player's moves to other gateways directly
	// (package p2p); otherwise empty.
	Gateway string `cbor:"6,keyasint,omitempty"`
	// Velocity is the avatar's velocity from the pose on.
	Velocity motion.Velocity `cbor:"7,keyasint,omitzero"`
	// Skin is how the player has chosen to look.
	Skin player.Skin `cbor:"8,keyasint,omitempty"`
	// Stance is that of the player. When it changes, the body enters again.
	Stance Stance `cbor:"9,keyasint,omitzero"`
}

// Stance is what others see of a player besides where they are: the block in their hand, which may be of a later version,
// and whether they sneak.
type Stance struct {
	Held   chunk.Block `cbor:"1,keyasint,omitempty"`
	Sneaks bool        `cbor:"2,keyasint,omitempty"`
}

// BodyMove is an avatar's newest pose between nodes, and its velocity from there.
type BodyMove struct {
	Player   player.ID       `cbor:"1,keyasint"`
	Pose     motion.Pose     `cbor:"2,keyasint"`
	Velocity motion.Velocity `cbor:"3,keyasint"`
}

// BlockAt is a block in a chunk: At is a chunk.Index.
type BlockAt struct {
	At    chunk.Index `cbor:"1,keyasint"`
	Block chunk.Block `cbor:"2,keyasint"`
}

// SignAt is the text of a sign in a chunk.
type SignAt struct {
	At   chunk.Index `cbor:"1,keyasint"`
	Text string      `cbor:"2,keyasint"`
}

// Intent is an edit that a gateway has checked and asks the region to commit.
type Intent struct {
	Player player.ID   `cbor:"1,keyasint"`
	Seq    uint64      `cbor:"2,keyasint"`
	Pos    grid.Pos    `cbor:"3,keyasint"`
	Block  chunk.Block `cbor:"4,keyasint"`
	Proof
	// Text is that of the sign; other blocks have none.
	Text string `cbor:"8,keyasint,omitempty"`
	// Bulk, if it is not empty, is what the edit does in the chunk at Pos, which is the chunk's origin then; Block and
	// Text are zero.
	Bulk Bulk `cbor:"9,keyasint,omitzero"`
}

// SignedText returns what the player signs.
func (i *Intent) SignedText(world string) []byte {
	if i.Bulk != "" {
		return player.BulkText(world, i.Seq, i.Pos.Chunk(), string(i.Bulk))
	}
	return player.EditText(world, i.Seq, i.Pos, uint16(i.Block), i.Text)
}

// Proof shows that a player made an edit. Either Name is set, of a guest, or Key and Signature.
type Proof struct {
	Name      string                      `cbor:"5,keyasint,omitempty"`
	Key       [ed25519.PublicKeySize]byte `cbor:"6,keyasint,omitzero"`
	Signature [ed25519.SignatureSize]byte `cbor:"7,keyasint,omitzero"` // of SignedText
}

// EditResult reports the outcome of an Intent to the gateway. Refused is empty if the edit was committed.
type EditResult struct {
	Player  player.ID   `cbor:"1,keyasint"`
	Seq     uint64      `cbor:"2,keyasint"`
	Block   chunk.Block `cbor:"3,keyasint"`
	Refused string      `cbor:"4,keyasint,omitempty"`
}

// ChatEvent is a chat line between nodes, or an interaction of its author with another player.
type ChatEvent struct {
	Player player.ID     `cbor:"1,keyasint"`
	Name   string        `cbor:"2,keyasint"`
	Chunk  grid.ChunkPos `cbor:"3,keyasint"`
	Text   string        `cbor:"4,keyasint"`
	// Wall is when it was said, in milliseconds since 1970 by the clock of the author's gateway.
	Wall int64 `cbor:"5,keyasint,omitempty"`
	// Stamp is the line's number and the author's clock, as written by vclock.Stamp.Append; at most MaxStamp bytes.
	Stamp []byte `cbor:"6,keyasint,omitempty"`
	// Interaction is the interaction, if there is one. Text then holds its ChatText.
	Interaction *Interaction `cbor:"7,keyasint,omitempty"`
}

// EmotePrefix begins a line about what its author does: "/me waves" is shown as "* ann waves".
const EmotePrefix = "/me "

// ChatAuthor returns the name of a player in clocks.
func ChatAuthor(id player.ID) vclock.ID { return vclock.ID(id[:]) }

// Clock decodes the stamp. It reports false if there is none, or if it is not the author's: such a line is not Valid.
func (u *ChatEvent) Clock() (vclock.Stamp, bool) {
	if len(u.Stamp) == 0 || len(u.Stamp) > wire.MaxStamp {
		return vclock.Stamp{}, false
	}
	s, rest, err := vclock.DecodeStamp(u.Stamp)
	return s, err == nil && len(rest) == 0 && s.Author == ChatAuthor(u.Player)
}

// Moves lists the newest poses of avatars. In CBOR they are one byte string, 54 bytes each: a gateway handles thousands
// per second, and decoding them as maps took longer than all its other work.
type Moves []BodyMove

const (
	bodyMoveBytes = 16 + 3*8 + 2*4 + 3*2
	longString    = 0x5a // CBOR head of a byte string with a four-byte length
	movesHead     = 1 + 4
)

// MarshalCBOR writes the byte string: for each move the player's id; x, y and z as float64; yaw and pitch as float32;
// the velocity along x, y and z as int16. Numbers are little-endian.
func (m Moves) MarshalCBOR() ([]byte, error) {
	b := make([]byte, 0, movesHead+len(m)*bodyMoveBytes)
	b = append(b, longString)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m)*bodyMoveBytes))
	for i := range m {
		p := &m[i].Pose
		b = append(b, m[i].Player[:]...)
		for _, v := range [...]float64{p.X, p.Y, p.Z} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Yaw))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Pitch))
		for _, v := range [...]int16{m[i].Velocity.X, m[i].Velocity.Y, m[i].Velocity.Z} {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	return b, nil
}

// UnmarshalCBOR reads what MarshalCBOR wrote. It does not validate the poses; the message does.
func (m *Moves) UnmarshalCBOR(data []byte) error {
	var b []byte
	if len(data) >= movesHead && data[0] == longString && uint64(binary.BigEndian.Uint32(data[1:])) == uint64(len(data)-movesHead) {
		b = data[movesHead:] // without a copy
	} else if err := wire.CBORDecoding.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("read moves: %w", err)
	}
	if len(b)%bodyMoveBytes != 0 || len(b) > wire.MaxBodies*bodyMoveBytes {
		return wire.Refuse(wire.FailBadValue, "moves of %d bytes", len(b))
	}
	*m = make(Moves, len(b)/bodyMoveBytes)
	for i := range *m {
		move := b[i*bodyMoveBytes:]
		(*m)[i] = BodyMove{Player: player.ID(move[:16]), Pose: motion.Pose{
			X:     math.Float64frombits(binary.LittleEndian.Uint64(move[16:])),
			Y:     math.Float64frombits(binary.LittleEndian.Uint64(move[24:])),
			Z:     math.Float64frombits(binary.LittleEndian.Uint64(move[32:])),
			Yaw:   math.Float32frombits(binary.LittleEndian.Uint32(move[40:])),
			Pitch: math.Float32frombits(binary.LittleEndian.Uint32(move[44:])),
		}, Velocity: motion.Velocity{
			X: int16(binary.LittleEndian.Uint16(move[48:])),
			Y: int16(binary.LittleEndian.Uint16(move[50:])),
			Z: int16(binary.LittleEndian.Uint16(move[52:])),
		}}
	}
	return nil
}
