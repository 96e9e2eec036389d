package nodemsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// Messages between nodes that locate and found regions, and the records that nodes store in the DHT.

// Member is a node that holds a replica of a region.
type Member struct {
	Peer string `cbor:"1,keyasint"` // libp2p peer id, base58
	Game string `cbor:"2,keyasint"` // host:port of its game server
	// Replica is its replica id in the region's group. It is 0 if unknown, or while the region still has its founding
	// members. Learner means that it has no vote.
	Replica uint64 `cbor:"3,keyasint,omitempty"`
	Learner bool   `cbor:"4,keyasint,omitempty"`
}

// Region describes a region: the cell it covers, and its members.
type Region struct {
	ID      uint64    `cbor:"1,keyasint"` // never 0; never reused
	Cell    grid.Cell `cbor:"2,keyasint"`
	Epoch   uint64    `cbor:"3,keyasint"` // increases with every change of membership
	Term    uint64    `cbor:"4,keyasint"` // raft term in which Leader leads
	Leader  string    `cbor:"5,keyasint"` // peer id; empty while unknown
	Members []Member  `cbor:"6,keyasint"`
}

// Question is one request between nodes; exactly one field is set.
type Question struct {
	Locate *Locate `cbor:"1,keyasint,omitempty"`
	Found  *Found  `cbor:"2,keyasint,omitempty"`
	// Describe asks the peer for its Member.
	Describe *Describe `cbor:"3,keyasint,omitempty"`
	// Authority asks the catalog, which is authoritative, for the region that covers the chunk. Locate asks any node
	// for a route that it happens to have cached.
	Authority *Locate `cbor:"4,keyasint,omitempty"`
	// Introduce sends the leader of a cell to a member of a neighbouring cell. It is a hint; the answer is empty.
	Introduce *Region `cbor:"5,keyasint,omitempty"`
	// Invite asks a node to hold a replica. The node answers without an error once it does.
	Invite *Invite `cbor:"6,keyasint,omitempty"`
	// Sleep asks a member to close its replica of an idle region. The member refuses while it lags behind.
	Sleep *Sleep `cbor:"7,keyasint,omitempty"`
	// Moved reports new members of a region to the catalog. Only a member that the catalog lists may send it.
	Moved *Region `cbor:"8,keyasint,omitempty"`
	// RegionFailure reports to a member that the region failed on another one. The answer is empty.
	Failure *RegionFailure `cbor:"11,keyasint,omitempty"`
	// Release asks a member to open a quarantined region again. Only a member may ask. The answer is empty.
	Release *Release `cbor:"12,keyasint,omitempty"`
	// StatusRequest asks for the status of regions on the peer, for an operator.
	Status *StatusRequest `cbor:"13,keyasint,omitempty"`
	// RegionsRequest asks a member of the catalog for one page of the founded regions.
	Regions *RegionsRequest `cbor:"14,keyasint,omitempty"`
	// Superseded reports to a former member that the region was recovered without it. The receiver verifies that and
	// drops its copy. The answer is empty.
	Superseded *Release `cbor:"15,keyasint,omitempty"`
	// Leaving reports that the asking node is shutting down and must not be chosen for anything. The answer is empty.
	Leaving *Leaving `cbor:"9,keyasint,omitempty"`
	// RejoinRequest asks a region's leader to remove the asker's damaged replica and to add the asker again under another
	// replica id. The answer holds the removed replica id.
	Rejoin *RejoinRequest `cbor:"10,keyasint,omitempty"`
}

// RejoinRequest names a region whose local copy the asker cannot use.
type RejoinRequest struct {
	Group uint64 `cbor:"1,keyasint"`
}

// Invite tells a node that a region's group adds it as a learner.
type Invite struct {
	Region  Region    `cbor:"1,keyasint"` // as known to the inviting leader
	Replica uint64    `cbor:"2,keyasint"` // the new member's replica id, never used before
	Voters  []Replica `cbor:"3,keyasint"` // the group's configuration
}

// Replica is a member of a raft group.
type Replica struct {
	ID      uint64 `cbor:"1,keyasint"`
	Peer    string `cbor:"2,keyasint"`
	Learner bool   `cbor:"3,keyasint,omitempty"`
}

// Sleep names a region that its leader hibernates, and the log index that a member must have applied.
type Sleep struct {
	Group uint64 `cbor:"1,keyasint"`
	Index uint64 `cbor:"2,keyasint"`
}

// Leaving announces that a node will shut down soon.
type Leaving struct{}

// Describe asks a node for the Member under which others can record it.
type Describe struct{}

// Locate names the chunk whose region is wanted, or, if ID is not 0, the region itself.
type Locate struct {
	Chunk grid.ChunkPos `cbor:"1,keyasint"`
	ID    uint64        `cbor:"2,keyasint,omitempty"`
}

// Found asks the catalog to found a region for the cell on these members. If the cell is founded already, the answer is
// its region.
type Found struct {
	Cell    grid.Cell `cbor:"1,keyasint"`
	Members []Member  `cbor:"2,keyasint"`
}

// Answer answers a Question. Region is nil if there is none (yet). Error is for people.
type Answer struct {
	Region *Region `cbor:"1,keyasint,omitempty"`
	Error  string  `cbor:"2,keyasint,omitempty"`
	// Member answers Describe.
	Member *Member `cbor:"3,keyasint,omitempty"`
	// Statuses answers Status: one element for each requested region, in order.
	Statuses []RegionStatus `cbor:"5,keyasint,omitempty"`
	// Regions answers Regions, by ascending id. Fewer than a full page means that no more follow.
	Regions []Region `cbor:"6,keyasint,omitempty"`
	// Clock, with Statuses, is the peer's wall clock in Unix milliseconds.
	Clock int64 `cbor:"7,keyasint,omitempty"`
	// Replica answers Rejoin: the asker's replica id that its group has removed. With Error it answers Invite: the
	// replica id that can never join again on this node.
	Replica uint64 `cbor:"4,keyasint,omitempty"`
}

// PlayerRecord is the saved state of a player.
type PlayerRecord struct {
	Player  player.ID   `cbor:"1,keyasint"`
	Name    string      `cbor:"2,keyasint"`
	Guest   bool        `cbor:"3,keyasint,omitempty"`
	Seq     uint64      `cbor:"4,keyasint"` // increases with every save; the highest wins
	Pose    motion.Pose `cbor:"5,keyasint"`
	Gateway string      `cbor:"6,keyasint"` // peer id of the gateway that saved it
	SavedAt int64       `cbor:"7,keyasint"` // Unix milliseconds
	// Done is the number of events (chat, hits, gifts) that the player had done, if it exceeds SavedAt. That happens
	// only when the clocks of gateways differ. Otherwise it is 0 and left out, so that older nodes accept the record.
	// See Counted.
	Done uint64 `cbor:"8,keyasint,omitempty"`
}

// Counted returns a number at least as high as that of any event of the player before the save. Further events must be
// numbered above it. A player's numbers start at the milliseconds since 1970 and grow by less than one per millisecond.
func (p PlayerRecord) Counted() uint64 { return max(uint64(max(p.SavedAt, 0)), p.Done) }
