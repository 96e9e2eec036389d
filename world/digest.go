package world

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/player"
)

// Digest is the sum, modulo 2^128, of the first 16 bytes of the SHA-256 of every row of a part: key length as u32
// big-endian, key, value. It does not depend on the order of the rows, and can be updated for one row without reading
// the others. The digest of an empty part is zero. It detects accidents, not forgeries: only a member could forge rows,
// and a member could lie about the digest as well.
type Digest [16]byte

// Add adds a row.
func (d *Digest) Add(key, value []byte) {
	h := rowHash(key, value)
	lo, carry := bits.Add64(d.low(), h.low(), 0)
	hi, _ := bits.Add64(d.high(), h.high(), carry)
	d.set(hi, lo)
}

// Drop removes a row that was added.
func (d *Digest) Drop(key, value []byte) {
	h := rowHash(key, value)
	lo, borrow := bits.Sub64(d.low(), h.low(), 0)
	hi, _ := bits.Sub64(d.high(), h.high(), borrow)
	d.set(hi, lo)
}

func (d *Digest) high() uint64 { return binary.BigEndian.Uint64(d[:8]) }
func (d *Digest) low() uint64  { return binary.BigEndian.Uint64(d[8:]) }

func (d *Digest) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(d[:8], hi)
	binary.BigEndian.PutUint64(d[8:], lo)
}

func rowHash(key, value []byte) Digest {
	var stack [64]byte
	b := binary.BigEndian.AppendUint32(stack[:0], uint32(len(key)))
	b = append(append(b, key...), value...)
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}

// Part is a piece of a region's land that is compared and repaired separately: one chunk (its base and its edits), or,
// with Sequences, the recorded edit sequences of the players. Chunk is zero then.
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

// Parts lists all parts that the land can have: one for each chunk of its cell, and the sequences.
func (l *Land) Parts() []Part {
	area := l.cell.Area()
	parts := []Part{{Sequences: true}}
	for x := area.MinX; x < area.MaxX; x++ {
		for z := area.MinZ; z < area.MaxZ; z++ {
			parts = append(parts, Part{Chunk: grid.ChunkPos{X: x, Z: z}})
		}
	}
	return parts
}

// PartPrefixes returns the key prefixes of a part's rows.
func (l *Land) PartPrefixes(p Part) [][]byte {
	if p.Sequences {
		return [][]byte{append(l.Prefix(), keyPlayer)}
	}
	return [][]byte{l.baseKey(p.Chunk), l.chunkKey(keyEdit, p.Chunk)}
}

// Rows calls visit with every row of the part in its stored form, by ascending key. Key and value are valid only during
// the call.
func (l *Land) Rows(p Part, visit func(key, value []byte)) {
	if p.Sequences {
		for _, id := range slices.SortedFunc(maps.Keys(l.recents), compareIDs) {
			visit(l.playerKey(id), l.recents[id].encode())
		}
		return
	}
	g := l.pinned[p.Chunk]
	if g == nil {
		return
	}
	visit(l.baseKey(p.Chunk), g.base[:])
	key := append(l.chunkKey(keyEdit, p.Chunk), 0, 0, 0, 0)
	var value [2]byte
	for at, block := range g.edits.All() {
		binary.BigEndian.PutUint32(key[len(key)-4:], uint32(at))
		binary.BigEndian.PutUint16(value[:], uint16(block))
		visit(key, value[:])
	}
}

// digest returns the digest of a part in its current state.
func (l *Land) digest(p Part) (d Digest) {
	l.Rows(p, d.Add)
	return d
}

// Replace makes rows the content of the part. The rows must be well-formed and belong to the part; otherwise it returns
// an error and changes nothing. The returned writes do the same to the table, whatever it holds of the part now: stored
// lists the part's keys there.
func (l *Land) Replace(p Part, rows []kv.Write, stored [][]byte) ([]kv.Write, error) {
	fresh := NewLand(l.id, l.cell, l.height)
	for _, row := range rows {
		if err := fresh.Load(row.Key, row.Value); err != nil {
			return nil, err
		}
	}
	if err := fresh.only(p); err != nil {
		return nil, err
	}
	gone := make(map[string]bool, len(stored))
	for _, key := range stored {
		gone[string(key)] = true
	}
	l.Rows(p, func(key, _ []byte) { gone[string(key)] = true })
	var writes []kv.Write
	for _, row := range rows {
		delete(gone, string(row.Key))
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		writes = append(writes, kv.Write{Table: LandTable, Key: []byte(key)})
	}
	for _, row := range rows {
		writes = append(writes, kv.Write{Table: LandTable, Key: row.Key, Value: row.Value})
	}
	switch {
	case p.Sequences:
		l.recents = fresh.recents
	case fresh.pinned[p.Chunk] == nil:
		delete(l.pinned, p.Chunk)
	default:
		l.pinned[p.Chunk] = fresh.pinned[p.Chunk]
	}
	l.survey = nil // it was taken of the damaged part
	return writes, nil
}

