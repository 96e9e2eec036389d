package world

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// errRow barriers a stored row of the land table that this package cannot have written.
var errRow = fmt.Errorf("malformed row of the land table: %w", kv.ErrDamaged)

// Load adds one stored row to an empty Land. Rows must come in the order of their keys, so that a chunk's base precedes
// its edits.
func (l *Land) Load(key, value []byte) error {
	if len(key) < 9 || binary.BigEndian.Uint64(key) != l.id {
		return fmt.Errorf("%w: key %x", errRow, key)
	}
	rest := key[9:]
	switch {
	case key[8] == keyBase && len(rest) == 8 && len(value) == 32:
		pos := readChunkPos(rest)
		if !l.cell.Contains(pos) {
			return fmt.Errorf("%w: chunk %v is not in cell %v", errRow, pos, l.cell)
		}
		l.pinTo(pos, [32]byte(value))
	case key[8] == keyEdit && len(rest) == 12 && len(value) >= 2:
		pos, at := readChunkPos(rest), chunk.Index(binary.BigEndian.Uint32(rest[8:]))
		g := l.pinned[pos]
		if g == nil || int64(at) >= int64(l.height)*grid.ChunkSize*grid.ChunkSize {
			return fmt.Errorf("%w: edit %d of chunk %v without a base, or too high", errRow, at, pos)
		}
		block, text := chunk.Block(binary.BigEndian.Uint16(value)), string(value[2:])
		if wire.CheckSignSize(text) != nil || text != "" && len(g.signs) >= wire.MaxSigns {
			return fmt.Errorf("%w: text of edit %d of chunk %v", errRow, at, pos)
		}
		g.edits.Set(at, block)
		g.write(at, text)
	case key[8] == keyHistory && len(rest) == 12:
		g := l.pinned[readChunkPos(rest)]
		if g == nil {
			return fmt.Errorf("%w: history %x of a chunk without a base", errRow, key)
		}
		if err := g.history.Load(binary.BigEndian.Uint32(rest[8:]), value); err != nil {
			return fmt.Errorf("%w: history %x: %w", errRow, key, err)
		}
	case key[8] == keyMod:
		m, ok := decodeMod(string(rest), value)
		if !ok || len(l.mods) >= mod.MaxKnownMods {
			return fmt.Errorf("%w: mod %x", errRow, key)
		}
		l.mods[string(rest)] = m
	case key[8] == keyEvent && len(rest) == 16:
		pos, id := readChunkPos(rest), binary.BigEndian.Uint64(rest[8:])
		g := l.pinned[pos]
		w, ok := decodeWaiting(pos, l.height, value)
		if g == nil || !ok {
			return fmt.Errorf("%w: event %x", errRow, key)
		}
		if g.inbox == nil {
			g.inbox = newInbox()
		}
		g.inbox.put(id, w)
		l.countEvent(w, 1)
	case key[8] == keyPlayer && len(rest) == len(player.ID{}):
		r, ok := decodeRecent(value)
		if !ok {
			return fmt.Errorf("%w: recent sequences %x", errRow, key)
		}
		l.recents[player.ID(rest)] = r
	case key[8] == keyOrders && len(rest) == 0:
		rolledBack, marked, ok := decodeOrders(value)
		if !ok {
			return fmt.Errorf("%w: rollbacks %x", errRow, value)
		}
		l.rolledBack, l.marked = rolledBack, marked
	case key[8] == keyStructure && len(rest) == 0:
		s, ok := decodeStructure(value)
		if !ok {
			return fmt.Errorf("%w: structure %x", errRow, value)
		}
		l.structure = s
	default:
		return fmt.Errorf("%w: key %x", errRow, key)
	}
	return nil
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
		put(l.editKey(p), l.pinned[p.chunk].row(p.at))
	}
	for _, s := range slices.SortedFunc(maps.Keys(u.history), segmentAt.compare) {
		put(l.historyKey(s.chunk, s.number), bytes.Clone(l.pinned[s.chunk].history.Segment(s.number)))
	}
	for _, at := range slices.SortedFunc(maps.Keys(u.events), EventAt.compare) {
		put(l.eventKey(at), l.eventRow(at))
	}
	for _, name := range slices.Sorted(maps.Keys(u.mods)) {
		put(l.modKey(name), l.modRow(name))
	}
	for _, id := range slices.SortedFunc(maps.Keys(u.players), player.ID.Compare) {
		if r := l.recents[id]; r != nil {
			put(l.playerKey(id), r.encode())
		} else {
			put(l.playerKey(id), nil)
		}
	}
	if u.orders {
		put(l.ordersKey(), l.ordersRow())
	}
	if u.structure {
		writes = append(writes, l.structureRow())
	}
	u.structure, u.orders = false, false
	clear(u.pins)
	clear(u.edits)
	clear(u.history)
	clear(u.players)
	clear(u.mods)
	clear(u.events)
	return writes
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
		return [][]byte{append(l.Prefix(), keyMod), append(l.Prefix(), keyPlayer), l.ordersKey(), l.structureKey()}
	}
	return [][]byte{l.baseKey(p.Chunk), l.chunkKey(keyEdit, p.Chunk), l.chunkKey(keyHistory, p.Chunk), l.chunkKey(keyEvent, p.Chunk)}
}

