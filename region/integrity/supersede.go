package integrity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/region/succession"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file detects copies that are superseded: those from before an operator recovered the group from one survivor (docs/adr/0009), and
// those that were replaced while their nodes were away. The node drops such a copy before it serves the region, and joins again.

// recoveredTable stores the regions that were recovered on this node, until all former members have been notified: id, 8 bytes → the region before.
const recoveredTable, maxValidated = "recovered", 65536

// Supersession detects copies that are superseded.
type Supersession struct {
	Node

	Judge *succession.Judge
	// Release clears the failures of a region.
	Release func(id uint64)

	mu struct {
		sync.Mutex
		validated map[uint64]struct{}       // groups whose copies here are known not to be superseded
		evicted   map[uint64]nodemsg.Region // recovered regions as they were, whose former members are still to be notified
	}
}

// NewSupersession returns what is stored of recovered regions.
func NewSupersession(n Node, judge *succession.Judge, release func(id uint64)) (*Supersession, error) {
	u := &Supersession{Node: n, Judge: judge, Release: release}
	u.mu.validated = make(map[uint64]struct{})
	u.mu.evicted = make(map[uint64]nodemsg.Region)
	err := n.Storage.Scan(recoveredTable, nil, func(_, value []byte) error {
		before, err := nodemsg.DecodeRegion(value)
		u.mu.evicted[before.ID] = before
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list recovered regions: %w", err)
	}
	return u, nil
}

// CatalogOf returns the catalog's region for a configuration of its group. Only the peers are filled in.
func CatalogOf(conf replica.Configured) nodemsg.Region {
	info := nodemsg.Region{ID: world.CatalogID, Epoch: actor.EpochOf(conf)}
	for _, m := range conf.Members {
		info.Members = append(info.Members, nodemsg.Member{Peer: m.Peer, Replica: m.ID, Learner: m.Learner})
	}
	return info
}

var errSuperseded = errors.New("the region continues without this node; the copy here is dropped")

// ValidateCopy ensures that a region's copy here is not superseded. It asks the other members each time until most have answered: the node
// may have left the group while it was away. If nobody answers, the copy is used.
func (u *Supersession) ValidateCopy(ctx context.Context, info nodemsg.Region) error {
	u.mu.Lock()
	_, known := u.mu.validated[info.ID]
	u.mu.Unlock()
	if known {
		return nil
	}
	v := u.judge(ctx, info.ID)
	if v.Confirmed {
		u.Logger.Warn("region continues without this node; its copy is dropped", "region", info.ID, "cell", Name(info))
		if err := u.Regions.Delete(info); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errSuperseded, actor.ErrNotHere)
	}
	if v.Claimed {
		u.Logger.Warn("a member says that the region continues without this node; nothing confirms it, and the copy is kept", "region", info.ID, "cell", Name(info))
	}
	if v.Claimed || !v.Settled {
		return nil // it is checked again when the region is next opened
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.mu.validated) >= maxValidated {
		clear(u.mu.validated)
	}
	u.mu.validated[info.ID] = struct{}{}
	return nil
}

// ValidateCatalogCopy is ValidateCopy for the catalog.
func (u *Supersession) ValidateCatalogCopy(ctx context.Context) error {
	if u.judge(ctx, world.CatalogID).Confirmed {
		return errSuperseded
	}
	return nil
}

// judge is Judge. The verdict is zero if there is no copy that can be read.
func (u *Supersession) judge(ctx context.Context, id uint64, also ...string) succession.Verdict {
	own, err := u.Replicas.Position(id)
	if err != nil {
		return succession.Verdict{}
	}
	return u.Judge.Judge(ctx, id, own, also...)
}

// CheckInvited returns an error if a peer invites this node to a group as a later replica, although nothing confirms that the group continues without the one
// here, which has state.
func (u *Supersession) CheckInvited(ctx context.Context, peer string, id, replica uint64) error {
	own, err := u.Replicas.Position(id)
	if err != nil || own.Members.Index == 0 || own.Replica >= replica || u.Judge.Judge(ctx, id, own, peer).Confirmed {
		return nil //nolint:nilerr // there is no copy, or one that cannot be read
	}
	return fmt.Errorf("invited to group %d as replica %d: %w as replica %d", id, replica, succession.ErrUnconfirmed, own.Replica)
}

