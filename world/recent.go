package world

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// recentWindow is how many edit sequences per player a region records.
const recentWindow = 64

// recent makes each edit apply only once: it records the newest sequences of one player's edits, and the log index of
// the last of them.
//
// A sequence in the window was applied: the same edit is confirmed again without being applied again, and a different
// edit is refused. A sequence below a full window is too old to check: it is refused, never confirmed (docs/adr/0006).
type recent struct {
	uses []use  // by ascending sequence, each once; at most recentWindow
	last uint64 // log index of the newest use; determines who is dropped
}

// use is a sequence number and the fingerprint of its edit.
type use struct {
	seq  uint64
	edit uint32
}

type freshness int

const (
	fresh freshness = iota
	repeated
	stale
)

func (r *recent) find(seq uint64) (int, bool) {
	if n := len(r.uses); n == 0 || r.uses[n-1].seq < seq {
		return n, false // the usual case
	}
	return slices.BinarySearchFunc(r.uses, seq, func(u use, seq uint64) int { return cmp.Compare(u.seq, seq) })
}

func (r *recent) classify(u use) freshness {
	at, found := r.find(u.seq)
	switch {
	case found && r.uses[at].edit == u.edit:
		return repeated
	case found, at == 0 && len(r.uses) == recentWindow:
		return stale
	}
	return fresh
}

func (r *recent) add(u use, index uint64) {
	at, _ := r.find(u.seq)
	if len(r.uses) == recentWindow {
		copy(r.uses, r.uses[1:at])
		r.uses[at-1] = u // at > 0: classify refuses sequences older than all
	} else {
		r.uses = slices.Insert(r.uses, at, u)
	}
	r.last = index
}

// encode returns the stored form: last, the number of uses, then for each use the difference from the previous sequence
// (all uvarints) and its fingerprint, 4 bytes big-endian.
func (r *recent) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 24+8*len(r.uses)), r.last)
	b = binary.AppendUvarint(b, uint64(len(r.uses)))
	before := uint64(0)
	for _, u := range r.uses {
		b = binary.AppendUvarint(b, u.seq-before)
		b = binary.BigEndian.AppendUint32(b, u.edit)
		before = u.seq
	}
	return b
}

func decodeRecent(data []byte) (*recent, bool) {
	rd := reader{data: data}
	r := &recent{last: rd.uvarint()}
	n := rd.count(5)
	if n > recentWindow {
		return nil, false
	}
	before := uint64(0)
	for i := range n {
		step := rd.uvarint()
		if i > 0 && step == 0 || before+step < before {
			rd.fail()
		}
		before += step
		r.uses = append(r.uses, use{seq: before, edit: binary.BigEndian.Uint32(rd.bytes(4))})
	}
	return r, !rd.bad && len(rd.data) == 0
}
