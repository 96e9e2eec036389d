package replica_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	simNodes   = 5
	stormTime  = 60 * time.Second
	wellWithin = 60 * time.Second
	calmTime   = 8 * time.Second // without faults, so that regions hibernate
)

// begin creates a world of one node, which others join.
func (s *sim) begin() {
	for range simNodes {
		s.addNode()
	}
	s.addCell()
	s.addCell()
	for range 4 {
		s.addClient()
	}
	for _, n := range s.nodes {
		n.boot()
	}
	first := s.nodes[0]
	first.enqueue(func() { first.open(replica.Founding{Group: world.CatalogID, Members: []string{first.peer}}, nil) })
	s.model(world.CatalogID).newest = replica.Configured{Index: 1, Members: []replica.Member{{ID: 1, Peer: first.peer}}}
	s.asleep = true
	s.run(20 * time.Second)
}

// storm causes faults, one after the other and at the same time.
func (s *sim) storm() {
	s.calm, s.asleep = false, true
	s.run(s.now + s.between(0, calmTime))
	if len(s.cells) < 4 && s.chance(0.4) {
		s.addCell()
	}
	end, died := s.now+stormTime, false
	for s.now < end && s.failure == "" {
		n := s.anyNode()
		switch kind := s.random.IntN(27); kind {
		case 0, 1:
			n.crash("at any time")
			s.at(s.now+s.away(), n.boot)
		case 2, 3:
			if n.host != nil {
				n.crashPoint = []crashPoint{crashBefore, crashAfter}[kind-2]
			}
		case 4:
			for _, n := range s.nodes {
				n.crash("all at once")
				s.at(s.now+s.between(50*time.Millisecond, 3*time.Second), n.boot)
			}
		case 5, 6:
			s.pause(n, s.between(100*time.Millisecond, 6*time.Second))
		case 7, 8, 9:
			s.partition(kind, n)
		case 10:
			s.network.loss = 0.3 * s.random.Float64()
			s.at(s.now+s.between(time.Second, 10*time.Second), func() { s.network.loss = 0 })
		case 11:
			s.network.double = 0.3 * s.random.Float64()
			s.at(s.now+s.between(time.Second, 10*time.Second), func() { s.network.double = 0 })
		case 12:
			s.network.slow = s.between(10*time.Millisecond, 300*time.Millisecond)
			s.at(s.now+s.between(time.Second, 10*time.Second), func() { s.network.slow = 4 * time.Millisecond })
		case 13:
			n.fsync = s.between(20*time.Millisecond, 400*time.Millisecond)
			s.at(s.now+s.between(time.Second, 10*time.Second), func() { n.fsync = usualFsync })
		case 14, 15:
			n.full, n.torn = true, kind == 15
			s.at(s.now+s.between(500*time.Millisecond, 8*time.Second), func() { n.full, n.torn = false, false })
		case 16:
			n.clockRate = 0.4 + 2*s.random.Float64()
		case 17:
			n.stop()
			s.at(s.now+s.away(), n.boot)
		case 18:
			if !died && s.chance(0.5) && s.allCurrent() {
				died = s.destroyNode(n)
			}
		case 19:
			s.flap()
		case 20, 21:
			s.flood()
		case 22, 23:
			n.keepCopy()
		case 24, 25:
			if !died {
				s.putBack(n)
			}
		default: // no fault
		}
		s.run(s.now + s.between(200*time.Millisecond, 5*time.Second))
	}
}

func (s *sim) pause(n *machine, d time.Duration) {
	if n.host == nil || n.paused {
		return
	}
	s.count("pauses")
	s.note(note{who: n.peer, what: "pause"})
	n.paused = true
	life := n.life
	s.at(s.now+d, func() {
		if n.life == life {
			n.paused = false
			n.resume()
		}
	})
}

// flap restarts nodes repeatedly for a while, over a slow network: whatever a restart loses would be lost for good.
func (s *sim) flap() {
	s.count("flaps")
	s.network.slow = s.between(20*time.Millisecond, 200*time.Millisecond)
	for _, n := range s.nodes {
		if s.chance(0.7) {
			n.flaky = 0.5 * s.random.Float64()
		}
	}
	s.at(s.now+s.between(time.Second, 8*time.Second), func() {
		s.network.slow = 4 * time.Millisecond
		for _, n := range s.nodes {
			n.flaky = 0
		}
	})
}

// flood makes players build so fast that owners fall behind.
func (s *sim) flood() {
	var led []*owner
	for _, n := range s.nodes {
		for _, o := range n.owners {
			if o.leading && o.land != nil {
				led = append(led, o)
			}
		}
	}
	if len(led) == 0 {
		return
	}
	s.count("floods")
	o := led[s.random.IntN(len(led))]
	for i := range 40 {
		o.node.later(time.Duration(i)*60*time.Millisecond, func() {
			if !o.closed && o.leading {
				s.flooded++
				s.blocks = max(1, s.blocks+1)
				pos := firstChunk(o.model.cell).Origin()
				pos.Y = 20
				o.edit(guest("flood", s.flooded, pos, chunk.Block(s.blocks)), func(answer) {})
			}
		})
	}
}

// partition cuts the network: into two halves, one node off in both or one direction, or some single directions.
func (s *sim) partition(kind int, n *machine) {
	s.count("partitions")
	cut := make(map[[2]int]bool)
	side := make([]bool, len(s.nodes))
	for i := range side {
		side[i] = s.chance(0.5)
	}
	for i := range s.nodes {
		for j := range s.nodes {
			switch pair := [2]int{i, j}; kind {
			case 7:
				cut[pair] = side[i] != side[j]
			case 8:
				cut[pair] = i != j && (i == n.number || j == n.number && side[0])
			case 9:
				cut[pair] = i != j && s.chance(0.3)
			}
		}
	}
	s.note(note{who: n.peer, what: "partition", a: uint64(kind)})
	s.network.cut = cut
	s.at(s.now+s.between(500*time.Millisecond, 12*time.Second), func() { s.network.cut = make(map[[2]int]bool) })
}

