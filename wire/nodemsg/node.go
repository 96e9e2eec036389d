package nodemsg

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
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
	// Split is the log index of the entry that split the region's cell between two children; 0 if it is not split.
	Split uint64 `cbor:"7,keyasint,omitempty"`
	// Merged is the log index of the last entry that merged the children again; 0 if there was none.
	Merged uint64 `cbor:"8,keyasint,omitempty"`
	// Founded is the index of the catalog's entry that founded the region, or the one of which it is a part.
	Founded uint64 `cbor:"9,keyasint,omitempty"`
}

// RecoveredEpoch is added to a region's epoch by each recovery from one survivor. A log never has that many entries.
const RecoveredEpoch = 1 << 40

// SplitEpoch returns the epoch that the children of a split region begin with.
func (r Region) SplitEpoch() uint64 { return r.Epoch/RecoveredEpoch*RecoveredEpoch + r.Split }

// Newer reports whether this describes the region at a later time than the other description of it does: after a
// recovery, a split, a merge or a change of members. It does not compare the leaders' terms. Of two regions of a cell,
// the one that was founded later is newer: the other one was given up.
func (r Region) Newer(than Region) bool { return r.compareStructure(than) > 0 }

// Supersedes reports whether this route is to be used instead of the other one: it is Newer, or of a later leader.
// Everything that keeps routes decides by it.
func (r Region) Supersedes(than Region) bool { return r.Compare(than) > 0 }

// Compare orders routes of a region by time; those of the same leader are equal.
func (r Region) Compare(with Region) int {
	return cmp.Or(r.compareStructure(with), cmp.Compare(r.Term, with.Term))
}

func (r Region) compareStructure(with Region) int {
	if r.ID != with.ID && r.Founded != with.Founded {
		return cmp.Compare(r.Founded, with.Founded)
	}
	return cmp.Or(
		cmp.Compare(r.Epoch/RecoveredEpoch, with.Epoch/RecoveredEpoch),
		cmp.Compare(max(r.Split, r.Merged), max(with.Split, with.Merged)),
		cmp.Compare(r.Epoch, with.Epoch),
	)
}

// Question is one request between nodes; exactly one field is set.
type Question struct {
	Locate *Locate `cbor:"1,keyasint,omitempty"`
	Found  *Found  `cbor:"2,keyasint,omitempty"`
	// Describe asks the peer for its Member.
	Describe *Describe `cbor:"3,keyasint,omitempty"`
	// Authority asks the catalog, which is authoritative, for the region that covers the chunk. Locate asks the leader
	// of a region, which ID names and which covers the chunk, for its links: Regions in the answer.
	Authority *Locate `cbor:"4,keyasint,omitempty"`
	// Introduce sends the leader of a cell to the leader of a neighbouring cell. It is a hint; the answer has Regions:
	// routes around the introduced cell.
	Introduce *Region `cbor:"5,keyasint,omitempty"`
	// Invite asks a node to hold a replica. The node answers without an error once it does.
	Invite *Invite `cbor:"6,keyasint,omitempty"`
	// Sleep asks a member to close its replica of an idle region. The member refuses while it lags behind.
	Sleep *Sleep `cbor:"7,keyasint,omitempty"`
	// Moved reports a region's new members, split or merge to the catalog. Only a member that the catalog lists may
	// send it, and the others are asked whether it is so (docs/adr/0040).
	Moved *Region `cbor:"8,keyasint,omitempty"`
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
	// RejoinRequest asks a region's leader to remove the asker's damaged replica and to add the asker again under
	// another replica id. The answer holds the removed replica id; the asker verifies that it is removed
	// (docs/adr/0076).
	Rejoin *RejoinRequest `cbor:"10,keyasint,omitempty"`
	// Split asks a region's leader to divide the region between the halves of its cell, for an operator. The answer is
	// empty.
	Split *Release `cbor:"16,keyasint,omitempty"`
	// Merge asks a member of a split region to merge its children again, for an operator. The answer is empty.
	Merge *Release `cbor:"17,keyasint,omitempty"`
	// Structure asks a region's leader what has become of its split. The answer is Region and Attempt.
	Structure *StructureRequest `cbor:"18,keyasint,omitempty"`
	// Resolve has a member of a region that is frozen for a merge find out at once what has become of that. The answer
	// is empty.
	Resolve *Release `cbor:"19,keyasint,omitempty"`
	// Range asks for the regions in a rectangle.
	Range *RangeRequest `cbor:"24,keyasint,omitempty"`
	// Act asks the catalog to enter a command into its log. The answer is Number.
	Act *Act `cbor:"25,keyasint,omitempty"`
	// Acts asks a member of the catalog for the acts in its log. The answer is Acts.
	Acts *ActsRequest `cbor:"26,keyasint,omitempty"`
	// History asks a region's leader who changed which blocks. The answer is History.
	History *HistoryRequest `cbor:"27,keyasint,omitempty"`
	// Forget says that a node does not come back, for an operator. Only an issuer may say so. The answer is empty, or
	// an error if the node is connected to the one that is asked.
	Forget *Forget `cbor:"28,keyasint,omitempty"`
	// Vacated reports to the catalog that a region has ended because nothing was ever built there. Only a member that
	// the catalog lists may send it, and most of them must say so (docs/adr/0097). The answer is the region as it was;
	// none if it is not listed any more.
	Vacated *Vacated `cbor:"29,keyasint,omitempty"`
}

