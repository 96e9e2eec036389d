package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file quarantines regions that fail repeatedly: their land is read-only until an operator releases them or the node is
// restarted (docs/adr/0009).

// errIsolated is returned if a region is not opened because it has just failed here.
var errIsolated = errors.New("the region failed on this node")

// errQuarantined is returned if a region is not opened before an operator releases it.
var errQuarantined = errors.New("the region is quarantined: look at voxeld doctor")

// quarantinedReason is the reason that the gateways of such a region get.
const quarantinedReason = "the region is quarantined"

// recordFailure counts a failure on this node, and reports it to the other members.
func (h *Host) recordFailure(info nodemsg.Region, f *fault, led bool) {
	var here, everywhere bool
	h.failures.with(info.ID, func(r *failureRecord) {
		here, everywhere = r.add(failure{at: time.Now(), peer: h.Self.Peer, kind: f.kind, led: led}, h.Self.Peer)
		r.why = f.Error()
	})
	if here {
		h.quarantine(info, f.Error(), h.Self.Peer)
	}
	word := nodemsg.RegionFailure{Region: info.ID, Why: transport.Clip(f), Kind: uint8(f.kind), Led: led, Shut: here, Quarantined: everywhere}
	for _, m := range info.Members {
		if m.Peer == h.Self.Peer {
			continue
		}
		h.start(func(ctx context.Context) {
			if _, err := h.questions.Ask(ctx, m.Peer, nodemsg.Question{Failure: &word}); err != nil {
				h.Logger.Debug("failure not reported to member", "region", info.ID, "peer", m.Peer, "error", err)
			}
		})
	}
}

// applyRemoteFailure counts a region's failure on another member. The region is quarantined here too if the failures require it
// on all members, or if so many members have quarantined it that the others have no majority.
func (h *Host) applyRemoteFailure(peer string, word nodemsg.RegionFailure) error {
	info, err := h.memberRegion(word.Region)
	if err != nil {
		return err
	}
	if !hasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, word.Region)
	}
	shut := word.Quarantined
	h.failures.with(word.Region, func(r *failureRecord) {
		// Two leaders may have failed before either was informed of the other: then this message completes the count.
		_, everywhere := r.add(failure{at: time.Now(), peer: peer, kind: faultKind(word.Kind), led: word.Led}, h.Self.Peer)
		shut = shut || everywhere
		r.why = word.Why
		if word.Shut {
			if r.quarantinedBy == nil {
				r.quarantinedBy = make(map[string]bool)
			}
			r.quarantinedBy[peer] = true
		}
		shut = shut || 2*len(r.quarantinedBy) >= len(info.Members)
	})
	if shut {
		h.quarantine(info, word.Why, peer)
	}
	return nil
}

// stored returns the region as stored on this node, or ErrNotHere if the node is not a member.
func (h *Host) stored(id uint64) (nodemsg.Region, error) {
	row, err := h.Storage.Get(regionTable, regionKey(id))
	switch {
	case err != nil:
		return nodemsg.Region{}, fmt.Errorf("look up region %d: %w", id, err)
	case row == nil:
		return nodemsg.Region{}, ErrNotHere
	}
	info, err := nodemsg.DecodeRegion(row)
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("read region %d: %w", id, err)
	}
	return info, nil
}

// quarantine quarantines a region on this node. If the region is open, it ends.
func (h *Host) quarantine(info nodemsg.Region, why, by string) {
	already := false
	h.failures.with(info.ID, func(r *failureRecord) {
		already = r.quarantined
		if !already {
			r.quarantined, r.since, r.why, r.by = true, time.Now(), why, by
		}
	})
	if already {
		return
	}
	h.metrics.quarantined.Set(float64(h.failures.count()))
	h.Logger.Error("region quarantined: its land can be seen, and not changed, until voxeld region release",
		"region", info.ID, "cell", Name(info), "why", why, "by", by)
	if l := h.loop(info.ID); l != nil {
		l.inbox.Put(func() { l.closeReason = quarantinedReason })
	}
	if c := h.root(); c != nil && info.ID == world.CatalogID {
		c.inbox.Put(func() { c.quarantined = true })
	}
}

// Name returns the name of a region for people: its cell, or "catalog".
func Name(info nodemsg.Region) string {
	if info.ID == world.CatalogID {
		return "catalog"
	}
	return info.Cell.String()
}

// admit returns why a region must not be opened now, or nil.
func (h *Host) admit(ctx context.Context, info nodemsg.Region) error {
	r := h.failures.look(info.ID)
	if r.quarantined {
		return errQuarantined
	}
	pause := time.Until(r.until)
	if pause <= 0 {
		return nil
	}
	if len(info.Members) > 1 {
		return errIsolated // another member leads it, or will
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return errIsolated
	}
}

