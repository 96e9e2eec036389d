package replica

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestChurn: whatever happens to messages and nodes while members change, all replicas get the same entries and
// configurations at the same indexes, their tables match exactly, and no replica id is reused. In the end, when the
// network works, all members of the last configuration have everything.
func TestChurn(t *testing.T) {
	restores, configurations, entries := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := &churn{
			t: t, nodes: make(map[string]*churnNode), entries: make(map[uint64]string), confs: make(map[uint64][]Member),
			retired: make(map[uint64]bool),
		}
		for i, peer := range churnPeers {
			n := &churnNode{peer: peer, disk: newDisk()}
			c.nodes[peer] = n
			c.boot(n)
			if i < 3 {
				c.open(n)
				c.newest = n.group.Configuration()
			}
		}
		pick := func(t *rapid.T) *churnNode { return c.nodes[rapid.SampledFrom(churnPeers).Draw(t, "peer")] }
		ticks := func(n *churnNode) {
			for range 4 {
				n.host.tick()
				pump(n.host)
			}
		}
		round := func(t *rapid.T, drain bool) {
			for range 3 {
				for _, peer := range churnPeers {
					pump(c.nodes[peer].host)
				}
				packets := c.wire
				c.wire = nil
				for _, p := range packets {
					c.ship(p)
				}
			}
			for _, peer := range churnPeers {
				if n := c.nodes[peer]; drain {
					c.drain(n)
					c.followAuthority(n)
				}
			}
		}
		actions := map[string]func(*rapid.T){
			"tick":   func(t *rapid.T) { ticks(pick(t)) },
			"tick2":  func(t *rapid.T) { ticks(pick(t)); round(t, false) },
			"round":  func(t *rapid.T) { round(t, true) },
			"round2": func(t *rapid.T) { round(t, true) },
			"mess": func(t *rapid.T) {
				packets := c.wire
				c.wire = nil
				for range rapid.IntRange(0, len(packets)).Draw(t, "delivered") {
					c.ship(rapid.SampledFrom(packets).Draw(t, "packet")) // duplicated, reordered, and the rest lost
				}
			},
			"snapshots": func(t *rapid.T) {
				snaps := c.snaps
				c.snaps = nil
				for _, s := range snaps {
					switch rapid.IntRange(0, 4).Draw(t, "fate") {
					case 0:
						s.done(errors.New("lost"))
					case 1:
						s.done(nil) // the loss is not noticed
					case 2:
						c.receive(s)
						c.receive(s)
					default:
						c.receive(s)
					}
				}
			},
			"propose": func(t *rapid.T) {
				for _, peer := range churnPeers {
					for range 3 {
						c.proposed++
						if g := c.nodes[peer].group; g != nil {
							_ = g.Propose(fmt.Append(nil, peer, c.proposed)) // refused where it does not lead
						}
					}
				}
			},
			"change":  func(t *rapid.T) { c.change(t); round(t, true) },
			"change2": func(t *rapid.T) { c.change(t) },
			"drain":   func(t *rapid.T) { c.drain(pick(t)) },
			"obey":    func(t *rapid.T) { c.followAuthority(pick(t)) },
			"flush":   func(t *rapid.T) { n := pick(t); n.host.committer.flushDue = true; pump(n.host) },
			"crash":   func(t *rapid.T) { n := pick(t); n.disk.refuse = nil; c.boot(n) },
			"full": func(t *rapid.T) {
				n := pick(t)
				n.disk.refuse, n.disk.torn = full, rapid.Bool().Draw(t, "torn")
			},
			"free": func(t *rapid.T) { c.clearFullDisk(pick(t)) },
		}
		for range rapid.IntRange(1, 12).Draw(t, "acts") {
			for range 3 { // some quiet time, so that a leader can emerge
				ticks(pick(t))
				round(t, true)
			}
			t.Repeat(actions)
		}

		// In the end the network heals.
		for healing := 0; ; healing++ {
			if healing > 600 {
				for _, n := range c.nodes {
					if n.group != nil {
						t.Logf("%s: %+v, members %v", n.peer, n.group.Status(), n.group.Configuration())
					}
				}
				t.Fatalf("no agreement on %d entries; members %v", len(c.entries), c.newest)
			}
			for _, peer := range churnPeers {
				c.clearFullDisk(c.nodes[peer])
				ticks(c.nodes[peer])
				c.nodes[peer].host.committer.flushDue = true
			}
			round(t, true)
			snaps := c.snaps
			c.snaps = nil
			for _, s := range snaps {
				c.receive(s)
			}
			whole := healing > 20
			for _, m := range c.newest.Members {
				n := c.nodes[m.Peer]
				whole = whole && n.group != nil && len(n.state) == len(c.entries) && n.host.groups.replicas[5].ID() == m.ID
			}
			if whole {
				break
			}
		}
		restores += c.restores
		configurations += len(c.confs)
		entries += len(c.entries)
	})
	t.Logf("%d entries, %d configurations, %d restores by snapshot", entries, configurations, restores)
}