// Rows calls visit with every row of the part in its stored form, by ascending key. Key and value are valid only during
// the call.
func (l *Land) Rows(p Part, visit func(key, value []byte)) {
	if p.Sequences {
		for _, name := range slices.Sorted(maps.Keys(l.mods)) {
			visit(l.modKey(name), l.mods[name].encode())
		}
		for _, id := range slices.SortedFunc(maps.Keys(l.recents), player.ID.Compare) {
			visit(l.playerKey(id), l.recents[id].encode())
		}
		if row := l.ordersRow(); row != nil {
			visit(l.ordersKey(), row)
		}
		if l.structure != (Structure{}) {
			visit(l.structureKey(), l.structure.encode())
		}
		return
	}
	g := l.pinned[p.Chunk]
	if g == nil {
		return
	}
	visit(l.baseKey(p.Chunk), g.base[:])
	key := append(l.chunkKey(keyEdit, p.Chunk), 0, 0, 0, 0)
	var value []byte
	for at, block := range g.edits.All() {
		binary.BigEndian.PutUint32(key[len(key)-4:], uint32(at))
		value = append(binary.BigEndian.AppendUint16(value[:0], uint16(block)), g.signs[at]...)
		visit(key, value)
	}
	g.history.All(func(number uint32, data []byte, _ int64) { visit(l.historyKey(p.Chunk, number), data) })
	for id, w := range g.inbox.all() {
		visit(l.eventKey(EventAt{p.Chunk, id}), w.encode())
	}
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
		l.recents, l.structure, l.rolledBack, l.marked = fresh.recents, fresh.structure, fresh.rolledBack, fresh.marked
		l.mods = fresh.mods
	case fresh.pinned[p.Chunk] == nil:
		delete(l.pinned, p.Chunk)
	default:
		l.pinned[p.Chunk] = fresh.pinned[p.Chunk]
	}
	l.countMods()
	l.tracked = nil // it was taken of the damaged part
	return writes, nil
}

// only returns an error if the land has rows outside of the part.
func (l *Land) only(p Part) error {
	for pos := range l.pinned {
		if p.Sequences || pos != p.Chunk {
			return errRow
		}
	}
	if !p.Sequences && (len(l.recents)+len(l.mods) > 0 || l.structure != (Structure{}) || l.ordersRow() != nil) || len(l.recents) > rememberedPlayers {
		return errRow
	}
	return nil
}

// eventRow returns the value of the row of an event, nil if it does not wait any more.
func (l *Land) eventRow(at EventAt) []byte {
	if g := l.pinned[at.Chunk]; g != nil {
		if w := g.inbox.get(at.ID); w != nil {
			return w.encode()
		}
	}
	return nil
}

func readChunkPos(b []byte) grid.ChunkPos {
	return grid.ChunkPos{X: int32(binary.BigEndian.Uint32(b)), Z: int32(binary.BigEndian.Uint32(b[4:]))}
}

// rows returns all rows, by the order of their keys.
func (l *Land) rows() []kv.Write {
	var writes []kv.Write
	put := func(key, value []byte) {
		writes = append(writes, kv.Write{Table: LandTable, Key: append([]byte(nil), key...), Value: append([]byte(nil), value...)})
	}
	for _, part := range l.Parts() {
		l.Rows(part, put)
	}
	return writes
}

// StructureIn reads the structure of a region from its table.
func StructureIn(get func(table string, key []byte) ([]byte, error), id uint64) (Structure, error) {
	row, err := get(LandTable, landKeys{id}.structureKey())
	if err != nil || row == nil {
		return Structure{}, err
	}
	s, ok := decodeStructure(row)
	if !ok {
		return Structure{}, fmt.Errorf("%w: structure of region %d", errRow, id)
	}
	return s, nil
}

func (l *Land) structureRow() kv.Write { return StructureRow(l.id, l.structure) }

// StructureRow returns the write that stores the structure of a region.
func StructureRow(id uint64, s Structure) kv.Write {
	return kv.Write{Table: LandTable, Key: landKeys{id}.structureKey(), Value: s.encode()}
}

// IsStructure reports whether a row with this key in LandTable is the structure of a region.
func IsStructure(key []byte) bool { return len(key) == 9 && key[8] == keyStructure }

// evictPlayers drops the sequences of players beyond the limit.
func (l *Land) evictPlayers(index uint64) {
	excess := len(l.recents) - rememberedPlayers
	if excess <= 0 {
		return
	}
	longestIdleFirst := slices.SortedFunc(maps.Keys(l.recents), func(a, b player.ID) int {
		return cmp.Or(cmp.Compare(l.recents[a].last, l.recents[b].last), a.Compare(b))
	})
	for _, id := range longestIdleFirst[:excess] {
		l.tracked.removeSequences(index, id, l.recents[id])
		delete(l.recents, id)
		l.dirtyRows.players[id] = struct{}{}
	}
}
