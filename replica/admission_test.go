package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// gated returns a host with three groups. Group 1 has the members me (replica 1), b (2) and c (3); b leads in term 5
// and has sent two entries, 2 and 3, of which 2 is committed. The host is alone in group 2, and leads group 3 of me, x
// and y.
func gated(t testing.TB) (*Host, *disk) {
	d := newDisk()
	h := newTestHost(t, d)
	openNow(t, h, Founding{Group: 1, Members: []string{"me", "b", "c"}})
	openNow(t, h, alone(2))
	openNow(t, h, Founding{Group: 3, Members: []string{"x", "me", "y"}})
	entries := []*raftpb.Entry{
		{Index: new(uint64(2)), Term: new(uint64(5))},
		{Index: new(uint64(3)), Term: new(uint64(5)), Data: []byte("edit")},
	}
	deliver(t, h, "b", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(5)),
		Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(2)), Entries: entries,
	})
	for range 2 * electionTicks {
		if err := h.groups.replicas[3].Tick(); err != nil {
			t.Fatal(err)
		}
	}
	h.committer.markDirty(h.groups.replicas[3])
	pump(h)
	deliver(t, h, "x", 3, &raftpb.Message{Type: raftpb.MsgPreVoteResp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(2))})
	deliver(t, h, "x", 3, &raftpb.Message{Type: raftpb.MsgVoteResp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(2))})
	if _, leads := h.groups.replicas[3].RaftLeader(); !leads {
		t.Fatal("group 3 has no leader")
	}
	h.committer.flushDue = true
	pump(h)
	return h, d
}

func deliver(t testing.TB, h *Host, peer string, group uint64, m *raftpb.Message) {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Receive(peer, group, b); err != nil {
		t.Fatal(err)
	}
	pump(h)
}

// stateText returns everything that a message could change, as text.
func stateText(h *Host, d *disk) string {
	var b strings.Builder
	for _, r := range h.groups.sorted() {
		fmt.Fprintln(&b, r)
	}
	for _, name := range slices.Sorted(maps.Keys(d.tables)) {
		fmt.Fprintf(&b, "%s %x\n", name, d.tables[name])
	}
	return b.String()
}

