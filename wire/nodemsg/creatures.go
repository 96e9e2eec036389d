package nodemsg

import (
	"cmp"

	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
)

// MaxCreatures is the most creatures in one message.
const MaxCreatures = 256

// Passage identifies for ever that a creature left a region: the region, and a number there.
type Passage struct {
	_              struct{} `cbor:",toarray"`
	Source, Number uint64
}

// Compare orders passages by source and number.
func (p Passage) Compare(q Passage) int {
	return cmp.Or(cmp.Compare(p.Source, q.Source), cmp.Compare(p.Number, q.Number))
}

// Departure is a creature that has left a region, and may not have arrived yet (docs/adr/0122). Its pose is beyond the
// border.
type Departure struct {
	Passage  Passage           `cbor:"1,keyasint"`
	Creature creature.Creature `cbor:"2,keyasint"`
	// Settled says that all departures from the passage's source up to this number have arrived, wherever it was.
	Settled uint64 `cbor:"3,keyasint,omitempty"`
}

// CreaturesRequest asks the leader of a region about its creatures. One of the lists is set, or Removal, or Ahead.
type CreaturesRequest struct {
	Region uint64 `cbor:"1,keyasint"`
	// Births are to be born, without ids. The answer is Count.
	Births []creature.Creature `cbor:"2,keyasint,omitempty"`
	// Arrivals come from another region. The answer is Accepted.
	Arrivals []Departure `cbor:"3,keyasint,omitempty"`
	// Removal has creatures end. The answer is Count.
	Removal *Removal `cbor:"4,keyasint,omitempty"`
	// Ahead is a creature as it would stand beyond the border, at the height from which it comes. The answer is Pose, if
	// it can: the land there is watched, and nothing is in the way.
	Ahead *creature.Creature `cbor:"5,keyasint,omitempty"`
}

// Removal has the creatures of a region end that are at most so many blocks from a place, horizontally.
type Removal struct {
	At     motion.Pose `cbor:"1,keyasint"`
	Radius float64     `cbor:"2,keyasint"`
}

// CreaturesAnswer answers CreaturesRequest.
type CreaturesAnswer struct {
	Count int `cbor:"1,keyasint,omitempty"`
	// Accepted are those of the arrivals that are in the region's log.
	Accepted []Passage    `cbor:"2,keyasint,omitempty"`
	Pose     *motion.Pose `cbor:"3,keyasint,omitempty"`
}

// Valid returns an error unless one question is asked, and it is valid.
func (q CreaturesRequest) Valid() error {
	asked := 0
	for _, set := range [...]bool{len(q.Births) > 0, len(q.Arrivals) > 0, q.Removal != nil, q.Ahead != nil} {
		if set {
			asked++
		}
	}
	if asked != 1 {
		return wire.Refuse(wire.FailBadValue, "%d questions about creatures instead of one", asked)
	}
	if q.Ahead != nil {
		if err := q.Ahead.Valid(); err != nil {
			return err
		}
	}
	return firstError(
		checkRegionID(q.Region),
		checkList(q.Births, MaxCreatures, func(c creature.Creature) error { return c.Valid() }),
		checkList(q.Arrivals, MaxCreatures, func(d Departure) error { return d.Creature.Valid() }),
		q.Removal.valid(),
	)
}

func (r *Removal) valid() error {
	if r == nil {
		return nil
	}
	if !(r.Radius >= 0 && r.Radius <= 1<<20) {
		return wire.Refuse(wire.FailBadValue, "a radius of %g", r.Radius)
	}
	return wire.CheckPose(r.At)
}

// Valid returns an error if a list is too long, or the pose is none.
func (a CreaturesAnswer) Valid() error {
	if a.Count < 0 || len(a.Accepted) > MaxCreatures {
		return wire.Refuse(wire.FailBadValue, "%d creatures, and %d accepted", a.Count, len(a.Accepted))
	}
	if a.Pose != nil {
		return wire.CheckPose(*a.Pose)
	}
	return nil
}
