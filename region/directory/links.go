package directory

import (
	"context"
	"errors"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file is about links (docs/adr/0033): routes of the regions next to a region, which its leader exchanges with
// their leaders, by which range queries walk, and which lookups take as hints (Walkad §IV).

const (
	// MaxLinks is the most links of a region that are exchanged.
	MaxLinks = 24
	// introduceTime bounds the introduction of one leader to its neighbours.
	introduceTime = 10 * time.Second
)

// Neighbours returns the known regions that touch a cell, its corners included, at most MaxLinks. A split region is
// returned instead of its children if these would be too many, or are not known.
func (d *Directory) Neighbours(cell grid.Cell) []nodemsg.Region {
	inner := cell.Area()
	around := grid.Area{MinX: inner.MinX - 1, MinZ: inner.MinZ - 1, MaxX: inner.MaxX + 1, MaxZ: inner.MaxZ + 1}
	touching := d.Cover(around, MaxLinks+1) // with the region of the cell itself
	links := touching[:0]
	for _, info := range touching {
		if !cell.Covers(info.Cell) && !info.Cell.Covers(cell) && len(links) < MaxLinks {
			links = append(links, info)
		}
	}
	return links
}

// Cover returns known regions that overlap an area, at most the given number. Where no land is known there are gaps. A
// split region is returned instead of its children if these would be too many, or are not known.
func (d *Directory) Cover(area grid.Area, most int) []nodemsg.Region {
	var found, waiting []nodemsg.Region
	add := func(cell grid.Cell) bool {
		info, ok := d.known.Peek(cell)
		if ok && cell.Area().Overlaps(area) {
			waiting = append(waiting, info)
		}
		return ok
	}
	origin := grid.CellAt(grid.ChunkPos{X: area.MinX, Z: area.MinZ}, grid.FoundingLabel).Area()
	for z := origin.MinZ; z < area.MaxZ; z += origin.MaxZ - origin.MinZ {
		for x := origin.MinX; x < area.MaxX && len(waiting) < most; x += origin.MaxX - origin.MinX {
			if pos := (grid.ChunkPos{X: x, Z: z}); pos.Valid() {
				add(grid.CellAt(pos, grid.FoundingLabel))
			}
		}
	}
	for len(waiting) > 0 { // the largest cells first
		info := waiting[0]
		waiting = waiting[1:]
		if info.Split != 0 && info.Cell.Label.Len() < grid.MaxLabel && len(found)+len(waiting)+2 <= most {
			lower, upper := info.Cell.Children()
			knowsLower, knowsUpper := add(lower), add(upper)
			if knowsLower && knowsUpper {
				continue
			}
		}
		if len(info.Members) > 0 {
			found = append(found, info)
		}
	}
	return found
}

// Introduce announces the leader of this cell to the leaders of the neighbouring cells, the adjacent ones and the
// Hamming neighbours, and caches the routes that they answer with (Walkad §IV-B, coordinator selection, steps 3 and 4).
// Those who are known come first; then the catalog is asked for adjacent land that is not known.
func (d *Directory) Introduce(ctx context.Context, info nodemsg.Region) {
	ctx, cancel := context.WithTimeout(ctx, introduceTime)
	defer cancel()
	cells := append(info.Cell.Adjacent(), info.Cell.Hamming()...)
	asked := map[string]bool{d.Self.Peer: true}
	d.introduce(ctx, info, cells, asked)
	for _, next := range cells {
		area := next.Area()
		pos := grid.ChunkPos{X: area.MinX, Z: area.MinZ}
		if _, known := d.Known(pos); known {
			continue
		}
		there, err := d.FromCatalog(ctx, pos)
		if err == nil {
			d.AddHint(there)
		} else if !errors.Is(err, ErrNotFounded) {
			break // the catalog cannot be asked; the neighbours introduce themselves when they change
		}
	}
	d.introduce(ctx, info, cells, asked)
}

// introduce announces a leader to those that are known to lead regions in the cells. An answer may name others, who are
// then asked, too: those who led until recently know the new leader, and so do the members of a region whose leader
// does not answer.
func (d *Directory) introduce(ctx context.Context, info nodemsg.Region, cells []grid.Cell, asked map[string]bool) {
	for _, cell := range cells {
		for more := true; more; {
			more = false
			for _, there := range d.Cover(cell.Area(), MaxLinks) {
				peer := there.Leader
				if d.Detector.Suspected(peer) {
					peer = d.Detector.First(there, asked)
				}
				if peer == "" || asked[peer] || d.Detector.Suspected(peer) || ctx.Err() != nil {
					continue
				}
				asked[peer], more = true, true
				asking, cancel := context.WithTimeout(ctx, lookTime)
				answer, err := d.Questions.Ask(asking, peer, nodemsg.Question{Introduce: &info})
				cancel()
				if err == nil {
					d.addLinks(answer.Regions)
				} else if ctx.Err() == nil {
					d.Detector.Suspect(peer)
				}
			}
		}
	}
}

// addLinks caches the links of another node.
func (d *Directory) addLinks(links []nodemsg.Region) {
	for _, link := range links[:min(len(links), MaxLinks)] {
		d.AddHint(link)
	}
}

// Prefetch asks the leader of a region for its links, so that players who cross its borders, or look over them, find
// the land there without a lookup.
func (d *Directory) Prefetch(ctx context.Context, info nodemsg.Region) {
	if info.Leader == "" || info.Leader == d.Self.Peer {
		return
	}
	area := info.Cell.Area()
	answer, err := d.Questions.Ask(ctx, info.Leader, nodemsg.Question{Locate: &nodemsg.Locate{
		Chunk: grid.ChunkPos{X: area.MinX, Z: area.MinZ}, ID: info.ID,
	}})
	if err == nil {
		d.addLinks(answer.Regions)
	}
}

// AnswerLocate answers with the links of a region that this node knows: it starts no lookup.
func (d *Directory) AnswerLocate(q nodemsg.Locate) (answer nodemsg.Answer) {
	if info, ok := d.Known(q.Chunk); ok && q.ID == info.ID {
		answer.Regions = d.Neighbours(info.Cell)
	}
	return answer
}

// AnswerIntroduce takes the route that a leader has sent, and answers with what is known of the land around it.
func (d *Directory) AnswerIntroduce(peer string, info nodemsg.Region) nodemsg.Answer {
	if info.Leader != peer { // only a hint, and accepted only from the leader itself
		return nodemsg.Answer{}
	}
	d.AddHint(info)
	return nodemsg.Answer{Regions: d.Neighbours(info.Cell)}
}
