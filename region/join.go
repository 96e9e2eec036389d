package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file makes a node a member of a group that was founded without it.

// accept joins a group to which the peer invites. The catalog must list the peer as a member of that group.
func (r *regions) accept(ctx context.Context, peer string, invite nodemsg.Invite) error {
	if invite.Region.ID == world.CatalogID {
		return r.acceptCatalog(ctx, peer, invite)
	}
	if err := r.facts.Err(invite.Region.ID); integrity.Refused(err, copies.Quarantined) {
		return err
	}
	known, err := r.Directory.ByID(ctx, invite.Region.ID)
	if err != nil {
		return fmt.Errorf("look up region %d: %w", invite.Region.ID, err)
	}
	if known.Cell != invite.Region.Cell || !actor.HasMember(known, peer) {
		return fmt.Errorf("%s is not a member of region %d in the catalog", peer, invite.Region.ID)
	}
	hello := nodemsg.Hello{Region: invite.Region.ID, Cell: invite.Region.Cell}
	_, err = r.joining.Do(ctx, r.Tasks, helloKey(hello), func(ctx context.Context) (*actor.Land, error) { return r.joinGroup(ctx, peer, invite) })
	return err
}

// joinGroup joins the group of a land.
func (r *regions) joinGroup(ctx context.Context, peer string, invite nodemsg.Invite) (*actor.Land, error) {
	info := invite.Region
	var open *actor.Actor
	l := r.Loaded(info.ID)
	if l != nil {
		open = l.Actor
	}
	g, err := r.join(ctx, peer, invite, open, landTables(info.ID), func() error { return r.Registry.Put(info) })
	if g == nil || err != nil {
		return l, err
	}
	r.Logger.Info("region joined", "region", info.ID, "cell", info.Cell.String(), "replica", invite.Replica)
	return r.serve(info, g)
}

// acceptCatalog joins the catalog's group. Most of its members must say that the peer is one of them.
func (r *regions) acceptCatalog(ctx context.Context, peer string, invite nodemsg.Invite) error {
	known, err := r.Directory.FindCatalog(ctx)
	if err != nil {
		return err
	}
	if !actor.HasMember(known, peer) {
		return fmt.Errorf("%s is not a member of the catalog as far as this node knows", peer)
	}
	var open *actor.Actor
	if c := r.Catalog(); c != nil {
		open = c.Actor
	}
	g, err := r.join(ctx, peer, invite, open, actor.CatalogTables, func() error { return nil })
	if g == nil || err != nil {
		return err
	}
	c, err := r.newCatalog(g)
	if err != nil {
		return err
	}
	r.setCatalog(c)
	r.Logger.Info("catalog joined", "replica", invite.Replica)
	if !r.Tasks.Start(func(ctx context.Context) { r.runCatalog(ctx, c) }) {
		return background.ErrStopping
	}
	return nil
}

// join joins a group as the replica that the invitation names. Open is the actor of an earlier replica, nil if there is
// none. Remember stores that this node is a member. The group is nil if this node is that replica already.
func (r *regions) join(ctx context.Context, peer string, invite nodemsg.Invite, open *actor.Actor, tables []replica.TablePrefix, remember func() error) (*replica.Group, error) {
	info := invite.Region
	if err := r.executor.CheckInvited(ctx, peer, info.ID, invite.Replica); err != nil {
		return nil, err
	}
	if open != nil {
		switch own := actor.OwnReplica(open.Raft(), r.Self.Peer); {
		case own == invite.Replica:
			return nil, nil //nolint:nilnil // it was invited before, or raft's first message arrived before the invitation and opened it
		case own > invite.Replica:
			return nil, fmt.Errorf("join %s as replica %d: this node is already replica %d", integrity.Name(info), invite.Replica, own)
		}
		open.Remove(false) // an earlier replica, which was removed without noticing
		select {
		case <-open.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	join := replica.JoinInfo{Group: info.ID, ID: invite.Replica, Tables: tables}
	for _, v := range invite.Voters {
		join.Members = append(join.Members, replica.Member{ID: v.ID, Peer: v.Peer, Learner: v.Learner})
	}
	var g *replica.Group
	err := r.create(info.ID, join.ID, func() (err error) {
		if err = remember(); err != nil {
			return err
		}
		g, err = r.Replicas.Join(ctx, join)
		if errors.Is(err, replica.ErrReplaced) {
			if err := errors.Join(r.Delete(info), remember()); err != nil {
				return err
			}
			g, err = r.Replicas.Join(ctx, join)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", integrity.Name(info), err)
	}
	return g, nil
}
