package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file keeps the creatures of a region (docs/adr/0122). One that crosses the border of its region is departed by an
// entry in that region's log, arrives by one in the other's, and is forgotten by a third one, in the first log again. Each
// departure has a number that no other one ever has. A region that has accepted a number accepts it never again: so
// departures may be offered as often as one likes, by whoever leads, and late.

const (
	// MaxCreatures is how many creatures a region may have when one is born.
	MaxCreatures = 1000
	// MaxCreatureChanges is the most changes of creatures in one entry.
	MaxCreatureChanges = 4096
	// rememberedSources bounds the regions from which creatures came that a region remembers; the one whose last arrival
	// is oldest is dropped first.
	rememberedSources = 1024
)

// departure is a creature that has left the region, and may not have arrived yet. Its pose is beyond the border.
type departure struct {
	creature.Creature
	from grid.ChunkPos // in the region: the half that has it keeps the departure
}

// creatures is the part of a Land.
type creatures struct {
	alive    map[player.ID]creature.Creature
	departed map[nodemsg.Passage]departure
	accepted map[uint64]*acceptance // by source
	rows     map[string][]byte      // changed since the last Writes; nil: deleted
}

func newCreatures() creatures {
	return creatures{
		alive: make(map[player.ID]creature.Creature), departed: make(map[nodemsg.Passage]departure), accepted: make(map[uint64]*acceptance),
		rows: make(map[string][]byte),
	}
}

// acceptance is what a region has accepted of the departures from another one.
type acceptance struct {
	settled uint64   // all up to this number have arrived somewhere
	numbers []uint64 // those accepted here above it, in order
	last    uint64   // log index of the last one
}

func (a *acceptance) has(number uint64) bool {
	_, found := slices.BinarySearch(a.numbers, number)
	return number <= a.settled || found
}

// settle records that everything up to a number has arrived.
func (a *acceptance) settle(number uint64) {
	a.settled = max(a.settled, number)
	i, _ := slices.BinarySearch(a.numbers, a.settled+1)
	a.numbers = slices.Delete(a.numbers, 0, i)
}

func (a *acceptance) add(numbers ...uint64) {
	for _, n := range numbers {
		if i, found := slices.BinarySearch(a.numbers, n); n > a.settled && !found {
			a.numbers = slices.Insert(a.numbers, i, n)
		}
	}
}

// encode returns the row: last and settled, then the numbers, u64 big-endian each.
func (a *acceptance) encode() []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a.last), a.settled)
	for _, n := range a.numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeAcceptance(row []byte) (*acceptance, bool) {
	if len(row) < 16 || len(row)%8 != 0 {
		return nil, false
	}
	a := &acceptance{last: binary.BigEndian.Uint64(row), settled: binary.BigEndian.Uint64(row[8:])}
	for b := row[16:]; len(b) > 0; b = b[8:] {
		n := binary.BigEndian.Uint64(b)
		if len(a.numbers) > 0 && n <= a.numbers[len(a.numbers)-1] || n <= a.settled {
			return nil, false
		}
		a.numbers = append(a.numbers, n)
	}
	return a, true
}

// row returns the row of a departure: the chunk that it left, then the creature's id, and the creature.
func (d *departure) row() []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(d.from.X)), uint32(d.from.Z))
	return d.Append(append(b, d.ID[:]...))
}

// Creatures calls visit with each creature that is in the region, in no particular order.
func (l *Land) Creatures(visit func(creature.Creature)) {
	for _, c := range l.creatures.alive {
		visit(c)
	}
}

// CountCreatures returns how many creatures are in the region.
func (l *Land) CountCreatures() int { return len(l.creatures.alive) }

// Creature returns a creature, if it is in the region.
func (l *Land) Creature(id player.ID) (c creature.Creature, here bool) {
	c, here = l.creatures.alive[id]
	return c, here
}

