package placement

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// handOverTime bounds how long a node that stops takes to hand over its leaderships.
	handOverTime = 5 * time.Second
	// maxHandOvers bounds how many are handed over at the same time.
	maxHandOvers = 64
	// announceTime bounds how long a node announces that it leaves, and announceNodes to how many others.
	announceTime  = time.Second
	announceNodes = 64
	// minLeaderTime is how long a node leads before it hands leadership to a nearer member, unless its disk is slow.
	// Otherwise a node that stops would get leadership back at once.
	minLeaderTime = 10 * time.Second
)

// ledFor returns how long this node has been seen to lead the group in this term.
func (sv *Supervisor) ledFor(id, term uint64) time.Duration {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	r, ok := sv.mu.ledSince[id]
	if !ok || r.term != term {
		r = leadership{term: term, since: time.Now()}
		sv.mu.ledSince[id] = r
	}
	return time.Since(r.since)
}

// Drain begins the shutdown of this node while Run still runs. It asks other nodes not to choose this one for anything,
// stops the supervisor, and hands over leaderships. It returns how many groups were handed over and how many stay led
// here because no other member could take over, or could in time. It may be called again.
func (sv *Supervisor) Drain(ctx context.Context) (handed, kept int) {
	sv.StartLeaving()
	var announcing sync.WaitGroup
	defer announcing.Wait()
	announcing.Go(func() { sv.announceLeaving(ctx) })
	return sv.HandOver(ctx)
}

// StartLeaving marks this node as leaving.
func (sv *Supervisor) StartLeaving() {
	sv.leave.Do(func() { close(sv.leaving) })
}

// Leaves reports whether this node is about to stop.
func (sv *Supervisor) Leaves() bool {
	select {
	case <-sv.leaving:
		return true
	default:
		return false
	}
}

// announceLeaving announces to the nodes around that this one leaves. A node that misses the announcement finds out
// when it next asks this node for its description.
func (sv *Supervisor) announceLeaving(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	var questions errgroup.Group
	questions.SetLimit(directory.MaxQuestions)
	for _, peer := range sv.Records.NearestKnown(grid.CatalogKey, announceNodes) {
		if peer == sv.Self {
			continue
		}
		questions.Go(func() error {
			if _, err := sv.Questions.Ask(ctx, peer, nodemsg.Question{Leaving: &nodemsg.Leaving{}}); err != nil {
				sv.Logger.Debug("leaving not announced", "peer", peer, "error", err)
			}
			return nil
		})
	}
	questions.Wait() //nolint:errcheck // always nil
}

// CheckReturned asks a node that announced that it leaves, and then sent a message, whether it is back. If so, it may
// lead again.
func (sv *Supervisor) CheckReturned(peer string) {
	if !sv.Detector.ShouldRecheck(peer) {
		return
	}
	sv.Tasks.Start(func(ctx context.Context) {
		sv.Detector.Check(ctx, peer) //nolint:errcheck // the result is recorded
	})
}

// HandOver transfers the leadership of every group with other members to the best of them, so that no election is
// needed when this node stops.
func (sv *Supervisor) HandOver(ctx context.Context) (handed, kept int) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	groups := sv.Regions.Led()
	var done atomic.Int64
	var transfers errgroup.Group
	transfers.SetLimit(maxHandOvers)
	for _, w := range groups {
		successor := sv.Successor(w)
		if successor == "" {
			continue
		}
		transfers.Go(func() error {
			if err := sv.Transfer(ctx, w, successor); err != nil {
				sv.Logger.Warn("leadership not handed over", "group", w.ID, "peer", successor, "error", err)
				return nil
			}
			done.Add(1)
			return nil
		})
	}
	transfers.Wait() //nolint:errcheck // always nil
	handed = int(done.Load())
	return handed, len(groups) - handed
}

// Transfer hands the leadership of a group to another member, and waits until this node no longer leads.
func (sv *Supervisor) Transfer(ctx context.Context, w Group, successor string) error {
	if err := w.Raft.Transfer(successor); err != nil {
		return err
	}
	if err := AwaitGroup(ctx, func() bool { return !w.Raft.Status().Self }); err != nil {
		return err
	}
	sv.metrics.changes.WithLabelValues("transfer").Inc()
	return nil
}

// Successor returns the member that should lead after this node: the nearest one that has all of the log, or nearly
// all. It returns "" if there is none. A leaving member is better than none: it still sends messages, so it either
// hands over in turn or has just come back.
func (sv *Supervisor) Successor(w Group) string {
	able := slices.DeleteFunc(sv.memberStates(w, w.Raft.Status()), func(m membership.Member) bool {
		return m.Peer == sv.Self || !m.CaughtUp || m.Learner
	})
	states := slices.DeleteFunc(slices.Clone(able), func(m membership.Member) bool { return !m.MayLead() })
	if len(states) == 0 {
		states = able
	}
	if len(states) == 0 {
		return ""
	}
	if better := slices.DeleteFunc(slices.Clone(states), membership.Member.Impaired); len(better) > 0 {
		states = better
	}
	key, _ := sv.target(w)
	for _, peer := range sv.Records.NearestKnown(key, directory.Candidates) {
		if slices.ContainsFunc(states, func(m membership.Member) bool { return m.Peer == peer }) {
			return peer
		}
	}
	return states[0].Peer
}
