package world

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// LandTable is the table that holds the regions' land. A key starts with the region id, eight bytes big-endian;
// docs/disk-format.md describes the rest.
const LandTable = "land"

// rememberedPlayers bounds the players whose edit sequences a region keeps; the player whose last edit is oldest is
// dropped first.
const rememberedPlayers = 1024

// Land is the replicated state of one region: the edits over its terrain, the pinned base of every edited chunk, and
// each player's recent edit sequences. It does not hold the terrain itself, which is a pure function of the genesis and
// computed where it is needed (docs/adr/0003).
type Land struct {
	id        uint64
	cell      grid.Cell
	height    int32 // blocks
	pinned    map[grid.ChunkPos]*pinnedChunk
	recents   map[player.ID]*recent // at most rememberedPlayers
	survey    *Survey               // current; nil if there is none
	dirtyRows dirtyRows
}

// dirtyRows names the rows that have changed since the last Writes.
type dirtyRows struct {
	pins    map[grid.ChunkPos]struct{}
	edits   map[place]struct{}
	players map[player.ID]struct{} // with new or dropped sequences
}

// place is the position of a block in the region.
type place struct {
	chunk grid.ChunkPos
	at    chunk.Index
}

// pinnedChunk is one pinned chunk. Invariant: a chunk has edits only if it is pinned, so every pinnedChunk has a base.
type pinnedChunk struct {
	base  [32]byte
	edits chunk.Edits
}

// NewLand returns the empty state of a region in a world that is height blocks high.
func NewLand(id uint64, cell grid.Cell, height int32) *Land {
	return &Land{
		id:        id,
		cell:      cell,
		height:    height,
		pinned:    make(map[grid.ChunkPos]*pinnedChunk),
		recents:   make(map[player.ID]*recent),
		dirtyRows: dirtyRows{make(map[grid.ChunkPos]struct{}), make(map[place]struct{}), make(map[player.ID]struct{})},
	}
}

// Outcome is the result of applying a batch.
type Outcome struct {
	Results []nodemsg.EditResult // one for each edit of the batch, in order
	Changes []Change             // what changed, in order
	Pins    []Pin                // those that took effect, in order
	Mark    *Mark                // set if the entry was a mark; the other fields are empty then
}

// Change is one block that an edit changed.
type Change struct {
	Chunk grid.ChunkPos
	nodemsg.BlockAt
}

// Apply applies the committed entry at the log index. Every replica gets the same outcome from the same log. An error
// means that the entry cannot be decoded and that nothing changed. Rows to be stored accumulate until Writes.
func (l *Land) Apply(index uint64, entry []byte) (Outcome, error) {
	if IsMark(entry) {
		mark, err := DecodeMark(entry)
		if err != nil {
			return Outcome{}, fmt.Errorf("apply entry %d: %w", index, err)
		}
		return Outcome{Mark: &mark}, nil
	}
	batch, err := DecodeBatch(entry)
	if err != nil {
		return Outcome{}, fmt.Errorf("apply entry %d: %w", index, err)
	}
	out := Outcome{
		Results: make([]nodemsg.EditResult, 0, len(batch.Edits)),
		Changes: make([]Change, 0, len(batch.Edits)),
	}
	for _, p := range batch.Pins {
		l.pin(index, p, &out)
	}
	var touched map[player.ID]*recent // by this entry; only used by a survey
	if l.survey != nil {
		touched = make(map[player.ID]*recent)
	}
	for _, e := range batch.Edits {
		result := nodemsg.EditResult{Player: e.Player, Seq: e.Seq}
		result.Block, result.Refused = l.edit(index, e, touched, &out)
		out.Results = append(out.Results, result)
	}
	for _, id := range slices.SortedFunc(maps.Keys(touched), compareIDs) {
		l.survey.addSequences(index, id, touched[id])
	}
	l.evictPlayers(index)
	return out, nil
}

// Writes returns the rows to be stored for all entries applied since the last call, together with the index of the last
// one. A row that several entries changed appears once. The order is by kind, position and player.
func (l *Land) Writes() []kv.Write {
	u := &l.dirtyRows
	writes := make([]kv.Write, 0, len(u.pins)+len(u.edits)+len(u.players))
	put := func(key, value []byte) {
		writes = append(writes, kv.Write{Table: LandTable, Key: key, Value: value})
	}
	for _, pos := range slices.SortedFunc(maps.Keys(u.pins), grid.ChunkPos.Compare) {
		put(l.baseKey(pos), slices.Clone(l.pinned[pos].base[:]))
	}
	byPlace := func(a, b place) int { return cmp.Or(a.chunk.Compare(b.chunk), cmp.Compare(a.at, b.at)) }
	for _, p := range slices.SortedFunc(maps.Keys(u.edits), byPlace) {
		block, _ := l.pinned[p.chunk].edits.Get(p.at)
		put(binary.BigEndian.AppendUint32(l.chunkKey(keyEdit, p.chunk), uint32(p.at)), binary.BigEndian.AppendUint16(nil, uint16(block)))
	}
	for _, id := range slices.SortedFunc(maps.Keys(u.players), compareIDs) {
		if r := l.recents[id]; r != nil {
			put(l.playerKey(id), r.encode())
		} else {
			put(l.playerKey(id), nil)
		}
	}
	clear(u.pins)
	clear(u.edits)
	clear(u.players)
	return writes
}

