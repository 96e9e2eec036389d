package wire

import (
	"net"
	"strconv"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Checks of messages between nodes. Nodes of one world do not trust each other's messages. Each message is checked
// where it is written, so that a fault shows at its origin, and where it is read.

// Valid returns an error if the peer id or the address of the member is malformed.
func (m Member) Valid() error {
	if err := checkPeer(m.Peer); err != nil {
		return err
	}
	return checkHostPort(m.Game)
}

// checkHostPort checks the form of an address that other nodes can dial.
func checkHostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || len(address) > MaxAddress || !printable(address) {
		return Refuse(FailBadValue, "%q is not host:port", Clip([]byte(address)))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Refuse(FailBadValue, "%q is not a port", Clip([]byte(port)))
	}
	return nil
}

// checkPeer checks the form of a libp2p peer id in base58.
func checkPeer(id string) error {
	if id == "" || len(id) > MaxPeerID {
		return Refuse(FailBadValue, "a peer id has 1 to %d bytes, not %d", MaxPeerID, len(id))
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '1' && c <= '9', c >= 'a' && c <= 'z' && c != 'l', c >= 'A' && c <= 'Z' && c != 'I' && c != 'O':
		default:
			return Refuse(FailBadValue, "a peer id is base58, without %q", c)
		}
	}
	return nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func checkMembers(members []Member) error {
	if len(members) == 0 || len(members) > MaxMembers {
		return Refuse(FailBadValue, "a region has 1 to %d members, not %d", MaxMembers, len(members))
	}
	for i, m := range members {
		if err := m.Valid(); err != nil {
			return err
		}
		for _, other := range members[:i] {
			if other.Peer == m.Peer {
				return Refuse(FailBadValue, "member %s occurs twice", m.Peer)
			}
		}
	}
	return nil
}

func checkCell(c grid.Cell) error {
	if !c.Domain.Valid() {
		return Refuse(FailBadValue, "cell %v is out of the world", c)
	}
	return nil
}

func checkChunk(at grid.ChunkPos) error {
	if !at.Valid() {
		return Refuse(FailBadValue, "chunk %v is out of the world", at)
	}
	return nil
}

// checkText bounds a text for people.
func checkText(text string) error {
	if len(text) > MaxErrorText || !utf8.ValidString(text) {
		return Refuse(FailBadValue, "a text has at most %d bytes of UTF-8", MaxErrorText)
	}
	return nil
}

// Valid returns an error if the region is invalid. The leader must be one of its members, or unknown.
func (r Region) Valid() error {
	if r.ID == 0 {
		return Refuse(FailBadValue, "the region id must not be 0")
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
	return Refuse(FailBadValue, "the leader %s is not a member", Clip([]byte(r.Leader)))
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
			return Refuse(FailBadValue, "the region id must not be 0")
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
			return Refuse(FailBadValue, "the region id must not be 0")
		}
	}
	if set != 1 {
		return Refuse(FailBadValue, "a question must have exactly one field set, not %d", set)
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
	return checkText(a.Error)
}

// Valid returns an error if the record is invalid. A guest's id must match the name.
func (p PlayerRecord) Valid() error {
	if err := checkPlayer(p.Player, p.Name, p.Guest); err != nil {
		return err
	}
	if err := CheckPose(p.Pose); err != nil {
		return err
	}
	if p.SavedAt < 0 {
		return Refuse(FailBadValue, "the save time is before 1970")
	}
	if p.Done > MaxDone {
		return Refuse(FailBadValue, "the player's event count %d exceeds %d", p.Done, uint64(MaxDone))
	}
	return checkPeer(p.Gateway)
}

func checkPlayer(id player.ID, name string, guest bool) error {
	if err := player.CheckName(name); err != nil {
		return Refuse(FailBadName, "%v", err)
	}
	if guest && id != player.GuestID(name) {
		return Refuse(FailBadValue, "the id does not belong to guest %s", name)
	}
	return nil
}

// Valid returns an error if the invitation is invalid.
func (i Invite) Valid() error {
	if err := i.Region.Valid(); err != nil {
		return err
	}
	if i.Replica == 0 {
		return Refuse(FailBadValue, "the replica id must not be 0")
	}
	return checkList(i.Voters, MaxMembers, Replica.Valid)
}

// Valid returns an error if the replica is invalid.
func (r Replica) Valid() error {
	if r.ID == 0 {
		return Refuse(FailBadValue, "the replica id must not be 0")
	}
	return checkPeer(r.Peer)
}