// Vacated names a region that was given up.
type Vacated struct {
	Region uint64    `cbor:"1,keyasint"`
	Cell   grid.Cell `cbor:"2,keyasint"`
}

// StructureRequest asks about a region's split.
type StructureRequest struct {
	Region uint64 `cbor:"1,keyasint"`
	// Abandon has the leader end its attempt before this number to merge the children, unless it is still busy with it.
	// 0: none.
	Abandon uint64 `cbor:"2,keyasint,omitempty"`
	// Copy asks what the node's own copy has, whether it leads the region or not: without a copy there is no region in
	// the answer.
	Copy bool `cbor:"3,keyasint,omitempty"`
}

// RejoinRequest names a region whose local copy the asker cannot use.
type RejoinRequest struct {
	Group uint64 `cbor:"1,keyasint"`
}

// Invite informs a node that a region's group adds it as a learner.
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

// Forget names a node that does not come back.
type Forget struct {
	Peer string `cbor:"1,keyasint"`
}

// Describe asks a node for the Member under which others can record it.
type Describe struct{}

// Locate names the chunk whose region is wanted, or, if ID is not 0, the region itself.
type Locate struct {
	Chunk grid.ChunkPos `cbor:"1,keyasint"`
	ID    uint64        `cbor:"2,keyasint,omitempty"`
	// Label is the label length of the region's cell, which may be split; 0: the region that has the chunk's land. Only
	// for Authority.
	Label int `cbor:"3,keyasint,omitempty"`
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
	// Why, with Error, says the same to players, in their languages.
	Why *notice.Notice `cbor:"36,keyasint,omitempty"`
	// Member answers Describe.
	Member *Member `cbor:"3,keyasint,omitempty"`
	// Statuses answers Status: one element for each requested region, in order.
	Statuses []RegionStatus `cbor:"5,keyasint,omitempty"`
	// Regions answers Regions, by ascending id: fewer than a full page means that no more follow. It also answers
	// Introduce and Locate.
	Regions []Region `cbor:"6,keyasint,omitempty"`
	// Clock, with Statuses or Member, is the peer's wall clock in Unix milliseconds.
	Clock int64 `cbor:"7,keyasint,omitempty"`
	// Time, with Member, is the time of the world as the peer has it, in Unix milliseconds, and TimeAge for how many
	// seconds it has gone on evenly.
	Time    int64  `cbor:"29,keyasint,omitempty"`
	TimeAge uint32 `cbor:"30,keyasint,omitempty"`
	// Replica answers Rejoin: the asker's replica id that its group has removed. With Error it answers Invite: the
	// replica id that can never join again on this node.
	Replica uint64 `cbor:"4,keyasint,omitempty"`
	// Failed, with Member, lists regions that have failed on the peer lately, and Quarantined those of them that are
	// quarantined there; at most MaxQuarantined each.
	Failed      []uint64 `cbor:"35,keyasint,omitempty"`
	Quarantined []uint64 `cbor:"8,keyasint,omitempty"`
	// CatalogLeader, with Member, is the peer id of the catalog's leader, if the peer is a member of the catalog and
	// has a leader.
	CatalogLeader string `cbor:"9,keyasint,omitempty"`
	// Version, with Member, is the peer's Version.
	Version int `cbor:"10,keyasint,omitempty"`
	// Attempt, with Region, answers Structure: the number of the attempt to merge that is under way or comes next.
	Attempt uint64 `cbor:"11,keyasint,omitempty"`
	// Slow, with Member, means that the peer's disk does not answer, or did not lately: others should lead.
	Slow bool `cbor:"31,keyasint,omitempty"`
	// Hung, with Member, means that the peer's disk does not answer now: its votes are missing.
	Hung bool `cbor:"34,keyasint,omitempty"`
	// NotReady, with Member, is why the peer should not be sent players, for people; empty if it may.
	NotReady string `cbor:"32,keyasint,omitempty"`
	// Range answers Range.
	Range *RangeAnswer `cbor:"24,keyasint,omitempty"`
	// Acts answers Acts, in order: fewer than a full page means that no more follow.
	Acts []Act `cbor:"25,keyasint,omitempty"`
	// OtherActs, instead of Acts, means that the acts that the asker has are not the catalog's.
	OtherActs bool `cbor:"27,keyasint,omitempty"`
	// History answers History.
	History *HistoryAnswer `cbor:"28,keyasint,omitempty"`
	// Number answers Act: how many acts there are, with this one.
	Number uint64 `cbor:"26,keyasint,omitempty"`
}

