package integrity

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/succession"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file detects copies that are superseded: those from before an operator recovered the group from one survivor (docs/adr/0009), and
// those that were replaced while their nodes were away. The node drops such a copy before it serves the region, and joins again.

// maxValidated is how many copies are not checked again.
const maxValidated = 65536

// Supersession detects copies that are superseded.
type Supersession struct {
	Node

	Judge   *succession.Judge
	Evicted *succession.Evicted
	// Release clears the failures of a region.
	Release func(id uint64)

	mu struct {
		sync.Mutex
		validated map[uint64]struct{} // groups whose copies here are known not to be superseded
	}
}

// NewSupersession returns a Supersession with what is stored of recovered regions.
func NewSupersession(n Node, judge *succession.Judge, release func(id uint64)) (*Supersession, error) {
	evicted, err := succession.LoadEvicted(succession.EvictedOptions{
		Self: n.Self, Storage: n.Storage, Replicas: n.Replicas, Questions: n.Questions, Detector: n.Detector, Logger: n.Logger,
	})
	u := &Supersession{Node: n, Judge: judge, Evicted: evicted, Release: release}
	u.mu.validated = make(map[uint64]struct{})
	return u, err
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
	v := u.judge(ctx, u.Judge, info.ID)
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
	if u.judge(ctx, u.Judge, world.CatalogID).Confirmed {
		return errSuperseded
	}
	return nil
}

// judge returns a Judge's verdict. It is zero if there is no copy that can be read.
func (u *Supersession) judge(ctx context.Context, by *succession.Judge, id uint64, also ...string) succession.Verdict {
	own, err := u.Replicas.Position(id)
	if err != nil {
		return succession.Verdict{}
	}
	return by.Judge(ctx, id, own, also...)
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

// Check drops the copy of a group here if a Judge confirms that the group continues without this node. The members are asked, and the peers in also.
func (u *Supersession) Check(ctx context.Context, by *succession.Judge, id uint64, also ...string) error {
	info, err := u.Regions.Member(id)
	if errors.Is(err, actor.ErrNotHere) {
		return nil // there is nothing to be dropped
	}
	if err != nil {
		return err
	}
	open := u.openActor(id) // another copy may join meanwhile
	switch v := u.judge(ctx, by, id, also...); {
	case !v.Claimed && !v.Heard:
		return fmt.Errorf("region %d: %w", id, succession.ErrUnheard) // it is checked again
	case !v.Claimed:
		return nil // this copy is of the same group, or of a later one
	case !v.Confirmed:
		return fmt.Errorf("region %d: %w", id, succession.ErrUnconfirmed)
	}
	u.Logger.Warn("region continues without this node; its copy is dropped", "region", id, "cell", Name(info))
	if open != nil {
		open.Remove(false)
		return waitFor(ctx, open.Done())
	}
	if id != world.CatalogID {
		u.Release(id)
	}
	return u.Regions.Delete(info)
}