// hostile is a table of messages that no honest member sends; in the group's state each of them is wrong in a single
// detail.
func hostile() map[string]struct {
	peer  string
	group uint64
	m     *raftpb.Message
} {
	u := func(n uint64) *uint64 { return &n }
	type row = struct {
		peer  string
		group uint64
		m     *raftpb.Message
	}
	app := func(change func(*raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(3),
			Entries: []*raftpb.Entry{{Index: u(4), Term: u(5), Data: []byte("x")}},
		}
		change(m)
		return m
	}
	message := func(kind raftpb.MessageType, change func(*raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: kind.Enum(), From: u(2), To: u(1), Term: u(5)}
		change(m)
		return m
	}
	none := func(*raftpb.Message) {}
	rows := map[string]row{
		"stranger":                   {"z", 1, app(none)},
		"member of another":          {"x", 1, app(none)},
		"ourselves":                  {"me", 1, app(func(m *raftpb.Message) { m.From = u(1) })},
		"group not open":             {"b", 9, app(none)},
		"in another's name":          {"c", 1, app(none)},
		"to another":                 {"b", 1, app(func(m *raftpb.Message) { m.To = u(3) })},
		"no sender":                  {"b", 1, app(func(m *raftpb.Message) { m.From = nil })},
		"no term":                    {"b", 1, app(func(m *raftpb.Message) { m.Term = nil })},
		"term of the far":            {"b", 1, message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Term = u(5 + 1<<20 + 1) })},
		"last term":                  {"b", 1, message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Term = u(1<<64 - 1) })},
		"second leader":              {"c", 1, app(func(m *raftpb.Message) { m.From = u(3) })},
		"second leader's heartbeat":  {"c", 1, message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.From = u(3) })},
		"gap in entries":             {"b", 1, app(func(m *raftpb.Message) { m.Entries[0].Index = u(5) })},
		"entry of later term":        {"b", 1, app(func(m *raftpb.Message) { m.Entries[0].Term = u(6) })},
		"entry of earlier term":      {"b", 1, app(func(m *raftpb.Message) { m.Entries[0].Term = u(4) })},
		"configuration change":       {"b", 1, app(func(m *raftpb.Message) { m.Entries[0].Type = raftpb.EntryConfChange.Enum() })},
		"from entry 0":               {"b", 1, app(func(m *raftpb.Message) { m.Index, m.LogTerm, m.Entries[0].Index = nil, nil, u(1) })},
		"index overflow":             {"b", 1, app(func(m *raftpb.Message) { m.Index = u(1<<64 - 2); m.Entries[0].Index = u(1<<64 - 1) })},
		"vote field":                 {"b", 1, app(func(m *raftpb.Message) { m.Vote = u(1) })},
		"responses":                  {"b", 1, app(func(m *raftpb.Message) { m.Responses = []*raftpb.Message{{}} })},
		"commit not stored":          {"b", 1, message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Commit = u(4) })},
		"heartbeat's context":        {"b", 1, message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Context = []byte{1} })},
		"proposal":                   {"b", 1, message(raftpb.MsgProp, func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{Data: []byte("x")}} })},
		"empty proposal":             {"x", 3, &raftpb.Message{Type: raftpb.MsgProp.Enum(), From: u(1), To: u(2), Term: u(2)}},
		"read without context":       {"x", 3, &raftpb.Message{Type: raftpb.MsgReadIndex.Enum(), From: u(1), To: u(2), Term: u(2)}},
		"ack not stored":             {"x", 3, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: u(1), To: u(2), Term: u(2), Index: u(3)}},
		"heartbeat answer's context": {"x", 3, &raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: u(1), To: u(2), Term: u(2), Context: []byte{1}}},
		"election from another":      {"c", 1, message(raftpb.MsgTimeoutNow, func(m *raftpb.Message) { m.From = u(3) })},
		"election of later":          {"b", 1, message(raftpb.MsgTimeoutNow, func(m *raftpb.Message) { m.Term = u(6) })},
		"vote without log":           {"b", 1, message(raftpb.MsgVote, func(m *raftpb.Message) { m.Term = u(6) })},
		"vote of later log":          {"b", 1, message(raftpb.MsgVote, func(m *raftpb.Message) { m.Term, m.LogTerm, m.Index = u(6), u(6), u(9) })},
		"vote with context":          {"b", 1, message(raftpb.MsgVote, func(m *raftpb.Message) { m.Term, m.LogTerm, m.Index, m.Context = u(6), u(5), u(9), []byte("x") })},
	}
	for _, kind := range []raftpb.MessageType{
		raftpb.MsgHup, raftpb.MsgBeat, raftpb.MsgSnap, raftpb.MsgUnreachable, raftpb.MsgSnapStatus,
		raftpb.MsgCheckQuorum, raftpb.MsgTransferLeader, raftpb.MsgReadIndexResp, raftpb.MsgStorageAppend, raftpb.MsgStorageAppendResp,
		raftpb.MsgStorageApply, raftpb.MsgStorageApplyResp, raftpb.MsgForgetLeader, raftpb.MessageType(99),
	} {
		rows[kind.String()] = row{"b", 1, message(kind, none)}
	}
	return rows
}

func TestImplausibleMessagesAreRefused(t *testing.T) {
	for name, row := range hostile() {
		t.Run(name, func(t *testing.T) {
			h, d := gated(t)
			before := stateText(h, d)
			b, err := proto.Marshal(row.m)
			if err != nil {
				t.Fatal(err)
			}
			err = h.Receive(row.peer, row.group, b)
			if err == nil {
				// The remaining checks need raft's state.
				rejected := value(t, h.metrics.rejected)
				pump(h)
				if value(t, h.metrics.rejected) != rejected+1 {
					t.Fatal("admitted")
				}
			} else if !errors.Is(err, raftframe.ErrImplausible) && !errors.Is(err, ErrNotMember) && !errors.Is(err, ErrNotOpen) {
				t.Fatal(err)
			}
			if after := stateText(h, d); after != before {
				t.Fatalf("changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestPlausibleMessagesAreAccepted(t *testing.T) {
	h, _ := gated(t)
	u := func(n uint64) *uint64 { return &n }
	deliver(t, h, "b", 1, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: u(2), To: u(1), Term: u(5), Commit: u(3)})
	status := h.groups.replicas[1].Group().Status
	if s := status(); s.Commit != 3 {
		t.Fatalf("%+v after a heartbeat of commit 3", s)
	}
	// A new leader overwrites an uncommitted tail with a shorter one.
	deliver(t, h, "b", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(3),
		Entries: []*raftpb.Entry{{Index: u(4), Term: u(5)}, {Index: u(5), Term: u(5)}, {Index: u(6), Term: u(5)}},
	})
	deliver(t, h, "c", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(3), To: u(1), Term: u(6), Index: u(3), LogTerm: u(5), Commit: u(3),
		Entries: []*raftpb.Entry{{Index: u(4), Term: u(6)}},
	})
	if s := status(); s.Last != 4 || s.Term != 6 {
		t.Fatalf("%+v", s)
	}
	deliver(t, h, "c", 1, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: u(3), To: u(1), Term: u(6), Commit: u(4)})
	if s := status(); s.Commit != 4 {
		t.Fatalf("%+v", s)
	}
}

// A new leader replaces an uncommitted tail with entries that are committed at once. The same message once more, before
// that is stored, is no conflict: the log still has the old tail.
func TestReplacedTailIsNoConflict(t *testing.T) {
	h, d := gated(t)
	u := func(n uint64) *uint64 { return &n }
	m := marshal(t, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(3), To: u(1), Term: u(6), Index: u(2), LogTerm: u(5), Commit: u(3),
		Entries: []*raftpb.Entry{{Index: u(3), Term: u(6), Data: []byte("instead")}},
	})
	for range 2 {
		if err := h.Receive("c", 1, m); err != nil {
			t.Fatal(err)
		}
	}
	pump(h)
	if stored, err := raftlog.Conflict(d, 1); err != nil || stored || value(t, h.metrics.rejected) != 0 {
		t.Errorf("a conflict is stored: %v, %v; messages refused: %v", stored, err, value(t, h.metrics.rejected))
	}
	if s := h.groups.replicas[1].Group().Status(); s.Commit != 3 || s.Term != 6 {
		t.Errorf("%+v", s)
	}
}

