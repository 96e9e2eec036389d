package raftgroup

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// The message that informs a removed member is never withheld, because it is not repeated.
func TestRemovalIsAnnounced(t *testing.T) {
	entries := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(8)),
		Entries: []*raftpb.Entry{{Index: new(uint64(9)), Term: new(uint64(3))}},
	}
	message := &raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(9))}
	a := announcements{entries: busyEntries}
	if a.withhold(entries, false) {
		t.Fatal("entries were withheld")
	}
	if !a.withhold(message, false) {
		t.Fatal("a busy group announces what the next entries carry")
	}
	if a.withhold(message, true) {
		t.Error("a change of the members was not announced")
	}
	message.Index = new(uint64(7))
	if a.withhold(message, false) {
		t.Error("a question about the log was not asked")
	}
	message.Index, message.Term = new(uint64(9)), new(uint64(4))
	if a.withhold(message, false) {
		t.Error("what another term has sent counts")
	}
}
