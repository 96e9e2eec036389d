package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file keeps replicas out whose node was put back to an earlier state (docs/adr/0024).

// incarnations are those of Options, which may be nil: then no node was put back.
type incarnations struct{ known *integrity.Incarnations }

// admit returns an error if raft messages of the peer do not count here. The two nodes show each other first that their
// data is not older than what the other one has seen of them. If not, the stream is reset: a sender that only writes
// would not notice that it is closed.
func (i incarnations) admit(ctx context.Context, peer string, stream io.ReadWriteCloser) error {
	if i.known == nil {
		return nil
	}
	err := i.known.Exchange(ctx, peer)
	if err == nil {
		return nil
	}
	if s, ok := stream.(interface{ Reset() }); ok {
		s.Reset()
	}
	return err
}

// replaced records that the replica of a group that must not be used is gone.
func (i incarnations) replaced(group uint64) error {
	if i.known == nil {
		return nil
	}
	return i.known.Replaced(group)
}

// create calls create, which opens a replica of which nothing is stored here, or only an outdated one. The error is
// replica.ErrTombstone if this node was that replica before its data was put back: it is to be invited under another
// id.
func (i incarnations) create(group, id uint64, create func() error) error {
	if i.known == nil {
		return create()
	}
	err := i.known.Create(group, id, create)
	if errors.Is(err, integrity.ErrForgotten) {
		return fmt.Errorf("%w: %w", replica.ErrTombstone, err)
	}
	return err
}

// unlisted is integrity.Incarnations.Unlisted, and rolledBackTo is Reached.
func (i incarnations) unlisted() bool { return i.known != nil && i.known.Unlisted() }

func (i incarnations) rolledBackTo() time.Time {
	if i.known == nil {
		return time.Time{}
	}
	return i.known.Reached()
}

// copied is integrity.Incarnations.Copied.
func (i incarnations) copied() (own bool, others []string) {
	if i.known == nil {
		return false, nil
	}
	return i.known.Copied()
}

// Copied reports whether two copies of this node's data run at the same time, and returns the other nodes of which that
// is so.
func (h *Host) Copied() (own bool, others []string) { return incarnations{h.Incarnations}.copied() }

// lostEvery is the pause between two attempts to list the replicas that are lost.
const lostEvery = 3 * time.Second

// findForgotten finds the replicas that this node had, and that are not in the earlier state to which it was put back.
// It runs until ctx ends.
func (h *Host) findForgotten(ctx context.Context) {
	every := time.NewTicker(lostEvery)
	defer every.Stop()
	for {
		if h.Incarnations.Unlisted() {
			if err := h.listLostNow(ctx); err != nil {
				h.Logger.Debug("lost replicas not listed yet", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (h *Host) listLostNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	catalog, err := h.Directory.NewestCatalog(ctx)
	if err != nil {
		return err
	}
	regions := map[uint64]nodemsg.Region{world.CatalogID: catalog}
	others, answered := 0, 0
	for _, m := range catalog.Members {
		if m.Peer == h.Self.Peer {
			continue
		}
		others++
		all, err := h.Examiner.RegionsOn(ctx, m.Peer)
		if err != nil {
			h.Logger.Debug("regions not listed", "peer", m.Peer, "error", err)
			continue
		}
		answered++
		for _, info := range all {
			if known, found := regions[info.ID]; !found || info.Newer(known) {
				regions[info.ID] = info
			}
		}
	}
	if answered < min(others, len(catalog.Members)/2+1) {
		return fmt.Errorf("%d of %d other members of the catalog have listed the regions", answered, others)
	}
	held, err := replica.Replicas(h.Storage, h.Self.Peer)
	if err != nil {
		return err
	}
	lost := make(map[uint64]uint64)
	for id, info := range regions {
		i := slices.IndexFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == h.Self.Peer })
		if i < 0 || held[id] != 0 || len(info.Members) == 1 {
			continue
		}
		lost[id] = cmp.Or(info.Members[i].Replica, uint64(i)+1) // the first members are numbered
		h.executor.NoteMissing(info)
	}
	return h.Incarnations.Lost(lost)
}
