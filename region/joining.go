package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file makes a node a member of a group that was founded without it, and opens groups that are closed everywhere and whose
// members are no longer the right ones.

// accept joins a group to which the peer invites. The catalog must list the peer as a member of that group.
func (h *Host) accept(ctx context.Context, peer string, invite nodemsg.Invite) error {
	if invite.Region.ID == world.CatalogID {
		return h.acceptCatalog(ctx, peer, invite)
	}
	if h.failures.quarantined(invite.Region.ID) {
		return errQuarantined
	}
	known, err := h.Directory.byID(ctx, invite.Region.ID)
	if err != nil {
		return fmt.Errorf("look up region %d: %w", invite.Region.ID, err)
	}
	if known.Cell != invite.Region.Cell || !hasMember(known, peer) {
		return fmt.Errorf("%s is not a member of region %d in the catalog", peer, invite.Region.ID)
	}
	hello := nodemsg.Hello{Region: invite.Region.ID, Cell: invite.Region.Cell}
	_, err = h.joining.Do(ctx, h.tasks, helloKey(hello), func(ctx context.Context) (*loop, error) { return h.joinGroup(ctx, invite) })
	return err
}

// ownReplica returns the replica id that the group has for the node self, or 0.
func ownReplica(g *replica.Group, self string) uint64 {
	for _, m := range g.Configuration().Members {
		if m.Peer == self {
			return m.ID
		}
	}
	return 0
}

func (h *Host) joinGroup(ctx context.Context, invite nodemsg.Invite) (*loop, error) {
	info := invite.Region
	join := replica.JoinInfo{Group: info.ID, ID: invite.Replica, Tables: landTables(info.ID)}
	for _, v := range invite.Voters {
		join.Members = append(join.Members, replica.Member{ID: v.ID, Peer: v.Peer, Learner: v.Learner})
	}
	if l := h.loop(info.ID); l != nil {
		switch own := ownReplica(l.raft, h.Self.Peer); {
		case own == invite.Replica:
			return l, nil // it was invited before, or raft's first message arrived before the invitation and opened it
		case own > invite.Replica:
			return nil, fmt.Errorf("join region %d as replica %d: this node is already replica %d", info.ID, invite.Replica, own)
		}
		// An earlier replica, which was removed without noticing.
		l.inbox.Put(func() { l.removed = true })
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := h.store(info); err != nil {
		return nil, err
	}
	g, err := h.Replicas.Join(ctx, join)
	if errors.Is(err, replica.ErrReplaced) {
		if err := h.deleteRegion(info); err != nil {
			return nil, err
		}
		if err := h.store(info); err != nil {
			return nil, err
		}
		g, err = h.Replicas.Join(ctx, join)
	}
	if err != nil {
		return nil, fmt.Errorf("join region %d: %w", info.ID, err)
	}
	h.Logger.Info("region joined", "region", info.ID, "cell", info.Cell.String(), "replica", invite.Replica)
	return h.serve(info, g)
}

// resolveMember asks a member for its description and sends that to the loop. A member that does not answer is asked again when
// this node leads the region.
func (h *Host) resolveMember(l *loop, peer string) {
	h.start(func(ctx context.Context) {
		member, err := h.questions.Describe(ctx, peer)
		if err != nil {
			h.Logger.Debug("member not known", "region", l.info.ID, "peer", peer, "error", err)
			return
		}
		l.inbox.Put(func() { l.addMember(member) })
	})
}

// wakeMisplaced opens some of the closed regions that this node is responsible for and whose members are not the right ones. Once
// they are open, the supervisor changes their members.
func (h *Host) wakeMisplaced(ctx context.Context) error {
	var wrong []nodemsg.Region
	peers := make(failuredetector.Watched)
	err := h.Storage.Scan(regionTable, nil, func(_, value []byte) error {
		info, err := nodemsg.DecodeRegion(value)
		if err != nil {
			return err
		}
		if h.loop(info.ID) == nil && !h.failures.quarantined(info.ID) && h.responsible(info) && h.misplaced(info, peers) && len(wrong) < maxWokenPerCheck {
			wrong = append(wrong, info)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list regions: %w", err)
	}
	delete(peers, h.Self.Peer)
	h.detector.Refresh(ctx, peers)
	if len(wrong) > 0 {
		h.checkedNodes = "" // there may be more
	}
	for _, info := range wrong {
		l, err := h.loadGroup(ctx, nodemsg.Hello{Region: info.ID, Cell: info.Cell})
		if err != nil {
			h.Logger.Debug("region not opened", "cell", info.Cell.String(), "error", err)
			continue
		}
		l.raft.Campaign()
	}
	return nil
}

// responsible reports whether this node is responsible for the closed region: the last leader is, or else the first member that
// is not gone.
func (h *Host) responsible(info nodemsg.Region) bool {
	if info.Leader == h.Self.Peer {
		return true
	}
	if info.Leader != "" && !h.detector.Gone(info.Leader) {
		return false
	}
	for _, m := range info.Members {
		if m.Peer == h.Self.Peer {
			return true
		}
		if !h.detector.Gone(m.Peer) {
			return false
		}
	}
	return false
}

// misplaced reports whether a live node that should be a member is not one, or a member is gone and can be replaced. It adds the
// nodes whose state it needs to peers.
func (h *Host) misplaced(info nodemsg.Region, peers failuredetector.Watched) bool {
	members := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers.Add(m.Peer, h.detector.Every)
		members[i] = m.Peer
	}
	wanted := 0
	for _, peer := range h.Records.NearestKnown(h.Directory.key(info.Cell), candidates, members...) {
		peers.Add(peer, h.detector.StrangerEvery)
		_, lives := h.detector.Alive(peer)
		if peer != h.Self.Peer && !lives && (!hasMember(info, peer) || h.detector.Gone(peer)) {
			continue
		}
		if !hasMember(info, peer) {
			return true
		}
		if wanted++; wanted == h.Copies {
			break
		}
	}
	return false
}

// key returns the cell's key in the DHT.
func (d *Directory) key(cell grid.Cell) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.keys.Key(cell)
}
