package integrity

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides whether a group continues without a node's copy of it (docs/adr/0051). A node that is misled about
// that deletes what it has acknowledged, so no other node's word is enough.

const (
	// answerTime bounds how long a node waits for the other members to report whether their group continues without it,
	// and lookTime for the catalog to confirm it. The catalog is only asked if a member says so.
	answerTime = time.Second
	lookTime   = 5 * time.Second
	// confirmTime bounds how long a node waits until others confirm that it was removed, which followers learn of a
	// little later than the leader, and confirmPause is the time between two questions.
	confirmTime  = 3 * time.Second
	confirmPause = 200 * time.Millisecond
)

// ErrUnconfirmed is returned if a node says that the group continues without the copy here, and nothing confirms it.
var ErrUnconfirmed = errors.New("neither most of its members nor the catalog confirm that the group continues without this node")

// ErrUnheard is returned if that cannot be asked.
var ErrUnheard = errors.New("the node that says that the group continues without this one does not answer, or the copy here cannot be read")

// A Judge decides for one node. Its methods may be called from any goroutine.
type Judge struct {
	Self string // peer id
	// Ask asks a node for the status of regions.
	Ask func(ctx context.Context, peer string, q nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error)
	// Suspected reports whether a node is probably down. Suspect notes that one has not answered.
	Suspected func(peer string) bool
	Suspect   func(peer string)
	// Listed returns a region as the catalog lists it.
	Listed func(ctx context.Context, id uint64) (nodemsg.Region, error)
	// Vouched reports whether an issuer has signed a status of the catalog.
	Vouched func(nodemsg.RegionStatus) bool
	// Contradicted notes a node whose report others contradict.
	Contradicted func(peer, what string)
}

// Verdict is what a Judge has found out.
type Verdict struct {
	Claimed   bool // a member says that the group continues without the copy here
	Confirmed bool // it is true
	Heard     bool // the nodes in also have all answered, or there is no copy here that could be superseded
	Settled   bool // most of the voters have answered, this node included: they know of every change except a recovery
}

// Judge returns whether a group continues without the copy of this node, which is at a position. Its members can say
// so, and the nodes in also, which are asked even if they are suspected. It is true if most of the voters of this
// copy's last configuration do, for a new configuration needs them; or, if they cannot, because they are lost: for a
// region, if the catalog lists it without this replica, and for the catalog, if an issuer has signed a configuration
// without it.
func (j *Judge) Judge(ctx context.Context, id uint64, own replica.Position, also ...string) Verdict {
	if own.Members.Index == 0 {
		return Verdict{Heard: true}
	}
	var voters []string
	peers := slices.Clone(also)
	for _, m := range own.Members.Members {
		peers = append(peers, m.Peer)
		if !m.Learner {
			voters = append(voters, m.Peer)
		}
	}
	said := j.ask(ctx, id, peers, len(also))
	votes, contradicted := 0, false
	var claimants []string
	for peer, s := range said {
		switch {
		case s.State == nodemsg.StateNone:
		case !j.without(s.Epoch, replicasOf(s), own):
			contradicted = true
		default:
			claimants = append(claimants, peer)
			if slices.Contains(voters, peer) {
				votes++
			}
		}
	}
	known := 0
	for _, peer := range voters {
		if peer == j.Self || said[peer].Epoch > 0 { // 0 is of a node without a copy that can be read
			known++
		}
	}
	v := Verdict{
		Claimed: len(claimants) > 0, Settled: 2*known > len(voters),
		Heard: !slices.ContainsFunc(also, func(peer string) bool { _, answered := said[peer]; return !answered }),
	}
	switch {
	case !v.Claimed:
	case 2*votes > len(voters):
		v.Confirmed = true
	case id == world.CatalogID:
		v.Confirmed = j.vouched(ctx, own, said)
	default:
		v.Confirmed = j.listed(ctx, id, own)
	}
	if v.Claimed && !v.Confirmed && contradicted {
		for _, peer := range claimants {
			j.Contradicted(peer, "a group continues without this node, which keeps its copy: neither most of the members say so nor the catalog, and no issuer that is a member of it")
		}
	}
	return v
}

// Quiet returns a Judge that accuses and suspects nobody: others may only be late, and are asked again.
func (j *Judge) Quiet() *Judge {
	quiet := *j
	quiet.Contradicted, quiet.Suspect = func(string, string) {}, func(string) {}
	return &quiet
}

