package nodemsg

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

var (
	aMember   = Member{Peer: "12D3KooWA", Game: "127.0.0.1:4002"}
	bMember   = Member{Peer: "12D3KooWB", Game: "node-b:4002"}
	aCell     = grid.CellAt(grid.ChunkPos{X: -1, Z: 17}, grid.FoundingLabel)
	aPose     = motion.Pose{X: 1.5, Y: 64, Z: -3.3, Yaw: 1.57, Pitch: -0.5}
	aVelocity = motion.Velocity{X: -math.MaxInt16, Y: 1, Z: 820}
	anID      = player.GuestID("ada")
)

func aRegion() Region {
	return Region{ID: 7, Cell: aCell, Epoch: 2, Term: 3, Leader: bMember.Peer, Members: []Member{aMember, bMember}}
}

func aRecord() PlayerRecord {
	return PlayerRecord{Player: anID, Name: "ada", Guest: true, Seq: 9, Pose: aPose, Gateway: aMember.Peer, SavedAt: 1700000000000}
}

// aStamp returns the stamp of a player's first line after an event of another player.
func aStamp(id player.ID) []byte {
	speaker, other := vclock.NewOwner(ChatAuthor(id), 1700000000000), vclock.NewOwner(ChatAuthor(player.GuestID("bob")), 0)
	speaker.Merge(other.Act(), func(vclock.ID) bool { return true })
	data, err := speaker.Act().Append(nil)
	if err != nil {
		panic(err)
	}
	return data
}

func anInteraction(kind InteractionKind, block chunk.Block, count uint8) ChatEvent {
	d := Interaction{Kind: kind, To: player.GuestID("bob"), ToName: "bob", Block: block, Count: count}
	return ChatEvent{Player: anID, Name: "ada", Chunk: grid.ChunkPos{X: -1, Z: 17}, Text: d.ChatText(), Wall: 1700000000000, Stamp: aStamp(anID), Interaction: &d}
}

func aToRegion() ToRegion {
	at := grid.ChunkPos{X: -1, Z: 17}
	return ToRegion{
		Unwatch: []grid.ChunkPos{at}, Watch: []grid.ChunkPos{{X: 0, Z: 17}},
		Enter: []Body{{Player: anID, Name: "ada", Guest: true, Pose: aPose, Said: 1700000000001}},
		Moves: []BodyMove{{Player: anID, Pose: aPose, Velocity: aVelocity}}, Leave: []player.ID{anID},
		Edits: []Intent{{Player: anID, Seq: 4, Pos: grid.Pos{X: -3, Y: 60, Z: 545}, Block: chunk.Planks}},
		Chat: []ChatEvent{
			{Player: anID, Name: "ada", Chunk: at, Text: "hi", Wall: 1700000000000, Stamp: aStamp(anID)},
			anInteraction(InteractionHit, chunk.Air, 0), anInteraction(InteractionGift, chunk.Planks, 3), anInteraction(7, chunk.Planks, 255),
		},
	}
}

func aFromRegion() FromRegion {
	at := grid.ChunkPos{X: -1, Z: 17}
	body := Body{Player: anID, Name: "ada", Guest: true, Pose: aPose, Velocity: aVelocity}
	return FromRegion{
		Tick: 11,
		Chunks: []ChunkDelta{{
			Chunk: at,
			State: &ChunkState{Base: make([]byte, 32), Edits: []BlockAt{{At: 5, Block: chunk.Stone}}, Bodies: []Body{body}},
			Enter: []Body{body}, Leave: []player.ID{anID}, Moves: []BodyMove{{Player: anID, Pose: aPose, Velocity: aVelocity}},
			Blocks: []BlockAt{{At: 32767, Block: chunk.Air}}, Chat: []ChatEvent{{Player: anID, Name: "ada", Chunk: at, Text: "hi"}},
		}},
		Results: []EditResult{{Player: anID, Seq: 4, Block: chunk.Stone, Refused: wire.RefusedRate}},
		Closed:  "moved",
	}
}

