package integrity

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// recoveredTable stores the groups that were recovered on this node, until all former members have been notified: id, 8
// bytes big-endian → the group before.
const recoveredTable = "recovered"

// Evicted are the former members of the groups that were recovered on this node, until they have been notified
// (docs/adr/0009).
type Evicted struct {
	EvictedOptions

	mu struct {
		sync.Mutex
		before map[uint64]nodemsg.Region // recovered groups as they were
	}
}

// EvictedOptions are what Evicted needs. All fields are required.
type EvictedOptions struct {
	Self      nodemsg.Member
	Storage   directory.Storage
	Replicas  *replica.Host
	Questions transport.Questions
	Detector  *directory.Detector
	Logger    *slog.Logger
}

// LoadEvicted returns what is stored of recovered groups.
func LoadEvicted(o EvictedOptions) (*Evicted, error) {
	e := &Evicted{EvictedOptions: o}
	e.mu.before = make(map[uint64]nodemsg.Region)
	err := o.Storage.Scan(recoveredTable, nil, func(_, value []byte) error {
		before, err := nodemsg.DecodeRegion(value)
		e.mu.before[before.ID] = before
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list recovered regions: %w", err)
	}
	return e, nil
}

// Keep stores the former members of a group that is about to be recovered, whose epoch counts the recoveries before.
// Former members that an earlier recovery has left are kept, too.
func (e *Evicted) Keep(before nodemsg.Region) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	before.Members = slices.Clone(before.Members)
	for _, m := range e.mu.before[before.ID].Members {
		if !actor.HasMember(before, m.Peer) {
			before.Members = append(before.Members, m)
		}
	}
	before.Members = before.Members[:min(len(before.Members), wire.MaxMembers)] // a row with more is not valid
	return e.store(before)
}

// Notify notifies the former members, as they come back, that their copies are superseded.
func (e *Evicted) Notify(ctx context.Context) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.mu.before))
	e.mu.Unlock()
	if len(all) == 0 {
		return
	}
	peers := make(directory.Watched)
	for _, before := range all {
		for _, m := range before.Members {
			peers.Add(m.Peer, e.Detector.Every)
		}
	}
	e.Detector.Refresh(ctx, peers)
	for _, before := range all {
		if err := e.forget(before, e.notify(ctx, before)); err != nil {
			e.Logger.Warn("former members not stored", "region", before.ID, "error", err)
		}
	}
}

// notify returns those former members of a group that have been notified now. While the copy here does not count the
// recovery, there are none: they ask this node, and would be told that they are members.
func (e *Evicted) notify(ctx context.Context, before nodemsg.Region) (notified []string) {
	var living []string
	for _, m := range before.Members {
		if _, lives := e.Detector.Alive(m.Peer); lives {
			living = append(living, m.Peer)
		}
	}
	if len(living) == 0 {
		return nil
	}
	own, err := e.Replicas.Position(before.ID)
	if err != nil || own.Members.Recovered <= actor.ConfigurationOf(before.Epoch).Recovered {
		return nil
	}
	for _, peer := range living {
		if _, err := e.Questions.Ask(ctx, peer, nodemsg.Question{Superseded: &nodemsg.Release{Region: before.ID}}); err != nil {
			e.Logger.Debug("former member not notified", "region", before.ID, "peer", peer, "error", err)
			continue
		}
		notified = append(notified, peer)
	}
	return notified
}

// forget removes former members that have been notified, unless the group was recovered again meanwhile.
func (e *Evicted) forget(before nodemsg.Region, notified []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.mu.before[before.ID]
	if len(notified) == 0 || left.Epoch != before.Epoch {
		return nil
	}
	left.Members = slices.DeleteFunc(slices.Clone(left.Members), func(m nodemsg.Member) bool { return slices.Contains(notified, m.Peer) })
	return e.store(left)
}

// store stores the former members of a group; with none it deletes the entry. The caller holds the lock.
func (e *Evicted) store(before nodemsg.Region) error {
	write, err := EvictedRow(before, e.Self.Game)
	if err != nil {
		return err
	}
	if err := e.Storage.Commit([]kv.Write{write}); err != nil {
		return fmt.Errorf("store former members of region %d: %w", before.ID, err)
	}
	if e.mu.before[before.ID] = before; len(before.Members) == 0 {
		delete(e.mu.before, before.ID)
	}
	return nil
}

// EvictedRow returns the write that stores the former members of a recovered group; with none it deletes the entry.
// Game is the address of this node's game server.
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
