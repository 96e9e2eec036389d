package wire

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Messages between nodes that find and found regions, and the records they leave in the DHT.

// Member is a node that holds a region.
type Member struct {
	Peer string `cbor:"1,keyasint"` // libp2p peer id, base58
	Game string `cbor:"2,keyasint"` // host:port of its game server
	// Replica is its replica id in the region's group, 0 while the region has the members that it was founded
	// with or it is not known; Learner says that it has no vote.
	Replica uint64 `cbor:"3,keyasint,omitempty"`
	Learner bool   `cbor:"4,keyasint,omitempty"`
}

// Region says which region covers a cell, and who holds it.
type Region struct {
	ID      uint64    `cbor:"1,keyasint"` // never 0; unique for ever
	Cell    grid.Cell `cbor:"2,keyasint"`
	Epoch   uint64    `cbor:"3,keyasint"` // grows with every change of membership
	Term    uint64    `cbor:"4,keyasint"` // raft term in which Leader leads
	Leader  string    `cbor:"5,keyasint"` // peer id; empty while unknown
	Members []Member  `cbor:"6,keyasint"`
}

// Question is one request between nodes; exactly one field is set.
type Question struct {
	Locate *Locate `cbor:"1,keyasint,omitempty"`
	Found  *Found  `cbor:"2,keyasint,omitempty"`
	// Describe asks the peer who it is, as a Member.
	Describe *Describe `cbor:"3,keyasint,omitempty"`
	// Authority asks the catalog, whose word is final, which region covers the chunk; Locate asks any
	// node for a route that it happens to know.
	Authority *Locate `cbor:"4,keyasint,omitempty"`
	// Introduce tells a neighbour who leads the cell next to its own. A hint; the answer is empty.
	Introduce *Region `cbor:"5,keyasint,omitempty"`
	// Invite asks a node to hold a replica. It answers without an error when it does.
	Invite *Invite `cbor:"6,keyasint,omitempty"`
	// Sleep asks a member to close its replica of an idle region. It refuses while it lags behind.
	Sleep *Sleep `cbor:"7,keyasint,omitempty"`
	// Moved tells the catalog that a region's members have changed. Only a member that the catalog knows may.
	Moved *Region `cbor:"8,keyasint,omitempty"`
	// Fenced tells a member that the region has failed on another one. The answer is empty.
	Fenced *Fenced `cbor:"11,keyasint,omitempty"`
	// Release asks a member to open a quarantined region again. Only a member may ask. The answer is empty.
	Release *Release `cbor:"12,keyasint,omitempty"`
	// Standing asks how regions do on the peer, for an operator.
	Standing *Standing `cbor:"13,keyasint,omitempty"`
	// Census asks a member of the catalog for the founded regions, a page at a time.
	Census *Census `cbor:"14,keyasint,omitempty"`
	// Superseded tells a former member that the region was recovered without it: it looks for itself, and drops its
	// copy. The answer is empty.
	Superseded *Release `cbor:"15,keyasint,omitempty"`
	// Leaving tells that the node that asks goes away: it is to be chosen for nothing. The answer is empty.
	Leaving *Leaving `cbor:"9,keyasint,omitempty"`
	// Reseed asks a region's leader to take the asker's replica out and to take the asker in anew, under another
	// replica id: what the asker has is damaged. The answer tells the replica id that is out now.
	Reseed *Reseed `cbor:"10,keyasint,omitempty"`
}

// Reseed names a region of which the asker cannot use its copy.
type Reseed struct {
	Group uint64 `cbor:"1,keyasint"`
}

// Invite tells a node that a region's group takes it in as a learner.
type Invite struct {
	Region  Region    `cbor:"1,keyasint"` // as the inviting leader knows it
	Replica uint64    `cbor:"2,keyasint"` // the new member's replica id, used once ever
	Voters  []Replica `cbor:"3,keyasint"` // the group's configuration
}

// Replica is a member of a raft group.
type Replica struct {
	ID      uint64 `cbor:"1,keyasint"`
	Peer    string `cbor:"2,keyasint"`
	Learner bool   `cbor:"3,keyasint,omitempty"`
}

// Sleep names a region that its leader puts to sleep, and the log index that a member must have applied.
type Sleep struct {
	Group uint64 `cbor:"1,keyasint"`
	Index uint64 `cbor:"2,keyasint"`
}

// Leaving says that a node goes away soon.
type Leaving struct{}

// Describe asks a node for the Member by which others may write it down.
type Describe struct{}

// Locate names the chunk whose region is asked for, or, if ID is not 0, the region itself.
type Locate struct {
	Chunk grid.ChunkPos `cbor:"1,keyasint"`
	ID    uint64        `cbor:"2,keyasint,omitempty"`
}

// Found asks the catalog to found a region for the cell on these members.
// If the cell is founded already, the answer tells how.
type Found struct {
	Cell    grid.Cell `cbor:"1,keyasint"`
	Members []Member  `cbor:"2,keyasint"`
}

// Answer answers a Question. Region is nil when there is none (yet). Error is for people.
type Answer struct {
	Region *Region `cbor:"1,keyasint,omitempty"`
	Error  string  `cbor:"2,keyasint,omitempty"`
	// Member answers Describe.
	Member *Member `cbor:"3,keyasint,omitempty"`
	// Standings answers Standing, one for each region that was asked for, in order.
	Standings []Stand `cbor:"5,keyasint,omitempty"`
	// Regions answers Census, by ascending id; none are left if they are fewer than a page.
	Regions []Region `cbor:"6,keyasint,omitempty"`
	// Clock, with Standings, is the peer's wall clock, Unix milliseconds.
	Clock int64 `cbor:"7,keyasint,omitempty"`
	// Replica answers Reseed: the asker's replica id that its group does not have any more. With Error it answers Invite: the
	// replica id that can never be joined under again, here.
	Replica uint64 `cbor:"4,keyasint,omitempty"`
}

// PlayerRecord is what the network remembers of a player.
type PlayerRecord struct {
	Player  player.ID `cbor:"1,keyasint"`
	Name    string    `cbor:"2,keyasint"`
	Guest   bool      `cbor:"3,keyasint,omitempty"`
	Seq     uint64    `cbor:"4,keyasint"` // grows with every save; the highest wins
	Pose    Pose      `cbor:"5,keyasint"`
	Gateway string    `cbor:"6,keyasint"` // peer id of the gateway that saved it
	SavedAt int64     `cbor:"7,keyasint"` // Unix milliseconds
	// Done is how many events (chat, hits, gifts) the player had done, if that is more than SavedAt, which happens only where
	// clocks of gateways differ; else 0, and left out, so that older nodes take the record. See Counted.
	Done uint64 `cbor:"8,keyasint,omitempty"`
}

// Counted is a number that no event has which the player had done when he was saved: whoever counts on begins above it. Players
// begin to count at the milliseconds since 1970, and do less than one event in each.
func (p PlayerRecord) Counted() uint64 { return max(uint64(max(p.SavedAt, 0)), p.Done) }
