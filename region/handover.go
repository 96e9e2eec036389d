package region

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
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
	// minLeaderTime is how long a node leads before it hands leadership to a nearer member. Otherwise a node that stops would get
	// leadership back at once.
	minLeaderTime = 10 * time.Second
)

// leadership is the time since when this node was seen to lead a group, in one term.
type leadership struct {
	term  uint64
	since time.Time
}

// ledFor returns how long this node has been seen to lead the group in this term.
func (h *Host) ledFor(id, term uint64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.mu.ledSince[id]
	if !ok || r.term != term {
		r = leadership{term: term, since: time.Now()}
		h.mu.ledSince[id] = r
	}
	return time.Since(r.since)
}

// Drain begins the shutdown of this node while Run still runs. It asks other nodes not to choose this one for anything, stops the
// supervisor, and hands over leaderships. It returns how many groups were handed over and how many stay led here because no other
// member could take over, or could in time. It may be called again.
func (h *Host) Drain(ctx context.Context) (handed, kept int) {
	h.startLeaving()
	var crew sync.WaitGroup
	defer crew.Wait()
	crew.Go(func() { h.announceLeaving(ctx) })
	return h.handOver(ctx)
}

// startLeaving marks this node as leaving.
func (h *Host) startLeaving() {
	h.leave.Do(func() { close(h.leaving) })
}

// leaves reports whether this node is about to stop.
func (h *Host) leaves() bool {
	select {
	case <-h.leaving:
		return true
	default:
		return false
	}
}

// announceLeaving announces to the nodes around that this one leaves. A node that misses the announcement finds out when it next
// asks this node for its description.
func (h *Host) announceLeaving(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, failuredetector.MaxQuestions)
	for _, peer := range h.Records.NearestKnown(grid.CatalogKey, announceNodes) {
		if peer == h.Self.Peer {
			continue
		}
		select {
		case tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
		crew.Go(func() {
			defer func() { <-tokens }()
			if _, err := h.questions.Ask(ctx, peer, nodemsg.Question{Leaving: &nodemsg.Leaving{}}); err != nil {
				h.Logger.Debug("leaving not announced", "peer", peer, "error", err)
			}
		})
	}
}

// checkReturned asks a node that announced that it leaves, and then sent a message, whether it is back. If so, it may lead again.
func (h *Host) checkReturned(peer string) {
	if !h.detector.ShouldRecheck(peer) {
		return
	}
	h.start(func(ctx context.Context) {
		h.detector.Check(ctx, peer) //nolint:errcheck // the result is recorded
	})
}

// handOver transfers the leadership of every group with other members to the best of them, so that no election is needed when
// this node stops.
func (h *Host) handOver(ctx context.Context) (handed, kept int) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	groups := h.ledGroups()
	var done atomic.Int64
	h.handAll(ctx, groups, &done)
	handed = int(done.Load())
	return handed, len(groups) - handed
}

func (h *Host) handAll(ctx context.Context, groups []ledGroup, done *atomic.Int64) {
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, maxHandOvers)
	for _, w := range groups {
		heir := h.successor(w)
		if heir == "" {
			continue
		}
		select {
		case tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
		crew.Go(func() {
			defer func() { <-tokens }()
			err := w.group.Transfer(heir)
			if err == nil {
				err = h.awaitGroup(ctx, func() bool { return !w.group.Status().Self })
			}
			if err != nil {
				h.Logger.Warn("leadership not handed over", "group", w.id, "peer", heir, "error", err)
				return
			}
			done.Add(1)
			h.metrics.changes.WithLabelValues("transfer").Inc()
		})
	}
}

// successor returns the member that should lead after this node: the nearest one that has all of the log, or nearly all. It
// returns "" if there is none. A leaving member is better than none: it still sends messages, so it either hands over in turn or
// has just come back.
func (h *Host) successor(w ledGroup) string {
	able := slices.DeleteFunc(h.memberStates(w, w.group.Status()), func(m membership.Member) bool {
		return m.Peer == h.Self.Peer || !m.CaughtUp || m.Learner
	})
	states := slices.DeleteFunc(slices.Clone(able), func(m membership.Member) bool { return !m.MayLead() })
	if len(states) == 0 {
		states = able
	}
	if len(states) == 0 {
		return ""
	}
	if whole := slices.DeleteFunc(slices.Clone(states), func(m membership.Member) bool { return m.Struck }); len(whole) > 0 {
		states = whole
	}
	for _, peer := range h.Records.NearestKnown(w.key, candidates) {
		if slices.ContainsFunc(states, func(m membership.Member) bool { return m.Peer == peer }) {
			return peer
		}
	}
	return states[0].Peer
}
