package replica

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Followers of a quiet group receive a commit at once; those of a busy one with the next entries, or a tick later.
func TestAnnouncements(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, owners := cluster(t, Founding{Group: 5, Members: []string{"a", "b", "c"}})
		lead := leader(t, owners)
		<-time.After(time.Second) // let the election finish
		synctest.Wait()
		announced := 0
		n.mu.Lock()
		n.lose = func(_, _ string, m *raftpb.Message) bool {
			if m.GetType() == raftpb.MsgApp && len(m.GetEntries()) == 0 {
				announced++
			}
			return false
		}
		n.mu.Unlock()
		var want []string
		propose := func() { // takes no time
			want = append(want, numbered("e", len(want)))
			if err := lead.Propose([]byte(want[len(want)-1])); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, k := range owners {
				k.drain()
			}
		}
		propose()
		for _, k := range owners {
			if !slices.Equal(k.log, want) {
				t.Fatalf("%s does not have %q as committed: it was not announced at once", k.peer, want)
			}
		}
		n.mu.Lock()
		announced = 0
		n.mu.Unlock()
		for range 50 {
			propose()
			if !slices.Equal(lead.log, want) {
				t.Fatalf("the leader was given %d of %d entries", len(lead.log), len(want))
			}
		}
		n.mu.Lock()
		if announced > 2*busyEntries {
			t.Errorf("%d announcements of 50 commits in one tick", announced)
		}
		n.mu.Unlock()
		for _, k := range owners {
			if behind := len(want) - len(k.log); behind > 1 {
				t.Errorf("%s is %d entries behind: they should have come with the next ones", k.peer, behind)
			}
		}
		<-time.After(2 * lead.host.tickEvery)
		synctest.Wait()
		for _, k := range owners {
			if k.drain(); !slices.Equal(k.log, want) {
				t.Errorf("%s has %d of %d entries two ticks after the last", k.peer, len(k.log), len(want))
			}
		}
	})
}

// The message that informs a removed member is never withheld, because it is not repeated.
func TestRemovalIsAnnounced(t *testing.T) {
	r := &replica{log: &raftlog.Log{}}
	entries := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(8)),
		Entries: []*raftpb.Entry{{Index: new(uint64(9)), Term: new(uint64(3))}},
	}
	message := &raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(9))}
	a := announcements{entries: busyEntries}
	if a.withhold(r, entries) {
		t.Fatal("entries were withheld")
	}
	if !a.withhold(r, message) {
		t.Fatal("a busy group announces what the next entries carry")
	}
	r.log.Changes = []raftlog.LoggedChange{{Index: 9}}
	if a.withhold(r, message) {
		t.Error("a change of the members was not announced")
	}
	r.log.Changes = nil
	message.Index = new(uint64(7))
	if a.withhold(r, message) {
		t.Error("a question about the log was not asked")
	}
	message.Index, message.Term = new(uint64(9)), new(uint64(4))
	if a.withhold(r, message) {
		t.Error("what another term has sent counts")
	}
}
