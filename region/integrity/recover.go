package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file recovers regions from one survivor, when an operator asks for it, after most of their members are lost for
// good (docs/adr/0009).

// minSilence is how long members must have been silent before a region is recovered without them: a pause or a short
// partition is not a loss. A live node may have been heard from only when it was last asked, so unheard adds the
// longest interval between two questions.
const minSilence = 10 * time.Second

// maxAsked bounds the nodes that are asked for a newer copy, although they are no members.
const maxAsked = 128

// maxRecoveries bounds the recoveries of which the copy here knows nothing: the record of a lost catalog may be a lie.
const maxRecoveries = 1000

// slowTime is how long a recovery asks who the members of a region are, if the catalog answers and PollTime was too
// short. rewriteTime bounds the changes to what is stored.
const slowTime, rewriteTime = 10 * time.Second, 30 * time.Second

// Recovery recovers regions on this node.
type Recovery struct {
	Node

	Executor    *Executor
	Evicted     *Evicted
	AskStatuses AskStatuses
	LastHeard   func(peer string) time.Time // when a node was last heard from
	// Outdated returns why a copy must not be used, because the region was split or merged since; empty if it may. The
	// error is that the catalog does not answer, which lists that.
	Outdated func(ctx context.Context, info nodemsg.Region, own replica.Position) (why string, err error)
}

// SilentAfter returns how long a node must not have been heard from to count as silent for minSilence.
func (n Node) SilentAfter() time.Duration {
	return minSilence + n.Detector.StrangerEvery + directory.RoundEvery
}

// Copy is the state of a member of a region that is to be recovered.
type Copy struct {
	Peer    string
	Learner bool
	// Last and Term are the end of the copy's log. Of two copies the one with the higher term is newer; with equal
	// terms, the one with the higher index. Applied is the last entry that is in the land.
	Last, Term, Applied uint64
	// Missing is why the copy cannot be used; empty if it can. LastHeard is when the node was last heard from, zero if
	// unknown.
	Missing   string
	LastHeard time.Time
	// Outdated means that the copy is of an earlier state to which its node's data was put back: only a last resort.
	// Until is how far it reaches, about; zero if unknown.
	Outdated bool
	Until    time.Time
}

// newer reports whether the log of c goes further than that of the other copy, which may be the zero value.
func (c Copy) newer(other Copy, self string) bool {
	better := cmp.Or(cmp.Compare(c.Term, other.Term), cmp.Compare(c.Last, other.Last))
	return other.Peer == "" || better > 0 || better == 0 && c.Peer == self
}

// RecoveryPlan is the plan for recovering a region.
type RecoveryPlan struct {
	Region uint64
	Name   string // its cell, or "catalog"
	Copies []Copy // of the members that the copy here names, by ascending replica id; then of later ones, and of other nodes
	Voters int    // members with a vote, according to the copy here
	Best   string // peer with the newest log
	// Old means that no good copy is left, and that Best has an old one. It reaches until Until, about; zero if
	// unknown.
	Old   bool
	Until time.Time
	// Alive is set if a majority of the members is alive: no recovery is necessary.
	Alive bool
	// Refused is why it cannot be recovered on this node, and what to do; empty if it can.
	Refused string

	of    candidate // what it was made from
	epoch uint64    // of the newest configuration that is known
}

// candidate is a region for which a plan is made.
type candidate struct {
	info    nodemsg.Region
	own     replica.Position // of the copy here
	unread  error            // why that cannot be read
	now     nodemsg.Region   // as the other nodes know it: the members may have changed since the copy here was made
	unknown error            // why that is not known, although they may know
}

