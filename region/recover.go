package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/failuredetector"
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

// silentAfter returns how long a node must not have been heard from to count as silent for minSilence.
func (h *Host) silentAfter() time.Duration {
	return minSilence + h.detector.StrangerEvery + failuredetector.RoundEvery
}

// Copy is the state of a member of a region that is to be recovered.
type Copy struct {
	Peer    string
	Learner bool
	// Last and Term are the end of the copy's log. Of two copies the one with the higher term is newer; with equal terms, the one
	// with the higher index. Applied is the last entry that is in the land.
	Last, Term, Applied uint64
	// Missing is why the copy cannot be used; empty if it can. Heard is when the node was last heard from, zero if unknown.
	Missing string
	Heard   time.Time
}

// Recovery is the plan for recovering a region.
type Recovery struct {
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

// PlanRecovery examines the regions, all of which this node must be a member of, and returns how each could be recovered. It
// changes nothing.
func (h *Host) PlanRecovery(ctx context.Context, ids []uint64) ([]Recovery, error) {
	want := make(map[string][]uint64)
	own := make([]replica.Position, len(ids))
	unread := make([]error, len(ids))
	for i, id := range ids {
		own[i], unread[i] = h.Replicas.Position(id)
		for _, m := range own[i].Members.Members {
			want[m.Peer] = append(want[m.Peer], id)
		}
	}
	s := h.pollStatuses(ctx, want, true)
	plans := make([]Recovery, len(ids))
	for i, id := range ids {
		info, err := h.memberRegion(id)
		if err != nil {
			return nil, err
		}
		if plans[i] = h.plan(info, own[i], s); unread[i] != nil {
			plans[i].Refused = fmt.Sprintf("the copy here cannot be read: %v", unread[i])
		}
	}
	return plans, nil
}

func (h *Host) plan(info nodemsg.Region, own replica.Position, s statusPoll) Recovery {
	p := Recovery{Region: info.ID, Name: Name(info)}
	var best Copy
	living, later, recent := 0, "", ""
	for _, m := range own.Members.Members {
		c := Copy{Peer: m.Peer, Learner: m.Learner, Heard: h.heard(m.Peer)}
		status, answered := s.of(m.Peer, info.ID)
		switch {
		case !answered:
			c.Missing = "does not answer"
			if !c.Heard.IsZero() && time.Since(c.Heard) < h.silentAfter() {
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
			c.Heard = time.Now()
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
		if better := cmp.Or(cmp.Compare(c.Term, best.Term), cmp.Compare(c.Last, best.Last)); best.Peer == "" || better > 0 || better == 0 && c.Peer == h.Self.Peer {
			best = c
		}
	}
	p.Best, p.Alive = best.Peer, 2*living > p.Voters
	switch {
	case later != "":
		p.Refused = fmt.Sprintf("it was recovered already, on %s; the copy here is dropped when that node reaches this one", later)
	case p.Alive:
		p.Refused = fmt.Sprintf("%d of its %d members are alive, so it is not lost; run voxeld doctor to see what is wrong", living, p.Voters)
	case h.failures.quarantined(info.ID):
		p.Refused = "it is quarantined here: run voxeld region release first"
	case recent != "":
		p.Refused = fmt.Sprintf("%s was last heard from less than %v ago: wait to see whether it comes back", recent, h.silentAfter())
	case best.Peer == "":
		p.Refused = "no copy of it can be used, including the one here"
	case best.Peer != h.Self.Peer:
		p.Refused = fmt.Sprintf("the copy of %s has more of the log: run this on that node", best.Peer)
	}
	return p
}

// Recover makes this node the only member of a region that has lost the majority of its members, and serves it. It plans the
// recovery again, and fails unless the plan allows it. Other nodes become members afterwards, as in any region. Former members
// drop their copies when they come back.
func (h *Host) Recover(ctx context.Context, id uint64) error {
	plans, err := h.PlanRecovery(ctx, []uint64{id})
	if err != nil {
		return err
	}
	if why := plans[0].Refused; why != "" {
		return fmt.Errorf("recover %s: %s", plans[0].Name, why)
	}
	info, err := h.memberRegion(id)
	if err != nil {
		return err
	}
	if err := h.keepEvicted(formerMembers(info, plans[0], h.Self.Peer)); err != nil {
		return err
	}
	if id == world.CatalogID {
		err = h.recoverCatalog(ctx)
	} else {
		err = h.recoverRegion(ctx, nodemsg.Hello{Region: id, Cell: info.Cell})
	}
	if err != nil {
		return fmt.Errorf("recover %s: %w", plans[0].Name, err)
	}
	h.Logger.Warn("region recovered on this node alone", "region", id, "cell", plans[0].Name)
	return nil
}

// formerMembers returns the region with only those members that must be notified of its recovery.
func formerMembers(info nodemsg.Region, p Recovery, self string) nodemsg.Region {
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

func (h *Host) recoverRegion(ctx context.Context, hello nodemsg.Hello) error {
	l, err := h.loadGroup(ctx, hello)
	if err != nil {
		return err
	}
	recovered := make(chan error, 1)
	if !l.inbox.Put(func() {
		l.closeReason = "the region is being recovered"
		l.afterEnd = func() { recovered <- h.Replicas.Recover(hello.Region) }
	}) {
		return errors.New("it has just been closed: try again")
	}
	if err := waitFor(ctx, l.done); err != nil {
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
	if l, err = h.loadGroup(ctx, hello); err != nil {
		return err
	}
	return h.awaitGroup(ctx, func() bool { return l.raft.Status().Self })
}

func (h *Host) recoverCatalog(ctx context.Context) error {
	c := h.root()
	if c == nil {
		return errors.New("it is not open here: look at voxeld doctor")
	}
	recovered := make(chan error, 1)
	if !c.inbox.Put(func() { c.afterEnd = func() { recovered <- h.Replicas.Recover(world.CatalogID) } }) {
		return errors.New("it has just been closed: try again")
	}
	select {
	case err := <-recovered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return h.awaitGroup(ctx, func() bool {
		c := h.root()
		return c != nil && c.group.Status().Self
	})
}

// Memberships lists the regions that this node stores a copy of, the catalog first.
func (h *Host) Memberships() ([]nodemsg.Region, error) {
	var all []nodemsg.Region
	if info, err := h.catalogRegion(); err == nil {
		all = append(all, info)
	} else if !errors.Is(err, ErrNotHere) {
		return nil, err
	}
	err := h.Storage.Scan(regionTable, nil, func(_, value []byte) error {
		info, err := nodemsg.DecodeRegion(value)
		if err != nil {
			return err
		}
		has, err := h.Replicas.Has(info.ID)
		if has {
			all = append(all, info)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list regions: %w", err)
	}
	return all, nil
}
