package replica_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file does what package region's supervisor does, in the same order and with the same code where that is pure
// (region/membership); the rest is a short form of region/placement and region/load.go.

const (
	grace       = 8 * time.Second
	nearlyAll   = 64
	minLeadTime = 10 * time.Second
	noWakeFor   = time.Second
	idle        = 6 * time.Second
)

// nearest returns peers by their distance to a group's key.
func (s *sim) nearest(group uint64, fit func(n *machine) bool) []string {
	var peers []string
	for _, n := range s.nodes {
		if fit(n) {
			peers = append(peers, n.peer)
		}
	}
	slices.SortFunc(peers, func(a, b string) int {
		return cmp.Compare(hash64([]byte(a), []byte{byte(group), byte(group >> 8)})*0x9e3779b97f4a7c15, hash64([]byte(b), []byte{byte(group), byte(group >> 8)})*0x9e3779b97f4a7c15)
	})
	return peers
}

func (n *machine) lives(peer string) bool {
	return peer == n.peer || n.sim.now-n.seen[peer] < 5*time.Second
}
func (n *machine) lost(peer string) bool { return peer != n.peer && n.sim.now-n.seen[peer] > grace }

// supervise pings all nodes and maintains the groups that are led here.
func (n *machine) supervise() {
	s := n.sim
	for _, other := range s.nodes {
		if other != n && !other.gone {
			s.ship(n, other, func() {
				s.ship(other, n, func() { n.seen[other.peer] = s.now })
			})
		}
	}
	n.replaceOutdated()
	for _, o := range slices.Clone(n.owners) {
		if o.closed {
			continue
		}
		if o.leading {
			o.tend()
		} else if o.leader == "" && s.now-o.since > 5*time.Second {
			o.consult()
		}
	}
}

// consult asks an authority about a group that has had no leader for long: it may continue without this node.
func (o *owner) consult() {
	newest := o.model.newest
	id := o.node.host.ReplicaID(o.id)
	if o.model.retired[id] != 0 {
		o.node.forget(o.id, nil)
		return
	}
	if newest.Index > o.group.Configuration().Index {
		o.node.trustMembers(o.id)
	}
	o.group.Campaign()
}

// tend takes the next step towards the right members.
func (o *owner) tend() {
	n, s := o.node, o.node.sim
	status := o.group.Status()
	if !status.Self {
		return
	}
	states := make([]membership.Member, len(status.Members))
	for i, m := range status.Members {
		self := m.Peer == n.peer
		states[i] = membership.Member{
			Peer: m.Peer, Learner: m.Learner,
			CaughtUp: self || m.Active && !m.Snapshotting && m.Match+nearlyAll >= status.Last,
			Gone:     !self && !m.Active && n.lost(m.Peer),
		}
	}
	nearest := s.nearest(o.id, func(other *machine) bool {
		member := slices.ContainsFunc(status.Members, func(m replica.Progress) bool { return m.Peer == other.peer })
		return member && !n.lost(other.peer) || n.lives(other.peer) && !other.gone
	})
	next := membership.Next(n.peer, states, nearest, o.model.copies)
	if o.hibernateIfIdle(status, next) {
		return
	}
	if next.Kind == membership.Stay && len(status.Members) < 2 || !o.announce() {
		return
	}
	var err error
	switch next.Kind {
	case membership.Add:
		err = o.group.AddLearner(next.Peer)
	case membership.Promote:
		err = o.group.Promote(next.Peer)
	case membership.Remove:
		err = o.group.Remove(next.Peer)
	case membership.Wait:
		o.invite(status)
	case membership.Transfer:
		if s.now-o.since > minLeadTime {
			s.count("transfers")
			err = o.group.Transfer(next.Peer)
		}
	case membership.Stay:
	}
	if err != nil {
		s.count("changes refused")
	}
}

// announce makes sure that the catalog has the current members.
func (o *owner) announce() bool {
	conf := o.group.Configuration()
	if o.id == world.CatalogID || o.announced >= conf.Index || conf.Index == 1 {
		return true
	}
	n, s := o.node, o.node.sim
	to := nodemsg.Region{ID: o.id, Cell: o.model.cell, Epoch: conf.Index, Term: o.group.Status().Term, Leader: n.peer}
	for _, m := range conf.Members {
		to.Members = append(to.Members, nodemsg.Member{Peer: m.Peer, Game: gameAddress, Replica: m.ID, Learner: m.Learner})
	}
	for _, other := range s.nodes {
		s.ship(n, other, func() {
			root := other.owner(world.CatalogID)
			if root == nil || !root.leading {
				return
			}
			root.moved(to, func(a answer) {
				s.ship(other, n, func() {
					if a.region != nil && a.region.Epoch >= to.Epoch && !o.closed {
						o.announced = max(o.announced, to.Epoch)
					}
				})
			})
		})
	}
	return false
}

