package membership

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Tally groups regions by their members. The zero value is empty.
type Tally struct {
	mu struct {
		sync.Mutex
		regions map[uint64]*group
		groups  map[string]*group // by key
	}
}

// group is a set of members, and how many regions have exactly these.
type group struct {
	key     string
	members []Member
	regions int
}

// MembersOf returns the members of a region.
func MembersOf(info nodemsg.Region) []Member {
	members := make([]Member, len(info.Members))
	for i, m := range info.Members {
		members[i] = Member{Peer: m.Peer, Learner: m.Learner}
	}
	return members
}

// Put adds a region, or changes its members.
func (t *Tally) Put(info nodemsg.Region) {
	members := MembersOf(info)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Peer, b.Peer) })
	var b strings.Builder
	for _, m := range members {
		b.WriteString(m.Peer)
		if m.Learner {
			b.WriteByte('?')
		}
		b.WriteByte(' ')
	}
	key := b.String()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.regions == nil {
		t.mu.regions, t.mu.groups = make(map[uint64]*group), make(map[string]*group)
	}
	t.forget(info.ID)
	g := t.mu.groups[key]
	if g == nil {
		g = &group{key: key, members: members}
		t.mu.groups[key] = g
	}
	g.regions++
	t.mu.regions[info.ID] = g
}

// Forget removes a region.
func (t *Tally) Forget(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(id)
}

// forget is Forget for callers that hold the lock.
func (t *Tally) forget(id uint64) {
	g := t.mu.regions[id]
	if g == nil {
		return
	}
	delete(t.mu.regions, id)
	if g.regions--; g.regions == 0 {
		delete(t.mu.groups, g.key)
	}
}

// Clear removes all regions.
func (t *Tally) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.regions, t.mu.groups = nil, nil
}

// Len returns the number of regions.
func (t *Tally) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.regions)
}

// AddPeers adds all members to the set.
func (t *Tally) AddPeers(peers map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.mu.groups {
		for _, m := range g.members {
			peers[m.Peer] = true
		}
	}
}

// Count assesses all regions. A region may be among the quarantined several times: once for each node where it is.
func (t *Tally) Count(liveness func(peer string) Liveness, quarantined []uint64, l Limits) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var c Counts
	for _, g := range t.mu.groups {
		c[Assess(g.members, liveness, false, l)] += g.regions
	}
	seen := make(map[uint64]bool)
	for _, id := range quarantined {
		if g := t.mu.regions[id]; g != nil && !seen[id] {
			seen[id] = true
			c[Assess(g.members, liveness, false, l)]--
			c[Quarantined]++
		}
	}
	return c
}