// Version is that of the messages between nodes, and of regions' logs, in this voxeld; 9 is that of 0.1.0. A node of an
// earlier one does not become a member of a region (docs/adr/0103).
const Version = 9

// MaxQuarantined is the most failed, and the most quarantined regions that a node lists in its description.
const MaxQuarantined = 256

// PlayerRecord is the saved state of a player.
type PlayerRecord struct {
	Player  player.ID   `cbor:"1,keyasint"`
	Name    string      `cbor:"2,keyasint"`
	Guest   bool        `cbor:"3,keyasint,omitempty"`
	Seq     uint64      `cbor:"4,keyasint"` // increases with every save; see Compare
	Pose    motion.Pose `cbor:"5,keyasint"`
	Gateway string      `cbor:"6,keyasint"` // peer id of the gateway that saved it
	SavedAt int64       `cbor:"7,keyasint"` // Unix milliseconds
	// Done is the number of events (chat, hits, gifts) that the player had done, if it exceeds SavedAt. That happens
	// only when the clocks of gateways differ. Otherwise it is 0 and left out. See Counted.
	Done uint64 `cbor:"8,keyasint,omitempty"`
	// Home is the place that the player has chosen as their home; nil for none.
	Home *motion.Pose `cbor:"9,keyasint,omitempty"`
	// Login shows that the owner of the player's key opened a session at the gateway. It is left out on the gateway's
	// own disk and in backups.
	Login *player.Login `cbor:"10,keyasint,omitempty"`
	// Verifier is of the password with which a guest keeps the name; nil for none.
	Verifier *player.Verifier `cbor:"11,keyasint,omitempty"`
}

// ErrNoRecord means that none of the nodes asked has the record of a region or a player, or that there is no node to
// ask.
var ErrNoRecord = errors.New("no record")

// Compare returns a positive number if p replaces q, a negative one if q replaces p. A record with a login replaces one
// without: a gateway that the player never visited cannot make one. Otherwise the latest login counts, then the
// sequence number.
func (p PlayerRecord) Compare(q PlayerRecord) int {
	switch {
	case p.Login == nil && q.Login == nil:
		return cmp.Compare(p.Seq, q.Seq)
	case q.Login == nil:
		return 1
	case p.Login == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(p.Login.At, q.Login.At), cmp.Compare(p.Seq, q.Seq))
}

// Counted returns a number at least as high as that of any event of the player before the save. Further events must be
// numbered above it. A player's numbers start at the milliseconds since 1970 and grow by less than one per millisecond.
func (p PlayerRecord) Counted() uint64 { return max(uint64(max(p.SavedAt, 0)), p.Done) }

const (
	// guestExpiry is how long the record of a guest who has left is kept.
	guestExpiry = 30 * 24 * time.Hour
	// maxRecordAhead is how far ahead of a node's clock the numbers of a record may be, which count milliseconds since
	// 1970. Clocks that are off by trust.Skew in opposite directions do no harm, and a record that is meant never to be
	// replaced is refused.
	maxRecordAhead = 52 * time.Hour
)

// Expired reports whether the record is of a guest who has been away for 30 days. They start at the spawn again.
func (p PlayerRecord) Expired(now time.Time) bool {
	return p.Guest && now.Sub(time.UnixMilli(p.SavedAt)) > guestExpiry
}