// Departures returns the creatures that have left, as far as it is not known here that they have arrived, at most some,
// the oldest first.
func (l *Land) Departures(most int) []nodemsg.Departure {
	var all []nodemsg.Departure
	own := uint64(0) // the oldest of this region
	for _, passage := range slices.SortedFunc(maps.Keys(l.creatures.departed), nodemsg.Passage.Compare) {
		d := nodemsg.Departure{Passage: passage, Creature: l.creatures.departed[passage].Creature}
		if passage.Source == l.id {
			if own == 0 {
				own = passage.Number
			}
			d.Settled = own - 1
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b nodemsg.Departure) int { return cmp.Compare(a.Passage.Number, b.Passage.Number) })
	return all[:min(len(all), most)]
}

// Accepted reports whether a departure has arrived here, or is known to have arrived elsewhere.
func (l *Land) Accepted(p nodemsg.Passage) bool {
	a := l.creatures.accepted[p.Source]
	return a != nil && a.has(p.Number)
}

// The kinds of changes in an entry.
const (
	changeBirth     = iota + 1 // creature; its id is made of the region's, the entry's index, and its place in the entry
	changePose                 // id, creature
	changeDeath                // id
	changeDeparture            // id, creature, with its pose beyond the border
	changeArrival              // source, number, settled (uvarints), id, creature
	changeSettled              // source, number: it has arrived
)

// CreatureChanges is an entry of a region's log that changes its creatures. The zero value changes nothing.
type CreatureChanges struct {
	data []byte
	n    int
}

func (e *CreatureChanges) begin(kind byte) {
	if e.data == nil {
		e.data = []byte{tagCreatures}
	}
	e.data = append(e.data, kind)
	e.n++
}

// Len returns how many changes there are.
func (e *CreatureChanges) Len() int { return e.n }

// Encode returns the entry.
func (e *CreatureChanges) Encode() []byte { return e.data }

// Born has a creature born, whose ID is not used, unless the region has MaxCreatures.
func (e *CreatureChanges) Born(c creature.Creature) {
	e.begin(changeBirth)
	e.data = c.Append(e.data)
}

// Died has a creature end.
func (e *CreatureChanges) Died(id player.ID) {
	e.begin(changeDeath)
	e.data = append(e.data, id[:]...)
}

// Moved records where a creature is, and its goal.
func (e *CreatureChanges) Moved(c creature.Creature) { e.about(changePose, c) }

// Departed has a creature leave the region: its pose is beyond the border.
func (e *CreatureChanges) Departed(c creature.Creature) { e.about(changeDeparture, c) }

func (e *CreatureChanges) about(kind byte, c creature.Creature) {
	e.begin(kind)
	e.data = c.Append(append(e.data, c.ID[:]...))
}

// Arrived has a creature come in that has departed from another region, unless it has come in before.
func (e *CreatureChanges) Arrived(d nodemsg.Departure) {
	e.begin(changeArrival)
	for _, n := range [...]uint64{d.Passage.Source, d.Passage.Number, d.Settled} {
		e.data = binary.AppendUvarint(e.data, n)
	}
	e.data = d.Creature.Append(append(e.data, d.Creature.ID[:]...))
}

// Settled has a departure forgotten, which has arrived.
func (e *CreatureChanges) Settled(p nodemsg.Passage) {
	e.begin(changeSettled)
	e.data = binary.AppendUvarint(binary.AppendUvarint(e.data, p.Source), p.Number)
}

var errCreatures = errors.New("malformed changes of creatures")

// creatureChange is a change as it is read.
type creatureChange struct {
	kind byte
	nodemsg.Departure
}

func (r *reader) creature() creature.Creature {
	c, rest, err := creature.Decode(r.data)
	if err != nil {
		r.fail()
		return creature.Creature{}
	}
	r.data = rest
	return c
}

func (r *reader) playerID() player.ID { return player.ID(r.bytes(len(player.ID{}))) }