// invite asks learners to join.
func (o *owner) invite(status replica.Status) {
	members := o.group.Configuration().Members
	for _, m := range status.Members {
		if !m.Learner || m.Active && m.Match > 0 || !slices.Contains(members, m.Member) { // it has just been removed
			continue
		}
		to := o.node.sim.peers[m.Peer]
		s := o.node.sim
		s.ship(o.node, to, func() { to.join(o.id, m.ID, members) })
		if s.chance(0.2) { // a request that seemed lost arrives late
			backs := to.backs
			s.at(s.now+s.between(5*time.Second, 40*time.Second), func() {
				to.enqueue(func() {
					if to.backs == backs { // with its data a node loses its tombstones; no request is late by that much
						to.join(o.id, m.ID, members)
					}
				})
			})
		}
	}
}

// hibernateIfIdle hibernates the region if it has not been used for a while and all members are up to date.
func (o *owner) hibernateIfIdle(status replica.Status, next membership.Step) bool {
	n, s := o.node, o.node.sim
	if !s.asleep || o.id == world.CatalogID || s.now-o.used < idle || len(status.Members) < 2 || len(o.waiting) > 0 ||
		next.Kind != membership.Stay && next.Kind != membership.Transfer || !o.announce() {
		return false
	}
	for _, m := range status.Members {
		if m.Peer != n.peer && (!m.Active || m.Match < status.Last) {
			return false
		}
	}
	s.count("sleeps")
	s.note(note{who: n.peer, what: "sleeps", a: o.id})
	n.hibernate(o)
	for _, m := range status.Members {
		if other := s.peers[m.Peer]; other != n {
			s.ship(n, other, func() {
				followerOwner := other.owner(o.id)
				if followerOwner != nil && s.now-followerOwner.used > idle/2 && followerOwner.group.Status().Applied >= status.Last {
					other.hibernate(followerOwner)
				}
			})
		}
	}
	return true
}

func (n *machine) hibernate(o *owner) {
	n.noWakeUntil[o.id] = n.sim.now + noWakeFor
	n.close(o)
}

// wake opens a region that is needed.
func (n *machine) wake(region nodemsg.Region) {
	then := func(o *owner) {
		n.sim.count("wakes")
		o.group.Campaign()
	}
	if n.has(region.ID) {
		n.open(replica.Founding{Group: region.ID}, then)
		return
	}
	n.openFirst(region.ID, then)
}

// openFirst opens a region of which this node stores nothing, though it is a member: it was just founded, or its
// members have changed while this node was away.
func (n *machine) openFirst(group uint64, then func(*owner)) {
	region := n.sim.model(group).region
	if n.keeper.Unlisted() || n.outdated(group) {
		return
	}
	if region.Epoch > 1 {
		n.joinLate(region)
		return
	}
	if region.Epoch != 1 || !slices.ContainsFunc(region.Members, func(m nodemsg.Member) bool { return m.Peer == n.peer }) {
		return
	}
	f := replica.Founding{Group: group}
	m := n.sim.model(group)
	if m.newest.Index == 0 {
		m.newest.Index = 1
		for i, k := range region.Members {
			m.newest.Members = append(m.newest.Members, replica.Member{ID: uint64(i) + 1, Peer: k.Peer})
		}
	}
	for _, k := range region.Members {
		f.Members = append(f.Members, k.Peer)
	}
	n.open(f, then)
}

// joinLate joins as the replica in the catalog.
func (n *machine) joinLate(region nodemsg.Region) {
	var members []replica.Member
	id := uint64(0)
	for _, k := range region.Members {
		members = append(members, replica.Member{ID: k.Replica, Peer: k.Peer, Learner: k.Learner})
		if k.Peer == n.peer {
			id = k.Replica
		}
	}
	if id != 0 && n.owner(region.ID) == nil {
		n.sim.count("belated joins")
		n.join(region.ID, id, members)
	}
}

// openAndDeliver opens a group because a member sent it a message, and then delivers the message again.
func (n *machine) openAndDeliver(group uint64, again func()) {
	if n.noWakeUntil[group] > n.sim.now || n.opening[group] {
		return
	}
	life := n.life
	n.later(n.sim.between(0, 5*time.Millisecond), func() {
		then := func(*owner) {
			if n.life == life {
				again()
			}
		}
		if n.owner(group) == nil && n.has(group) {
			n.open(replica.Founding{Group: group}, then)
		} else if n.owner(group) == nil {
			n.openFirst(group, then)
		}
	})
}

// trustMembers makes the group accept the members in the authority's answer.
func (n *machine) trustMembers(group uint64) {
	if n.sim.now < n.trusted[group] {
		return
	}
	n.trusted[group] = n.sim.now + 300*time.Millisecond
	n.later(20*time.Millisecond, func() {
		if o := n.owner(group); o != nil && o.model.newest.Index > 0 {
			if err := o.group.TrustMembers(o.model.newest); err != nil {
				n.sim.fail("trust members: %v", err)
			}
			n.sim.count("members trusted")
		}
	})
}
