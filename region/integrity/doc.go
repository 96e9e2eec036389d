// Package integrity keeps the copies of regions on this node sound. It knows what is wrong with each (Facts), and
// carries out what package copies decides (Executor). It compares copies (Scrubber), recovers regions from one survivor
// (Recovery), founds lost ones again (Refounder), and keeps terrain that this node generates differently (Bases). It
// judges whether a group continues without the copy here (Judge), and notifies members whose group was recovered
// without them (Evicted).
//
// It also notices when a node's storage was put back to an earlier state (Incarnations): a copy of its data directory,
// or a snapshot of its disk. Such a node has forgotten what it has promised as a voter, and must not vote again with
// what it has (docs/adr/0024-no-way-back-in-time.md). Every start of a node is an incarnation, with a random number.
// The node stores them all, in order: its lineage. Other nodes remember the newest incarnation that it has shown to
// them. A lineage without the remembered incarnation is from an earlier state. While the node runs and promises
// something it counts, so that a snapshot of the disk beneath a running node is noticed as well, if the node ran on for
// raiseEvery.
//
// The Run methods have a goroutine of their own. Any goroutine may call the other methods, except where they say
// otherwise.
package integrity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Storage is the node's storage.
type Storage interface {
	directory.Storage
	// View runs read on a snapshot of all tables.
	View(read func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error) error
}

// Regions are the regions and the catalog on this node.
type Regions interface {
	// Loaded returns a loaded region, or nil.
	Loaded(id uint64) *actor.Land
	// Catalog returns the catalog if this node is a member of it, else nil.
	Catalog() *actor.Catalog
	// Open returns a region's land and loads it first if necessary. The error is a Refusal if its copy here is not to
	// be opened.
	Open(ctx context.Context, id uint64, cell grid.Cell) (*actor.Land, error)
	// Groups lists the groups that are open on this node.
	Groups() []placement.Group
	// Member returns a region of which this node is a member, possibly the catalog, or actor.ErrNotHere.
	Member(id uint64) (nodemsg.Region, error)
}

// Node is what the parts of this package share. All fields are required.
type Node struct {
	Self      nodemsg.Member
	Height    int32 // of the world, in blocks
	Storage   Storage
	Replicas  *replica.Host
	Registry  *directory.Registry
	Directory *directory.Directory
	Questions transport.Questions
	Detector  *directory.Detector
	Tasks     *background.Tasks
	Regions   Regions
	Logger    *slog.Logger
	Metrics   *Metrics
}

// Deletion returns the writes that delete the rows of a region, or of the catalog, besides those of its group.
func (n *Node) Deletion(id uint64) ([]kv.Write, error) {
	if id != world.CatalogID {
		return n.Registry.Deletion(id)
	}
	return actor.CatalogDeletion(n.Storage.Keys)
}

// Delete deletes what this node stores of a closed region, possibly the catalog, that it is no longer a member of.
func (n *Node) Delete(info nodemsg.Region) error {
	writes, err := n.Deletion(info.ID)
	if err == nil {
		err = n.Replicas.Remove(info.ID, writes...)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", Name(info), err)
	}
	if info.ID == world.CatalogID {
		return nil
	}
	n.Registry.Forget(info.ID)
	if info.Leader == n.Self.Peer {
		n.Directory.Invalidate(info)
	}
	return nil
}

// Membership returns the region that makes this node a member: from the stored row, or from the catalog. The error is
// actor.ErrNotHere if nothing does.
func (n *Node) Membership(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := n.Registry.Region(id)
	if !errors.Is(err, actor.ErrNotHere) {
		return info, err
	}
	info, err = n.Directory.ByID(ctx, id)
	if err == nil && !actor.HasMember(info, n.Self.Peer) || errors.Is(err, directory.ErrNotFounded) {
		return nodemsg.Region{}, actor.ErrNotHere
	}
	return info, err
}

// OpenMember returns the group of a region, possibly the catalog, that this node is a member of, as far as it knows,
// and loads it first if necessary.
func (n *Node) OpenMember(ctx context.Context, id uint64) (placement.Group, error) {
	groups := n.Regions.Groups()
	if i := slices.IndexFunc(groups, func(g placement.Group) bool { return g.ID == id }); i >= 0 {
		return groups[i], nil
	}
	info, err := n.Membership(ctx, id)
	if err != nil {
		return placement.Group{}, err
	}
	l, err := n.Regions.Open(ctx, id, info.Cell)
	if err != nil {
		return placement.Group{}, err
	}
	return placement.GroupOf(l), nil
}

// openActor returns the actor of a group that is open, or nil.
func (n *Node) openActor(id uint64) *actor.Actor {
	if l := n.Regions.Loaded(id); l != nil {
		return l.Actor
	}
	if c := n.Regions.Catalog(); c != nil && id == world.CatalogID {
		return c.Actor
	}
	return nil
}

// Name returns the name of a region for people: its cell, or "catalog".
func Name(info nodemsg.Region) string {
	if info.ID == world.CatalogID {
		return "catalog"
	}
	return info.Cell.String()
}

// waitFor waits until done is closed.
func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CatalogOf returns the catalog's region for a configuration of its group. Only the peers are filled in.
func CatalogOf(conf replica.Configured) nodemsg.Region {
	info := nodemsg.Region{ID: world.CatalogID, Epoch: actor.EpochOf(conf)}
	for _, m := range conf.Members {
		info.Members = append(info.Members, nodemsg.Member{Peer: m.Peer, Replica: m.ID, Learner: m.Learner})
	}
	return info
}