// TestForgedCommitAfterCut: a forged commit is checked against the log that raft has after the messages before it.
func TestForgedCommitAfterCut(t *testing.T) {
	h, _ := gated(t)
	u := func(n uint64) *uint64 { return &n }
	receive := func(m *raftpb.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Receive("b", 1, b); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, h, "b", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(2),
		Entries: []*raftpb.Entry{{Index: u(4), Term: u(5)}, {Index: u(5), Term: u(5)}, {Index: u(6), Term: u(5)}},
	})
	receive(&raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(6), Index: u(3), LogTerm: u(5), Commit: u(2),
		Entries: []*raftpb.Entry{{Index: u(4), Term: u(6)}},
	})
	receive(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: u(2), To: u(1), Term: u(6), Commit: u(6)})
	pump(h)
	if r := h.groups.replicas[1]; r == nil || r.Group().Status().Commit != 2 || r.Group().Status().Last != 4 {
		t.Fatalf("the group ended, or took the commit: %v", r)
	}
}

func TestMessageBounds(t *testing.T) {
	h, _ := gated(t)
	if err := h.Receive("b", 1, make([]byte, raftframe.MaxMessage+1)); !errors.Is(err, raftframe.ErrImplausible) {
		t.Fatal(err)
	}
	many := new(raftpb.Message)
	for range raftframe.MaxEntries + 1 {
		many.Entries = append(many.Entries, &raftpb.Entry{})
	}
	b, err := proto.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	if allocated := testing.AllocsPerRun(1, func() { err = h.Receive("b", 1, b) }); !errors.Is(err, raftframe.ErrImplausible) || allocated > 100 {
		t.Fatalf("%v after %v allocations", err, allocated)
	}
	heartbeat, err := proto.Marshal(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(5))})
	if err != nil {
		t.Fatal(err)
	}
	h.node.Limits.Messages = 1000
	for range 1000 {
		if err = h.Receive("b", 1, heartbeat); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrOverloaded) {
		t.Fatal("the inbox has no bound:", err)
	}
}

// FuzzReceive: a non-member changes nothing, whatever it sends; a member may change anything, but neither panic the
// host nor end the group.
func FuzzReceive(f *testing.F) {
	for _, row := range hostile() {
		b, err := proto.Marshal(row.m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	f.Add([]byte{}, []byte{0xff})
	h, d := gated(f)
	before := stateText(h, d)
	executed := 0
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, message := range [][]byte{first, second} {
			for _, from := range []struct {
				peer  string
				group uint64
			}{{"z", 1}, {"x", 1}, {"b", 3}, {"b", 2}, {"me", 1}, {"", 1}, {"b", 9}, {"x", 0}} {
				if h.Receive(from.peer, from.group, message) == nil {
					t.Fatalf("a message of %q for group %d was taken", from.peer, from.group)
				}
			}
		}
		pump(h)
		if executed++; executed%64 == 0 || executed < 64 {
			if after := stateText(h, d); after != before {
				t.Fatalf("changed\n%s\nto\n%s", before, after)
			}
		}
		members, _ := gated(t)
		for _, message := range [][]byte{first, second} {
			for _, from := range []struct {
				peer  string
				group uint64
			}{{"b", 1}, {"c", 1}, {"x", 3}, {"y", 3}} {
				if members.Receive(from.peer, from.group, message) != nil {
					continue
				}
			}
			pump(members)
		}
		if len(members.groups.replicas) != 3 {
			t.Fatal("a member's message ended a group")
		}
	})
}

func marshal(t testing.TB, m *raftpb.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
