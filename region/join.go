package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file makes a node a member of a group that was founded without it.

// accept joins a group to which the peer invites. The catalog must list the peer as a member of that group.
func (o *opener) accept(ctx context.Context, peer string, invite nodemsg.Invite) error {
	if invite.Region.ID == world.CatalogID {
		return o.acceptCatalog(ctx, peer, invite)
	}
	if err := o.facts.Err(invite.Region.ID); integrity.Refused(err, copies.Quarantined) {
		return err
	}
	known, err := o.Directory.ByID(ctx, invite.Region.ID)
	if err != nil {
		return fmt.Errorf("look up region %d: %w", invite.Region.ID, err)
	}
	if known.Cell != invite.Region.Cell || !actor.HasMember(known, peer) {
		return fmt.Errorf("%s is not a member of region %d in the catalog", peer, invite.Region.ID)
	}
	hello := nodemsg.Hello{Region: invite.Region.ID, Cell: invite.Region.Cell}
	_, err = o.joining.Do(ctx, o.Tasks, helloKey(hello), func(ctx context.Context) (*actor.Land, error) { return o.joinGroup(ctx, peer, invite) })
	return err
}

// joinGroup joins the group of a land.
func (o *opener) joinGroup(ctx context.Context, peer string, invite nodemsg.Invite) (*actor.Land, error) {
	info := invite.Region
	var open *actor.Actor
	l := o.Loaded(info.ID)
	if l != nil {
		open = l.Actor
	}
	g, err := o.join(ctx, peer, invite, open, landTables(info.ID), func() error { return o.Registry.Put(info) })
	if g == nil || err != nil {
		return l, err
	}
	o.Logger.Info("region joined", "region", info.ID, "cell", info.Cell.String(), "replica", invite.Replica)
	return o.serve(info, g)
}

// acceptCatalog joins the catalog's group. Most of its members must say that the peer is one of them.
func (o *opener) acceptCatalog(ctx context.Context, peer string, invite nodemsg.Invite) error {
	known, err := o.Directory.FindCatalog(ctx)
	if err != nil {
		return err
	}
	if !actor.HasMember(known, peer) {
		return fmt.Errorf("%s is not a member of the catalog as far as this node knows", peer)
	}
	var open *actor.Actor
	if c := o.Catalog(); c != nil {
		open = c.Actor
	}
	g, err := o.join(ctx, peer, invite, open, actor.CatalogTables, func() error { return nil })
	if g == nil || err != nil {
		return err
	}
	c, err := o.newCatalog(g)
	if err != nil {
		return err
	}
	o.Logger.Info("catalog joined", "replica", invite.Replica)
	return o.startCatalog(c)
}

// join joins a group as the replica that the invitation names. Open is the actor of an earlier replica, nil if there is
// none. Remember stores that this node is a member. The group is nil if this node is that replica already.
func (o *opener) join(ctx context.Context, peer string, invite nodemsg.Invite, open *actor.Actor, tables []replica.TablePrefix, remember func() error) (*replica.Group, error) {
	info := invite.Region
	if err := o.executor.CheckInvited(ctx, peer, info.ID, invite.Replica); err != nil {
		return nil, err
	}
	if open != nil {
		switch own := actor.OwnReplica(open.Raft(), o.Self.Peer); {
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
	err := o.incarnations.create(info.ID, join.ID, func() (err error) {
		if err = remember(); err != nil {
			return err
		}
		g, err = o.Replicas.Join(ctx, join)
		if errors.Is(err, replica.ErrReplaced) {
			if err := errors.Join(o.Delete(info), remember()); err != nil {
				return err
			}
			g, err = o.Replicas.Join(ctx, join)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", integrity.Name(info), err)
	}
	return g, nil
}
