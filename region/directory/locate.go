package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file finds the land of players (docs/adr/0102). The catalog says which nodes are the members of a region, so no
// other node can pass for one. What nodes say is only a hint: which member leads, and whether the region was split or
// merged. A hint is followed beyond the members that the catalog lists only while the catalog does not answer.

const (
	// relistTime is how long the catalog is waited for if it has listed the region's leader before, or has just not
	// answered.
	relistTime = 300 * time.Millisecond
	// silentFor is how long the catalog counts as silent after it has not answered.
	silentFor = 10 * time.Second
	// recordTime bounds the search for a region's record in the DHT.
	recordTime = 1500 * time.Millisecond
)

// What told where a region is: the values of voxeld_region_lookups_total.
const (
	fromCache    = "cache"       // the catalog, lately: see listings
	fromCatalog  = "catalog"     // the catalog, just now
	fromFounding = "founded"     // the catalog, which has founded the region
	fromMemory   = "remembered"  // the catalog does not answer: what it listed before
	fromHint     = "unconfirmed" // the catalog does not answer, and has never listed the leader: a node's word
)

// Locate returns the region that covers the chunk, with the members that the catalog lists, and the one of them as the
// leader that was named last. If the region does not exist, Locate founds it. While the catalog does not answer, the
// region has the members that it listed last, and later ones that nodes name; or it is as nodes say, if the catalog has
// not listed the leader that they name. Then a node that lies may pass for it.
func (d *Directory) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.locate(ctx, pos, true)
}

// Find returns the region that covers the chunk like Locate, but does not found it: the error is ErrNotFounded then.
func (d *Directory) Find(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.locate(ctx, pos, false)
}

func (d *Directory) locate(ctx context.Context, pos grid.ChunkPos, found bool) (nodemsg.Region, error) {
	if !pos.Valid() {
		return nodemsg.Region{}, fmt.Errorf("chunk %v lies outside of the world", pos)
	}
	for range grid.MaxLabel {
		info, source, err := d.locateOnce(ctx, pos, found)
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("locate chunk %v: %w", pos, err)
		}
		if info.Split == 0 {
			d.located.WithLabelValues(source).Inc()
			return info, nil
		}
	}
	return nodemsg.Region{}, fmt.Errorf("locate chunk %v: its region is being split again and again", pos)
}

// locateOnce returns also the source. If the region turns out to be split, its children are cached.
func (d *Directory) locateOnce(ctx context.Context, pos grid.ChunkPos, found bool) (info nodemsg.Region, source string, err error) {
	hint, hinted := d.Known(pos)
	listed, lately, before := d.listed.last(hint)
	source = fromCache
	if !lately {
		now, err := d.ask(ctx, pos, hint, d.patience(before))
		if unanswered(err) && !before {
			if hint, ok := d.unconfirmed(ctx, pos, hinted); ok {
				return hint, fromHint, nil
			}
			now, err = d.ask(ctx, pos, hint, background.AttemptTime) // nothing else is known
		}
		switch {
		case err == nil:
			listed, source = now, fromCatalog
		case errors.Is(err, ErrNotFounded) && found:
			if listed, err = d.foundOnce(ctx, grid.CellAt(pos, grid.FoundingLabel)); err != nil {
				return info, source, err
			}
			source = fromFounding
		case errors.Is(err, ErrNotFounded):
			d.Invalidate(hint)
			return info, source, err
		case before:
			source = fromMemory
			if hint.Newer(listed) { // the members that are listed may be gone
				listed.Members = slices.Concat(listed.Members, slices.DeleteFunc(slices.Clone(hint.Members),
					func(m nodemsg.Member) bool { return actor.HasMember(listed, m.Peer) }))
			}
		default:
			return info, source, err
		}
	}
	if listed.ID != hint.ID || listed.Cell != hint.Cell || listed.Newer(hint) {
		return d.CacheRoute(listed), source, nil
	}
	hint.Members = listed.Members
	if !actor.HasMember(listed, hint.Leader) {
		hint.Leader = listed.Leader
		if listed.Split == 0 { // else the catalog does not list a merge yet
			d.CacheRoute(listed)
		}
	}
	return hint, source, nil
}

// unanswered reports whether an error means that the catalog has not answered.
func unanswered(err error) bool { return err != nil && !errors.Is(err, ErrNotFounded) }

