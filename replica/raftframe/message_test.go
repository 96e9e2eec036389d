package raftframe

import (
	"bytes"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// anyMessage draws a message with the fields that travel between members; each may be missing.
func anyMessage(t *rapid.T) *raftpb.Message {
	number := func(name string) *uint64 {
		return rapid.Ptr(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300)), true).Draw(t, name)
	}
	blob := func(name string) []byte {
		if rapid.Bool().Draw(t, "has "+name) {
			return rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name)
		}
		return nil
	}
	m := &raftpb.Message{
		To: number("to"), From: number("from"), Term: number("term"), LogTerm: number("log term"),
		Index: number("index"), Commit: number("commit"), RejectHint: number("hint"),
		Reject: rapid.Ptr(rapid.Bool(), true).Draw(t, "reject"), Context: blob("context"),
	}
	if rapid.Bool().Draw(t, "has type") {
		m.Type = raftpb.MessageType(rapid.Int32Range(0, 22).Draw(t, "type")).Enum()
	}
	for range rapid.IntRange(0, 5).Draw(t, "entries") {
		e := &raftpb.Entry{Term: number("entry's term"), Index: number("entry's index"), Data: blob("data")}
		if rapid.Bool().Draw(t, "has entry type") {
			e.Type = raftpb.EntryType(rapid.Int32Range(0, 2).Draw(t, "entry type")).Enum()
		}
		m.Entries = append(m.Entries, e)
	}
	return m
}

// The bytes equal the protobuf library's, and its bytes are decoded as the library would decode them.
func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Encode(m)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v became\n%x, %v, the library returns\n%x", m, got, err, want)
		}
		again, err := parseMessage(got)
		if err != nil || !proto.Equal(again, m) {
			t.Fatalf("%v came back as %v, %v", m, again, err)
		}
		clear(got)
		if !proto.Equal(again, m) {
			t.Fatal("a message keeps the bytes that it was decoded from")
		}
	})
}

// Everything that the parser accepts, the library decodes to the same message; the library accepts more.
func FuzzParseMessage(f *testing.F) {
	u := func(n uint64) *uint64 { return &n }
	for _, m := range []*raftpb.Message{
		{
			Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(3),
			Entries: []*raftpb.Entry{{Index: u(4), Term: u(5), Data: []byte("x")}, {Type: raftpb.EntryConfChange.Enum()}},
		},
		{Type: raftpb.MsgVote.Enum(), Context: []byte(CampaignTransfer), Reject: new(true), RejectHint: u(1 << 63)},
		{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{}, Vote: u(1), Responses: []*raftpb.Message{{}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x3a, 4, 0x08, 1, 0x30, 7})                         // an entry with an unknown field
	f.Add([]byte{0x3a, 9, 0xa5, 0xa5, 0xa5, 0xa5, 0x30, 1, 2, 3, 4}) // an entry with a field number that is too large
	f.Add([]byte{0x08, 3, 0x08, 4})                                  // a field twice
	f.Add([]byte{0x3a, 3, 0x22, 1, 7, 0x62, 0})                      // an empty context
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		want := new(raftpb.Message)
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, want); err != nil {
			t.Fatalf("%x was read as %v, and the library returns %v", b, m, err)
		}
		if known(want) && known(m) && !proto.Equal(m, want) {
			t.Fatalf("%x was read as\n%v, by the library as\n%v", b, m, want)
		}
	})
}

// known reports whether all types are known: the library drops other ones, and Decode refuses them.
func known(m *raftpb.Message) bool {
	if m.Type == nil {
		return false
	}
	for _, e := range m.GetEntries() {
		if e.Type == nil || e.GetType().Descriptor().Values().ByNumber(e.GetType().Number()) == nil {
			return false
		}
	}
	return m.GetType().Descriptor().Values().ByNumber(m.GetType().Number()) != nil
}

func BenchmarkCodec(b *testing.B) {
	m := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)), LogTerm: new(uint64(3)),
		Index: new(uint64(4000)), Commit: new(uint64(3999)),
		Entries: []*raftpb.Entry{{Term: new(uint64(3)), Index: new(uint64(4001)), Data: make([]byte, 300)}},
	}
	b.ReportAllocs()
	for b.Loop() {
		encoded, err := Encode(m)
		if err == nil {
			_, err = parseMessage(encoded)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