// Check checks a peer's message that a region was recovered without this node, and drops the copy if that is confirmed.
func (u *Supersession) Check(ctx context.Context, peer string, id uint64) error {
	info, err := u.Regions.Member(id)
	if errors.Is(err, actor.ErrNotHere) {
		return nil // there is nothing to be dropped
	}
	if err != nil {
		return err
	}
	open := u.openActor(id) // another copy may join meanwhile
	switch v := u.judge(ctx, id, peer); {
	case !v.Claimed && !v.Heard:
		return fmt.Errorf("region %d: %w", id, succession.ErrUnheard) // the peer repeats it
	case !v.Claimed:
		return nil // this copy is of the same group, or of a later one
	case !v.Confirmed:
		return fmt.Errorf("region %d: %w", id, succession.ErrUnconfirmed)
	}
	u.Logger.Warn("region was recovered without this node; its copy is dropped", "region", id, "cell", Name(info))
	if open != nil {
		open.Remove(false)
		return waitFor(ctx, open.Done())
	}
	if id != world.CatalogID {
		u.Release(id)
	}
	return u.Regions.Delete(info)
}

// NotifyEvicted notifies the former members of recovered regions, as they come back, that their copies are superseded.
func (u *Supersession) NotifyEvicted(ctx context.Context) {
	u.mu.Lock()
	all := make([]nodemsg.Region, 0, len(u.mu.evicted))
	for _, before := range u.mu.evicted {
		all = append(all, before)
	}
	u.mu.Unlock()
	if len(all) == 0 {
		return
	}
	peers := make(failuredetector.Watched)
	for _, before := range all {
		for _, m := range before.Members {
			peers.Add(m.Peer, u.Detector.Every)
		}
	}
	u.Detector.Refresh(ctx, peers)
	for _, before := range all {
		left := before
		left.Members = nil
		for _, m := range before.Members {
			if _, lives := u.Detector.Alive(m.Peer); lives {
				_, err := u.Questions.Ask(ctx, m.Peer, nodemsg.Question{Superseded: &nodemsg.Release{Region: before.ID}})
				if err == nil {
					continue
				}
				u.Logger.Debug("former member not notified", "region", before.ID, "peer", m.Peer, "error", err)
			}
			left.Members = append(left.Members, m)
		}
		if len(left.Members) == len(before.Members) {
			continue
		}
		if err := u.KeepEvicted(left); err != nil {
			u.Logger.Warn("former members not stored", "region", before.ID, "error", err)
		}
	}
}

// EvictedRow returns the write that stores the former members of a recovered region; with none it deletes the entry. Game is the
// address of this node's game server.
func EvictedRow(before nodemsg.Region, game string) (kv.Write, error) {
	write := kv.Write{Table: recoveredTable, Key: directory.Key(before.ID)}
	if len(before.Members) == 0 {
		return write, nil
	}
	before.Members = slices.Clone(before.Members)
	for i := range before.Members {
		if before.Members[i].Game == "" { // only the peers matter, but a row must be valid
			before.Members[i].Game = game
		}
	}
	var err error
	if write.Value, err = nodemsg.EncodeRegion(before); err != nil {
		return kv.Write{}, fmt.Errorf("store former members of region %d: %w", before.ID, err)
	}
	return write, nil
}

// KeepEvicted stores the former members of a recovered region; with none it deletes the entry.
func (u *Supersession) KeepEvicted(before nodemsg.Region) error {
	write, err := EvictedRow(before, u.Self.Game)
	if err != nil {
		return err
	}
	if err := u.Storage.Commit([]kv.Write{write}); err != nil {
		return fmt.Errorf("store former members of region %d: %w", before.ID, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mu.evicted[before.ID] = before; len(before.Members) == 0 {
		delete(u.mu.evicted, before.ID)
	}
	return nil
}
