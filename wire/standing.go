package wire

import "slices"

// Messages by which nodes tell one another of failures, and answer operators who ask how regions do.

const (
	// MaxStandings is how many regions one Standing asks for at most.
	MaxStandings = 32
	// CensusPage is how many regions answer one Census.
	CensusPage = 32
)

// Fenced tells that a region has failed on the sender.
type Fenced struct {
	Region uint64 `cbor:"1,keyasint"`
	Why    string `cbor:"2,keyasint"`           // for people
	Kind   uint8  `cbor:"3,keyasint"`           // package region's
	Led    bool   `cbor:"5,keyasint,omitempty"` // the sender led it
	Shut   bool   `cbor:"6,keyasint,omitempty"` // the sender has quarantined it
	// Quarantined says that it failed before: all members have to quarantine it.
	Quarantined bool `cbor:"4,keyasint,omitempty"`
}

// Release names a region: one that may be opened again, or (Superseded) one that was recovered.
type Release struct {
	Region uint64 `cbor:"1,keyasint"`
}

// Standing names the regions that are asked for. Log asks for the positions of closed logs, too, which costs a read
// of each.
type Standing struct {
	Regions []uint64 `cbor:"1,keyasint"`
	Log     bool     `cbor:"2,keyasint,omitempty"`
}

// Census asks for the founded regions with ids above After.
type Census struct {
	After uint64 `cbor:"1,keyasint"`
}

// StandState is what a node has of a region.
type StandState uint8

// What a node has of a region.
const (
	StandNone        StandState = iota // nothing: it is no member, or not yet
	StandClosed                        // a copy that sleeps
	StandOpen                          // a copy that runs
	StandQuarantined                   // a copy that failed again and again, and is shut away
	StandFailed                        // a copy that failed just now, or cannot be opened
)

// Stand is how one region does on one node.
type Stand struct {
	Region   uint64         `cbor:"1,keyasint"`
	State    StandState     `cbor:"2,keyasint"`
	Why      string         `cbor:"3,keyasint,omitempty"` // it failed, for people
	Leader   string         `cbor:"4,keyasint,omitempty"` // peer id, if the copy runs and knows
	Term     uint64         `cbor:"5,keyasint,omitempty"` // raft's
	Last     uint64         `cbor:"6,keyasint,omitempty"` // index of the last entry in the log; of a closed one if it was asked for
	LastTerm uint64         `cbor:"7,keyasint,omitempty"` // and its term
	Applied  uint64         `cbor:"8,keyasint,omitempty"`
	Epoch    uint64         `cbor:"9,keyasint,omitempty"`  // of the members
	Replica  uint64         `cbor:"10,keyasint,omitempty"` // the node's own replica id
	Members  []StandingCopy `cbor:"11,keyasint,omitempty"` // the group's configuration
	// Recovered counts how often an operator has made a new group of one survivor.
	Recovered uint64 `cbor:"12,keyasint,omitempty"`
}

// StandingCopy is a member as the sender sees it. Silent and Behind are the leader's to know.
type StandingCopy struct {
	Replica Replica `cbor:"1,keyasint"`
	Silent  bool    `cbor:"2,keyasint,omitempty"` // it was not heard of for an election timeout
	Behind  uint64  `cbor:"3,keyasint,omitempty"` // entries of the log that it lacks
}

// Valid says what is wrong with the stand.
func (s Stand) Valid() error {
	if s.Region == 0 {
		return refuse(FailBadValue, "region 0 does not exist")
	}
	if s.State > StandFailed {
		return refuse(FailBadValue, "state %d does not exist", s.State)
	}
	if s.Leader != "" {
		if err := checkPeer(s.Leader); err != nil {
			return err
		}
	}
	if err := checkList(s.Members, MaxMembers, StandingCopy.Valid); err != nil {
		return err
	}
	return checkText(s.Why)
}

// Valid says what is wrong with the copy.
func (c StandingCopy) Valid() error { return c.Replica.Valid() }

// checkOperators counts the fields of this file that are set, and says what is wrong with them.
func (q Question) checkOperators() (set int, err error) {
	for _, r := range []*Release{q.Release, q.Superseded} {
		if r == nil {
			continue
		}
		if set++; r.Region == 0 {
			return set, refuse(FailBadValue, "region 0 does not exist")
		}
	}
	if q.Fenced != nil {
		if set++; q.Fenced.Region == 0 {
			return set, refuse(FailBadValue, "region 0 does not exist")
		}
		if err := checkText(q.Fenced.Why); err != nil {
			return set, err
		}
	}
	if q.Standing != nil {
		set++
		if n := len(q.Standing.Regions); n == 0 || n > MaxStandings {
			return set, refuse(FailBadValue, "1 to %d regions can be asked for, not %d", MaxStandings, n)
		}
		if slices.Contains(q.Standing.Regions, 0) {
			return set, refuse(FailBadValue, "region 0 does not exist")
		}
	}
	if q.Census != nil {
		set++
	}
	return set, nil
}