func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	hello := Hello{Region: 7, Cell: aCell}
	for _, v := range []interface{ Valid() error }{hello, aToRegion(), aFromRegion(), FromRegion{}} {
		if err := wire.WriteFrame(&stream, v); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(iotest.HalfReader(&stream))
	if got, err := wire.ReadFrame[Hello](r, wire.MaxFrame); err != nil || got != hello {
		t.Errorf("Hello came back as %+v, %v", got, err)
	}
	if got, err := wire.ReadFrame[ToRegion](r, wire.MaxFrame); err != nil || !reflect.DeepEqual(got, aToRegion()) {
		t.Errorf("ToRegion came back as %+v, %v", got, err)
	}
	if got, err := wire.ReadFrame[FromRegion](r, wire.MaxFrame); err != nil || !reflect.DeepEqual(got, aFromRegion()) {
		t.Errorf("FromRegion came back as %+v, %v", got, err)
	}
	if got, err := wire.ReadFrame[FromRegion](r, wire.MaxFrame); err != nil || !reflect.DeepEqual(got, FromRegion{}) {
		t.Errorf("the empty FromRegion came back as %+v, %v", got, err)
	}
	if _, err := wire.ReadFrame[FromRegion](r, wire.MaxFrame); err != io.EOF {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

func TestReadFrameRefuses(t *testing.T) {
	for _, c := range []struct{ in, code string }{
		{"\x00\x00\x00\x00", wire.FailTooLong},
		{"\xff\xff\xff\xff", wire.FailTooLong},
		{"\x00\x40\x00\x01", wire.FailTooLong},          // MaxFrame + 1
		{"\x00\x00\x00\x01\xf6", wire.FailBadValue},     // null: region 0
		{"\x00\x00\x00\x02\xa0", "EOF"},                 // one byte is missing
		{"\x00\x00", "EOF"},                             // within the length
		{"\x00\x00\x00\x02\xa0\xa0", wire.FailBadValue}, // two values
	} {
		v, err := wire.ReadFrame[Hello](bufio.NewReader(strings.NewReader(c.in)), wire.MaxFrame)
		if c.code == "EOF" {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("ReadFrame(%x) = %+v, %v; want an unexpected EOF", c.in, v, err)
			}
		} else if err == nil || wiretest.CodeOf(t, err) != c.code {
			t.Errorf("ReadFrame(%x) = %+v, %v; want %s", c.in, v, err, c.code)
		}
	}
}

// A peer that announces 4 MiB and sends nothing must not cause an allocation of that size.
func TestReadFrameAllocatesAsBytesArrive(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		_, err := wire.ReadFrame[Hello](bufio.NewReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, wire.MaxFrame))), wire.MaxFrame)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("64 empty promises of 4 MiB took %d bytes", grown)
	}
}

