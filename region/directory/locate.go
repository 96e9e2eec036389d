package directory

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Locate returns the region that covers the chunk. It asks the nearest source first: the cache, the leaders of neighbouring
// cells, the DHT, then the catalog. If the region does not exist, Locate founds it.
func (d *Directory) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
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
		_, err := d.flights.Do(ctx, d.Tasks, cell.String(), func(ctx context.Context) (nodemsg.Region, error) {
			return d.search(ctx, cell, pos) // for another chunk of the cell, this may find another region
		})
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("locate chunk %v: %w", pos, err)
		}
	}
}

func (d *Directory) search(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, error) {
	if !d.invalidated.Contains(cell) {
		if info, ok := d.fromHints(ctx, cell, pos); ok {
			return d.CacheRoute(info), nil
		}
	}
	info, err := d.FromCatalog(ctx, pos)
	if err == nil {
		d.count("catalog")
		d.invalidated.Remove(cell)
		return d.CacheRoute(info), nil
	}
	if !errors.Is(err, ErrNotFounded) {
		return nodemsg.Region{}, err
	}
	if info, err = d.found(ctx, cell); err != nil {
		return nodemsg.Region{}, err
	}
	d.count("founded")
	d.invalidated.Remove(cell)
	return d.CacheRoute(info), nil
}

// fromHints asks the neighbours and the DHT, which usually have the answer and are nearer than the catalog.
func (d *Directory) fromHints(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	if info, ok := d.fromNeighbours(ctx, cell, pos); ok {
		d.count("neighbour")
		return info, true
	}
	if info, err := d.Records.Region(ctx, cell); err == nil && covers(info, pos) {
		d.count("dht")
		return info, true
	}
	return nodemsg.Region{}, false
}

// fromNeighbours asks those leaders of adjacent cells that this node knows: the leader of a cell keeps routes to its neighbours
// (Walkad §IV-B). They get half of hintTime.
func (d *Directory) fromNeighbours(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime/2)
	defer cancel()
	asked := map[string]bool{d.Self.Peer: true}
	for _, next := range cell.Adjacent() {
		info, ok := d.known.Peek(next)
		if !ok || info.Leader == "" || asked[info.Leader] || len(asked) > 2 || d.Detector.Suspected(info.Leader) { // two neighbours at most
			continue
		}
		asked[info.Leader] = true
		answer, err := d.Questions.Ask(ctx, info.Leader, nodemsg.Question{Locate: &nodemsg.Locate{Chunk: pos}})
		if err == nil && answer.Region != nil && covers(*answer.Region, pos) {
			return *answer.Region, true
		}
	}
	return nodemsg.Region{}, false
}

// FromCatalog asks the catalog. It returns ErrNotFounded if there is no such region.
func (d *Directory) FromCatalog(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{Chunk: pos}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Locate(ctx, pos) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !covers(info, pos) {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about chunk %v", pos)
	}
	return info, nil
}

// ByID asks the catalog for a region by its id. It returns ErrNotFounded if there is none.
func (d *Directory) ByID(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{ID: id}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Find(ctx, id) })
	if err == nil && info.ID != id {
		err = fmt.Errorf("the catalog's reply does not match the question about region %d", id)
	}
	return info, err
}

// found picks the nearest live nodes to the cell's key and asks the catalog to found the cell there.
func (d *Directory) found(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	members, err := d.nearestAlive(ctx, cell)
	if err != nil {
		return nodemsg.Region{}, err
	}
	request := nodemsg.Found{Cell: cell, Members: members}
	info, err := d.consult(ctx, nodemsg.Question{Found: &request},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Found(ctx, request) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(info, cell)
}

// ReportMoved reports a region's members to the catalog and returns the region as the catalog then has it.
func (d *Directory) ReportMoved(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	known, err := d.consult(ctx, nodemsg.Question{Moved: &info},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Moved(ctx, info) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(known, info.Cell)
}

// nearestAlive asks the nodes nearest to the cell's key, nearest first, until enough have answered.
func (d *Directory) nearestAlive(ctx context.Context, cell grid.Cell) ([]nodemsg.Member, error) {
	peers, err := d.Records.Nearest(ctx, d.Key(cell), Candidates)
	if err != nil {
		return nil, fmt.Errorf("find nodes near %v: %w", cell, err)
	}
	var members []nodemsg.Member
	for _, peer := range peers {
		if len(members) == d.Copies {
			break
		}
		if peer == d.Self.Peer {
			members = append(members, d.Self)
			continue
		}
		member, err := d.Questions.Describe(ctx, peer)
		if err != nil {
			d.Logger.Debug("node skipped", "peer", peer, "error", err)
			continue
		}
		members = append(members, member)
	}
	if len(members) == 0 {
		members = append(members, d.Self)
	}
	return members, nil
}

// checkCell returns the region of the catalog's answer after checking that it is about the cell.
func checkCell(info nodemsg.Region, cell grid.Cell) (nodemsg.Region, error) {
	if !usable(info, cell) {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about cell %v", cell)
	}
	return info, nil
}

// covers reports whether a hint is about a region around the chunk, split or not, and names a leader.
func covers(info nodemsg.Region, pos grid.ChunkPos) bool {
	return info.Cell.Label.Len() >= grid.FoundingLabel && info.Cell.Contains(pos) && info.Leader != ""
}

// usable reports whether a hint is about the cell and names a leader.
func usable(info nodemsg.Region, cell grid.Cell) bool { return info.Cell == cell && info.Leader != "" }

// Introduce announces the leader of this cell to the leaders of adjacent cells and caches the routes to them (Walkad §IV-B,
// coordinator selection, steps 3 and 4).
func (d *Directory) Introduce(ctx context.Context, info nodemsg.Region) {
	for _, next := range info.Cell.Adjacent() {
		there, ok := d.known.Peek(next)
		if !ok {
			var err error
			if there, err = d.Records.Region(ctx, next); err != nil || !usable(there, next) {
				continue
			}
			d.AddHint(there)
		}
		if there.Leader == "" || there.Leader == d.Self.Peer {
			continue
		}
		if _, err := d.Questions.Ask(ctx, there.Leader, nodemsg.Question{Introduce: &info}); err != nil {
			d.Logger.Debug("region not introduced", "peer", there.Leader, "error", err)
		}
	}
}
