package nodemsg

import (
	"slices"

	"github.com/voxelpopuli/voxeld/wire"
)

// Checks of messages between nodes. Nodes of one world do not trust each other's messages. Each message is checked
// where it is written, so that a fault shows at its origin, and where it is read.

// Valid returns an error if the peer id or the address of the member is malformed.
func (m Member) Valid() error {
	if err := checkPeer(m.Peer); err != nil {
		return err
	}
	return wire.CheckHostPort(m.Game)
}

// checkPeer checks the form of a libp2p peer id in base58.
func checkPeer(id string) error {
	if id == "" || len(id) > wire.MaxPeerID {
		return wire.Refuse(wire.FailBadValue, "a peer id has 1 to %d bytes, not %d", wire.MaxPeerID, len(id))
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '1' && c <= '9', c >= 'a' && c <= 'z' && c != 'l', c >= 'A' && c <= 'Z' && c != 'I' && c != 'O':
		default:
			return wire.Refuse(wire.FailBadValue, "a peer id is base58, without %q", c)
		}
	}
	return nil
}

func checkMembers(members []Member) error {
	if len(members) == 0 || len(members) > wire.MaxMembers {
		return wire.Refuse(wire.FailBadValue, "a region has 1 to %d members, not %d", wire.MaxMembers, len(members))
	}
	for i, m := range members {
		if err := m.Valid(); err != nil {
			return err
		}
		for _, other := range members[:i] {
			if other.Peer == m.Peer {
				return wire.Refuse(wire.FailBadValue, "member %s occurs twice", m.Peer)
			}
		}
	}
	return nil
}

// Valid returns an error if the region is invalid. The leader must be one of its members, or unknown.
func (r Region) Valid() error {
	if r.ID == 0 {
		return wire.Refuse(wire.FailBadValue, "the region id must not be 0")
	}
	if err := checkCell(r.Cell); err != nil {
		return err
	}
	if err := checkMembers(r.Members); err != nil {
		return err
	}
	if r.Leader == "" {
		return nil
	}
	for _, m := range r.Members {
		if m.Peer == r.Leader {
			return nil
		}
	}
	return wire.Refuse(wire.FailBadValue, "the leader %s is not a member", wire.Clip([]byte(r.Leader)))
}

// Valid returns an error unless exactly one field is set, and is valid.
func (q Question) Valid() error {
	set := 0
	for _, l := range []*Locate{q.Locate, q.Authority} {
		if l == nil {
			continue
		}
		set++
		if err := checkChunk(l.Chunk); err != nil {
			return err
		}
	}
	for _, r := range []*Region{q.Introduce, q.Moved} {
		if r == nil {
			continue
		}
		set++
		if err := r.Valid(); err != nil {
			return err
		}
	}
	if q.Found != nil {
		set++
		if err := checkCell(q.Found.Cell); err != nil {
			return err
		}
		if err := checkMembers(q.Found.Members); err != nil {
			return err
		}
	}
	if q.Describe != nil {
		set++
	}
	if q.Invite != nil {
		set++
		if err := q.Invite.Valid(); err != nil {
			return err
		}
	}
	if q.Sleep != nil {
		set++
		if q.Sleep.Group == 0 {
			return wire.Refuse(wire.FailBadValue, "the region id must not be 0")
		}
	}
	operators, err := q.checkOperators()
	if err != nil {
		return err
	}
	set += operators
	if q.Leaving != nil {
		set++
	}
	if q.Rejoin != nil {
		set++
		if q.Rejoin.Group == 0 {
			return wire.Refuse(wire.FailBadValue, "the region id must not be 0")
		}
	}
	if set != 1 {
		return wire.Refuse(wire.FailBadValue, "a question must have exactly one field set, not %d", set)
	}
	return nil
}

// Valid returns an error if the answer is invalid.
func (a Answer) Valid() error {
	if a.Region != nil {
		if err := a.Region.Valid(); err != nil {
			return err
		}
	}
	if a.Member != nil {
		if err := a.Member.Valid(); err != nil {
			return err
		}
	}
	if err := checkList(a.Statuses, MaxStatuses, RegionStatus.Valid); err != nil {
		return err
	}
	if err := checkList(a.Regions, RegionsPage, Region.Valid); err != nil {
		return err
	}
	return wire.CheckText(a.Error)
}

// Valid returns an error if the record is invalid. A guest's id must match the name.
func (p PlayerRecord) Valid() error {
	if err := checkPlayer(p.Player, p.Name, p.Guest); err != nil {
		return err
	}
	if err := wire.CheckPose(p.Pose); err != nil {
		return err
	}
	if p.SavedAt < 0 {
		return wire.Refuse(wire.FailBadValue, "the save time is before 1970")
	}
	if p.Done > wire.MaxDone {
		return wire.Refuse(wire.FailBadValue, "the player's event count %d exceeds %d", p.Done, uint64(wire.MaxDone))
	}
	return checkPeer(p.Gateway)
}

// Valid returns an error if the invitation is invalid.
func (i Invite) Valid() error {
	if err := i.Region.Valid(); err != nil {
		return err
	}
	if i.Replica == 0 {
		return wire.Refuse(wire.FailBadValue, "the replica id must not be 0")
	}
	return checkList(i.Voters, wire.MaxMembers, Replica.Valid)
}

// Valid returns an error if the replica is invalid.
func (r Replica) Valid() error {
	if r.ID == 0 {
		return wire.Refuse(wire.FailBadValue, "the replica id must not be 0")
	}
	return checkPeer(r.Peer)
}

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
