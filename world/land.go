package world

import (
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// LandTable is the table that holds the regions' land. A key starts with the region id, eight bytes big-endian;
// The documentation of package store has the rest.
const LandTable = "land"

// rememberedPlayers bounds the players whose edit sequences a region keeps; the player whose last edit is oldest is
// dropped first.
const rememberedPlayers = 1024

// Land is the replicated state of one region: the edits over its terrain, the pinned base of every edited chunk, and
// each player's recent edit sequences. It does not hold the terrain itself, which is a pure function of the genesis and
// computed where it is needed (docs/adr/0003). It also has the history of the edits (docs/adr/0050).
type Land struct {
	landKeys
	cell    grid.Cell
	height  int32 // blocks
	pinned  map[grid.ChunkPos]*pinnedChunk
	recents map[player.ID]*recent // at most rememberedPlayers
	mods    map[string]*modState  // by name
	// rolledBack is the number of the last rollback that is complete here; 0 if there was none.
	rolledBack int64
	// marked is the number of the last order that has arrived here: of a rollback, or of a claim. 0 if none has.
	marked    int64
	tracked   *LandDigest // current; nil if there is none
	structure Structure
	dirtyRows dirtyRows

	Proofs Proofs // set before batches are applied
}

// dirtyRows names the rows that have changed since the last Writes.
type dirtyRows struct {
	pins      map[grid.ChunkPos]struct{}
	edits     map[place]struct{}
	players   map[player.ID]struct{} // with new or dropped sequences
	mods      map[string]struct{}
	events    map[EventAt]struct{} // new or dropped
	history   map[segmentAt]struct{}
	structure bool
	orders    bool // rolledBack or marked
}

// place is the position of a block in the region.
type place struct {
	chunk grid.ChunkPos
	at    chunk.Index
}

// pinnedChunk is one pinned chunk. Invariant: a chunk has edits only if it is pinned, so every pinnedChunk has a base.
type pinnedChunk struct {
	base    [32]byte
	edits   chunk.Edits
	signs   map[chunk.Index]string // the texts of signs among the edits that are not blank; at most wire.MaxSigns
	history history.Log
	inbox   *inbox // nil if no events wait
}

// row returns the value of the row of an edited block: its id and, of a sign, its text; nil if the block is not edited.
func (g *pinnedChunk) row(at chunk.Index) []byte {
	block, edited := g.edits.Get(at)
	if !edited {
		return nil
	}
	return editRow(block, g.signs[at])
}

// write sets the text of a sign; empty: it has none, or is no sign.
func (g *pinnedChunk) write(at chunk.Index, text string) {
	if text == "" {
		if delete(g.signs, at); len(g.signs) == 0 {
			g.signs = nil
		}
		return
	}
	if g.signs == nil {
		g.signs = make(map[chunk.Index]string)
	}
	g.signs[at] = text
}

// NewLand returns the empty state of a region in a world that is height blocks high.
func NewLand(id uint64, cell grid.Cell, height int32) *Land {
	return &Land{
		landKeys: landKeys{id},
		cell:     cell,
		height:   height,
		pinned:   make(map[grid.ChunkPos]*pinnedChunk),
		recents:  make(map[player.ID]*recent),
		mods:     make(map[string]*modState),
		dirtyRows: dirtyRows{
			pins: make(map[grid.ChunkPos]struct{}), edits: make(map[place]struct{}), players: make(map[player.ID]struct{}),
			history: make(map[segmentAt]struct{}), mods: make(map[string]struct{}), events: make(map[EventAt]struct{}),
		},
	}
}

// Chunk returns a chunk's pinned base hash (nil if it was never edited), its edits in index order, and the texts of its
// signs. There are no bodies in it.
func (l *Land) Chunk(pos grid.ChunkPos) nodemsg.ChunkState {
	g := l.pinned[pos]
	if g == nil {
		return nodemsg.ChunkState{}
	}
	state := nodemsg.ChunkState{Base: slices.Clone(g.base[:]), Edits: make([]nodemsg.BlockAt, 0, g.edits.Len())}
	for at, block := range g.edits.All() {
		state.Edits = append(state.Edits, nodemsg.BlockAt{At: at, Block: block})
	}
	for _, at := range slices.Sorted(maps.Keys(g.signs)) {
		state.Signs = append(state.Signs, nodemsg.SignAt{At: at, Text: g.signs[at]})
	}
	return state
}

// Pinned reports whether the chunk has a pinned base.
func (l *Land) Pinned(pos grid.ChunkPos) bool {
	return l.pinned[pos] != nil
}

// Base returns the hash of a chunk's pinned base. It reports false if it has none.
func (l *Land) Base(pos grid.ChunkPos) ([32]byte, bool) {
	g := l.pinned[pos]
	if g == nil {
		return [32]byte{}, false
	}
	return g.base, true
}

// Block returns an edited block. It reports false if the block was never edited.
func (l *Land) Block(at grid.Pos) (chunk.Block, bool) {
	g := l.pinned[at.Chunk()]
	if g == nil || at.Y < 0 || at.Y >= l.height {
		return chunk.Air, false
	}
	return g.edits.Get(chunk.At(at))
}

// Height returns how high the world is, in blocks.
func (l *Land) Height() int32 { return l.height }

// Pins lists the pinned bases, in no particular order.
func (l *Land) Pins() []Pin {
	pins := make([]Pin, 0, len(l.pinned))
	for pos, g := range l.pinned {
		pins = append(pins, Pin{Chunk: pos, Base: g.base})
	}
	return pins
}

// Structure returns how the region relates to others.
func (l *Land) Structure() Structure { return l.structure }

// MaxEdits is the most edited blocks of a chunk: its state is one message of a link, and edits that are under way are
// added.
const MaxEdits = wire.MaxBlocks - 1<<15

// Full reports whether the chunk has MaxEdits edited blocks or more, and the place is not one of them.
func (l *Land) Full(pos grid.Pos) bool {
	g := l.pinned[pos.Chunk()]
	if g == nil || g.edits.Len() < MaxEdits {
		return false
	}
	_, edited := g.edits.Get(chunk.At(pos))
	return !edited
}

// HasRoom reports whether the chunk has at most MaxEdits edited blocks after a bulk edit.
func (l *Land) HasRoom(at grid.ChunkPos, bulk nodemsg.Bulk) bool {
	g := l.pinned[at]
	if g == nil {
		return true
	}
	n := g.edits.Len()
	for to := range bulk.All() {
		if _, edited := g.edits.Get(to.At); !edited {
			n++
		}
	}
	return n <= MaxEdits
}

// Edits returns the number of edited blocks in the region.
func (l *Land) Edits() int {
	n := 0
	for _, g := range l.pinned {
		n += g.edits.Len()
	}
	return n
}

// CountEdits visits the chunks with edited blocks, and their number, in no particular order.
func (l *Land) CountEdits(visit func(pos grid.ChunkPos, blocks int)) {
	for pos, g := range l.pinned {
		if n := g.edits.Len(); n > 0 {
			visit(pos, n)
		}
	}
}

func (l *Land) pinTo(pos grid.ChunkPos, base [32]byte) { l.pinned[pos] = &pinnedChunk{base: base} }

// Part is a piece of a region's land that is compared and repaired separately: one chunk (its base and its edits), or,
// with Sequences, the recorded edit sequences of the players, and the region's structure. Chunk is zero then.
type Part struct {
	Chunk     grid.ChunkPos
	Sequences bool
}

func (p Part) String() string {
	if p.Sequences {
		return "the players' sequences"
	}
	return "chunk " + p.Chunk.String()
}

// LandDigest takes the digests of a land as of one log index in small steps, while later entries are being applied:
// each row is digested before it changes. Afterwards it follows the changes, so that it can return the digest of any
// later index too. It belongs to the land's owner.
type LandDigest struct {
	land  *Land
	index uint64
	left  map[grid.ChunkPos]struct{} // chunks still to be digested
	known map[Part][]digestSince
}

// digestSince is a digest that is valid from an index on.
type digestSince struct {
	index  uint64
	digest Digest
}