// openReadOnly returns the loop that shows a quarantined region's land.
func (h *Host) openReadOnly(hello nodemsg.Hello) (*loop, error) {
	if l := h.failures.look(hello.Region).readOnly; l != nil {
		return l, nil
	}
	info, err := h.stored(hello.Region)
	if err != nil {
		return nil, err
	}
	land, err := h.readLand(info)
	if err != nil {
		return nil, fmt.Errorf("%w, and cannot be read: %w", errQuarantined, err)
	}
	l := newLoop(h, info, noGroup{}, land)
	l.leading, l.readOnly = true, true
	released := false
	h.failures.with(info.ID, func(r *failureRecord) {
		if released = !r.quarantined; !released {
			r.readOnly = l
		}
	})
	if released {
		return nil, ErrNotHere // released while the land was read: nothing would end this loop. The caller's next attempt finds the region.
	}
	started := h.start(func(ctx context.Context) {
		if caught := catchFault(func() { l.serveReadOnly(ctx) }); caught != nil {
			h.Logger.Error("quarantined region cannot be served", "region", info.ID, "error", caught, "stack", string(caught.stack))
		}
		l.inbox.Close()
		l.endAfterFault(quarantinedReason)
		h.failures.with(info.ID, func(r *failureRecord) {
			if r.readOnly == l {
				r.readOnly = nil
			}
		})
		close(l.done)
	})
	if !started {
		return nil, background.ErrStopping
	}
	return l, nil
}

// serveReadOnly runs a quarantined region: no ticks, only answers to gateways that watch the land, until the last of them leaves
// or ctx ends.
func (l *loop) serveReadOnly(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.inbox.Wake():
		}
		l.tick++
		inputs, _ := l.inbox.Drain()
		for _, input := range inputs {
			input()
		}
		l.publish()
		if l.closeReason != "" || len(l.subscribers) == 0 && l.inbox.CloseIfEmpty() {
			return
		}
	}
}

// noGroup is the group of a quarantined region.
type noGroup struct{}

func (noGroup) Propose([]byte) error             { return errQuarantined }
func (noGroup) Ready() <-chan struct{}           { return nil }
func (noGroup) Dequeue() []replica.Delivery      { return nil }
func (noGroup) ReportApplied(uint64, []kv.Write) {}
func (noGroup) Campaign()                        {}
func (noGroup) Close() error                     { return nil }

// release clears the failures of a region, so that it can be opened again on this node.
func (h *Host) release(id uint64) {
	var shown *loop
	was := false
	h.failures.mu.Lock()
	if r := h.failures.mu.regions[id]; r != nil {
		shown, was = r.readOnly, r.quarantined
		delete(h.failures.mu.regions, id)
	}
	h.failures.mu.Unlock()
	if !was {
		return
	}
	if shown != nil {
		shown.inbox.Put(func() { shown.closeReason = "the region is released" })
	}
	h.metrics.quarantined.Set(float64(h.failures.count()))
	h.Logger.Info("region released", "region", id)
	if id == world.CatalogID {
		select {
		case h.reopenCatalog <- struct{}{}:
		default:
		}
	}
}

// releasedBy releases a region because another member has released it.
func (h *Host) releasedBy(peer string, id uint64) error {
	info, err := h.memberRegion(id)
	if err != nil {
		return err
	}
	if !hasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, id)
	}
	h.release(id)
	return nil
}

// notOpened records that a region could not be opened, and logs it if the copy here is unusable. If opening it panicked, that
// counts as a failure.
func (h *Host) notOpened(info nodemsg.Region, err error) {
	var caught *fault
	switch {
	case errors.As(err, &caught):
		h.metrics.isolated.WithLabelValues(caught.kind.String()).Inc()
		h.Logger.Error("region fenced", "region", info.ID, "cell", info.Cell.String(), "reason", caught.kind.String(), "error", err, "stack", string(caught.stack))
		h.recordFailure(info, caught, false)
	case errors.Is(err, ErrNotHere), errors.Is(err, background.ErrStopping), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, replica.ErrOpen), errors.Is(err, replica.ErrStopped):
		return
	}
	h.failures.with(info.ID, func(r *failureRecord) { r.openError = err.Error() })
	h.logClosed(info, err)
}

// logEvery is the shortest interval at which it is logged that a region cannot be opened.
const logEvery = time.Minute

// logClosed logs that a region cannot be opened on this node, and what to do.
func (h *Host) logClosed(info nodemsg.Region, why error) {
	due := false
	h.failures.with(info.ID, func(r *failureRecord) {
		if due = r.logged.IsZero() || time.Since(r.logged) >= logEvery; due {
			r.logged = time.Now()
		}
	})
	if !due {
		return
	}
	do := "run voxeld doctor to see whether other members serve it; if it stays closed here, look for disk errors"
	switch {
	case errors.Is(why, errCorruptCopy):
		do = "nothing while other members live: they bring a new copy; else put a backup of the data directory back"
	case errors.Is(why, replica.ErrStorage):
		do = "free space on the disk of the data directory, and look for I/O errors; it opens by itself then"
	}
	h.Logger.Warn("region cannot be opened on this node", "region", info.ID, "cell", Name(info), "members", len(info.Members),
		"error", why, "do", do)
}

// Release ends the quarantine of a region on this node, which must be one of its members, and on those other members that can be
// reached. It returns the peers that were informed and those that were missed. On the latter, release the region again when they
// are back, or restart them.
func (h *Host) Release(ctx context.Context, id uint64) (told, missed []string, err error) {
	info, err := h.memberRegion(id)
	if err != nil {
		return nil, nil, err
	}
	h.release(id)
	for _, m := range info.Members {
		if m.Peer == h.Self.Peer {
			told = append(told, m.Peer)
			continue
		}
		if _, err := h.questions.Ask(ctx, m.Peer, nodemsg.Question{Release: &nodemsg.Release{Region: id}}); err != nil {
			h.Logger.Debug("release not sent to member", "region", id, "peer", m.Peer, "error", err)
			missed = append(missed, m.Peer)
			continue
		}
		told = append(told, m.Peer)
	}
	return told, missed, nil
}
