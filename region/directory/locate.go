package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Locate returns the region that covers the chunk. It asks the nearest source first: the cache, then the leaders of land nearby, or
// the DHT if it knows no such land, then the catalog. If the region does not exist, Locate founds it.
func (d *Directory) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.locate(ctx, pos, true)
}

// Find returns the region that covers the chunk like Locate, but does not found it: the error is ErrNotFounded then.
func (d *Directory) Find(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.locate(ctx, pos, false)
}

// FindConfirmed returns the region that covers the chunk like Confirmed, but does not found it. A route that is cached may be of land that was
// given up since: the error is ErrNotFounded then, too, and the route is dropped.
func (d *Directory) FindConfirmed(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.confirmed(ctx, pos, false)
}

func (d *Directory) locate(ctx context.Context, pos grid.ChunkPos, found bool) (nodemsg.Region, error) {
	if !pos.Valid() {
		return nodemsg.Region{}, fmt.Errorf("chunk %v lies outside of the world", pos)
	}
	for source := "cache"; ; source = "" {
		cell, info, ok := d.cached(pos)
		if ok {
			if source != "" {
				d.count(source)
			}
			return info, nil
		}
		flight := cell.String()
		if !found {
			flight += " without founding"
		}
		_, err := d.flights.Do(ctx, d.Tasks, flight, func(ctx context.Context) (nodemsg.Region, error) {
			return d.search(ctx, cell, pos, found) // for another chunk of the cell, this may find another region
		})
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("locate chunk %v: %w", pos, err)
		}
	}
}

const (
	// relistTime is how long the catalog is waited for if it has listed the route's leader before, or has just not answered.
	relistTime = 300 * time.Millisecond
	// silentFor is how long the catalog counts as silent after it has not answered.
	silentFor = 10 * time.Second
)

// Confirmed returns the region that covers the chunk like Locate, but with the members that the catalog lists, and one of them as the leader:
// every admitted node can introduce itself as the leader of any land (docs/adr/0084). While the catalog does not answer, the region has the
// members that it listed last, and those of the route if that is newer; or it is as Locate returns it, if the leader was not listed. Then a
// node that lies may pass for its leader.
func (d *Directory) Confirmed(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return d.confirmed(ctx, pos, true)
}

func (d *Directory) confirmed(ctx context.Context, pos grid.ChunkPos, found bool) (nodemsg.Region, error) {
	for range grid.MaxLabel {
		known, err := d.locate(ctx, pos, found)
		if err != nil {
			return known, err
		}
		listed, lately, ok := d.listed.last(known)
		if !lately {
			now, err := askListed(ctx, d, pos, known, ok)
			switch {
			case errors.Is(err, ErrNotFounded) && !found:
				d.Invalidate(known)
				return known, fmt.Errorf("locate chunk %v: %w", pos, err)
			case errors.Is(err, ErrNotFounded):
				if listed, err = d.found(ctx, grid.CellAt(pos, grid.FoundingLabel)); err != nil {
					return known, fmt.Errorf("locate chunk %v: %w", pos, err)
				}
			case err == nil:
				listed = now
			default:
				d.Logger.Debug("route not confirmed by the catalog", "cell", known.Cell.String(), "leader", known.Leader, "error", err)
				if !ok {
					return known, nil
				}
				if known.Newer(listed) { // the members that are listed may be gone
					listed.Members = slices.Concat(listed.Members, slices.DeleteFunc(slices.Clone(known.Members),
						func(m nodemsg.Member) bool { return actor.HasMember(listed, m.Peer) }))
				}
			}
		}
		if listed.ID == known.ID && listed.Cell == known.Cell && !listed.Newer(known) {
			known.Members = listed.Members
			if !actor.HasMember(listed, known.Leader) {
				known.Leader = listed.Leader
				if listed.Split == 0 { // else the catalog has not heard of a merge
					d.CacheRoute(listed)
				}
			}
			return known, nil
		}
		if d.CacheRoute(listed).Split == 0 {
			return listed, nil
		}
	}
	return nodemsg.Region{}, fmt.Errorf("locate chunk %v: its region is being split again and again", pos)
}

// askListed asks the catalog for the region of a route, split or not. If it does not list that one, it is asked for the region that covers the
// chunk. An answer that comes too late for the caller is listed, too.
func askListed(ctx context.Context, d *Directory, pos grid.ChunkPos, known nodemsg.Region, before bool) (nodemsg.Region, error) {
	limit := lookTime
	if at := d.silent.Load(); before || at != nil && time.Since(*at) < silentFor || d.Hung() && d.Catalog() != nil {
		limit = relistTime
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := fmt.Sprintf("%v of %v", pos, known.Cell)
	return d.flights.Do(waiting, d.Tasks, key, func(ctx context.Context) (nodemsg.Region, error) {
		silent := func() { now := time.Now(); d.silent.Store(&now) }
		late := time.AfterFunc(lookTime, silent)
		listed, err := d.Exactly(ctx, known.Cell)
		if err == nil && listed.ID != known.ID || errors.Is(err, ErrNotFounded) {
			listed, err = d.FromCatalog(ctx, pos)
		}
		late.Stop()
		if err == nil || errors.Is(err, ErrNotFounded) {
			d.silent.Store(nil)
		} else {
			silent()
		}
		return listed, err
	})
}

func (d *Directory) search(ctx context.Context, cell grid.Cell, pos grid.ChunkPos, found bool) (nodemsg.Region, error) {
	wrong := d.invalidated.Contains(cell)
	if !wrong {
		if info, ok := d.fromHints(ctx, cell, pos); ok {
			return d.CacheRoute(info), nil
		}
	}
	info, err := d.FromCatalog(ctx, pos)
	source := "catalog"
	if errors.Is(err, ErrNotFounded) && found {
		source = "founded"
		info, err = d.found(ctx, grid.CellAt(pos, grid.FoundingLabel)) // the cell may be a part, by a hint that lies
	} else if err != nil && !wrong && !errors.Is(err, ErrNotFounded) { // land that exists is found without the catalog
		if info, ok := d.fromRecord(ctx, cell, pos); ok {
			return d.CacheRoute(info), nil
		}
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	d.count(source)
	d.invalidated.Remove(cell)
	return d.CacheRoute(info), nil
}

// fromHints walks the links from known land. The DHT's record is for nodes that know no land near: next to known land, what the
// leaders there do not know has most likely not been founded yet, and the catalog decides that anyway.
func (d *Directory) fromHints(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	info, source, near := d.walk(ctx, pos)
	if source != "" {
		d.count(source)
		return info, true
	}
	if near {
		return nodemsg.Region{}, false
	}
	return d.fromRecord(ctx, cell, pos)
}

// fromRecord asks the DHT. It gets half of hintTime.
func (d *Directory) fromRecord(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime/2)
	defer cancel()
	info, err := d.Records.Region(ctx, cell)
	if err != nil || !covers(info, pos) {
		return nodemsg.Region{}, false
	}
	d.count("dht")
	return info, true
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

// nearestAlive asks the nodes nearest to the cell's key, nearest first, until enough have answered. If they should be five of five operators and some
// of these do not answer, it asks the others, too, and returns no more than Copies.
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
