package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file puts the groups of idle regions to sleep: all members close them, and none of them costs a tick
// or a message. They wake when somebody wants a seat, or a member speaks to them.

const (
	// napEvery is how many ticks of rest pass between two attempts to put an idle region to sleep.
	napEvery = 20
	// drowsy is how long a group that was put to sleep is not woken by raft messages: those that were under
	// way when it closed mean nothing, and who really wakes it says so again.
	drowsy = time.Second
)

// sleepy tells whether the region, which this node leads, has been idle for long enough to be put to sleep.
func (l *loop) sleepy() bool {
	return l.leading && !l.alone() && l.unloadable() && l.idle > idleTicks && (l.idle-idleTicks)%napEvery == 1
}

// rest ends the loop at the end of this tick if the region is idle still. Least is the index that must have
// been applied.
func (l *loop) rest(least uint64) error {
	l.deliver()
	l.report()
	switch {
	case len(l.seats) > 0, !l.unloadable():
		return errors.New("the region is in use")
	case l.raft.Status().Applied < least:
		return errors.New("this member lags behind")
	}
	l.asleep = true
	return nil
}

// lull puts the region to sleep, if all members that live are as far as this node: it closes the group here
// and asks the others to do so. One that refuses stands for election and so wakes all.
func (h *Host) lull(l *loop) {
	h.start(func(ctx context.Context) {
		id := l.info.ID
		if !h.beginTending(id) {
			return
		}
		defer h.endTending(id)
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		if err := h.lullNow(ctx, l); err != nil {
			h.Logger.Debug("region not put to sleep", "region", id, "error", err)
		}
	})
}

func (h *Host) lullNow(ctx context.Context, l *loop) error {
	status := l.raft.Status()
	w := h.ward(l)
	if next := membership.Next(h.Self.Peer, h.memberStates(w, status), h.nearestOf(w, status), w.copies); next.Kind != membership.Stay && next.Kind != membership.Transfer {
		return errors.New("its members are being changed")
	}
	if err := h.announced(ctx, l); err != nil {
		return err
	}
	var others []string
	for _, m := range status.Members {
		switch {
		case m.Peer == h.Self.Peer:
		case m.Active && m.Match >= status.Last:
			others = append(others, m.Peer)
		case !h.liveness.gone(m.Peer, h.Grace):
			return fmt.Errorf("member %s is not up to date", m.Peer)
		}
	}
	if err := h.close(ctx, l, status.Last); err != nil {
		return err
	}
	for _, peer := range others {
		if _, err := h.Directory.ask(ctx, peer, wire.Question{Sleep: &wire.Sleep{Group: l.info.ID, Index: status.Last}}); err != nil {
			return fmt.Errorf("lull member %s: %w", peer, err)
		}
	}
	return nil
}

// announced makes sure that the catalog knows the region's members.
func (h *Host) announced(ctx context.Context, l *loop) error {
	info, err := l.ask(ctx)
	if err != nil {
		return err
	}
	return h.announce(ctx, info)
}

// close ends a loop whose region is idle, and waits for the end.
func (h *Host) close(ctx context.Context, l *loop, least uint64) error {
	h.mu.Lock()
	h.mu.drowsy[l.info.ID] = time.Now().Add(drowsy)
	h.mu.Unlock()
	refused := make(chan error, 1)
	if !l.inbox.put(func() { refused <- l.rest(least) }) {
		return nil // it is ending
	}
	var err error
	select {
	case err = <-refused:
	case <-l.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		h.mu.Lock()
		delete(h.mu.drowsy, l.info.ID)
		h.mu.Unlock()
		return err
	}
	select {
	case <-l.done:
		h.metrics.slept.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sleep closes a group because its leader has put it to sleep.
func (h *Host) sleep(ctx context.Context, peer string, s wire.Sleep) error {
	l := h.loop(s.Group)
	if l == nil {
		return nil
	}
	if !slices.ContainsFunc(l.raft.Configuration().Members, func(m replica.Member) bool { return m.Peer == peer }) {
		return fmt.Errorf("lull region %d: %s is no member", s.Group, peer)
	}
	return h.close(ctx, l, s.Index)
}
