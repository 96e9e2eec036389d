package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// catalogRounds is how often all known members of the catalog are asked, and catalogPause the time between: together longer
	// than an election takes.
	catalogRounds = 8
	catalogPause  = 300 * time.Millisecond
)

// This file contacts the catalog's group, publishes its leader and keeps it on the right nodes.

// root returns the catalog if this node is a member of it, else nil.
func (h *Host) root() *catalog {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.catalog
}

func (h *Host) deleteCatalog() error {
	var writes []kv.Write
	err := h.Storage.Scan(world.CatalogTable, nil, func(key, _ []byte) error {
		writes = append(writes, kv.Write{Table: world.CatalogTable, Key: append([]byte(nil), key...)})
		return nil
	})
	if err == nil {
		err = h.Replicas.Remove(world.CatalogID, writes...)
	}
	if err != nil {
		return fmt.Errorf("delete catalog: %w", err)
	}
	return nil
}

// catalogChanged publishes that this node leads the catalog.
func (h *Host) catalogChanged(root nodemsg.Region) {
	h.Directory.cacheCatalog(root)
	h.start(func(ctx context.Context) {
		if err := h.Records.PutCatalog(ctx, root); err != nil {
			h.Logger.Warn("publish catalog", "error", err)
		}
	})
}

func (h *Host) resolveCatalogMember(c *catalog, peer string) {
	h.start(func(ctx context.Context) {
		member, err := h.questions.Describe(ctx, peer)
		if err != nil {
			h.Logger.Debug("member of the catalog not known", "peer", peer, "error", err)
			return
		}
		c.inbox.Put(func() { c.addMember(member) })
	})
}

// catalogGroup returns the catalog as a group for the supervisor.
func (h *Host) catalogGroup(c *catalog) ledGroup {
	return ledGroup{
		id: world.CatalogID, key: grid.CatalogKey, copies: h.CatalogCopies, group: c.group, info: c.where,
		known: func(m nodemsg.Member) { c.inbox.Put(func() { c.addMember(m) }) },
	}
}

// acceptCatalog joins the catalog's group. The DHT must list the peer as a member of it.
func (h *Host) acceptCatalog(ctx context.Context, peer string, invite nodemsg.Invite) error {
	known, err := h.Records.Catalog(ctx)
	if err != nil {
		return fmt.Errorf("find the catalog: %w", err)
	}
	if !hasMember(known, peer) {
		return fmt.Errorf("%s is not a member of the catalog as far as this node knows", peer)
	}
	if c := h.root(); c != nil {
		switch own := ownReplica(c.group, h.Self.Peer); {
		case own == invite.Replica:
			return nil // it was invited before
		case own > invite.Replica:
			return fmt.Errorf("join the catalog as replica %d: this node is already replica %d", invite.Replica, own)
		}
		c.inbox.Put(func() { c.removed = true }) // an earlier replica, which was removed without noticing
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	join := replica.JoinInfo{Group: world.CatalogID, ID: invite.Replica, Tables: catalogTables}
	for _, v := range invite.Voters {
		join.Members = append(join.Members, replica.Member{ID: v.ID, Peer: v.Peer, Learner: v.Learner})
	}
	g, err := h.Replicas.Join(ctx, join)
	if errors.Is(err, replica.ErrReplaced) {
		if err := h.deleteCatalog(); err != nil {
			return err
		}
		g, err = h.Replicas.Join(ctx, join)
	}
	if err != nil {
		return fmt.Errorf("join the catalog: %w", err)
	}
	c, err := h.newCatalog(g)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.mu.catalog = c
	h.mu.Unlock()
	h.Logger.Info("catalog joined", "replica", invite.Replica)
	if !h.start(func(ctx context.Context) { h.runCatalog(ctx, c) }) {
		return background.ErrStopping
	}
	return nil
}

// consult asks the catalog's leader: with here, if this node is the leader. The known members are asked in turn, and again while
// there is no leader.
func (d *Directory) consult(ctx context.Context, q nodemsg.Question, here func(*catalog) (nodemsg.Region, error)) (nodemsg.Region, error) {
	var failed error
	for range catalogRounds {
		if c := d.host.root(); c != nil {
			region, err := here(c)
			if !errors.Is(err, errCatalogElsewhere) {
				return region, err
			}
			if root, err := c.where(ctx); err == nil && root.Leader != "" && len(root.Members) > 0 {
				d.cacheCatalog(root)
			}
		}
		region, again, err := d.consultRound(ctx, q)
		if !again {
			return region, err
		}
		failed = err
		select {
		case <-ctx.Done():
			return nodemsg.Region{}, ctx.Err()
		case <-time.After(catalogPause):
		}
	}
	return nodemsg.Region{}, failed
}

// consultRound asks each known member once. Again reports that none of them leads, or answers.
func (d *Directory) consultRound(ctx context.Context, q nodemsg.Question) (region nodemsg.Region, again bool, err error) {
	d.mu.Lock()
	at := d.mu.catalog
	d.mu.Unlock()
	tried := map[string]bool{d.host.Self.Peer: true}
	for _, source := range []func() (nodemsg.Region, error){
		func() (nodemsg.Region, error) { return at, nil },
		func() (nodemsg.Region, error) {
			ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
			defer cancel()
			return d.host.Records.Catalog(ctx)
		},
	} {
		if at, err = source(); err != nil {
			return nodemsg.Region{}, ctx.Err() == nil && d.host.root() != nil, fmt.Errorf("find the catalog: %w", err)
		}
		for next := d.host.detector.First(at, tried); next != ""; next = d.host.detector.First(at, tried) {
			tried[next] = true
			answer, asked := d.askCatalog(ctx, next, q)
			switch {
			case asked == nil && answer.Region != nil && answer.Region.ID == world.CatalogID: // it is led elsewhere
				if answer.Region.Leader != "" && !tried[answer.Region.Leader] {
					at = *answer.Region
				}
				err = errCatalogElsewhere
			case asked == nil && answer.Region == nil:
				return nodemsg.Region{}, false, errNotFounded
			case asked == nil:
				at.Leader = next
				d.cacheCatalog(at)
				return *answer.Region, false, nil
			case answer.Error != "":
				return nodemsg.Region{}, false, asked
			default:
				d.host.detector.Suspect(next)
				err = fmt.Errorf("ask the catalog on %s: %w", next, asked)
			}
			if ctx.Err() != nil {
				return nodemsg.Region{}, false, err
			}
		}
	}
	if err == nil {
		err = errCatalogElsewhere
	}
	return nodemsg.Region{}, true, err
}

// askCatalog asks a member of the catalog. A change takes a commit; a lookup is answered at once.
func (d *Directory) askCatalog(ctx context.Context, peer string, q nodemsg.Question) (nodemsg.Answer, error) {
	if q.Authority != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookTime)
		defer cancel()
	}
	return d.host.questions.Ask(ctx, peer, q)
}

func (d *Directory) cacheCatalog(root nodemsg.Region) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.catalog = root
}