func decodeCreatures(entry []byte) (all []creatureChange, err error) {
	r := reader{data: entry[1:]}
	for len(r.data) > 0 && len(all) < MaxCreatureChanges {
		change := creatureChange{kind: r.bytes(1)[0]}
		switch change.kind {
		case changeBirth:
			change.Creature = r.creature()
		case changePose, changeDeparture:
			id := r.playerID()
			change.Creature = r.creature()
			change.Creature.ID = id
		case changeDeath:
			change.Creature.ID = r.playerID()
		case changeArrival:
			change.Passage.Source, change.Passage.Number, change.Settled = r.uvarint(), r.uvarint(), r.uvarint()
			id := r.playerID()
			change.Creature = r.creature()
			change.Creature.ID = id
		case changeSettled:
			change.Passage.Source, change.Passage.Number = r.uvarint(), r.uvarint()
		default:
			r.fail()
		}
		all = append(all, change)
	}
	if r.bad || len(r.data) > 0 || len(all) == 0 {
		return nil, errCreatures
	}
	return all, nil
}

func (l *Land) applyCreatures(index uint64, entry []byte) (Outcome, error) {
	all, err := decodeCreatures(entry)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Creatures: true}
	if l.structure.RefusesEdits() {
		return out, nil
	}
	for i := range all {
		change := &all[i]
		c := change.Creature
		old, here := l.creatures.alive[c.ID]
		inside := l.cell.Contains(c.Pose.Chunk())
		switch change.kind {
		case changeBirth:
			if inside && len(l.creatures.alive) < MaxCreatures {
				c.ID = l.newborn(index, i)
				l.setCreature(index, c)
				out.Born++
			}
		case changePose:
			if here && inside {
				c.Kind = old.Kind
				l.setCreature(index, c)
			}
		case changeDeath:
			if here {
				l.dropCreature(index, c.ID)
			}
		case changeDeparture:
			if here && !inside {
				c.Kind = old.Kind
				l.dropCreature(index, c.ID)
				passage, d := nodemsg.Passage{Source: l.id, Number: index*MaxCreatureChanges + uint64(i)}, departure{c, old.Pose.Chunk()}
				l.creatures.departed[passage] = d
				l.changeRow(index, l.departureKey(passage), nil, d.row())
			}
		case changeArrival:
			if inside {
				l.accept(index, &change.Departure)
			}
		case changeSettled:
			if d, waits := l.creatures.departed[change.Passage]; waits {
				delete(l.creatures.departed, change.Passage)
				l.changeRow(index, l.departureKey(change.Passage), d.row(), nil)
			}
		}
	}
	return out, nil
}

// newborn returns the id of a creature that an entry has born. Like that of a child of the region, it is unique for ever.
func (l *Land) newborn(index uint64, place int) player.ID {
	b := []byte("creature\x00")
	for _, n := range [...]uint64{l.id, index, uint64(place)} { //nolint:gosec // an index
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return player.ID(sum[:16])
}

// accept has a departure arrive, unless it has before.
func (l *Land) accept(index uint64, d *nodemsg.Departure) {
	if l.Accepted(d.Passage) {
		return
	}
	key, a := l.acceptanceKey(d.Passage.Source), l.creatures.accepted[d.Passage.Source]
	var before []byte
	if a == nil {
		a = &acceptance{}
		l.creatures.accepted[d.Passage.Source] = a
	} else {
		before = a.encode()
	}
	a.settle(min(d.Settled, d.Passage.Number-1))
	a.add(d.Passage.Number)
	a.last = index
	l.changeRow(index, key, before, a.encode())
	l.setCreature(index, d.Creature)
	l.forgetSources(index)
}

// forgetSources drops the sources beyond the limit.
func (l *Land) forgetSources(index uint64) {
	excess := len(l.creatures.accepted) - rememberedSources
	if excess <= 0 {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(l.creatures.accepted), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(l.creatures.accepted[a].last, l.creatures.accepted[b].last), cmp.Compare(a, b))
	})
	for _, source := range oldest[:excess] {
		before := l.creatures.accepted[source].encode()
		delete(l.creatures.accepted, source)
		l.changeRow(index, l.acceptanceKey(source), before, nil)
	}
}

func (l *Land) setCreature(index uint64, c creature.Creature) {
	var before []byte
	if old, here := l.creatures.alive[c.ID]; here {
		before = old.Append(nil)
	}
	l.creatures.alive[c.ID] = c
	l.changeRow(index, l.creatureKey(c.ID), before, c.Append(nil))
}

