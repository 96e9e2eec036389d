package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file recovers regions from one survivor, when an operator asks for it, after most of their members are lost for good
// (docs/adr/0009).

// minSilence is how long members must have been silent before a region is recovered without them: a pause or a short partition
// is not a loss. A live node may have been heard from only when it was last asked, so unheard adds the longest interval between
// two questions.
const minSilence = 10 * time.Second

// Recovery recovers regions on this node.
type Recovery struct {
	Node

	Supersession *Supersession
	Failures     *Failures
	AskStatuses  AskStatuses
	LastHeard    func(peer string) time.Time // when a node was last heard from
}

// SilentAfter returns how long a node must not have been heard from to count as silent for minSilence.
func (r *Recovery) SilentAfter() time.Duration {
	return minSilence + r.Detector.StrangerEvery + failuredetector.RoundEvery
}

// Copy is the state of a member of a region that is to be recovered.
type Copy struct {
	Peer    string
	Learner bool
	// Last and Term are the end of the copy's log. Of two copies the one with the higher term is newer; with equal terms, the one
	// with the higher index. Applied is the last entry that is in the land.
	Last, Term, Applied uint64
	// Missing is why the copy cannot be used; empty if it can. LastHeard is when the node was last heard from, zero if unknown.
	Missing   string
	LastHeard time.Time
}

// RecoveryPlan is the plan for recovering a region.
type RecoveryPlan struct {
	Region uint64
	Name   string // its cell, or "catalog"
	Copies []Copy // by ascending replica id
	Voters int    // members with a vote
	Best   string // peer with the newest log
	// Alive is set if a majority of the members is alive: no recovery is necessary.
	Alive bool
	// Refused is why it cannot be recovered on this node, and what to do; empty if it can.
	Refused string
}

// Plan examines the regions, all of which this node must be a member of, and returns how each could be recovered. It
// changes nothing.
func (r *Recovery) Plan(ctx context.Context, ids []uint64) ([]RecoveryPlan, error) {
	want := make(map[string][]uint64)
	own := make([]replica.Position, len(ids))
	unread := make([]error, len(ids))
	for i, id := range ids {
		own[i], unread[i] = r.Replicas.Position(id)
		for _, m := range own[i].Members.Members {
			want[m.Peer] = append(want[m.Peer], id)
		}
	}
	s := PollStatuses(ctx, r.AskStatuses, want, true)
	plans := make([]RecoveryPlan, len(ids))
	for i, id := range ids {
		info, err := r.Regions.Member(id)
		if err != nil {
			return nil, err
		}
		if plans[i] = r.planOne(info, own[i], s); unread[i] != nil {
			plans[i].Refused = fmt.Sprintf("the copy here cannot be read: %v", unread[i])
		}
	}
	return plans, nil
}

func (r *Recovery) planOne(info nodemsg.Region, own replica.Position, s StatusPoll) RecoveryPlan {
	p := RecoveryPlan{Region: info.ID, Name: Name(info)}
	var best Copy
	living, later, recent := 0, "", ""
	for _, m := range own.Members.Members {
		c := Copy{Peer: m.Peer, Learner: m.Learner, LastHeard: r.LastHeard(m.Peer)}
		status, answered := s.Of(m.Peer, info.ID)
		switch {
		case !answered:
			c.Missing = "does not answer"
			if !c.LastHeard.IsZero() && time.Since(c.LastHeard) < r.SilentAfter() {
				recent = m.Peer
			}
		case status.State == nodemsg.StateNone:
			c.Missing = "has no copy"
		case status.State == nodemsg.StateFailed:
			c.Missing = "its copy is of no use: " + status.Why
		case status.Recovered > own.Members.Recovered:
			later = m.Peer
		default:
			c.Last, c.Term, c.Applied = status.Last, status.LastTerm, status.Applied
		}
		if answered {
			c.LastHeard = time.Now()
		}
		p.Copies = append(p.Copies, c)
		if !m.Learner {
			p.Voters++
		}
		if c.Missing != "" {
			continue
		}
		if !m.Learner {
			living++
		}
		if better := cmp.Or(cmp.Compare(c.Term, best.Term), cmp.Compare(c.Last, best.Last)); best.Peer == "" || better > 0 || better == 0 && c.Peer == r.Self.Peer {
			best = c
		}
	}
	p.Best, p.Alive = best.Peer, 2*living > p.Voters
	switch {
	case later != "":
		p.Refused = fmt.Sprintf("it was recovered already, on %s; the copy here is dropped when that node reaches this one", later)
	case p.Alive:
		p.Refused = fmt.Sprintf("%d of its %d members are alive, so it is not lost; run voxeld doctor to see what is wrong", living, p.Voters)
	case r.Failures.Quarantined(info.ID):
		p.Refused = "it is quarantined here: run voxeld region release first"
	case recent != "":
		p.Refused = fmt.Sprintf("%s was last heard from less than %v ago: wait to see whether it comes back", recent, r.SilentAfter())
	case best.Peer == "":
		p.Refused = fmt.Sprintf("no copy of it can be used, including the one here: put it back from a backup with voxeld region recover %s --from FILE, or found it anew with --anew", p.Name)
	case best.Peer != r.Self.Peer:
		p.Refused = fmt.Sprintf("the copy of %s has more of the log: run this on that node", best.Peer)
	}
	return p
}

