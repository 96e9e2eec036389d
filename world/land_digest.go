package world

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// digest returns the digest of a part in its current state.
func (l *Land) digest(p Part) (d Digest) {
	l.Rows(p, d.Add)
	return d
}

// StartDigest starts a digest of the land as of index, that of the entry applied last. It replaces an earlier one.
func (l *Land) StartDigest(index uint64) *LandDigest {
	s := &LandDigest{land: l, index: index, left: make(map[grid.ChunkPos]struct{}, len(l.pinned)), known: make(map[Part][]digestSince)}
	for pos := range l.pinned {
		s.left[pos] = struct{}{}
	}
	sequences := Part{Sequences: true}
	s.known[sequences] = []digestSince{{index, l.digest(sequences)}} // they are few
	l.tracked = s
	return s
}

// StopDigest discards the current digest.
func (l *Land) StopDigest() { l.tracked = nil }

// Step digests chunks until they have had the given number of edits together, and reports whether all are done.
func (s *LandDigest) Step(edits int) (done bool) {
	for pos := range s.left {
		if edits <= 0 {
			return false
		}
		g := s.land.pinned[pos]
		edits -= g.edits.Len() + g.history.Size()/historyPerEdit + 1
		s.digestChunk(pos)
	}
	return true
}

// historyPerEdit is how many bytes of history are digested in the time of an edit.
const historyPerEdit = 64

func (s *LandDigest) digestChunk(pos grid.ChunkPos) {
	if _, left := s.left[pos]; !left {
		return
	}
	delete(s.left, pos)
	p := Part{Chunk: pos}
	s.known[p] = []digestSince{{s.index, s.land.digest(p)}}
}

// At returns the digest of a part as of an index at or after the start. All chunks must be digested.
func (s *LandDigest) At(p Part, index uint64) Digest {
	stamps := s.known[p]
	for i := len(stamps) - 1; i >= 0; i-- {
		if stamps[i].index <= index {
			return stamps[i].digest
		}
	}
	return Digest{}
}

// update updates the digest of a part for the entry at index by calling change.
func (s *LandDigest) update(p Part, index uint64, change func(*Digest)) {
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

// The land calls the following methods before each change. Without a digest they do nothing.

func (s *LandDigest) pinned(index uint64, p Pin) {
	if s == nil {
		return
	}
	s.update(Part{Chunk: p.Chunk}, index, func(d *Digest) { d.Add(s.land.baseKey(p.Chunk), p.Base[:]) })
}

func (s *LandDigest) edited(index uint64, to Change) {
	if s == nil {
		return
	}
	s.digestChunk(to.Chunk)
	key, before := s.land.editKey(place{to.Chunk, to.At}), s.land.pinned[to.Chunk].row(to.At)
	s.update(Part{Chunk: to.Chunk}, index, func(d *Digest) {
		if before != nil {
			d.Drop(key, before)
		}
		d.Add(key, editRow(to.Block, to.Text))
	})
}

// rowChanges subtracts a row of a part that is about to be changed or dropped, or adds what it has become. A row with a
// nil value does not exist.
func (s *LandDigest) rowChanges(index uint64, p Part, key, value []byte, added bool) {
	if s == nil {
		return
	}
	if !p.Sequences {
		s.digestChunk(p.Chunk) // before the chunk changes, even if it has no such row yet
	}
	if value == nil {
		return
	}
	s.update(p, index, func(d *Digest) {
		if added {
			d.Add(key, value)
		} else {
			d.Drop(key, value)
		}
	})
}

// removeSequences subtracts a player's sequences that are about to be changed or dropped.
func (s *LandDigest) removeSequences(index uint64, id player.ID, r *recent) {
	if s == nil || len(r.uses) == 0 {
		return // new in this entry
	}
	s.update(Part{Sequences: true}, index, func(d *Digest) { d.Drop(s.land.playerKey(id), r.encode()) })
}

func (s *LandDigest) restructured(index uint64, before, after Structure) {
	if s == nil {
		return
	}
	s.update(Part{Sequences: true}, index, func(d *Digest) {
		if before != (Structure{}) {
			d.Drop(s.land.structureKey(), before.encode())
		}
		d.Add(s.land.structureKey(), after.encode())
	})
}

func (s *LandDigest) addSequences(index uint64, id player.ID, r *recent) {
	if s == nil {
		return
	}
	s.update(Part{Sequences: true}, index, func(d *Digest) { d.Add(s.land.playerKey(id), r.encode()) })
}