// The signed bytes must never change: the records of older nodes would become invalid.
func TestSignedBytes(t *testing.T) {
	region, err := EncodeRegion(aRegion())
	if err != nil {
		t.Fatal(err)
	}
	cell := hex.EncodeToString([]byte(aCell.String()))
	want := "a6" + "0107" + "02" + fmt.Sprintf("%x", 0x40+len(cell)/2) + cell + "0302" + "0403" +
		"0569" + hex.EncodeToString([]byte(bMember.Peer)) +
		"0682" + "a20169" + hex.EncodeToString([]byte(aMember.Peer)) + "026e" + hex.EncodeToString([]byte(aMember.Game)) +
		"a20169" + hex.EncodeToString([]byte(bMember.Peer)) + "026b" + hex.EncodeToString([]byte(bMember.Game))
	if got := hex.EncodeToString(region); got != want {
		t.Errorf("region is\n%s, want\n%s", got, want)
	}
	if got, err := DecodeRegion(region); err != nil || !reflect.DeepEqual(got, aRegion()) {
		t.Errorf("region came back as %+v, %v", got, err)
	}

	record, err := EncodePlayerRecord(aRecord())
	if err != nil {
		t.Fatal(err)
	}
	want = "a7" + "0150" + anID.String() + "0263616461" + "03f5" + "0409" +
		"05a5" + "6178f93e00" + "6179f95400" + "617afbc00a666666666666" + "63796177fa3fc8f5c3" + "657069746368f9b800" +
		"0669" + hex.EncodeToString([]byte(aMember.Peer)) + "071b0000018bcfe56800"
	if got := hex.EncodeToString(record); got != want {
		t.Errorf("record is\n%s, want\n%s", got, want)
	}
	if got, err := DecodePlayerRecord(record); err != nil || got != aRecord() {
		t.Errorf("record came back as %+v, %v", got, err)
	}

	// Other encodings of the same values are refused.
	long := append([]byte{0xa6, 0x01, 0x18, 0x07}, region[3:]...) // 7 in two bytes
	more := append([]byte{0xa7}, region[1:]...)                   // a field of a later version
	more = append(more, 0x18, 0x63, 0x00)
	for name, b := range map[string][]byte{"long": long, "more": more} {
		if got, err := DecodeRegion(b); wiretest.CodeOf(t, err) != wire.FailBadValue || !strings.Contains(err.Error(), "canonical") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAsk(t *testing.T) {
	for _, q := range []Question{
		{Locate: &Locate{Chunk: grid.ChunkPos{X: 3, Z: -4}}},
		{Found: &Found{Cell: aCell, Members: []Member{aMember}}},
		{Describe: &Describe{}},
		{Authority: &Locate{Chunk: grid.ChunkPos{X: -3, Z: 4}}},
		{Release: &Release{Region: 7}},
		{Superseded: &Release{Region: 7}},
		{Status: &StatusRequest{Regions: []uint64{7, 8}, Log: true}},
		{Regions: &RegionsRequest{After: 7}},
		{Leaving: &Leaving{}},
		{Forget: &Forget{Peer: aMember.Peer}},
	} {
		b, err := EncodeQuestion(q)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeQuestion(b); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("question %x came back as %+v, %v", b, got, err)
		}
	}
	region := aRegion()
	for _, a := range []Answer{{}, {Region: &region}, {Error: "no catalog"}, {Member: &aMember}, {Regions: []Region{region}}, {Clock: 9, Statuses: []RegionStatus{{
		Region: 7, State: StateOpen, Why: "slow", Leader: aMember.Peer, Term: 2, Last: 9, LastTerm: 2, Applied: 8, Epoch: 3, Replica: 1, Recovered: 1,
		Members: []MemberStatus{{Replica: Replica{ID: 2, Peer: bMember.Peer}, Silent: true, Behind: 4}},
		Voucher: &Voucher{Key: make([]byte, 32), Charter: 2, Signature: make([]byte, 64)},
	}}}} {
		b, err := EncodeAnswer(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeAnswer(b); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("answer %x came back as %+v, %v", b, got, err)
		}
	}
}

// Nodes ignore fields of a later version.
func TestUnknownFieldsPass(t *testing.T) {
	b, err := cbor.Marshal(map[int]any{3: map[int]any{}, 99: "later"})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := DecodeQuestion(b); err != nil || q.Describe == nil {
		t.Errorf("DecodeQuestion = %+v, %v", q, err)
	}
}

func TestDecodingRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":           "",
		"cut off":           "a1",
		"no question":       "a0",
		"two questions":     "a203a00" + "1a101820000",
		"duplicate key":     "a203a003a0",
		"indefinite map":    "bf03a0ff",
		"tag":               "c1a103a0",
		"two values":        "a103a0a103a0",
		"out of the world":  "a101a101821a0400000000",
		"three coordinates": "a101a10183000000",
		"beyond int32":      "a101a101821b000000010000000000",
		"float coordinate":  "a101a10182f93e0000",
		"bad cell":          "a102a2014378797a0280",
		"no members":        "a102a20144302c302f0280",
		"array of 2^32":     "a102a20144302c302f029b0000000100000000",
	} {
		b, err := hex.DecodeString(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if q, err := DecodeQuestion(b); wiretest.CodeOf(t, err) == "" {
			t.Errorf("%s: DecodeQuestion(%s) = %+v", name, in, q)
		}
	}
	// NaN, infinity and bad UTF-8 where a float and a text are allowed.
	good, err := EncodePlayerRecord(aRecord())
	if err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string][2]string{
		"NaN":      {"f93e00", "f97e00"},
		"infinity": {"f93e00", "f97c00"},
		"UTF-8":    {"63616461", "636164ff"},
	} {
		in := strings.Replace(hex.EncodeToString(good), swap[0], swap[1], 1)
		b, err := hex.DecodeString(in)
		if err != nil || bytes.Equal(b, good) {
			t.Fatal(name, err)
		}
		if p, err := DecodePlayerRecord(b); wiretest.CodeOf(t, err) != wire.FailBadValue {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	kept := aRecord()
	kept.Verifier = &player.Verifier{1, 2}
	if good, err = EncodePlayerRecord(kept); err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string]string{"short": "59010f" + strings.Repeat("00", 269), "long": "590111" + strings.Repeat("00", 271)} {
		at := bytes.LastIndex(good, []byte{11, 0x59, 1, 16, 1, 2}) + 1
		rest, _ := hex.DecodeString(swap[:6] + "0102" + swap[6:])
		if p, err := DecodePlayerRecord(append(bytes.Clone(good[:at]), rest...)); wiretest.CodeOf(t, err) != wire.FailBadValue {
			t.Errorf("a %s verifier: %+v, %v", name, p, err)
		}
	}
	if _, err := DecodeAnswer(make([]byte, wire.MaxQuestion+1)); wiretest.CodeOf(t, err) != wire.FailTooLong {
		t.Errorf("a long answer: %v", err)
	}
}

