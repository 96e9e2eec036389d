package region

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// handOverTime bounds how long a node that ends takes to hand its leaderships over.
	handOverTime = 5 * time.Second
	// handedAtOnce bounds how many are handed over at the same time.
	handedAtOnce = 64
	// tellTime bounds how long a node that leaves tells others so, and toldNodes how many.
	tellTime  = time.Second
	toldNodes = 64
	// reignTime is how long a node leads at least before it hands leadership to a nearer member: one that
	// ends would else get it back at once.
	reignTime = 10 * time.Second
)

// reign is since when a group was seen to be led by this node.
type reign struct {
	term  uint64
	since time.Time
}

// reigned tells how long this node has been seen to lead the group in its term.
func (h *Host) reigned(id, term uint64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.mu.reigns[id]
	if !ok || r.term != term {
		r = reign{term: term, since: time.Now()}
		h.mu.reigns[id] = r
	}
	return time.Since(r.since)
}

// Drain begins the end of this node, while Run goes on: other nodes are told not to choose it for anything,
// its supervisor rests, and what it leads is handed over. It gives how many groups were, and how many stay led
// here because nobody else can, or could in time. It may be called again.
func (h *Host) Drain(ctx context.Context) (handed, kept int) {
	h.depart()
	var crew sync.WaitGroup
	defer crew.Wait()
	crew.Go(func() { h.tellLeaving(ctx) })
	return h.handOver(ctx)
}

// depart makes this node one that leaves.
func (h *Host) depart() {
	h.leave.Do(func() { close(h.leaving) })
}

// leaves tells whether this node is about to end.
func (h *Host) leaves() bool {
	select {
	case <-h.leaving:
		return true
	default:
		return false
	}
}

// tellLeaving tells the nodes around that this one leaves. Who does not hear of it learns it later, when he
// asks who this node is.
func (h *Host) tellLeaving(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, askedAtOnce)
	for _, peer := range h.Records.NearestKnown(grid.CatalogKey, toldNodes) {
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
			if _, err := h.Directory.ask(ctx, peer, wire.Question{Leaving: &wire.Leaving{}}); err != nil {
				h.Logger.Debug("not told that this node leaves", "peer", peer, "error", err)
			}
		})
	}
}

// hearOf looks whether a node that has told that it leaves, and speaks, is back already: it may lead again then.
func (h *Host) hearOf(peer string) {
	if !h.liveness.again(peer) {
		return
	}
	h.start(func(ctx context.Context) {
		h.liveness.askWho(ctx, peer, h.Directory.describe) //nolint:errcheck // it is noted
	})
}

// handOver gives every leadership of a group with other members to the best of them, so that nobody waits
// for an election when this node ends.
func (h *Host) handOver(ctx context.Context) (handed, kept int) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	wards := h.wards()
	var done atomic.Int64
	h.handAll(ctx, wards, &done)
	handed = int(done.Load())
	return handed, len(wards) - handed
}

func (h *Host) handAll(ctx context.Context, wards []ward, done *atomic.Int64) {
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, handedAtOnce)
	for _, w := range wards {
		heir := h.heir(w)
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
				err = h.settle(ctx, func() bool { return !w.group.Status().Self })
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

// heir is the member that leads best after this node: the nearest one that has all of the log, or nearly. It is empty if
// there is none. One that has told that it leaves is better than none: it speaks, so either it hands over in its turn,
// or it is back just now.
func (h *Host) heir(w ward) string {
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