// Confirm waits until it is certain that a group has removed the replica of this node, which is at a position, as
// another member says. That one also names the replica, in case this node does not know it. The error is ErrUnconfirmed
// if nothing confirms the removal. Of two voters, the other one is believed: nobody else knows.
func (j *Judge) Confirm(ctx context.Context, id uint64, own replica.Position, by string, removed uint64) error {
	own.Replica = cmp.Or(own.Replica, removed)
	others := slices.DeleteFunc(slices.Clone(own.Members.Members), func(m replica.Member) bool { return m.Learner || m.Peer == j.Self })
	if len(others) == 1 && others[0].Peer == by {
		return nil
	}
	quiet := j.Quiet()
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	for !quiet.Judge(ctx, id, own).Confirmed {
		select {
		case <-ctx.Done():
			return ErrUnconfirmed
		case <-time.After(confirmPause):
		}
	}
	return nil
}

// PositionIn returns the position of this node's replica according to a description of its region: what it promised is
// not known.
func (j *Judge) PositionIn(info nodemsg.Region) replica.Position {
	own := replica.Position{Members: actor.ConfigurationOf(info.Epoch)}
	for i, m := range info.Members {
		id := cmp.Or(m.Replica, uint64(i)+1) // the first members are numbered
		if own.Members.Members = append(own.Members.Members, replica.Member{ID: id, Peer: m.Peer, Learner: m.Learner}); m.Peer == j.Self {
			own.Replica = id
		}
	}
	return own
}

// ask asks nodes for the status of a group, all at once. Those that do not answer are not in the result. Suspected ones
// are not asked, except for the first ones, as many as always says.
func (j *Judge) ask(ctx context.Context, id uint64, peers []string, always int) map[string]nodemsg.RegionStatus {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	said := make(map[string]nodemsg.RegionStatus)
	for i, peer := range peers {
		if peer == j.Self || slices.Contains(peers[:i], peer) || i >= always && j.Suspected(peer) {
			continue
		}
		wg.Go(func() {
			statuses, _, err := j.Ask(ctx, peer, nodemsg.StatusRequest{Regions: []uint64{id}, Log: true})
			if err != nil {
				j.Suspect(peer)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said[peer] = statuses[0]
		})
	}
	wg.Wait()
	return said
}

// listed reports whether the catalog lists a region without this replica.
func (j *Judge) listed(ctx context.Context, id uint64, own replica.Position) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	info, err := j.Listed(ctx, id)
	if err != nil {
		return false
	}
	var members []nodemsg.Replica
	for i, m := range info.Members {
		members = append(members, nodemsg.Replica{ID: cmp.Or(m.Replica, uint64(i)+1), Peer: m.Peer}) // the first members are numbered
	}
	return j.without(info.Epoch, members, own)
}

// vouched reports whether an issuer has signed a configuration of the catalog without this replica. The members that
// the nodes name are asked as well: any issuer among them signs what its own copy has.
func (j *Judge) vouched(ctx context.Context, own replica.Position, said map[string]nodemsg.RegionStatus) bool {
	signed := func(s nodemsg.RegionStatus) bool { return j.without(s.Epoch, replicasOf(s), own) && j.Vouched(s) }
	var named []string
	for _, s := range said {
		if signed(s) {
			return true
		}
		for _, m := range s.Members {
			if _, asked := said[m.Replica.Peer]; !asked && len(named) < wire.MaxMembers && !slices.Contains(named, m.Replica.Peer) {
				named = append(named, m.Replica.Peer)
			}
		}
	}
	for _, s := range j.ask(ctx, world.CatalogID, named, 0) {
		if signed(s) {
			return true
		}
	}
	return false
}

// without reports whether a configuration is later than that of a copy here, and does not contain its replica. A group
// that an operator has recovered more often is later (actor.EpochOf).
func (j *Judge) without(epoch uint64, members []nodemsg.Replica, own replica.Position) bool {
	return epoch > actor.EpochOf(own.Members) && !slices.ContainsFunc(members, func(m nodemsg.Replica) bool {
		return m.ID == own.Replica && m.Peer == j.Self
	})
}

func replicasOf(s nodemsg.RegionStatus) []nodemsg.Replica {
	members := make([]nodemsg.Replica, len(s.Members))
	for i, m := range s.Members {
		members[i] = m.Replica
	}
	return members
}
