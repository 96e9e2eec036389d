package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file makes the groups of idle regions hibernate: all members close them, so that they cost no ticks and no messages. They
// wake when a gateway subscribes, or when a member sends a message to them.

const (
	// hibernateEvery is the number of idle ticks between two attempts to hibernate.
	hibernateEvery = 20
	// wakeHoldoff is how long a hibernating group is not woken by raft messages. Messages that were under way when it closed are
	// meaningless, and a member that wants to wake it retransmits.
	wakeHoldoff = time.Second
)

// canHibernate reports whether the region, which this node leads, has been idle for long enough to hibernate.
func (l *loop) canHibernate() bool {
	return l.leading && !l.isOnlyMember() && l.unloadable() && l.idle > idleTicks && (l.idle-idleTicks)%hibernateEvery == 1
}

// rest ends the loop at the end of this tick if the region is still idle. Least is the index that must have been applied.
func (l *loop) rest(least uint64) error {
	l.deliver()
	l.report()
	switch {
	case len(l.subscribers) > 0, !l.unloadable():
		return errors.New("the region is in use")
	case l.raft.Status().Applied < least:
		return errors.New("this member lags behind")
	}
	l.hibernating = true
	return nil
}

// hibernate closes the group on all members, if all live members have applied as much as this node. It closes the group here and
// asks the others to do so. A member that refuses stands for election and so wakes all.
func (h *Host) hibernate(l *loop) {
	h.start(func(ctx context.Context) {
		id := l.info.ID
		if !h.beginReconcile(id) {
			return
		}
		defer h.endReconcile(id)
		ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
		defer cancel()
		if err := h.hibernateNow(ctx, l); err != nil {
			h.Logger.Debug("region not hibernated", "region", id, "error", err)
		}
	})
}

func (h *Host) hibernateNow(ctx context.Context, l *loop) error {
	status := l.raft.Status()
	w := h.groupOf(l)
	if next := membership.Next(h.Self.Peer, h.memberStates(w, status), h.nearestOf(w, status), w.copies); next.Kind != membership.Stay && next.Kind != membership.Transfer {
		return errors.New("its members are being changed")
	}
	if err := h.ensureAnnounced(ctx, l); err != nil {
		return err
	}
	var others []string
	for _, m := range status.Members {
		switch {
		case m.Peer == h.Self.Peer:
		case m.Active && m.Match >= status.Last:
			others = append(others, m.Peer)
		case !h.detector.Gone(m.Peer):
			return fmt.Errorf("member %s is not up to date", m.Peer)
		}
	}
	if err := h.close(ctx, l, status.Last); err != nil {
		return err
	}
	for _, peer := range others {
		if _, err := h.questions.Ask(ctx, peer, nodemsg.Question{Sleep: &nodemsg.Sleep{Group: l.info.ID, Index: status.Last}}); err != nil {
			return fmt.Errorf("hibernate on member %s: %w", peer, err)
		}
	}
	return nil
}

// ensureAnnounced ensures that the catalog has the region's current members.
func (h *Host) ensureAnnounced(ctx context.Context, l *loop) error {
	info, err := l.ask(ctx)
	if err != nil {
		return err
	}
	return h.announce(ctx, info)
}

// close ends a loop whose region is idle, and waits for the end.
func (h *Host) close(ctx context.Context, l *loop, least uint64) error {
	h.mu.Lock()
	h.mu.hibernating[l.info.ID] = time.Now().Add(wakeHoldoff)
	h.mu.Unlock()
	refused := make(chan error, 1)
	if !l.inbox.Put(func() { refused <- l.rest(least) }) {
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
		delete(h.mu.hibernating, l.info.ID)
		h.mu.Unlock()
		return err
	}
	select {
	case <-l.done:
		h.metrics.hibernated.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acceptHibernation closes a group because its leader has requested it.
func (h *Host) acceptHibernation(ctx context.Context, peer string, s nodemsg.Sleep) error {
	l := h.loop(s.Group)
	if l == nil {
		return nil
	}
	if !slices.ContainsFunc(l.raft.Configuration().Members, func(m replica.Member) bool { return m.Peer == peer }) {
		return fmt.Errorf("hibernate region %d: %s is not a member", s.Group, peer)
	}
	return h.close(ctx, l, s.Index)
}