func TestValid(t *testing.T) {
	valid := func(change func(r *Region)) error { r := aRegion(); change(&r); return r.Valid() }
	record := func(change func(p *PlayerRecord)) error { p := aRecord(); change(&p); return p.Valid() }
	delta := func(change func(n *ChunkDelta)) error {
		m := aFromRegion()
		change(&m.Chunks[0])
		return m.Valid()
	}
	ask := func(change func(m *ToRegion)) error { m := aToRegion(); change(&m); return m.Valid() }
	out := grid.ChunkPos{X: grid.Limit}
	for name, err := range map[string]error{
		"region 0":               valid(func(r *Region) { r.ID = 0 }),
		"far cell":               valid(func(r *Region) { r.Cell.Domain.X = 1 << 25 }),
		"no members":             valid(func(r *Region) { r.Members = nil }),
		"many members":           valid(func(r *Region) { r.Members = make([]Member, wire.MaxMembers+1) }),
		"member twice":           valid(func(r *Region) { r.Members[0].Peer = r.Members[1].Peer }),
		"strange leader":         valid(func(r *Region) { r.Leader = "12D3KooWC" }),
		"peer of 0":              valid(func(r *Region) { r.Members[0].Peer = "12D3KooW0" }),
		"no peer":                valid(func(r *Region) { r.Members[0].Peer = "" }),
		"long peer":              valid(func(r *Region) { r.Members[0].Peer = strings.Repeat("a", wire.MaxPeerID+1) }),
		"no port":                valid(func(r *Region) { r.Members[0].Game = "127.0.0.1" }),
		"port 0":                 valid(func(r *Region) { r.Members[0].Game = "127.0.0.1:0" }),
		"big port":               valid(func(r *Region) { r.Members[0].Game = "127.0.0.1:65536" }),
		"no host":                valid(func(r *Region) { r.Members[0].Game = ":4002" }),
		"control character":      valid(func(r *Region) { r.Members[0].Game = "a\nb:4002" }),
		"long address":           valid(func(r *Region) { r.Members[0].Game = strings.Repeat("a", wire.MaxAddress) + ":1" }),
		"name":                   record(func(p *PlayerRecord) { p.Name = "a b" }),
		"another guest":          record(func(p *PlayerRecord) { p.Name = "bob" }),
		"NaN":                    record(func(p *PlayerRecord) { p.Pose.X = math.NaN() }),
		"infinite pitch":         record(func(p *PlayerRecord) { p.Pose.Pitch = float32(math.Inf(1)) }),
		"far":                    record(func(p *PlayerRecord) { p.Pose.Z = 1 << 31 }),
		"high":                   record(func(p *PlayerRecord) { p.Pose.Y = motion.MaxY + 1 }),
		"before 1970":            record(func(p *PlayerRecord) { p.SavedAt = -1 }),
		"no gateway":             record(func(p *PlayerRecord) { p.Gateway = "" }),
		"a player's verifier":    record(func(p *PlayerRecord) { p.Guest, p.Player, p.Verifier = false, player.ID{1}, &player.Verifier{} }),
		"another's login":        record(func(p *PlayerRecord) { p.Login = &player.Login{At: 1} }),
		"hello 0":                Hello{}.Valid(),
		"long error":             Answer{Error: strings.Repeat("a", wire.MaxErrorText+1)}.Valid(),
		"many reasons":           Answer{Why: &notice.Notice{Parts: manyParts()}}.Valid(),
		"a long reason":          Answer{Why: &notice.Notice{Args: map[string]string{"x": strings.Repeat("a", wire.MaxErrorText+1)}}}.Valid(),
		"answer's region":        Answer{Region: &Region{}}.Valid(),
		"a chunk that is split":  valid(func(r *Region) { r.Cell, r.Split = grid.CellAt(grid.ChunkPos{}, grid.MaxLabel), 1 }),
		"parent that is a chunk": FromRegion{Parent: &Region{Cell: grid.CellAt(grid.ChunkPos{}, grid.MaxLabel), Split: 1}}.Valid(),
		"answer's member":        Answer{Member: &Member{}}.Valid(),
		"watch out":              ask(func(m *ToRegion) { m.Watch = []grid.ChunkPos{out} }),
		"unwatch out":            ask(func(m *ToRegion) { m.Unwatch = []grid.ChunkPos{out} }),
		"watch too many":         ask(func(m *ToRegion) { m.Watch = make([]grid.ChunkPos, wire.MaxWatch+1) }),
		"nameless":               ask(func(m *ToRegion) { m.Enter[0].Name = "" }),
		"NaN move":               ask(func(m *ToRegion) { m.Moves[0].Pose.Y = math.NaN() }),
		"leave too many":         ask(func(m *ToRegion) { m.Leave = make([]player.ID, wire.MaxBodies+1) }),
		"deep edit":              ask(func(m *ToRegion) { m.Edits[0].Pos.Y = -1 }),
		"high edit":              ask(func(m *ToRegion) { m.Edits[0].Pos.Y = 1024 }),
		"say nothing":            ask(func(m *ToRegion) { m.Chat[0].Text = "" }),
		"say as another":         ask(func(m *ToRegion) { m.Chat[0].Stamp = aStamp(player.GuestID("bob")) }),
		"say and more":           ask(func(m *ToRegion) { m.Chat[0].Stamp = append(m.Chat[0].Stamp, 0) }),
		"say half a clock":       ask(func(m *ToRegion) { m.Chat[0].Stamp = m.Chat[0].Stamp[:9] }),
		"say all clocks":         ask(func(m *ToRegion) { m.Chat[0].Stamp = make([]byte, wire.MaxStamp+1) }),
		"say out":                ask(func(m *ToRegion) { m.Chat[0].Chunk = out }),
		"delta out":              delta(func(n *ChunkDelta) { n.Chunk = out }),
		"short hash":             delta(func(n *ChunkDelta) { n.State.Base = make([]byte, 31) }),
		"edit out":               delta(func(n *ChunkDelta) { n.State.Edits[0].At = 1 << 20 }),
		"body":                   delta(func(n *ChunkDelta) { n.State.Bodies[0].Name = "" }),
		"block out":              delta(func(n *ChunkDelta) { n.Blocks[0].At = 1 << 20 }),
		"enter":                  delta(func(n *ChunkDelta) { n.Enter[0].Pose.X = math.Inf(1) }),
		"sign out":               delta(func(n *ChunkDelta) { n.Signs = []SignAt{{At: 1 << 20, Text: "x"}} }),
		"long sign":              delta(func(n *ChunkDelta) { n.State.Signs = []SignAt{{Text: strings.Repeat("x", wire.MaxSignText+1)}} }),
		"too many signs":         delta(func(n *ChunkDelta) { n.State.Signs = make([]SignAt, wire.MaxSigns+1) }),
		"sign not in UTF-8":      Intent{Block: chunk.Sign, Text: "\xff"}.Valid(),
		"bad text in delta":      delta(func(n *ChunkDelta) { n.Chat[0].Text = "\x00" }),
		"long refusal":           EditResult{Refused: strings.Repeat("a", wire.MaxErrorText+1)}.Valid(),
		"closed without UTF8":    FromRegion{Closed: "\xff"}.Valid(),
	} {
		if wiretest.CodeOf(t, err) == "" {
			t.Errorf("%s: is valid", name)
		}
	}
	if err := valid(func(r *Region) { r.Leader = "" }); err != nil {
		t.Errorf("no leader yet: %v", err)
	}
	// Invalid values are not encoded either.
	if b, err := EncodeRegion(Region{}); err == nil {
		t.Errorf("EncodeRegion of nothing is %x", b)
	}
	var sink bytes.Buffer
	if err := wire.WriteFrame(&sink, Hello{}); err == nil || sink.Len() > 0 {
		t.Errorf("WriteFrame of nothing: %v, %d bytes", err, sink.Len())
	}
}

// One order decides which of two routes is used.
func TestRoutesAreOrdered(t *testing.T) {
	order := []Region{
		{Epoch: 1, Term: 9},
		{Epoch: 4, Term: 1},
		{Epoch: 4, Term: 2},
		{Epoch: 3, Split: 5},
		{Epoch: 2, Merged: 8, Term: 1},
		{Epoch: 2, Merged: 8, Term: 2},
		{Epoch: 1, Split: 9, Merged: 8},
		{Epoch: RecoveredEpoch + 1},
	}
	for i, a := range order {
		for j, b := range order {
			if got := a.Supersedes(b); got != (i > j) {
				t.Errorf("%+v supersedes %+v: %v", a, b, got)
			}
		}
	}
}

// manyParts returns more parts of a notice than it may have.
func manyParts() map[string]notice.Notice {
	parts := make(map[string]notice.Notice)
	for i := range maxWhy {
		parts[fmt.Sprint(i)] = notice.Notice{Text: "x"}
	}
	return parts
}
