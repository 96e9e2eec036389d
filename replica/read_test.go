package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// TestReadIndex: reads see everything that was committed before; a leader that was cut off must not answer.
func TestReadIndex(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		l := p.leader()
		type result struct {
			index uint64
			err   error
		}
		ask := func(g *testMember, within time.Duration) chan result {
			answer := make(chan result, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				index, err := g.ReadIndex(ctx)
				answer <- result{index, err}
			}()
			return answer
		}
		for range 20 {
			p.propose(3, l.peer)
			var all []chan result
			for range 5 {
				all = append(all, ask(l, time.Minute))
			}
			p.pass(10 * time.Millisecond)
			for _, answer := range all {
				if r := <-answer; r.err != nil || r.index != l.Status().Commit {
					t.Fatalf("%+v, commit is %d", r, l.Status().Commit)
				}
			}
		}
		other := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		if r := <-ask(other, time.Minute); !errors.Is(r.err, ErrNotLeader) {
			t.Fatalf("a follower answered %+v", r)
		}

		// Heartbeats are lost for a while: the read waits.
		p.net.mu.Lock()
		p.net.lose = func(_, _ string, m *raftpb.Message) bool { return len(m.GetContext()) > 0 }
		p.net.mu.Unlock()
		late := ask(l, time.Minute)
		p.pass(500 * time.Millisecond)
		select {
		case r := <-late:
			t.Fatalf("answered without a majority: %+v", r)
		default:
		}
		p.net.mu.Lock()
		p.net.lose = nil
		p.net.mu.Unlock()
		p.pass(500 * time.Millisecond)
		if r := <-late; r.err != nil {
			t.Fatal(r.err)
		}

		// The cut-off leader is replaced: it must not answer from its old state.
		p.net.set(l.peer, true)
		stale := ask(l, time.Minute)
		short := ask(l, 100*time.Millisecond)
		if r := <-short; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Fatalf("cut off, it answered %+v", r)
		}
		p.pass(5 * time.Second)
		if r := <-stale; !errors.Is(r.err, ErrNotLeader) {
			t.Fatalf("cut off, it answered %+v", r)
		}
		p.net.set(l.peer, false)
		p.propose(1, "a", "b", "c")
		pending := ask(p.leader(), time.Minute)
		p.pass(time.Second)
		if r := <-pending; r.err != nil {
			t.Fatal(r.err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if r := <-ask(l, time.Minute); !errors.Is(r.err, ErrClosed) {
			t.Fatalf("closed, it answered %+v", r)
		}
	})
}

// TestReadsOfOne: a group of one needs no majority.
func TestReadsOfOne(t *testing.T) {
	h := newTestHost(t, newDisk())
	g := openNow(t, h, alone(1))
	for i := range 10 {
		if err := g.Propose(fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		pump(h)
		last := lastIndex(g.Dequeue())
		answer, err := g.RequestReadIndex()
		if err != nil {
			t.Fatal(err)
		}
		pump(h)
		if r := <-answer; r.Err != nil || r.Index != last {
			t.Fatalf("%+v, expected %d", r, last)
		}
	}
	for range 4096 {
		if _, err := g.RequestReadIndex(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.RequestReadIndex(); !errors.Is(err, ErrOverloaded) {
		t.Fatal(err)
	}
}