// destroyNode ends a node and its disk for good, if its groups can spare it; a new one replaces it.
func (s *sim) destroyNode(n *machine) bool {
	if n.gone {
		return false
	}
	for _, m := range s.models {
		voters := 0
		for _, k := range m.newest.Members {
			if !k.Learner {
				voters++
			}
		}
		if voters < 3 && slices.ContainsFunc(m.newest.Members, func(k replica.Member) bool { return k.Peer == n.peer }) || m.newest.Index == 0 {
			return false
		}
	}
	n.crash("for good")
	n.gone = true
	fresh := s.addNode()
	s.at(s.now+s.between(0, 20*time.Second), fresh.boot)
	return true
}

// heal ends all faults, and waits until everything works.
func (s *sim) heal() {
	if s.failure != "" {
		return
	}
	s.calm, s.asleep = true, false
	s.note(note{what: "heal"})
	s.network.clear()
	for _, n := range s.nodes {
		n.full, n.torn, n.crashPoint, n.clockRate, n.fsync = false, false, crashNone, 1, usualFsync
		n.flaky = 0
		if n.paused {
			n.paused = false
			n.resume()
		}
		n.boot()
	}
	began := s.now
	for _, c := range s.clients {
		c.wanted = true
		for i := range s.cells {
			c.sweep = append(c.sweep, c.newOp(i, false), c.newOp(i, true))
		}
	}
	for s.failure == "" {
		s.run(s.now + time.Second)
		ill := s.diagnose()
		if ill == "" {
			break
		}
		s.note(note{what: "not well", text: ill})
		if s.now > began+wellWithin {
			s.fail("%v after all faults have ended %s", s.now-began, ill)
		}
	}
	s.slowest = max(s.slowest, s.now-began)
	s.count("healings")
}

// trial is a single fault while everything else works, so that the expected behaviour can be checked meanwhile.
func (s *sim) trial() {
	if s.failure != "" || s.chance(0.6) {
		return
	}
	s.asleep = false
	s.run(s.now + 2*minLeadTime) // leaderships move to the preferred nodes
	var led []*owner
	for _, n := range s.nodes {
		for _, o := range n.owners {
			if o.leading && len(o.group.Members()) >= 3 {
				led = append(led, o)
			}
		}
	}
	if len(led) == 0 {
		return
	}
	o := led[s.random.IntN(len(led))]
	term := o.group.Status().Term
	if s.chance(0.5) {
		s.deafLeader(o, term)
	} else {
		s.returner(o, term)
	}
	s.network.clear()
}

// deafLeader: a leader that receives no messages resigns, although all receive its own, and another leads.
func (s *sim) deafLeader(o *owner, term uint64) {
	s.count("trials: deaf leader")
	for _, n := range s.nodes {
		if n != o.node {
			s.network.cut[[2]int{n.number, o.node.number}] = true
		}
	}
	s.run(s.now + 8*time.Second)
	for later := range o.model.leaders {
		if later > term {
			return
		}
	}
	s.fail("%s leads group %d in term %d and receives no messages: after 8 s no other node leads", o.node.peer, o.id, term)
}

// returner: a follower that was away for a while returns without a disturbance.
func (s *sim) returner(o *owner, term uint64) {
	s.count("trials: return")
	for _, peer := range o.group.Members() {
		n := s.peers[peer]
		if n == o.node {
			continue
		}
		for _, other := range s.nodes {
			if other != n {
				s.network.cut[[2]int{n.number, other.number}], s.network.cut[[2]int{other.number, n.number}] = true, true
			}
		}
		break
	}
	s.run(s.now + 4*time.Second)
	s.network.clear()
	s.run(s.now + 3*time.Second)
	if status := o.group.Status(); status.Term != term || !status.Self {
		s.fail("%s led group %d in term %d; a member that was away for 4 s came back, and it is %+v", o.node.peer, o.id, term, status)
	}
}

// diagnose returns a description of what does not work; empty if everything does.
func (s *sim) diagnose() string {
	for _, c := range s.clients {
		if c.wanted {
			return fmt.Sprintf("player %d waits: %+v", c.number, c.op)
		}
	}
	for _, m := range s.inOrder() {
		if m.group != world.CatalogID && m.newest.Index == 0 {
			return fmt.Sprintf("region %d was never opened", m.group)
		}
		want := s.nearest(m.group, func(n *machine) bool { return !n.gone })
		want = want[:min(m.copies, len(want))]
		slices.Sort(want)
		var have []string
		for _, k := range m.newest.Members {
			have = append(have, k.Peer)
			if k.Learner {
				return fmt.Sprintf("replica %d of group %d has no vote yet", k.ID, m.group)
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("group %d has the members %v, not %v", m.group, have, want)
		}
		for _, k := range m.newest.Members {
			o := s.peers[k.Peer].owner(m.group)
			if o == nil || o.at != len(m.order) || o.node.host.ReplicaID(m.group) != k.ID {
				return fmt.Sprintf("%s does not have all of group %d", k.Peer, m.group)
			}
		}
		if m.group != world.CatalogID && m.region.Epoch < m.newest.Index && m.newest.Index > 1 {
			return fmt.Sprintf("the catalog does not know of the members of region %d", m.group)
		}
	}
	return ""
}
