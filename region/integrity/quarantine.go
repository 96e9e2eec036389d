package integrity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/fault"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file quarantines regions that fail repeatedly: their land is read-only until an operator releases them or the node is
// restarted (docs/adr/0009).

// ErrIsolated is returned if a region is not opened because it has just failed here.
var ErrIsolated = errors.New("the region failed on this node")

// ErrQuarantined is returned if a region is not opened before an operator releases it.
var ErrQuarantined = errors.New("the region is quarantined: look at voxeld doctor")

// Quarantine counts the failures of regions, and closes those that fail repeatedly.
type Quarantine struct {
	Node

	Failures *Failures
	Reports  *transport.PeerLimits // of failures, by other nodes
	// ReadOnly reads a quarantined region's land from storage.
	ReadOnly func(nodemsg.Region) (*actor.Land, error)
	// CatalogReleased is called when the catalog is released.
	CatalogReleased func()
}

// QuarantinedReason is the reason that the gateways of such a region get.
const QuarantinedReason = "the region is quarantined"

// RecordFailure counts a failure on this node, and reports it to the other members.
func (q *Quarantine) RecordFailure(info nodemsg.Region, f *fault.Fault, led bool) {
	var here, everywhere bool
	q.Failures.with(info.ID, func(r *failureRecord) {
		here, everywhere = r.add(failure{at: time.Now(), peer: q.Self.Peer, kind: f.Kind, led: led}, q.Self.Peer)
		r.why = f.Error()
	})
	if here {
		q.Quarantine(info, f.Error(), q.Self.Peer)
	}
	word := nodemsg.RegionFailure{Region: info.ID, Why: transport.Clip(f), Kind: uint8(f.Kind), Led: led, Shut: here, Quarantined: everywhere}
	for _, m := range info.Members {
		if m.Peer == q.Self.Peer {
			continue
		}
		q.Tasks.Start(func(ctx context.Context) {
			if _, err := q.Questions.Ask(ctx, m.Peer, nodemsg.Question{Failure: &word}); err != nil {
				q.Logger.Debug("failure not reported to member", "region", info.ID, "peer", m.Peer, "error", err)
			}
		})
	}
}

// ApplyRemoteFailure counts a region's failure on another member. The region is quarantined here too if the failures require it
// on all members, or if so many members have quarantined it that the others have no majority.
func (q *Quarantine) ApplyRemoteFailure(peer string, word nodemsg.RegionFailure) error {
	info, err := q.Regions.Member(word.Region)
	if err != nil {
		return err
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, word.Region)
	}
	if !q.Reports.Allow(peer) {
		return errors.New("the node reports too many failures")
	}
	shut := false
	q.Failures.with(word.Region, func(r *failureRecord) {
		// Two leaders may have failed before either was informed of the other: then this message completes the count.
		_, shut = r.add(failure{at: time.Now(), peer: peer, kind: fault.Kind(word.Kind), led: word.Led}, q.Self.Peer)
		r.why = word.Why
		if word.Shut {
			if r.quarantinedBy == nil {
				r.quarantinedBy = make(map[string]time.Time)
			}
			r.quarantinedBy[peer] = time.Now()
		}
		maps.DeleteFunc(r.quarantinedBy, func(peer string, since time.Time) bool {
			return !actor.HasMember(info, peer) || !q.persists(peer, info.ID, since)
		})
		shut = shut || 2*len(r.quarantinedBy) >= len(info.Members)
	})
	if shut {
		q.Quarantine(info, word.Why, peer)
	}
	return nil
}

// describeTime is how long a node may take to describe itself: what it says later is of afterwards.
const describeTime = 2 * time.Second

// persists reports whether a region is still quarantined on another member that said so. A restart or a release there ends it. A member that has not
// described itself since counts for failureWindow.
func (q *Quarantine) persists(peer string, id uint64, since time.Time) bool {
	about, at := q.Detector.About(peer)
	if at.Before(since.Add(describeTime)) {
		return time.Since(since) < failureWindow
	}
	return slices.Contains(about.Quarantined, id) || len(about.Quarantined) == nodemsg.MaxQuarantined
}

// Quarantine quarantines a region on this node. If the region is open, it ends.
func (q *Quarantine) Quarantine(info nodemsg.Region, why, by string) {
	already := false
	q.Failures.with(info.ID, func(r *failureRecord) {
		already = r.quarantined
		if !already {
			r.quarantined, r.since, r.why, r.by = true, time.Now(), why, by
		}
	})
	if already {
		return
	}
	q.Logger.Error("region quarantined: read-only until voxeld region release",
		"region", info.ID, "cell", Name(info), "why", why, "by", by)
	if l := q.Regions.Loaded(info.ID); l != nil {
		l.Close(QuarantinedReason)
	}
	if c := q.Regions.Catalog(); c != nil && info.ID == world.CatalogID {
		c.Close(QuarantinedReason)
	}
}

// Admit returns why a region must not be opened now, or nil.
func (q *Quarantine) Admit(ctx context.Context, info nodemsg.Region) error {
	r := q.Failures.look(info.ID)
	if r.quarantined {
		return ErrQuarantined
	}
	pause := time.Until(r.until)
	if pause <= 0 {
		return nil
	}
	if len(info.Members) > 1 {
		return ErrIsolated // another member leads it, or will
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ErrIsolated
	}
}

