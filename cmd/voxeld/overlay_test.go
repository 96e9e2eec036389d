package main

import (
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// The leader of a region is killed while a player on a second node watches a player on a third node walk. Under psense
// and areacast there is no visible pause.
func TestMovementOutlivesTheLeader(t *testing.T) {
	for _, kind := range []string{"psense", "areacast"} {
		t.Run(kind, func(t *testing.T) {
			all := cluster(t, 3, "--overlay", kind)
			probe := join(t, all[0].Game, "probe", 1)
			ground := under(probe, 1, 0, 0)
			probe.until("the ground", func() bool { _, ok := probe.at(ground); return ok })
			probe.leave()
			leader, others := leaderOf(t, all, ground.Chunk())
			ann, bob := join(t, others[0].Game, "ann", 1), join(t, others[1].Game, "bob", 1)
			bob.until("ann", func() bool { _, sees := bob.Avatars["ann"]; return sees })
			before := bob.watchWalk(t, ann, 20, func() {})
			t.Logf("with a leader: ann stands still for %v at most", before)
			pause := bob.watchWalk(t, ann, 40, leader.kill) // 3 s: another leads within 1.6 s
			t.Logf("without: %v", pause)
			if pause > 750*time.Millisecond {
				t.Errorf("bob saw ann stand still for %v, before for %v", pause, before)
			}
			if n := others[0].metric("voxeld_overlay_packets_total", "direction", "out"); n == 0 {
				t.Error("no packets were sent")
			}
		})
	}
}

// watchWalk makes ann step to and fro every 100 ms, and returns the longest time for which no movement was seen. After
// a quarter of the way it calls a function.
func (p *tester) watchWalk(t *testing.T, ann *tester, steps int, event func()) (longest time.Duration) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var events sync.WaitGroup
	defer events.Wait()
	pose, seen, last := ann.Welcome.Pose, p.Avatars["ann"], time.Now()
	for n := 0; n < steps; {
		select {
		case <-tick.C:
			n++
			pose.X = ann.Welcome.Pose.X + .2*float64(n%2)
			ann.send(sessionmsg.Move{Pose: pose})
			if n == steps/4 {
				events.Go(event)
			}
		case m, open := <-p.Inbox:
			if !open {
				t.Fatalf("the session has ended: %s", p.failure)
			}
			p.receive(m)
			longest = max(longest, m.At.Sub(last))
			if now := p.Avatars["ann"]; now != seen {
				seen, last = now, m.At
			}
		case m, open := <-ann.Inbox:
			if !open {
				t.Fatalf("ann's session has ended: %s", ann.failure)
			}
			ann.receive(m)
		}
	}
	return max(longest, time.Since(last))
}
