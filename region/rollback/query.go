package rollback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// queryTime bounds a query.
	queryTime = 15 * time.Second
	// parallel is how many regions are asked at once.
	parallel = 8
)

// Query asks for changes of blocks.
type Query struct {
	history.Filter
	Newest bool // newest first
	Most   int  // how many changes at most
}

// Result is what is known of the changes of blocks in an area.
type Result struct {
	Records []nodemsg.HistoryRecord
	More    bool      // there are more than these
	Missing []Missing // parts of the area of which nothing is known
}

// Query asks the leaders of all regions in the box who changed which blocks. The error is that of a query that is not
// allowed; what else fails is in the result.
func (k *Keeper) Query(ctx context.Context, q Query) (r Result, err error) {
	if q.Most < 1 || q.Most > maxListed {
		return r, fmt.Errorf("ask for 1 to %d changes", maxListed)
	}
	if q.Most > nodemsg.HistoryPage && q.Until == 0 {
		q.Until = k.Now().UnixMilli() // changes that come between two pages would shift them
	}
	var lock sync.Mutex
	found := make(map[uint64][]nodemsg.HistoryRecord) // by region
	r.Missing, err = k.askAll(ctx, q.Box, func(ctx context.Context, region nodemsg.Region) error {
		request := requestOf(region, q.Filter)
		request.Newest = q.Newest
		var all []nodemsg.HistoryRecord
		more := true
		for more && len(all) < q.Most {
			request.Skip, request.Most = len(all), min(nodemsg.HistoryPage, q.Most-len(all))
			page, err := k.ask(ctx, region, request)
			if err != nil {
				return err
			}
			all = append(all, page.Records...)
			more = page.More && len(page.Records) > 0
		}
		all = slices.DeleteFunc(all, func(c nodemsg.HistoryRecord) bool { // a node that lies has others
			return !region.Cell.Contains(c.At.Chunk()) || !q.Matches(c.At.Chunk(), history.Record{Time: c.Time, Player: c.Player, At: chunk.At(c.At)})
		})
		lock.Lock()
		defer lock.Unlock()
		found[region.ID], r.More = all, r.More || more
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(found)) { // the same order each time: who asks for a page skips those before it
		r.Records = append(r.Records, found[id]...)
	}
	slices.SortStableFunc(r.Records, func(a, b nodemsg.HistoryRecord) int {
		if q.Newest {
			a, b = b, a
		}
		return cmp.Compare(a.Time, b.Time)
	})
	if len(r.Records) > q.Most {
		r.Records, r.More = r.Records[:q.Most], true
	}
	return r, err
}

// Progress is what a rollback has done, or would do.
type Progress struct {
	Changed int                    // blocks that it has changed
	Left    int                    // blocks that it has yet to change, as far as that is known
	Regions int                    // in the box
	Done    int                    // regions in which it is complete
	Columns []nodemsg.ChunkColumns // where blocks are left to change; at most maxColumns
	Extent  grid.Box               // of the chunks where blocks are left to change, if there are any: from the bottom of the world to its top
	Missing []Missing              // parts of the box of which nothing is known
}

// add adds another part of the same rollback.
func (p *Progress) add(part Progress) {
	switch {
	case p.Left == 0:
		p.Extent = part.Extent
	case part.Left > 0:
		p.Extent = p.Extent.Union(part.Extent)
	}
	p.Changed, p.Left, p.Regions, p.Done = p.Changed+part.Changed, p.Left+part.Left, p.Regions+part.Regions, p.Done+part.Done
	p.Columns = append(p.Columns, part.Columns[:min(len(part.Columns), maxColumns-len(p.Columns))]...)
}

// columnsOf returns the blocks of an area, from the bottom of the world to its top.
func columnsOf(a grid.Area) grid.Box {
	low, high := grid.ChunkPos{X: a.MinX, Z: a.MinZ}.Origin(), grid.ChunkPos{X: a.MaxX - 1, Z: a.MaxZ - 1}.Origin()
	return grid.Box{Min: low, Max: grid.Pos{X: high.X + grid.ChunkSize - 1, Y: grid.MaxHeight - 1, Z: high.Z + grid.ChunkSize - 1}}
}

// Complete reports whether nothing is left to do.
func (p *Progress) Complete() bool { return p.Done == p.Regions && len(p.Missing) == 0 }

// maxColumns bounds the chunks of which a Progress says which columns are to be changed.
const maxColumns = 4096

// Progress asks the leaders of all regions in its box how far a rollback is. If its Number is 0, it was not ordered:
// the answer is what it would do.
func (k *Keeper) Progress(ctx context.Context, r history.Rollback) (p Progress, err error) {
	var lock sync.Mutex
	p.Missing, err = k.askAll(ctx, r.Box, func(ctx context.Context, region nodemsg.Region) error {
		request := requestOf(region, r.Filter)
		request.Rollback, request.After = cmp.Or(r.Number, -1), r.After
		a, err := k.ask(ctx, region, request)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		a.Columns = slices.DeleteFunc(a.Columns, func(c nodemsg.ChunkColumns) bool { return !region.Cell.Contains(c.Chunk) }) // a node that lies has others
		if len(a.Columns) == 0 {
			a.Left = 0
		}
		part := Progress{Changed: a.Changed, Left: a.Left, Regions: 1, Columns: a.Columns}
		if a.Done {
			part.Done = 1
		}
		for i, c := range a.Columns {
			box := columnsOf(grid.Area{MinX: c.Chunk.X, MinZ: c.Chunk.Z, MaxX: c.Chunk.X + 1, MaxZ: c.Chunk.Z + 1})
			if part.Extent = part.Extent.Union(box); i == 0 {
				part.Extent = box
			}
		}
		p.add(part)
		return nil
	})
	return p, err
}

func requestOf(region nodemsg.Region, f history.Filter) nodemsg.HistoryRequest {
	q := nodemsg.HistoryRequest{Region: region.ID, Min: f.Box.Min, Max: f.Box.Max, Since: max(f.Since, 0), Until: max(f.Until, 0)}
	if len(f.Players) > 0 {
		q.Player, q.Others = f.Players[0], f.Players[1:]
	}
	return q
}

// askAll calls ask for all regions in a box, some at a time. Ask must be safe for concurrent use.
func (k *Keeper) askAll(ctx context.Context, box grid.Box, ask func(context.Context, nodemsg.Region) error) (missing []Missing, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	found, err := k.Ranges.Query(ctx, RangeQuery{Area: box.Area()})
	if err != nil {
		return nil, err
	}
	missing = found.Missing
	var lock sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for _, r := range found.Regions {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := ask(ctx, r.Region); err != nil {
				lock.Lock()
				defer lock.Unlock()
				missing = append(missing, Missing{Cell: r.Region.Cell, Why: wire.ErrorText(err)})
			}
		})
	}
	wg.Wait()
	return missing, nil
}

// ask asks the leader of a region, or whichever of its members comes to lead it.
func (k *Keeper) ask(ctx context.Context, region nodemsg.Region, q nodemsg.HistoryRequest) (a nodemsg.HistoryAnswer, err error) {
	err = actor.ErrNotHere
	tried := make(map[string]bool)
	for peer := k.Detector.First(region, tried); peer != "" && err != nil && ctx.Err() == nil; peer = k.Detector.First(region, tried) {
		tried[peer] = true
		if peer == k.Self.Peer {
			a, err = k.here(ctx, q)
		} else {
			a, err = k.askPeer(ctx, peer, q)
		}
	}
	return a, err
}

func (k *Keeper) askPeer(ctx context.Context, peer string, q nodemsg.HistoryRequest) (nodemsg.HistoryAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := k.Questions.Ask(ctx, peer, nodemsg.Question{History: &q})
	if err == nil && answer.History == nil {
		err = fmt.Errorf("%s: reply does not match the request", peer)
	}
	if err != nil {
		return nodemsg.HistoryAnswer{}, err
	}
	return *answer.History, nil
}