// only returns an error if the land has rows outside of the part.
func (l *Land) only(p Part) error {
	for pos := range l.pinned {
		if p.Sequences || pos != p.Chunk {
			return errRow
		}
	}
	if !p.Sequences && len(l.recents) > 0 || len(l.recents) > rememberedPlayers {
		return errRow
	}
	return nil
}

// Survey takes the digests of a land as of one log index in small steps, while later entries are being applied: each
// row is digested before it changes. Afterwards it follows the changes, so that it can return the digest of any later
// index too. It belongs to the land's owner.
type Survey struct {
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

// Survey starts a survey as of index, the index of the entry applied last. It replaces an earlier survey.
func (l *Land) Survey(index uint64) *Survey {
	s := &Survey{land: l, index: index, left: make(map[grid.ChunkPos]struct{}, len(l.pinned)), known: make(map[Part][]digestSince)}
	for pos := range l.pinned {
		s.left[pos] = struct{}{}
	}
	sequences := Part{Sequences: true}
	s.known[sequences] = []digestSince{{index, l.digest(sequences)}} // they are few
	l.survey = s
	return s
}

// EndSurvey discards the current survey.
func (l *Land) EndSurvey() { l.survey = nil }

// Step digests chunks until they have had the given number of edits together, and reports whether all are done.
func (s *Survey) Step(edits int) (done bool) {
	for pos := range s.left {
		if edits <= 0 {
			return false
		}
		edits -= s.land.pinned[pos].edits.Len() + 1
		s.look(pos)
	}
	return true
}

func (s *Survey) look(pos grid.ChunkPos) {
	if _, left := s.left[pos]; !left {
		return
	}
	delete(s.left, pos)
	p := Part{Chunk: pos}
	s.known[p] = []digestSince{{s.index, s.land.digest(p)}}
}

// At returns the digest of a part as of an index at or after the survey's. The survey must be done.
func (s *Survey) At(p Part, index uint64) Digest {
	stamps := s.known[p]
	for i := len(stamps) - 1; i >= 0; i-- {
		if stamps[i].index <= index {
			return stamps[i].digest
		}
	}
	return Digest{}
}

// note updates the digest of a part for the entry at index by calling change.
func (s *Survey) note(p Part, index uint64, change func(*Digest)) {
	stamps := s.known[p]
	if n := len(stamps); n == 0 || stamps[n-1].index != index {
		var last Digest
		if n > 0 {
			last = stamps[n-1].digest
		}
		stamps = append(stamps, digestSince{index, last})
	}
	change(&stamps[len(stamps)-1].digest)
	s.known[p] = stamps
}

// The land calls the following methods before each change. Without a survey they do nothing.

func (s *Survey) notePin(index uint64, p Pin) {
	if s == nil {
		return
	}
	s.note(Part{Chunk: p.Chunk}, index, func(d *Digest) { d.Add(s.land.baseKey(p.Chunk), p.Base[:]) })
}

func (s *Survey) noteEdit(index uint64, pos grid.ChunkPos, at chunk.Index, to chunk.Block) {
	if s == nil {
		return
	}
	s.look(pos)
	before, had := s.land.pinned[pos].edits.Get(at)
	key := binary.BigEndian.AppendUint32(s.land.chunkKey(keyEdit, pos), uint32(at))
	s.note(Part{Chunk: pos}, index, func(d *Digest) {
		if had {
			d.Drop(key, binary.BigEndian.AppendUint16(nil, uint16(before)))
		}
		d.Add(key, binary.BigEndian.AppendUint16(nil, uint16(to)))
	})
}

// removeSequences subtracts a player's sequences that are about to be changed or dropped.
func (s *Survey) removeSequences(index uint64, id player.ID, r *recent) {
	if s == nil || len(r.uses) == 0 {
		return // new in this entry
	}
	s.note(Part{Sequences: true}, index, func(d *Digest) { d.Drop(s.land.playerKey(id), r.encode()) })
}

func (s *Survey) addSequences(index uint64, id player.ID, r *recent) {
	if s == nil {
		return
	}
	s.note(Part{Sequences: true}, index, func(d *Digest) { d.Add(s.land.playerKey(id), r.encode()) })
}