func (l *Land) dropCreature(index uint64, id player.ID) {
	old := l.creatures.alive[id]
	delete(l.creatures.alive, id)
	l.changeRow(index, l.creatureKey(id), old.Append(nil), nil)
}

// changeRow records that a row of the creatures has another value; nil is none.
func (l *Land) changeRow(index uint64, key, before, after []byte) {
	l.tracked.rowChanges(index, Part{Sequences: true}, key, before, false)
	l.tracked.rowChanges(index, Part{Sequences: true}, key, after, true)
	l.creatures.rows[string(key)] = after
}

// visit calls visit with the rows of the creatures, in the order of their keys.
func (c *creatures) visit(k landKeys, visit func(key, value []byte)) {
	for _, source := range slices.Sorted(maps.Keys(c.accepted)) {
		visit(k.acceptanceKey(source), c.accepted[source].encode())
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.alive), player.ID.Compare) {
		one := c.alive[id]
		visit(k.creatureKey(id), one.Append(nil))
	}
	for _, passage := range slices.SortedFunc(maps.Keys(c.departed), nodemsg.Passage.Compare) {
		d := c.departed[passage]
		visit(k.departureKey(passage), d.row())
	}
}

// writes returns the rows that have changed since the last call.
func (c *creatures) writes() []kv.Write {
	var all []kv.Write
	for _, key := range slices.Sorted(maps.Keys(c.rows)) {
		all = append(all, kv.Write{Table: LandTable, Key: []byte(key), Value: c.rows[key]})
	}
	clear(c.rows)
	return all
}

// loadCreatures adds a stored row. It reports false if the row is none of the creatures, or malformed.
func (l *Land) loadCreatures(kind byte, rest, value []byte) bool {
	switch {
	case kind == keyAcceptance && len(rest) == 8:
		a, ok := decodeAcceptance(value)
		if ok {
			l.creatures.accepted[binary.BigEndian.Uint64(rest)] = a
		}
		return ok
	case kind == keyCreature && len(rest) == len(player.ID{}):
		c, left, err := creature.Decode(value)
		if err != nil || len(left) > 0 || !l.cell.Contains(c.Pose.Chunk()) {
			return false
		}
		c.ID = player.ID(rest)
		l.creatures.alive[c.ID] = c
		return true
	case kind == keyDeparture && len(rest) == 16 && len(value) >= 8+len(player.ID{}):
		d := departure{from: readChunkPos(value)}
		c, left, err := creature.Decode(value[8+len(player.ID{}):])
		if err != nil || len(left) > 0 || !l.cell.Contains(d.from) {
			return false
		}
		d.Creature = c
		d.ID = player.ID(value[8:])
		l.creatures.departed[nodemsg.Passage{Source: binary.BigEndian.Uint64(rest), Number: binary.BigEndian.Uint64(rest[8:])}] = d
		return true
	}
	return false
}

// of returns the creatures of a half of the land, and the departures from it. What was accepted is known to both.
func (c *creatures) of(half grid.Cell) creatures {
	some := newCreatures()
	for id, one := range c.alive {
		if half.Contains(one.Pose.Chunk()) {
			some.alive[id] = one
		}
	}
	for passage, d := range c.departed {
		if half.Contains(d.from) {
			some.departed[passage] = d
		}
	}
	some.accepted = c.accepted // only read
	return some
}

// take adds the creatures of a half to those of the land that it is merged into, at an index of its log.
func (l *Land) take(c *creatures, index uint64) {
	maps.Copy(l.creatures.alive, c.alive)
	maps.Copy(l.creatures.departed, c.departed)
	for source, a := range c.accepted {
		both := l.creatures.accepted[source]
		if both == nil {
			both = &acceptance{}
			l.creatures.accepted[source] = both
		}
		both.settle(a.settled)
		both.add(a.numbers...)
		both.last = min(max(both.last, a.last), index) // the halves' logs may be ahead
	}
	l.creatures.visit(l.landKeys, func(key, value []byte) { l.creatures.rows[string(key)] = value })
}

// empty reports whether no creature was ever born or has come.
func (c *creatures) empty() bool { return len(c.alive)+len(c.departed)+len(c.accepted) == 0 }
