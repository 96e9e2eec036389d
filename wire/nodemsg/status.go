package nodemsg

import (
	"slices"

	"github.com/voxelpopuli/voxeld/wire"
)

// Messages by which nodes report failures to each other, and answer operators who ask for the status of regions.

const (
	// MaxStatuses is the most regions in one StatusRequest.
	MaxStatuses = 32
	// RegionsPage is the number of regions that answer one RegionsRequest.
	RegionsPage = 32
)

// RegionFailure reports that a region has failed on the sender.
type RegionFailure struct {
	Region uint64 `cbor:"1,keyasint"`
	Why    string `cbor:"2,keyasint"`           // for people
	Kind   uint8  `cbor:"3,keyasint"`           // defined by package region
	Led    bool   `cbor:"5,keyasint,omitempty"` // the sender led it
	Shut   bool   `cbor:"6,keyasint,omitempty"` // the sender has quarantined it
	// Quarantined means that the region failed before: all members have to quarantine it.
	Quarantined bool `cbor:"4,keyasint,omitempty"`
}

// Release names a region that may be opened again, or (Superseded) one that was recovered.
type Release struct {
	Region uint64 `cbor:"1,keyasint"`
}

// StatusRequest names the requested regions. Log also requests the positions of closed logs, which costs one read each.
type StatusRequest struct {
	Regions []uint64 `cbor:"1,keyasint"`
	Log     bool     `cbor:"2,keyasint,omitempty"`
}

// RegionsRequest requests the founded regions with ids above After.
type RegionsRequest struct {
	After uint64 `cbor:"1,keyasint"`
}

// RegionState is the state of a region on a node.
type RegionState uint8

// The states of a region on a node.
const (
	StateNone        RegionState = iota // not a member, or not yet
	StateClosed                         // a hibernating copy
	StateOpen                           // a running copy
	StateQuarantined                    // a copy that failed repeatedly and is quarantined
	StateFailed                         // a copy that failed just now, or cannot be opened
)

// RegionStatus is the status of one region on one node.
type RegionStatus struct {
	Region   uint64         `cbor:"1,keyasint"`
	State    RegionState    `cbor:"2,keyasint"`
	Why      string         `cbor:"3,keyasint,omitempty"` // why it failed, for people
	Leader   string         `cbor:"4,keyasint,omitempty"` // peer id, if the copy runs and has a leader
	Term     uint64         `cbor:"5,keyasint,omitempty"` // raft term
	Last     uint64         `cbor:"6,keyasint,omitempty"` // index of the last log entry; for a closed log only on request
	LastTerm uint64         `cbor:"7,keyasint,omitempty"` // its term
	Applied  uint64         `cbor:"8,keyasint,omitempty"`
	Epoch    uint64         `cbor:"9,keyasint,omitempty"`  // epoch of the membership
	Replica  uint64         `cbor:"10,keyasint,omitempty"` // the node's own replica id
	Members  []MemberStatus `cbor:"11,keyasint,omitempty"` // the group's configuration
	// Recovered counts how often an operator created a new group from one survivor.
	Recovered uint64 `cbor:"12,keyasint,omitempty"`
}

// MemberStatus is a member as the sender sees it. Only the leader fills in Silent and Behind.
type MemberStatus struct {
	Replica Replica `cbor:"1,keyasint"`
	Silent  bool    `cbor:"2,keyasint,omitempty"` // nothing came from it for an election timeout
	Behind  uint64  `cbor:"3,keyasint,omitempty"` // log entries that it lacks
}

// Valid returns an error if the status is invalid.
func (s RegionStatus) Valid() error {
	if s.Region == 0 {
		return wire.Refuse(wire.FailBadValue, "the region id must not be 0")
	}
	if s.State > StateFailed {
		return wire.Refuse(wire.FailBadValue, "unknown state %d", s.State)
	}
	if s.Leader != "" {
		if err := checkPeer(s.Leader); err != nil {
			return err
		}
	}
	if err := checkList(s.Members, wire.MaxMembers, MemberStatus.Valid); err != nil {
		return err
	}
	return wire.CheckText(s.Why)
}

// Valid returns an error if the copy is invalid.
func (c MemberStatus) Valid() error { return c.Replica.Valid() }

// checkOperators counts the set fields of this file and validates them.
func (q Question) checkOperators() (set int, err error) {
	for _, r := range []*Release{q.Release, q.Superseded} {
		if r == nil {
			continue
		}
		if set++; r.Region == 0 {
			return set, wire.Refuse(wire.FailBadValue, "the region id must not be 0")
		}
	}
	if q.Failure != nil {
		if set++; q.Failure.Region == 0 {
			return set, wire.Refuse(wire.FailBadValue, "the region id must not be 0")
		}
		if err := wire.CheckText(q.Failure.Why); err != nil {
			return set, err
		}
	}
	if q.Status != nil {
		set++
		if n := len(q.Status.Regions); n == 0 || n > MaxStatuses {
			return set, wire.Refuse(wire.FailBadValue, "a status request names 1 to %d regions, not %d", MaxStatuses, n)
		}
		if slices.Contains(q.Status.Regions, 0) {
			return set, wire.Refuse(wire.FailBadValue, "the region id must not be 0")
		}
	}
	if q.Regions != nil {
		set++
	}
	return set, nil
}