// members returns the members of the copy here, then those that the region has now, and the other nodes that have a
// copy; each node once.
func (c *candidate) members(s StatusPoll) []replica.Member {
	members := slices.Clone(c.own.Members.Members)
	for _, m := range c.now.Members {
		members = append(members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
	}
	for _, peer := range slices.Sorted(maps.Keys(s.Statuses)) {
		if status, answered := s.Of(peer, c.info.ID); answered && status.State != nodemsg.StateNone {
			members = append(members, replica.Member{ID: status.Replica, Peer: peer})
		}
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(members, func(m replica.Member) bool {
		again := seen[m.Peer]
		seen[m.Peer] = true
		return again
	})
}

// Plan examines the regions, all of which this node must be a member of, and returns how each could be recovered. It
// changes nothing.
func (r *Recovery) Plan(ctx context.Context, ids []uint64) ([]RecoveryPlan, error) {
	return r.plan(ctx, ids, PollTime)
}

// plan is Plan. It asks for the time given who the members are.
func (r *Recovery) plan(ctx context.Context, ids []uint64, within time.Duration) ([]RecoveryPlan, error) {
	all := make([]candidate, len(ids))
	for i, id := range ids {
		var err error
		if all[i].info, err = r.Regions.Member(id); err != nil {
			return nil, err
		}
		all[i].own, all[i].unread = r.Replicas.Position(id)
	}
	r.findMembers(ctx, all, within)
	want := make(map[string][]uint64)
	for _, c := range all {
		for _, m := range c.members(StatusPoll{}) {
			want[m.Peer] = append(want[m.Peer], c.info.ID)
		}
	}
	s := PollStatuses(ctx, r.AskStatuses, want, true)
	plans := make([]RecoveryPlan, len(all))
	var lost []int
	for i := range all {
		if plans[i] = r.planOne(&all[i], s); plans[i].Refused == "" {
			lost = append(lost, i)
		}
	}
	r.askOthers(ctx, all, lost, s)
	asking, cancel := context.WithTimeout(ctx, 2*PollTime)
	defer cancel()
	background.Several(directory.MaxQuestions, len(lost), func(n int) {
		i := lost[n]
		if plans[i] = r.planOne(&all[i], s); plans[i].Refused == "" {
			plans[i].Refused, _ = r.Outdated(asking, all[i].info, all[i].own) // Recover asks again
		}
	})
	return plans, ctx.Err() // nodes that were not asked any more are not silent
}

// findMembers fills in what the other nodes know of the regions, as far as they answer within the time given.
func (r *Recovery) findMembers(ctx context.Context, all []candidate, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	background.Several(directory.MaxQuestions, len(all), func(i int) {
		now, err := r.Executor.newest(ctx, all[i].info)
		if all[i].now = now; all[i].info.ID != world.CatalogID && !errors.Is(err, directory.ErrNotFounded) {
			all[i].unknown = err
		}
	})
}

// askOthers asks nodes that are no members for a copy of the lost regions, since the catalog may have been recovered
// from an old copy itself. It adds what they answer to s. Nodes that have not answered are not asked again. There is
// time to ask each node at least once, even if all are silent.
func (r *Recovery) askOthers(ctx context.Context, all []candidate, lost []int, s StatusPoll) {
	want := make(map[string][]uint64)
	for _, peer := range r.Executor.Records.NearestKnown(grid.CatalogKey, maxAsked) {
		for _, i := range lost {
			if _, answered := s.Of(peer, all[i].info.ID); !answered && s.Silent[peer] == nil {
				want[peer] = append(want[peer], all[i].info.ID)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(want)/directory.MaxQuestions+1)*PollTime)
	defer cancel()
	for peer, statuses := range PollStatuses(ctx, r.AskStatuses, want, true).Statuses {
		if s.Statuses[peer] == nil {
			s.Statuses[peer] = statuses
		}
		maps.Copy(s.Statuses[peer], statuses)
	}
}

func (r *Recovery) planOne(of *candidate, s StatusPoll) RecoveryPlan {
	info, own := of.info, of.own
	p := RecoveryPlan{Region: info.ID, Name: Name(info), of: *of, epoch: max(actor.EpochOf(own.Members), of.now.Epoch)}
	var best, old Copy
	living, later, recent := 0, "", ""
	for i, m := range of.members(s) {
		votes := !m.Learner && i < len(own.Members.Members)
		c := Copy{Peer: m.Peer, Learner: m.Learner, LastHeard: r.LastHeard(m.Peer)}
		status, answered := s.Of(m.Peer, info.ID)
		switch {
		case !answered:
			c.Missing = "does not answer"
			if !c.LastHeard.IsZero() && time.Since(c.LastHeard) < r.SilentAfter() && !r.Detector.Lost(m.Peer) {
				recent = m.Peer
			}
		case status.State == nodemsg.StateNone && status.Outdated:
			c.Missing = "its data was put back to an earlier state, which has no copy"
		case status.State == nodemsg.StateNone:
			c.Missing = "has no copy"
		case status.Outdated:
			c.Last, c.Term, c.Applied, c.Outdated = status.Last, status.LastTerm, status.Applied, true
			if status.Until > 0 {
				c.Until = time.Unix(status.Until, 0)
			}
		case status.State == nodemsg.StateFailed:
			c.Missing = "its copy is of no use: " + status.Why
		case status.Recovered > own.Members.Recovered:
			later = m.Peer
		case status.Recovered < own.Members.Recovered:
			c.Missing = "its copy is from before the region was recovered"
		default:
			c.Last, c.Term, c.Applied = status.Last, status.LastTerm, status.Applied
		}
		if answered {
			c.LastHeard = time.Now()
		}
		p.Copies = append(p.Copies, c)
		if votes {
			p.Voters++
		}
		switch {
		case c.Missing != "":
			continue
		case c.Outdated:
			if c.newer(old, r.Self.Peer) {
				old = c
			}
			continue
		case votes:
			living++
		}
		if c.newer(best, r.Self.Peer) {
			best = c
		}
	}
	p.Alive = 2*living > p.Voters
	if p.Old = best.Peer == "" && old.Peer != ""; p.Old {
		best, p.Until = old, old.Until
	}
	p.Best = best.Peer
	switch {
	case of.unread != nil:
		p.Refused = fmt.Sprintf("the copy here cannot be read: %v", of.unread)
	case later != "":
		p.Refused = fmt.Sprintf("it was recovered already, on %s; the copy here is dropped when that node reaches this one", later)
	case p.Alive:
		p.Refused = fmt.Sprintf("most of its members are alive (%d of %d), so it is not lost; run voxeld doctor to see what is wrong", living, p.Voters)
	case r.Executor.Facts.Quarantined(info.ID):
		p.Refused = "it is quarantined here: run voxeld region release first"
	case recent != "":
		p.Refused = fmt.Sprintf("%s was last heard from less than %v ago: wait to see whether it comes back", recent, r.SilentAfter())
	case best.Peer == "" && info.ID == world.CatalogID:
		p.Refused = "no copy of it can be used, including the one here: found the world again from a backup with voxeld restore FILE --data-dir NEW"
	case best.Peer == "":
		p.Refused = fmt.Sprintf("no copy of it can be used, including the one here: put it back from a backup with voxeld region recover %s --from FILE, or found it anew with --anew", p.Name)
	case p.Old && best.Peer != r.Self.Peer:
		p.Refused = fmt.Sprintf("only old copies are left, and that of %s has more of the log: run this on that node", best.Peer)
	case best.Peer != r.Self.Peer:
		p.Refused = fmt.Sprintf("the copy of %s has more of the log: run this on that node", best.Peer)
	}
	return p
}

// Recover makes this node the only member of a region that has lost the majority of its members, and serves it. It
// plans the recovery again, and fails unless the plan allows it. An old copy is only used if old is set. Other nodes
// become members afterwards, as in any region. Former members drop their copies when they come back.
func (r *Recovery) Recover(ctx context.Context, id uint64, old bool) error {
	var p RecoveryPlan
	for _, within := range []time.Duration{PollTime, slowTime} {
		plans, err := r.plan(ctx, []uint64{id}, within)
		if err != nil {
			return err
		}
		p = plans[0]
		if why := p.Refused; why != "" {
			return fmt.Errorf("recover %s: %s", p.Name, why)
		}
		if p.Old && !old {
			return fmt.Errorf("recover %s: only an old copy of it is left, and it was not confirmed that it is to be used", p.Name)
		}
		if why, err := r.Outdated(ctx, p.of.info, p.of.own); err != nil || why != "" {
			return fmt.Errorf("recover %s: %w", p.Name, cmp.Or(err, errors.New(why)))
		}
		if p.of.unknown == nil {
			break
		}
	}
	if err := p.of.unknown; err != nil {
		return fmt.Errorf("recover %s: who its members are now is not known: try again: %w", p.Name, err)
	}
	// From here on it is completed even if the caller gives up: a group that is recovered, and does not continue far
	// above its log, cannot be recovered again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rewriteTime)
	defer cancel()
	info, epoch := p.of.info, actor.EpochOf(p.of.own.Members)
	before := formerMembers(info, p, r.Self.Peer)
	before.Epoch = min(p.epoch, epoch+maxRecoveries*nodemsg.RecoveredEpoch)
	err := r.Evicted.Keep(before)
	if err != nil {
		return err
	}
	if p.Old {
		err = r.useOldCopy(ctx, info)
	} else {
		err = r.rewrite(ctx, info, func() error { return r.Replicas.Recover(info.ID) })
	}
	if err == nil && (p.Old || p.epoch > epoch) {
		err = r.continueAbove(ctx, info, actor.ConfigurationOf(before.Epoch).Recovered)
	}
	if err != nil {
		return fmt.Errorf("recover %s: %w", p.Name, err)
	}
	r.Logger.Warn("region recovered on this node alone", "region", id, "cell", p.Name)
	return nil
}

// formerMembers returns the region with only those members that must be notified of its recovery.
func formerMembers(info nodemsg.Region, p RecoveryPlan, self string) nodemsg.Region {
	before := nodemsg.Region{ID: info.ID, Cell: info.Cell, Term: info.Term}
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

// useOldCopy makes the group of a region, or of the catalog, one of this member, with an old copy, and opens it.
func (r *Recovery) useOldCopy(ctx context.Context, info nodemsg.Region) error {
	release, claimed := r.Executor.Facts.claim(info.ID)
	if !claimed {
		return errors.New("it is just being replaced: try again")
	}
	defer release()
	if err := r.Replicas.Recover(info.ID); err != nil {
		return err
	}
	return r.Executor.useRolledBack(ctx, info)
}

// continueAbove lets a group of this member alone continue far above its log, like a group from a backup, once
// everything in that is applied: what the group has done since the copy was made is unknown. So no index, replica id or
// recovery is used twice, and no id of a region that follows from them. Recovered is how often it was recovered, as far
// as other nodes know.
func (r *Recovery) continueAbove(ctx context.Context, info nodemsg.Region, recovered uint64) error {
	for {
		err := r.skipAhead(ctx, info, recovered)
		if err == nil || ctx.Err() != nil {
			return err
		}
		<-time.After(pollEvery) // its log has grown meanwhile, or the disk is slow
	}
}

// skipAhead is one attempt of continueAbove. It waits until the log is applied.
func (r *Recovery) skipAhead(ctx context.Context, info nodemsg.Region, recovered uint64) error {
	var applied uint64
	err := placement.AwaitGroup(ctx, func() bool {
		a, err := r.open(ctx, info)
		if err != nil {
			return false
		}
		status := a.Raft().Status()
		applied = status.Applied
		return status.Self && applied == status.Last
	})
	if err != nil {
		return err
	}
	return r.rewrite(ctx, info, func() error {
		p, err := r.Replicas.Position(info.ID) // its Applied may be lower: entries of raft itself follow
		switch {
		case err != nil:
			return err
		case p.Last > applied:
			return errors.New("it is being edited")
		}
		return r.Replicas.Restore(info.ID, replica.Origin{
			Index: p.Last, Term: p.Term, Next: p.Replica + 1, Recovered: max(p.Members.Recovered, recovered),
		})
	})
}

// rewrite closes the region, or the catalog, lets change rewrite what is stored of its group, and opens it again, as
// the leader.
func (r *Recovery) rewrite(ctx context.Context, info nodemsg.Region, change func() error) error {
	a, err := r.open(ctx, info)
	if err != nil {
		return err
	}
	changed := make(chan error, 1)
	if !a.CloseThen("the region is being recovered", func() { changed <- change() }) {
		return errors.New("it has just been closed: try again")
	}
	if err := waitFor(ctx, a.Done()); err != nil {
		return err
	}
	select {
	case err := <-changed:
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
