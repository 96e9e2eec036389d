package nodemsg

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

var update = flag.Bool("update", false, "write testdata anew")

// nodeMessages returns at least one message of each type outside links, with every field set in one of them.
func nodeMessages() []interface{ Valid() error } {
	region, record := aRegion(), aRecord()
	record.Done = uint64(record.SavedAt) + 5
	learner := Member{Peer: bMember.Peer, Game: bMember.Game, Replica: 9, Learner: true}
	voters := []Replica{{ID: 1, Peer: aMember.Peer}, {ID: 9, Peer: bMember.Peer, Learner: true}}
	return []interface{ Valid() error }{
		region, record, learner, voters[1],
		Question{Locate: &Locate{Chunk: grid.ChunkPos{X: 3, Z: -4}, ID: 7}},
		Question{Found: &Found{Cell: aCell, Members: region.Members}},
		Question{Describe: &Describe{}},
		Question{Authority: &Locate{}},
		Question{Introduce: &region},
		Question{Invite: &Invite{Region: region, Replica: 9, Voters: voters}},
		Question{Sleep: &Sleep{Group: 7, Index: 12}},
		Question{Moved: &region},
		Question{Leaving: &Leaving{}},
		Question{Rejoin: &RejoinRequest{Group: 3}},
		Question{Release: &Release{Region: 7}},
		Question{Superseded: &Release{Region: 7}},
		Question{Status: &StatusRequest{Regions: []uint64{7, 8}, Log: true}},
		Question{Regions: &RegionsRequest{After: 6}},
		Answer{Region: &region},
		Answer{Member: &aMember, Error: "no"},
		Answer{Replica: 4},
		Answer{Member: &aMember, Clock: 1700000000000, Failed: []uint64{6, 7}, Quarantined: []uint64{7}, CatalogLeader: bMember.Peer},
		Answer{Regions: []Region{region}, Clock: 1700000000000, Statuses: []RegionStatus{{
			Region: 7, State: StateOpen, Why: "x", Leader: bMember.Peer, Term: 3, Last: 20, LastTerm: 3, Applied: 19, Epoch: 2, Replica: 9,
			Members: []MemberStatus{{Replica: voters[1], Silent: true, Behind: 4}}, Recovered: 1,
		}}},
		HandoffRequest{Sessions: 7},
		anOffer(),
		Fetch{Digests: &LogPosition{Group: 3, Index: 9}},
		Fetch{Part: &PartAt{LogPosition: LogPosition{Group: 3, Index: 9}, Chunk: grid.ChunkPos{X: 1, Z: -1}, Sequences: true}},
		Fetch{Base: &BaseOf{Chunk: grid.ChunkPos{X: -1, Z: 2}, Hash: [32]byte{1}}},
		Fetched{Wait: true},
		Fetched{Error: "no"},
		Fetched{Data: []byte{1, 2}},
		Fetched{Digests: []PartDigest{{Chunk: grid.ChunkPos{X: 5}, Memory: [16]byte{7}, Disk: DiskDamaged}, {Sequences: true}}},
	}
}

