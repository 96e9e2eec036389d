package integrity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file detects copies that are superseded: those of a group from before an operator recovered it from one survivor
// (docs/adr/0009), and those that were replaced while their nodes were away. The node drops such a copy before it serves the
// region, and joins again.

// recoveredTable stores the regions that were recovered on this node, until all former members have been notified: id, 8 bytes
// big-endian → the region before. maxValidated is how many copies are not checked again.
const recoveredTable, maxValidated = "recovered", 65536

// Supersession detects copies that are superseded.
type Supersession struct {
	Node

	// AskStatuses asks a node for the status of regions.
	AskStatuses AskStatuses
	// Release clears the failures of a region.
	Release func(id uint64)

	mu struct {
		sync.Mutex
		validated map[uint64]struct{}       // groups whose copies here are known not to be superseded
		evicted   map[uint64]nodemsg.Region // recovered regions as they were, whose former members are still to be notified
	}
}

// NewSupersession returns what is stored of recovered regions.
func NewSupersession(n Node, ask AskStatuses, release func(id uint64)) (*Supersession, error) {
	u := &Supersession{Node: n, AskStatuses: ask, Release: release}
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

// validateTime bounds how long a region waits for its other members to report whether it was recovered without this node.
const validateTime = time.Second

// errSuperseded is returned if the region continues elsewhere without the copy of this node.
var errSuperseded = errors.New("the region continues without this node; the copy here is dropped")

// ValidateCopy ensures that a region's copy here is not superseded, once for each region while the process runs. A node that
// comes back asks the other members before it acts for a group that it may have left.
func (u *Supersession) ValidateCopy(ctx context.Context, info nodemsg.Region) error {
	u.mu.Lock()
	_, known := u.mu.validated[info.ID]
	u.mu.Unlock()
	if known {
		return nil
	}
	if u.superseded(ctx, info) {
		u.Logger.Warn("region continues without this node; its copy is dropped", "region", info.ID, "cell", Name(info))
		if err := u.Regions.Delete(info); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errSuperseded, actor.ErrNotHere)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.mu.validated) >= maxValidated {
		clear(u.mu.validated) // they are checked again
	}
	u.mu.validated[info.ID] = struct{}{}
	return nil
}

// ValidateCatalogCopy is ValidateCopy for the catalog.
func (u *Supersession) ValidateCatalogCopy(ctx context.Context, c *actor.Catalog) error {
	if u.superseded(ctx, CatalogOf(c.Raft().Configuration())) {
		return errSuperseded
	}
	return nil
}

// superseded asks the other members whether their group continues without the copy here.
func (u *Supersession) superseded(ctx context.Context, info nodemsg.Region) bool {
	if len(info.Members) < 2 {
		return false
	}
	own, err := u.Replicas.Position(info.ID)
	if err != nil {
		return false // there is no copy, or it cannot be opened
	}
	ctx, cancel := context.WithTimeout(ctx, validateTime)
	defer cancel()
	var crew sync.WaitGroup
	newer := make(chan struct{}, len(info.Members))
	for _, m := range info.Members {
		if m.Peer == u.Self.Peer || u.Detector.Suspected(m.Peer) {
			continue
		}
		crew.Go(func() {
			statuses, _, err := u.AskStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{info.ID}, Log: true})
			switch {
			case err != nil:
				u.Detector.Suspect(m.Peer)
			case u.replaces(statuses[0], own):
				newer <- struct{}{}
			}
		})
	}
	crew.Wait()
	return len(newer) > 0
}

// replaces reports whether a copy on another node belongs to a group that continues without the one here. That group was
// recovered more often or has a later configuration, and does not contain this replica. (A replica that has just joined and has
// no configuration yet does not count.) Otherwise two replicas that were replaced while away could form a majority of the
// configuration that they remember. Groups that were recovered equally often may or may not be the same.
func (u *Supersession) replaces(there nodemsg.RegionStatus, own replica.Position) bool {
	if there.State == nodemsg.StateNone || own.Members.Index == 0 {
		return false
	}
	mine := own.Members.Recovered
	later := there.Recovered > mine || there.Recovered == mine && mine == 0 && there.Epoch > actor.EpochOf(own.Members)
	return later && !slices.ContainsFunc(there.Members, func(c nodemsg.MemberStatus) bool {
		return c.Replica.ID == own.Replica && c.Replica.Peer == u.Self.Peer
	})
}

// Check checks a peer's message that a region was recovered without this node, and drops the copy if that is true.
func (u *Supersession) Check(ctx context.Context, peer string, id uint64) error {
	info, err := u.Regions.Member(id)
	if errors.Is(err, actor.ErrNotHere) {
		return nil // there is nothing to be dropped
	}
	if err != nil {
		return err
	}
	statuses, _, err := u.AskStatuses(ctx, peer, nodemsg.StatusRequest{Regions: []uint64{id}, Log: true})
	if err != nil {
		return err
	}
	own, err := u.Replicas.Position(id)
	if err != nil {
		return err
	}
	if !u.replaces(statuses[0], own) {
		return nil // this copy is of the same group, or of a later one
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, id)
	}
	u.Logger.Warn("region was recovered without this node; its copy is dropped", "region", id, "cell", Name(info))
	if open := u.openActor(id); open != nil {
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
