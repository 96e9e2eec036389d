package replica

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
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
		if announced > 8 {
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