// laterMessages are those that were added since: their bytes are at the end of the file.
func laterMessages() []interface{ Valid() error } {
	why := notice.New("not_near", "{name} is not near {where}", "bob", notice.New("spawn", "the spawn"))
	act := Act{At: 1700000000000, Key: make([]byte, 32), Seq: 5, Name: "ada", Text: "ban bob", Signature: make([]byte, 64)}
	home, kept := aRecord(), aRecord()
	home.Home, kept.Verifier = &aPose, &player.Verifier{1, 2}
	seen := SignedIncarnation{Incarnation: Incarnation{ID: [16]byte{1}, Count: 2}, Signature: []byte{3, 4}}
	return []interface{ Valid() error }{
		seen,
		SignedIncarnation{Incarnation: Incarnation{ID: [16]byte{9}, RolledBack: 3}, Signature: []byte{5}},
		Lineage{Incarnations: []Incarnation{{ID: [16]byte{5}, Count: 6}, {ID: [16]byte{7}}}, Signature: []byte{8}, Remembered: &seen},
		RegionStatus{Region: 7, State: StateFailed, Why: "x", Last: 20, Outdated: true, Until: 1700000000},
		Answer{Member: &aMember, Clock: 1700000000000, Time: 1700000000123, TimeAge: 86400},
		Question{Range: &RangeRequest{Area: Rectangle{MinX: -1, MaxX: 3, MaxZ: 2}, After: 3, Regions: []uint64{9}, Players: true, Surface: true}},
		Question{Range: &RangeRequest{Area: Rectangle{MaxX: 300, MaxZ: 2}, Listed: true}},
		Answer{Range: &RangeAnswer{Routes: []Region{aRegion()}, More: true, Regions: []RangeRegion{{
			Region: aRegion(), State: StateOpen, Players: 2, Edits: 5, Clipped: true,
			Inside:  []RangePlayer{{Player: player.GuestID("bob"), Name: "bob", Guest: true, At: grid.Pos{X: -1, Y: 2, Z: 3}}},
			Surface: []ChunkSurface{{Chunk: grid.ChunkPos{X: 1, Z: -1}, Points: []SurfacePoint{{Index: 3, Height: 40, Block: 5}}}},
		}}}},
		Answer{Range: &RangeAnswer{Regions: []RangeRegion{{Region: aRegion(), State: StateOpen, Applied: 9}}}},
		Question{Split: &Release{Region: 7}},
		Question{Merge: &Release{Region: 7}},
		Question{Structure: &StructureRequest{Region: 7, Abandon: 3}},
		Question{Resolve: &Release{Region: 7}},
		Question{Status: &StatusRequest{Regions: []uint64{7}, Stored: true}},
		Fetch{Freeze: &Freeze{Group: 7, Attempt: 2}},
		RegionStatus{Region: 7, State: StateOpen, Load: 1300, Quiet: 60, Undivided: "x"},
		Question{Act: &act},
		Question{Acts: &ActsRequest{After: 3, Digest: ActsDigest{9}}},
		Answer{OtherActs: true},
		Answer{Acts: []Act{act, {Key: act.Key, Operator: true, Charter: 4, Text: "say x", Signature: act.Signature}}, Number: 9},
		provenEdits(),
		Question{History: &HistoryRequest{
			Region: 7, Min: grid.Pos{X: -1}, Max: grid.Pos{X: 2, Y: 3, Z: 4}, Since: 5, Until: 6, Player: player.GuestID("bob"), Newest: true, Skip: 8, Most: 9,
		}},
		Question{History: &HistoryRequest{Region: 7, Rollback: -1}},
		Answer{History: &HistoryAnswer{
			Records: []HistoryRecord{{Time: 1, Player: player.GuestID("bob"), Guest: "bob", At: grid.Pos{X: -1, Y: 2, Z: 3}, Old: 0xffff, New: 5}}, More: true,
		}},
		Answer{History: &HistoryAnswer{Changed: 1, Left: 2, Columns: []ChunkColumns{{Chunk: grid.ChunkPos{X: -1, Z: 2}, Bits: [128]byte{1, 2}}}, Done: true}},
		PlayersRequest{List: &ListPlayers{}},
		PlayersRequest{Find: &FindPlayer{Name: "bob"}},
		PlayersRequest{Show: &PrivateLine{From: player.GuestID("ada"), Name: "ada", Guest: true, To: player.GuestID("bob"), Text: "hi"}},
		PlayersAnswer{Names: []string{"ada", "bob"}, Players: 3},
		PlayersAnswer{Found: &FoundPlayer{Player: player.GuestID("bob"), Name: "bob", Pose: aPose}, Shown: true},
		home,
		Question{History: &HistoryRequest{Region: 7, Player: player.GuestID("bob"), Others: []player.ID{player.GuestID("eve")}}},
		ToRegion{Edits: []Intent{{
			Player: player.GuestID("bob"), Seq: 5, Pos: grid.Pos{X: 1, Y: 2, Z: 3}, Block: chunk.Sign, Proof: Proof{Name: "bob"}, Text: "to the\nharbour",
		}}},
		signs(),
		ToRegion{Enter: []Body{{Player: player.GuestID("bob"), Name: "bob", Guest: true, Pose: aPose, Skin: 0x03fa10cd}}},
		Answer{Statuses: []RegionStatus{{Region: 7, State: StateClosed, Structure: &Structure{Split: 5, Merged: 3}}}},
		Question{Structure: &StructureRequest{Region: 7, Copy: true}},
		Question{Forget: &Forget{Peer: aMember.Peer}},
		Question{Vacated: &Vacated{Region: 7, Cell: aCell}},
		RegionStatus{Region: 7, State: StateOpen, Structure: &Structure{Vacated: 5}},
		Answer{Region: &Region{ID: 7, Cell: aCell, Epoch: 1, Term: 1, Members: aRegion().Members, Founded: 3}},
		bulkEdit(),
		kept,
		ToRegion{Enter: []Body{{
			Player: player.GuestID("bob"), Name: "bob", Guest: true, Pose: aPose, Stance: Stance{Held: chunk.Stone, Sneaks: true},
		}}},
		Answer{Error: "x", Why: &why},
		Fetch{Content: &ContentOf{Hash: [32]byte{1, 2}}},
	}
}