// pin sets the base of a chunk to the first one in the log; later ones are ignored.
func (l *Land) pin(index uint64, p Pin, out *Outcome) {
	if !l.cell.Contains(p.Chunk) || l.Pinned(p.Chunk) {
		return
	}
	l.survey.notePin(index, p)
	l.pinTo(p.Chunk, p.Base)
	out.Pins = append(out.Pins, p)
	l.dirtyRows.pins[p.Chunk] = struct{}{}
}

func (l *Land) pinTo(pos grid.ChunkPos, base [32]byte) { l.pinned[pos] = &pinnedChunk{base: base} }

// edit applies one edit, and returns the current block of its position or the reason for refusing it. It does not check
// that the block's id is known; the leader does before it proposes. Otherwise a replica of an older version would
// refuse an edit that a newer one applies.
func (l *Land) edit(index uint64, e nodemsg.Intent, touched map[player.ID]*recent, out *Outcome) (chunk.Block, string) {
	pos := e.Pos.Chunk()
	if !l.cell.Contains(pos) || e.Pos.Y < 0 || e.Pos.Y >= l.height {
		return chunk.Air, wire.RefusedOutOfWorld
	}
	g := l.pinned[pos]
	if g == nil {
		return chunk.Air, wire.RefusedUnavailable
	}
	r := l.recents[e.Player]
	if r == nil {
		r = &recent{}
		l.recents[e.Player] = r
	}
	at, use := chunk.At(e.Pos), use{seq: e.Seq, edit: fingerprint(e)}
	switch r.classify(use) {
	case repeated:
		block, _ := g.edits.Get(at)
		return block, ""
	case stale:
		return chunk.Air, wire.RefusedStale
	case fresh:
	}
	if l.survey != nil && touched[e.Player] == nil {
		l.survey.removeSequences(index, e.Player, r)
		touched[e.Player] = r
	}
	r.add(use, index)
	l.survey.noteEdit(index, pos, at, e.Block)
	l.dirtyRows.players[e.Player] = struct{}{}
	g.edits.Set(at, e.Block)
	out.Changes = append(out.Changes, Change{Chunk: pos, BlockAt: nodemsg.BlockAt{At: at, Block: e.Block}})
	l.dirtyRows.edits[place{pos, at}] = struct{}{}
	return e.Block, ""
}

// Confirms reports whether the edit was applied, as far as the player's sequences are still recorded, and returns the
// current block of its position.
func (l *Land) Confirms(e nodemsg.Intent) (chunk.Block, bool) {
	r, g := l.recents[e.Player], l.pinned[e.Pos.Chunk()]
	if r == nil || g == nil || r.classify(use{seq: e.Seq, edit: fingerprint(e)}) != repeated {
		return chunk.Air, false
	}
	block, _ := g.edits.Get(chunk.At(e.Pos))
	return block, true
}

// fingerprint returns a value that distinguishes edits with the same sequence number.
func fingerprint(e nodemsg.Intent) uint32 {
	var b [14]byte
	binary.BigEndian.PutUint32(b[0:], uint32(e.Pos.X))
	binary.BigEndian.PutUint32(b[4:], uint32(e.Pos.Y))
	binary.BigEndian.PutUint32(b[8:], uint32(e.Pos.Z))
	binary.BigEndian.PutUint16(b[12:], uint16(e.Block))
	return crc32.ChecksumIEEE(b[:])
}

// evictPlayers drops the sequences of players beyond the limit.
func (l *Land) evictPlayers(index uint64) {
	excess := len(l.recents) - rememberedPlayers
	if excess <= 0 {
		return
	}
	longestIdleFirst := slices.SortedFunc(maps.Keys(l.recents), func(a, b player.ID) int {
		return cmp.Or(cmp.Compare(l.recents[a].last, l.recents[b].last), compareIDs(a, b))
	})
	for _, id := range longestIdleFirst[:excess] {
		l.survey.removeSequences(index, id, l.recents[id])
		delete(l.recents, id)
		l.dirtyRows.players[id] = struct{}{}
	}
}

func compareIDs(a, b player.ID) int { return slices.Compare(a[:], b[:]) }

// Chunk returns a chunk's pinned base hash (nil if it was never edited) and its edits in index order.
func (l *Land) Chunk(pos grid.ChunkPos) (base []byte, edits []nodemsg.BlockAt) {
	g := l.pinned[pos]
	if g == nil {
		return nil, nil
	}
	edits = make([]nodemsg.BlockAt, 0, g.edits.Len())
	for at, block := range g.edits.All() {
		edits = append(edits, nodemsg.BlockAt{At: at, Block: block})
	}
	return slices.Clone(g.base[:]), edits
}

// Pinned reports whether the chunk has a pinned base.
func (l *Land) Pinned(pos grid.ChunkPos) bool {
	return l.pinned[pos] != nil
}

// Pins lists the pinned bases, in no particular order.
func (l *Land) Pins() []Pin {
	pins := make([]Pin, 0, len(l.pinned))
	for pos, g := range l.pinned {
		pins = append(pins, Pin{Chunk: pos, Base: g.base})
	}
	return pins
}

// Edits returns the number of edited blocks in the region.
func (l *Land) Edits() int {
	n := 0
	for _, g := range l.pinned {
		n += g.edits.Len()
	}
	return n
}
