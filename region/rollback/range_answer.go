package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file answers the questions of other nodes, and of this one.

var (
	errTooManyQueries = errors.New("too many range queries; ask again later")
	errNoCatalog      = errors.New("this node does not hold the catalog")
)

// Answer answers a question of another node.
func (r *Ranges) Answer(ctx context.Context, peer string, q nodemsg.RangeRequest) nodemsg.Answer {
	if !r.askers.Allow(peer) {
		return nodemsg.Answer{Error: errTooManyQueries.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for share := 1; ; share *= 2 {
		answer, err := r.part(ctx, q, share)
		if err != nil {
			return transport.Refused(err)
		}
		whole := nodemsg.Answer{Range: &answer}
		if _, err := nodemsg.EncodeAnswer(whole); err == nil || share > nodemsg.MaxRangeRegions {
			return whole
		}
	}
}

// part returns what this node knows of the rectangle. An answer that would be too long is made again with half as much:
// share is 2, then 4.
func (r *Ranges) part(ctx context.Context, q nodemsg.RangeRequest, share int) (nodemsg.RangeAnswer, error) {
	most, mostRoutes := max(1, nodemsg.MaxRangeRegions/share), max(1, nodemsg.MaxRangeRoutes/share)
	if q.Listed {
		return r.listed(ctx, q, mostRoutes)
	}
	regions, routes := r.regionsIn(ctx, q)
	regions = slices.DeleteFunc(regions, func(g nodemsg.RangeRegion) bool { return g.Region.ID <= q.After })
	slices.SortFunc(regions, func(a, b nodemsg.RangeRegion) int { return cmp.Compare(a.Region.ID, b.Region.ID) })
	var answer nodemsg.RangeAnswer
	players := 0
	for i := range regions {
		g := &regions[i]
		if len(answer.Regions) == most || i > 0 && players+len(g.Inside) > nodemsg.MaxRangePlayers {
			answer.More = true
			break
		}
		players += len(g.Inside)
		answer.Regions = append(answer.Regions, *g)
	}
	answer.Routes = nearest(routes, answer.Regions, mostRoutes)
	return answer, nil
}

// listed answers as a member of the catalog.
func (r *Ranges) listed(ctx context.Context, q nodemsg.RangeRequest, most int) (answer nodemsg.RangeAnswer, err error) {
	c := r.Regions.Catalog()
	if c == nil {
		return answer, errNoCatalog
	}
	answer.Routes, err = c.Within(ctx, q.Area.Area(), q.After)
	answer.More = len(answer.Routes) >= most
	answer.Routes = answer.Routes[:min(most, len(answer.Routes))]
	return answer, err
}

// regionsIn returns the regions in the rectangle that this node leads or holds closed, and the routes that it knows to
// the others.
func (r *Ranges) regionsIn(ctx context.Context, q nodemsg.RangeRequest) (regions []nodemsg.RangeRegion, routes []nodemsg.Region) {
	area := q.Area.Area()
	seen := make(map[uint64]bool)
	var waits []func() (nodemsg.RangeRegion, bool)
	for _, l := range r.Lands() {
		if l.Cell().Area().Overlaps(area) {
			waits = append(waits, r.askLand(ctx, l, q))
		}
	}
	for _, wait := range waits { // all at once: each answers at its next tick
		g, ok := wait()
		if !ok {
			continue
		}
		seen[g.Region.ID] = true
		if g.Region.Split != 0 || g.State == nodemsg.StateNone {
			routes = append(routes, g.Region)
		} else {
			regions = append(regions, g)
		}
	}
	closed := func(id uint64) {
		info, err := r.Registry.Region(id)
		has, _ := r.Replicas.Has(id)
		switch {
		case seen[id], err != nil, !has, r.Regions.Loaded(id) != nil, !info.Cell.Area().Overlaps(area):
		case info.Split != 0:
			seen[id] = true
			routes = append(routes, info)
		default:
			seen[id] = true
			g := nodemsg.RangeRegion{Region: info, State: nodemsg.StateClosed}
			if r.Quarantined(id) {
				g.State = nodemsg.StateQuarantined
			}
			if q.Surface {
				g.Surface, g.Clipped = r.surfaces.stored(ctx, r.Storage, info, r.Height, area)
			}
			regions = append(regions, g)
		}
	}
	for _, id := range q.Regions {
		closed(id)
	}
	for _, info := range r.Directory.Cover(area, maxRegions) {
		if info.Leader == r.Self.Peer {
			closed(info.ID)
		}
		if !seen[info.ID] && info.Leader != "" {
			routes = append(routes, info)
		}
	}
	return regions, routes
}

// askLand asks a loaded region. If this node does not lead it, the answer's State is StateNone.
func (r *Ranges) askLand(ctx context.Context, l *actor.Land, q nodemsg.RangeRequest) (wait func() (nodemsg.RangeRegion, bool)) {
	area := q.Area.Area()
	answer := make(chan nodemsg.RangeRegion, 1)
	var edited []editedChunk
	asked := l.Enqueue(func(tx actor.Tx) {
		g := nodemsg.RangeRegion{Region: tx.Region()}
		if tx.Leads() {
			g.State = nodemsg.StateOpen
		}
		if g.State != nodemsg.StateNone && g.Region.Split == 0 {
			g.Players, g.Edits = tx.Crowd().Len(), tx.Contents().Edits()
			g.Applied = tx.Applied()
			if q.Players {
				g.Inside, g.Clipped = playersIn(tx, area)
			}
			if q.Surface {
				var clipped bool
				edited, clipped = r.surfaces.collect(g.Region.ID, g.Applied, tx.Contents(), area)
				g.Clipped = g.Clipped || clipped
			}
		}
		answer <- g
	})
	return func() (nodemsg.RangeRegion, bool) {
		if !asked {
			return nodemsg.RangeRegion{}, false
		}
		select {
		case g := <-answer:
			if q.Surface && g.State != nodemsg.StateNone {
				var clipped bool
				g.Surface, clipped = r.surfaces.of(ctx, g.Region.ID, g.Applied, edited)
				g.Clipped = g.Clipped || clipped
			}
			return g, true
		case <-l.Done():
		case <-ctx.Done():
		}
		return nodemsg.RangeRegion{}, false
	}
}

// playersIn lists the players of a region who are in the area, at most MaxRangePlayers.
func playersIn(tx actor.Tx, area grid.Area) (inside []nodemsg.RangePlayer, clipped bool) {
	tx.Crowd().Bodies(func(b *nodemsg.Body) {
		pos := grid.Pos{X: floor(b.Pose.X), Y: floor(b.Pose.Y), Z: floor(b.Pose.Z)}
		if !area.Contains(pos.Chunk()) {
			return
		}
		if len(inside) == nodemsg.MaxRangePlayers {
			clipped = true
			return
		}
		inside = append(inside, nodemsg.RangePlayer{Player: b.Player, Name: b.Name, Guest: b.Guest, At: pos})
	})
	slices.SortFunc(inside, func(a, b nodemsg.RangePlayer) int { return slices.Compare(a.Player[:], b.Player[:]) })
	return inside, clipped
}

// nearest returns at most that many of the routes, those that are nearest to the regions first: the asker goes on from
// there.
func nearest(routes []nodemsg.Region, regions []nodemsg.RangeRegion, most int) []nodemsg.Region {
	if len(routes) <= most {
		return routes
	}
	far := func(info nodemsg.Region) int64 {
		at, best := middle(info.Cell), int64(-1)
		for _, g := range regions {
			if d := at.Distance(middle(g.Region.Cell)); best < 0 || d < best {
				best = d
			}
		}
		return best
	}
	slices.SortStableFunc(routes, func(a, b nodemsg.Region) int { return cmp.Compare(far(a), far(b)) })
	return routes[:most]
}

func middle(c grid.Cell) grid.ChunkPos {
	a := c.Area()
	return grid.ChunkPos{X: (a.MinX + a.MaxX) / 2, Z: (a.MinZ + a.MaxZ) / 2}
}