// Recover makes this node the only member of a region that has lost the majority of its members, and serves it. It plans the
// recovery again, and fails unless the plan allows it. Other nodes become members afterwards, as in any region. Former members
// drop their copies when they come back.
func (r *Recovery) Recover(ctx context.Context, id uint64) error {
	plans, err := r.Plan(ctx, []uint64{id})
	if err != nil {
		return err
	}
	if why := plans[0].Refused; why != "" {
		return fmt.Errorf("recover %s: %s", plans[0].Name, why)
	}
	info, err := r.Regions.Member(id)
	if err != nil {
		return err
	}
	if err := r.Supersession.KeepEvicted(formerMembers(info, plans[0], r.Self.Peer)); err != nil {
		return err
	}
	err = r.recoverRegion(ctx, info)
	if err != nil {
		return fmt.Errorf("recover %s: %w", plans[0].Name, err)
	}
	r.Logger.Warn("region recovered on this node alone", "region", id, "cell", plans[0].Name)
	return nil
}

// formerMembers returns the region with only those members that must be notified of its recovery.
func formerMembers(info nodemsg.Region, p RecoveryPlan, self string) nodemsg.Region {
	before := nodemsg.Region{ID: info.ID, Cell: info.Cell, Epoch: info.Epoch, Term: info.Term}
	for _, c := range p.Copies {
		if c.Peer == self {
			continue
		}
		m := nodemsg.Member{Peer: c.Peer}
		if i := slices.IndexFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == c.Peer }); i >= 0 {
			m = info.Members[i]
		}
		before.Members = append(before.Members, m)
	}
	return before
}

// recoverRegion closes the region, or the catalog, makes its group one of this member, and opens it again.
func (r *Recovery) recoverRegion(ctx context.Context, info nodemsg.Region) error {
	a, err := r.open(ctx, info)
	if err != nil {
		return err
	}
	recovered := make(chan error, 1)
	if !a.CloseThen("the region is being recovered", func() { recovered <- r.Replicas.Recover(info.ID) }) {
		return errors.New("it has just been closed: try again")
	}
	if err := waitFor(ctx, a.Done()); err != nil {
		return err
	}
	select {
	case err := <-recovered:
		if err != nil {
			return err
		}
	default:
		return errors.New("it has just been closed: try again")
	}
	if info.ID != world.CatalogID { // the catalog is opened again by its own goroutine
		if _, err := r.open(ctx, info); err != nil {
			return err
		}
	}
	return placement.AwaitGroup(ctx, func() bool {
		a, err := r.open(ctx, info)
		return err == nil && a.Raft().Status().Self
	})
}

// open returns the region's actor, or the catalog's.
func (r *Recovery) open(ctx context.Context, info nodemsg.Region) (*actor.Actor, error) {
	if info.ID == world.CatalogID {
		if c := r.Regions.Catalog(); c != nil {
			return c.Actor, nil
		}
		return nil, errors.New("it is not open here: look at voxeld doctor")
	}
	l, err := r.Regions.Open(ctx, info.ID, info.Cell)
	if err != nil {
		return nil, err
	}
	return l.Actor, nil
}
