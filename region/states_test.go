package region

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
)

// shows waits until the node counts so many regions of its own, all of them in the state, and one of the world in the
// same. It returns how long that took.
func (n *node) shows(state membership.State, own int, quorum bool) time.Duration {
	n.net.t.Helper()
	for start := time.Now(); ; {
		now := n.States()
		if now.Node[state] == own && now.Node.Total() == own && now.World != nil && now.World[state] == 1 && now.World.Total() == 1 && now.CatalogQuorum == quorum {
			return time.Since(start)
		}
		if time.Since(start) > 30*time.Second {
			n.net.t.Fatalf("%s counts %v, and %v of the world; quorum %t", n.peer, now.Node.Named(), now.World.Named(), now.CatalogQuorum)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// asleep returns three nodes with one region that hibernates, and the catalog.
func asleep(t *testing.T) (n *network, a, b, c *node) {
	n, a, b, c = three(t)
	<-time.After(17 * time.Millisecond) // so that its ticks do not coincide with the supervisor's rounds, which hibernation waits for
	g := a.follow(here)
	g.edit(stone(1))
	<-time.After(20 * time.Second) // the catalog has three members
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for _, it := range []*node{a, b, c} {
		for start := time.Now(); it.loopOf(here) != nil; <-time.After(time.Second) {
			if time.Since(start) > 2*time.Minute {
				t.Fatal("the region does not hibernate on", it.peer)
			}
		}
		it.shows(membership.Healthy, 2, true)
	}
	return n, a, b, c
}

// noticed bounds the time until a lost majority shows.
const noticed = 15 * time.Second

// A node that is cut off from the others without a sign shows that the sleeping region and the catalog have lost their
// majority; the others show that they lack a member. When the cut heals, all is well again.
func TestStatesOfASilentCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := asleep(t)
		n.setMute(true)
		n.cut("A", true)
		start := time.Now()
		a.shows(membership.NoQuorum, 2, false)
		b.shows(membership.UnderReplicated, 2, true)
		c.shows(membership.UnderReplicated, 2, true)
		if took := time.Since(start); took > noticed {
			t.Errorf("it took %v", took)
		}
		n.cut("A", false)
		for _, it := range []*node{a, b, c} {
			it.shows(membership.Healthy, 2, true)
		}
	})
}

// When two of three nodes are killed, the third one shows it, from its own copy of the catalog. That a node was drained
// is known: it is not missed while it may come back.
func TestStatesWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := asleep(t)
		b.Drain(t.Context())
		n.kill(b)
		for range 40 {
			if now := a.States(); now.Node[membership.Healthy] != 2 || now.World[membership.Healthy] != 1 {
				t.Fatalf("while B restarts: %v", now.Node.Named())
			}
			<-time.After(time.Second)
		}
		<-time.After(40 * time.Second) // it does not come back
		a.shows(membership.UnderReplicated, 2, true)
		n.kill(c)
		if took := a.shows(membership.NoQuorum, 2, false); took > noticed {
			t.Errorf("it took %v", took)
		}
	})
}

// A grace period that is shorter than the pause between two questions to a node makes nobody count as missing.
func TestShortGraceCountsNobodyAsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies, n.adjust = 3, func(_ string, o *Options) { o.Grace = time.Second }
		n.near("A", "B", "C")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		n.start("C", newDisk())
		a.follow(here)
		<-time.After(2 * time.Minute)
		for range 60 {
			<-time.After(time.Second)
			if all := a.States().Node; all[membership.Healthy] != all.Total() {
				t.Fatalf("the regions are %v", all.Named())
			}
		}
	})
}