// signs are the texts of signs in a chunk's state, and in a delta.
func signs() FromRegion {
	return FromRegion{Tick: 9, Chunks: []ChunkDelta{{
		Chunk: grid.ChunkPos{X: -1, Z: 2}, Blocks: []BlockAt{{At: 6, Block: chunk.Sign}}, Signs: []SignAt{{At: 6, Text: "ö"}},
		State: &ChunkState{Base: make([]byte, 32), Edits: []BlockAt{{At: 5, Block: chunk.Sign}}, Signs: []SignAt{{At: 5, Text: "to the\nharbour"}}},
	}}}
}

// bulkEdit is a bulk edit of a guest.
func bulkEdit() ToRegion {
	return ToRegion{Edits: []Intent{{
		Player: player.GuestID("bob"), Seq: 5, Pos: grid.Pos{X: -32, Z: 64}, Proof: Proof{Name: "bob"}, Bulk: bulkOf(BulkRun{At: 1024, Count: 300, To: chunk.Stone}),
	}}}
}

// provenEdits are edits with proofs.
func provenEdits() ToRegion {
	return ToRegion{Edits: []Intent{
		{Player: anID, Seq: 4, Pos: grid.Pos{X: -3, Y: 60, Z: 545}, Block: chunk.Planks, Proof: Proof{Key: [32]byte{1}, Signature: [64]byte{63: 2}}},
		{Player: player.GuestID("bob"), Seq: 5, Proof: Proof{Name: "bob"}},
	}}
}

// The bytes between nodes must stay as they are: nodes of two versions work together during an upgrade.
func TestGoldenMessages(t *testing.T) {
	to, from := aToRegion(), aFromRegion()
	to.Enter[0].Gateway, to.Enter[0].Velocity = aMember.Peer, aVelocity
	from.Leader, from.Alive = bMember.Peer, true
	from.Chunks[0].Base = make([]byte, 32)
	messages := append(nodeMessages(), Hello{Region: 7, Cell: aCell, Reading: true}, to, from, Moves{{Player: player.GuestID("bob"), Pose: aPose}}[0])
	messages = append(messages, laterMessages()...)
	var b strings.Builder
	for _, m := range messages {
		data, err := wire.EncodeCBOR(m, wire.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%T %x\n", m, data)
	}
	const path = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s differs: these bytes must not change", i+1, path)
		}
	}
}