// OpenReadOnly returns the land that shows a quarantined region's land.
func (q *Quarantine) OpenReadOnly(hello nodemsg.Hello) (*actor.Land, error) {
	if l := q.Failures.look(hello.Region).readOnly; l != nil {
		return l, nil
	}
	info, err := q.Registry.Region(hello.Region)
	if err != nil {
		return nil, err
	}
	l, err := q.ReadOnly(info)
	if err != nil {
		return nil, fmt.Errorf("%w, and cannot be read: %w", ErrQuarantined, err)
	}
	released := false
	q.Failures.with(info.ID, func(r *failureRecord) {
		if released = !r.quarantined; !released {
			r.readOnly = l
		}
	})
	if released {
		return nil, actor.ErrNotHere // released while the land was read: nothing would end this land. The caller's next attempt finds the region.
	}
	started := q.Tasks.Start(func(ctx context.Context) {
		if caught := l.RunReadOnly(ctx, QuarantinedReason); caught != nil {
			q.Logger.Error("quarantined region cannot be served", "region", info.ID, "error", caught, "stack", string(caught.Stack))
		}
		q.Failures.with(info.ID, func(r *failureRecord) {
			if r.readOnly == l {
				r.readOnly = nil
			}
		})
		l.Finish()
	})
	if !started {
		return nil, background.ErrStopping
	}
	return l, nil
}

// Unlock clears the failures of a region, so that it can be opened again on this node.
func (q *Quarantine) Unlock(id uint64) {
	var shown *actor.Land
	was := false
	q.Failures.mu.Lock()
	if r := q.Failures.mu.regions[id]; r != nil {
		shown, was = r.readOnly, r.quarantined
		delete(q.Failures.mu.regions, id)
	}
	q.Failures.mu.Unlock()
	if !was {
		return
	}
	if shown != nil {
		shown.Close("the region is released")
	}
	q.Logger.Info("region released", "region", id)
	if id == world.CatalogID {
		q.CatalogReleased()
	}
}

// ReleasedBy releases a region because another member has released it.
func (q *Quarantine) ReleasedBy(peer string, id uint64) error {
	info, err := q.Regions.Member(id)
	if err != nil {
		return err
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, id)
	}
	q.Unlock(id)
	return nil
}

// NotOpened records that a region could not be opened, and logs it if the copy here is unusable. If opening it panicked, that
// counts as a failure.
func (q *Quarantine) NotOpened(info nodemsg.Region, err error) {
	var caught *fault.Fault
	switch {
	case errors.As(err, &caught):
		q.Metrics.isolated.WithLabelValues(caught.Kind.String()).Inc()
		q.Logger.Error("region isolated", "region", info.ID, "cell", info.Cell.String(), "reason", caught.Kind.String(), "error", err, "stack", string(caught.Stack))
		q.RecordFailure(info, caught, false)
	case errors.Is(err, actor.ErrNotHere), errors.Is(err, background.ErrStopping), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, replica.ErrOpen), errors.Is(err, replica.ErrStopped):
		return
	}
	q.Failures.with(info.ID, func(r *failureRecord) { r.openError = wire.ErrorText(err) })
	q.LogClosed(info, err)
}

// logEvery is the shortest interval at which it is logged that a region cannot be opened.
const logEvery = time.Minute

// LogClosed logs that a region cannot be opened on this node, and what to do.
func (q *Quarantine) LogClosed(info nodemsg.Region, why error) {
	due := false
	q.Failures.with(info.ID, func(r *failureRecord) {
		if due = r.logged.IsZero() || time.Since(r.logged) >= logEvery; due {
			r.logged = time.Now()
		}
	})
	if !due {
		return
	}
	do := "run voxeld doctor to see whether other members serve it; if it stays closed here, look for disk errors"
	switch {
	case errors.Is(why, errPutBack):
		do = "nothing while most other members live: they bring a new copy; start those that are down, or else see voxeld doctor"
	case errors.Is(why, errCorruptCopy):
		do = fmt.Sprintf("nothing while other members live: they bring a new copy; else put it back from a backup: voxeld region recover %s --from FILE", Name(info))
	case errors.Is(why, replica.ErrStorage):
		do = "free space on the disk of the data directory, and look for I/O errors; it opens by itself then"
	}
	q.Logger.Warn("region cannot be opened on this node", "region", info.ID, "cell", Name(info), "members", len(info.Members),
		"error", why, "do", do)
}

// Release ends the quarantine of a region on this node, which must be one of its members, and on those other members that can be
// reached. It returns the peers that were informed and those that were missed. On the latter, release the region again when they
// are back, or restart them.
func (q *Quarantine) Release(ctx context.Context, id uint64) (informed, missed []string, err error) {
	info, err := q.Regions.Member(id)
	if err != nil {
		return nil, nil, err
	}
	q.Unlock(id)
	for _, m := range info.Members {
		if m.Peer != q.Self.Peer {
			if _, err := q.Questions.Ask(ctx, m.Peer, nodemsg.Question{Release: &nodemsg.Release{Region: id}}); err != nil {
				q.Logger.Debug("release not sent to member", "region", id, "peer", m.Peer, "error", err)
				missed = append(missed, m.Peer)
				continue
			}
		}
		informed = append(informed, m.Peer)
	}
	return informed, missed, nil
}