// patience returns how long the catalog is waited for. Before reports that it has listed the region's leader before.
func (d *Directory) patience(before bool) time.Duration {
	if at := d.silent.Load(); before || at != nil && time.Since(*at) < silentFor || d.Hung() && d.Catalog() != nil {
		return relistTime
	}
	return lookTime
}

// ask asks the catalog for the region of a hint, split or not. If it does not list that one, it is asked for the region
// that covers the chunk. An answer that comes too late for the caller is listed, too.
func (d *Directory) ask(ctx context.Context, pos grid.ChunkPos, hint nodemsg.Region, patience time.Duration) (nodemsg.Region, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := fmt.Sprintf("%v of %v", pos, hint.Cell)
	return d.flights.Do(ctx, d.Tasks, key, func(ctx context.Context) (nodemsg.Region, error) {
		silent := func() { now := time.Now(); d.silent.Store(&now) }
		late := time.AfterFunc(lookTime, silent)
		listed, err := nodemsg.Region{}, ErrNotFounded
		if hint.ID != 0 {
			listed, err = d.Exactly(ctx, hint.Cell)
		}
		if err == nil && listed.ID != hint.ID || errors.Is(err, ErrNotFounded) {
			listed, err = d.FromCatalog(ctx, pos)
		}
		late.Stop()
		if unanswered(err) {
			silent()
		} else {
			d.silent.Store(nil)
		}
		return listed, err
	})
}

// unconfirmed returns the region that covers the chunk as other nodes say: as it is cached, if hinted is set, or as its
// record in the DHT says.
func (d *Directory) unconfirmed(ctx context.Context, pos grid.ChunkPos, hinted bool) (hint nodemsg.Region, ok bool) {
	if !hinted {
		ctx, cancel := context.WithTimeout(ctx, recordTime)
		defer cancel()
		cell, _, _ := d.cached(pos)
		record, err := d.Records.Region(ctx, cell)
		if err != nil || !covers(record, pos) {
			return hint, false
		}
		d.CacheRoute(record)
	}
	hint, ok = d.Known(pos)
	if ok {
		d.Logger.Warn("the catalog does not answer: land is looked for where other nodes say it is",
			"cell", hint.Cell.String(), "leader", hint.Leader)
	}
	return hint, ok
}

// foundOnce is found, once for all who ask at the same time.
func (d *Directory) foundOnce(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	return d.flights.Do(ctx, d.Tasks, "found "+cell.String(), func(ctx context.Context) (nodemsg.Region, error) {
		return d.found(ctx, cell)
	})
}

// found picks the nearest live nodes to the cell's key and asks the catalog to found the cell there.
func (d *Directory) found(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	members, err := d.nearestAlive(ctx, cell)
	if err != nil {
		return nodemsg.Region{}, err
	}
	request := nodemsg.Found{Cell: cell, Members: members}
	info, err := consult(ctx, d, nodemsg.Question{Found: &request},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Found(ctx, request) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	if info, err = checkCell(info, cell); err != nil {
		return info, err
	}
	return d.listed.put(info), nil
}

// nearestAlive asks the nodes nearest to the cell's key, nearest first, until enough have answered. If they should be
// five of five operators and some of these do not answer, it asks the others, too, and returns no more than Copies.
func (d *Directory) nearestAlive(ctx context.Context, cell grid.Cell) ([]nodemsg.Member, error) {
	peers, err := d.Records.Nearest(ctx, d.Key(cell), Candidates)
	if err != nil {
		return nil, fmt.Errorf("find nodes near %v: %w", cell, err)
	}
	size, able := membership.Choose(d.Copies, nil, peers, d.Records.Operator)
	others := slices.DeleteFunc(slices.Clone(peers), func(peer string) bool { return slices.Contains(able, peer) })
	var members []nodemsg.Member
	for i, peer := range slices.Concat(able, others) {
		if len(members) == size || i >= len(able) && len(members) >= d.Copies {
			break
		}
		if peer == d.Self.Peer {
			members = append(members, d.Self)
			continue
		}
		answer, err := d.Questions.Description(ctx, peer)
		if err != nil || answer.Hung {
			d.Logger.Debug("node skipped", "peer", peer, "hung", answer.Hung, "error", err)
			continue
		}
		members = append(members, *answer.Member)
	}
	switch {
	case len(members) == 0:
		members = append(members, d.Self)
	case len(members) < size:
		members = members[:min(d.Copies, len(members))]
	}
	return members, nil
}