// Plausible reports whether the record's numbers can be reached by now.
func (p PlayerRecord) Plausible(now time.Time) bool {
	ahead := uint64(now.Add(maxRecordAhead).UnixMilli())
	return p.Seq <= ahead && p.Counted() <= ahead && (p.Login == nil || uint64(p.Login.At) <= ahead)
}

// Messages by which nodes report failures to each other, and answer operators who ask for the status of regions.

const (
	// MaxStatuses is the most regions in one StatusRequest.
	MaxStatuses = 32
	// RegionsPage is the number of regions that answer one RegionsRequest.
	RegionsPage = 32
)

// Release names a region that may be opened again, one that was recovered (Superseded), or one to be split or merged.
type Release struct {
	Region uint64 `cbor:"1,keyasint"`
}

// StatusRequest names the requested regions. Log also requests the positions of closed logs, which costs one read each.
// Stored, of a single region, also requests the load of what a closed copy stores, whose rows must be counted.
type StatusRequest struct {
	Regions []uint64 `cbor:"1,keyasint"`
	Log     bool     `cbor:"2,keyasint,omitempty"`
	Stored  bool     `cbor:"3,keyasint,omitempty"`
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
	// Forgotten means that the node may have voted in the group and stores nothing of it: its replica was removed, or
	// the node's data was put back to an earlier state. Only for StateNone, and only on request (Log).
	Forgotten bool `cbor:"13,keyasint,omitempty"`
	// Outdated means that the node's data was put back to an earlier state (docs/adr/0024). With StateFailed the node
	// has an old copy, which is only a last resort; with StateNone its replica is not in that state at all. Until is
	// how far the old copy reaches, about, in seconds since 1970; 0 if unknown.
	Outdated bool  `cbor:"14,keyasint,omitempty"`
	Until    int64 `cbor:"15,keyasint,omitempty"`
	// Load is the largest share of its limits that the region's load is, in thousandths, and Quiet for how many seconds
	// it has been so low that the region could be merged. Only of a leader, or on request (Stored) of a closed copy:
	// the load of what is stored.
	Load  uint64 `cbor:"16,keyasint,omitempty"`
	Quiet uint64 `cbor:"17,keyasint,omitempty"`
	// Undivided is why splits of the region keep failing, for people; empty if they do not. Only of a leader.
	Undivided string `cbor:"18,keyasint,omitempty"`
	// Voucher is the signature of an issuer that answers for its open copy of the catalog; nil if the sender is none.
	Voucher *Voucher `cbor:"19,keyasint,omitempty"`
	// Structure is how the region was split and merged; nil if the sender cannot say. Only on request (Log), and not of
	// the catalog.
	Structure *Structure `cbor:"20,keyasint,omitempty"`
}

// Structure is how a copy of a region was split and merged, as Region has it, and the index of the log entry that gave
// it up.
type Structure struct {
	Split  uint64 `cbor:"1,keyasint,omitempty"`
	Merged uint64 `cbor:"2,keyasint,omitempty"`
	// Vacated is 0 if the region was not given up.
	Vacated uint64 `cbor:"3,keyasint,omitempty"`
}

// Voucher is an issuer's signature of VouchedText.
type Voucher struct {
	Key       []byte `cbor:"1,keyasint"`           // the issuer's Ed25519 public key
	Charter   uint64 `cbor:"2,keyasint,omitempty"` // number of the charter by which it is an issuer; 0 in an open world
	Signature []byte `cbor:"3,keyasint"`
}

// VouchedText returns what an issuer signs of the status of its copy of the catalog: which members a configuration has.
func (s RegionStatus) VouchedText(world string, charter uint64) []byte {
	text := fmt.Appendf(nil, "voxeld members 1\n%s\n%d\n%d\n%d", world, charter, s.Region, s.Epoch)
	for _, m := range s.Members {
		text = fmt.Appendf(text, "\n%d %t %s", m.Replica.ID, m.Replica.Learner, m.Replica.Peer)
	}
	return text
}

// MemberStatus is a member as the sender sees it. Only the leader fills in Silent and Behind.
type MemberStatus struct {
	Replica Replica `cbor:"1,keyasint"`
	Silent  bool    `cbor:"2,keyasint,omitempty"` // nothing came from it for an election timeout
	Behind  uint64  `cbor:"3,keyasint,omitempty"` // log entries that it lacks
}
