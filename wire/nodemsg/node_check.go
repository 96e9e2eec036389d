package nodemsg

import (
	"crypto/ed25519"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
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
	if err := firstError(checkRegionID(r.ID), r.checkStructure(), checkMembers(r.Members)); err != nil {
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

// checkStructure returns an error if the region has no cell, or is a single chunk that is split.
func (r Region) checkStructure() error {
	if r.Split != 0 && r.Cell.Label.Len() == grid.MaxLabel {
		return wire.Refuse(wire.FailBadValue, "a single chunk is not split")
	}
	return checkCell(r.Cell)
}

// Valid returns an error unless exactly one field is set, and is valid.
func (q Question) Valid() error {
	return exactlyOne("question",
		alternativeOf(q.Locate), alternativeOf(q.Authority), alternativeOf(q.Introduce), alternativeOf(q.Moved), alternativeOf(q.Found),
		alternativeOf(q.Describe), alternativeOf(q.Invite), alternativeOf(q.Sleep), alternativeOf(q.Release), alternativeOf(q.Superseded),
		alternativeOf(q.Status), alternativeOf(q.Regions), alternativeOf(q.Leaving), alternativeOf(q.Rejoin),
		alternativeOf(q.Split), alternativeOf(q.Merge), alternativeOf(q.Structure), alternativeOf(q.Resolve), alternativeOf(q.Range),
		alternativeOf(q.Act), alternativeOf(q.Acts), alternativeOf(q.History), alternativeOf(q.Forget), alternativeOf(q.Vacated),
	)
}

// Valid returns an error if there is no region id, or the attempt is impossible.
func (s StructureRequest) Valid() error {
	if s.Abandon > maxAttempts {
		return wire.Refuse(wire.FailBadValue, "there are no %d attempts to merge", s.Abandon)
	}
	return checkRegionID(s.Region)
}

// Valid returns an error if the chunk is out of the world, or there is no such label length.
func (l Locate) Valid() error {
	if l.Label < 0 || l.Label > grid.MaxLabel {
		return wire.Refuse(wire.FailBadValue, "a label has 0 to %d bits, not %d", grid.MaxLabel, l.Label)
	}
	return checkChunk(l.Chunk)
}

// Valid returns an error if the cell or a member is invalid.
func (f Found) Valid() error { return firstError(checkCell(f.Cell), checkMembers(f.Members)) }

// Valid always returns nil.
func (Describe) Valid() error { return nil }

// Valid always returns nil.
func (Leaving) Valid() error { return nil }

// Valid returns an error if there is no region id, or the cell is invalid.
func (v Vacated) Valid() error { return firstError(checkRegionID(v.Region), checkCell(v.Cell)) }

// Valid returns an error if the peer id is malformed.
func (f Forget) Valid() error { return checkPeer(f.Peer) }

// Valid always returns nil.
func (RegionsRequest) Valid() error { return nil }

// Valid returns an error if there is no region id.
func (s Sleep) Valid() error { return checkRegionID(s.Group) }

// Valid returns an error if there is no region id.
func (r RejoinRequest) Valid() error { return checkRegionID(r.Group) }

// Valid returns an error if there is no region id.
func (r Release) Valid() error { return checkRegionID(r.Region) }

// Valid returns an error if the list is empty or too long, or if a region id is missing.
func (s StatusRequest) Valid() error {
	if n := len(s.Regions); n == 0 || n > MaxStatuses {
		return wire.Refuse(wire.FailBadValue, "a status request names 1 to %d regions, not %d", MaxStatuses, n)
	}
	if s.Stored && len(s.Regions) != 1 {
		return wire.Refuse(wire.FailBadValue, "what is stored is counted for one region, not for %d", len(s.Regions))
	}
	return checkList(s.Regions, MaxStatuses, checkRegionID)
}

// Valid returns an error if the answer is invalid.
func (a Answer) Valid() error {
	return firstError(
		alternativeOf(a.Region).err,
		alternativeOf(a.Member).err,
		checkList(a.Statuses, MaxStatuses, RegionStatus.Valid),
		checkList(a.Regions, RegionsPage, Region.Valid),
		checkList(a.Failed, MaxQuarantined, checkRegionID),
		checkList(a.Quarantined, MaxQuarantined, checkRegionID),
		checkKnownPeer(a.CatalogLeader),
		alternativeOf(a.Range).err,
		alternativeOf(a.History).err,
		checkList(a.Acts, ActsPage, Act.Valid),
		wire.CheckText(a.Error),
		checkWhy(a.Why),
	)
}

// maxWhy is the most notices of which one between nodes consists, and the most arguments of each.
const maxWhy = 16

// checkWhy bounds a notice, if there is one.
func checkWhy(why *notice.Notice) error {
	if why == nil {
		return nil
	}
	all := []notice.Notice{*why}
	for i := 0; i < len(all); i++ {
		n := all[i]
		if i == maxWhy || len(n.Args) > maxWhy {
			return wire.Refuse(wire.FailTooLong, "a notice of more than %d parts or arguments", maxWhy)
		}
		err := firstError(wire.CheckText(n.Code), wire.CheckText(n.Text))
		for name, arg := range n.Args {
			err = firstError(err, wire.CheckText(name), wire.CheckText(arg))
		}
		for name, part := range n.Parts {
			err = firstError(err, wire.CheckText(name))
			all = append(all, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Valid returns an error if the record is invalid. A guest's id must match the name.
func (p PlayerRecord) Valid() error {
	if err := checkPlayer(p.Player, p.Name, p.Guest); err != nil {
		return err
	}
	if err := wire.CheckPose(p.Pose); err != nil {
		return err
	}
	if p.Home != nil {
		if err := wire.CheckPose(*p.Home); err != nil {
			return err
		}
	}
	if p.SavedAt < 0 {
		return wire.Refuse(wire.FailBadValue, "the save time is before 1970")
	}
	if p.Done > wire.MaxDone {
		return wire.Refuse(wire.FailBadValue, "the player's event count %d exceeds %d", p.Done, uint64(wire.MaxDone))
	}
	if p.Login != nil && (p.Login.At <= 0 || p.Login.Player() != p.Player) {
		return wire.Refuse(wire.FailBadValue, "the login is not the player's")
	}
	if p.Verifier != nil && !p.Guest {
		return wire.Refuse(wire.FailBadValue, "only a guest has a verifier")
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

// Valid returns an error if the status is invalid.
func (s RegionStatus) Valid() error {
	if s.State > StateFailed {
		return wire.Refuse(wire.FailBadValue, "unknown state %d", s.State)
	}
	if s.Until < 0 {
		return wire.Refuse(wire.FailBadValue, "the time of the copy is before 1970")
	}
	if v := s.Voucher; v != nil && (len(v.Key) != ed25519.PublicKeySize || len(v.Signature) != ed25519.SignatureSize) {
		return wire.Refuse(wire.FailBadValue, "a voucher with a key of %d bytes and a signature of %d", len(v.Key), len(v.Signature))
	}
	return firstError(
		checkRegionID(s.Region),
		checkKnownPeer(s.Leader),
		checkList(s.Members, wire.MaxMembers, MemberStatus.Valid),
		wire.CheckText(s.Why),
		wire.CheckText(s.Undivided),
	)
}

// Valid returns an error if the copy is invalid.
func (c MemberStatus) Valid() error { return c.Replica.Valid() }
