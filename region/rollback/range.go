package rollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// RangeQuery is what is asked of a rectangle.
type RangeQuery struct {
	Area    grid.Area     // at most MaxRangeCells founding cells
	Players bool          // list the players
	Surface bool          // list what edits have changed of the surface; at most MaxRangeSurface chunks
	Time    time.Duration // bounds the query; 0: 4 s
	// Sequential asks one node after another. Only for measuring what asking several at once gains (docs/adr/0034).
	Sequential bool
}

// RangeResult is what is in a rectangle.
type RangeResult struct {
	Regions   []nodemsg.RangeRegion // by cell
	Unfounded []grid.Cell           // founding cells without a region: nobody has been there
	Missing   []Missing             // parts of the rectangle of which nothing is known; none if the result is complete
	Questions int                   // to other nodes
	Rounds    int                   // of questions one after another
	Took      time.Duration
}

// Missing is a part of the rectangle of which nothing is known.
type Missing struct {
	Cell grid.Cell
	Why  string
}

// Query asks the nodes that lead the regions in the rectangle. The error is that of a rectangle that is not allowed;
// what else fails is in the result.
func (r *Ranges) Query(ctx context.Context, q RangeQuery) (RangeResult, error) {
	request := nodemsg.RangeRequest{Area: nodemsg.RectangleOf(q.Area), Players: q.Players, Surface: q.Surface}
	if err := request.Valid(); err != nil {
		return RangeResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(q.Time, defaultTime))
	defer cancel()
	began := time.Now()
	w := &walk{
		ranges: r, request: request, area: q.Area, width: parallelAsked,
		found: make(map[grid.Cell]nodemsg.RangeRegion), closed: make(map[grid.Cell]nodemsg.RangeRegion), routes: make(map[grid.Cell]nodemsg.Region),
		asked: make(map[string]bool), tried: make(map[uint64]map[string]bool), why: make(map[string]error),
	}
	if q.Sequential {
		w.width = 1
	}
	w.run(ctx)
	w.result.Took = time.Since(began)
	return w.result, nil
}

// walk is a query under way.
type walk struct {
	ranges  *Ranges
	request nodemsg.RangeRequest
	area    grid.Area
	width   int // how many nodes are asked at once

	found  map[grid.Cell]nodemsg.RangeRegion
	closed map[grid.Cell]nodemsg.RangeRegion // until their leaders were asked
	routes map[grid.Cell]nodemsg.Region      // to the others
	asked  map[string]bool                   // nodes that were asked, whether they answered or not
	tried  map[uint64]map[string]bool        // members that were asked for a region
	why    map[string]error                  // why a node did not answer
	listed bool                              // the catalog was asked
	lost   error                             // why the catalog did not answer
	result RangeResult
}

// target is a node to ask, and the regions that it is asked for.
type target struct {
	peer    string
	regions []uint64
}

func (w *walk) run(ctx context.Context) {
	for _, info := range w.ranges.Directory.Cover(w.area, maxRegions) {
		w.learn(info)
	}
	w.ask(ctx, target{peer: w.ranges.Self.Peer})
	for ctx.Err() == nil && len(w.found) < maxRegions && w.result.Questions < maxQuestions {
		targets := w.next()
		if len(targets) == 0 {
			if w.listed || !w.hasGaps() {
				break
			}
			w.list(ctx)
			continue
		}
		w.askAll(ctx, targets[:min(w.width, len(targets))])
	}
	w.finish(ctx)
}

// askAll asks several nodes at once.
func (w *walk) askAll(ctx context.Context, targets []target) {
	var wg sync.WaitGroup
	answers := make([]nodemsg.RangeAnswer, len(targets))
	errs := make([]error, len(targets))
	counts := make([]int, len(targets))
	for i, t := range targets {
		wg.Go(func() { answers[i], counts[i], errs[i] = w.ranges.askPeer(ctx, w.request, t) })
	}
	wg.Wait()
	w.result.Rounds += slices.Max(counts)
	for i, t := range targets {
		w.result.Questions += counts[i]
		w.merge(t, answers[i], errs[i])
	}
}

func (w *walk) ask(ctx context.Context, t target) {
	answer, _, err := w.ranges.askPeer(ctx, w.request, t)
	w.merge(t, answer, err)
}

// askPeer asks a node, possibly this one, until its answer is complete.
func (r *Ranges) askPeer(ctx context.Context, q nodemsg.RangeRequest, t target) (all nodemsg.RangeAnswer, questions int, err error) {
	q.Regions = t.regions
	for more := true; more; {
		var page nodemsg.RangeAnswer
		if t.peer == r.Self.Peer {
			page, err = r.part(ctx, q, 1)
		} else {
			questions++
			page, err = r.askRemote(ctx, t.peer, q)
		}
		all.Regions, all.Routes = append(all.Regions, page.Regions...), append(all.Routes, page.Routes...)
		if more = err == nil && page.More && len(all.Regions) < maxRegions && len(all.Routes) < maxRegions; !more {
			break
		}
		after := q.After
		if q.Listed && len(page.Routes) > 0 {
			q.After = page.Routes[len(page.Routes)-1].ID
		} else if len(page.Regions) > 0 {
			q.After = page.Regions[len(page.Regions)-1].Region.ID
		}
		if q.After <= after {
			return all, questions, errors.New("the answer does not go on")
		}
	}
	return all, questions, err
}

func (r *Ranges) askRemote(ctx context.Context, peer string, q nodemsg.RangeRequest) (nodemsg.RangeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := r.Questions.Ask(ctx, peer, nodemsg.Question{Range: &q})
	if err != nil {
		return nodemsg.RangeAnswer{}, err
	}
	if answer.Range == nil {
		return nodemsg.RangeAnswer{}, fmt.Errorf("%s: reply does not match the request", peer)
	}
	return *answer.Range, nil
}

// merge adds what a node has answered.
func (w *walk) merge(t target, answer nodemsg.RangeAnswer, err error) {
	w.asked[t.peer] = true
	for _, id := range t.regions {
		w.tries(id)[t.peer] = true
	}
	if err != nil {
		w.why[t.peer] = err
	}
	for _, g := range answer.Regions {
		before, ok := w.found[g.Region.Cell]
		switch {
		case !g.Region.Cell.Area().Overlaps(w.area):
		case ok && (before.State == nodemsg.StateOpen || g.State == nodemsg.StateClosed) && !g.Region.Supersedes(before.Region):
		case g.State == nodemsg.StateClosed && g.Region.Leader != t.peer && g.Region.Leader != "" && !w.asked[g.Region.Leader]:
			w.closed[g.Region.Cell] = g // its leader may have opened it
			w.learn(g.Region)
		default:
			w.found[g.Region.Cell] = g
			w.ranges.Directory.AddHint(g.Region)
		}
	}
	for _, info := range answer.Routes {
		w.learn(info)
	}
}

func (w *walk) tries(id uint64) map[string]bool {
	if w.tried[id] == nil {
		w.tried[id] = make(map[string]bool)
	}
	return w.tried[id]
}

// learn adds a route. Of a split region it adds those to the children as they were then, unless others are known.
func (w *walk) learn(info nodemsg.Region) {
	if !info.Cell.Area().Overlaps(w.area) || info.Cell.Label.Len() < grid.FoundingLabel || info.ID == 0 {
		return
	}
	if info.Split != 0 {
		if info.Cell.Label.Len() == grid.MaxLabel {
			return
		}
		delete(w.routes, info.Cell)
		for _, child := range world.ChildrenOf(info) {
			if known, ok := w.routes[child.Cell]; !ok || known.ID != child.ID {
				w.learn(child)
			}
		}
		return
	}
	if known, ok := w.routes[info.Cell]; !ok || info.Supersedes(known) {
		w.routes[info.Cell] = info
	}
}

// next returns the nodes to ask now: of each region that was not found yet, the member to try next.
func (w *walk) next() []target {
	for cell, g := range w.closed {
		if _, found := w.found[cell]; !found && w.asked[g.Region.Leader] {
			w.found[cell] = g
		}
	}
	wanted := make(map[string][]uint64)
	for _, cell := range w.gaps() {
		info, ok := w.routes[cell]
		if !ok {
			continue
		}
		tried := w.tries(info.ID)
		if len(tried) >= maxTries {
			continue
		}
		skip := make(map[string]bool, len(tried)+len(w.why))
		for peer := range tried {
			skip[peer] = true
		}
		for peer := range w.why {
			skip[peer] = true
		}
		peer := w.ranges.Detector.First(info, skip)
		if peer != "" && len(wanted[peer]) < nodemsg.MaxRangeRegions {
			wanted[peer] = append(wanted[peer], info.ID)
		}
	}
	targets := make([]target, 0, len(wanted))
	for peer, regions := range wanted {
		targets = append(targets, target{peer, regions})
	}
	slices.SortFunc(targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(len(b.regions), len(a.regions)), cmp.Compare(a.peer, b.peer)) // who knows most first
	})
	return targets
}

// gaps lists the cells in the rectangle that no region found covers: the smallest of which something is known.
func (w *walk) gaps() (all []grid.Cell) {
	below := make(map[grid.Cell]bool) // cells of which only parts are known
	mark := func(cell grid.Cell) {
		for cell.Label.Len() > grid.FoundingLabel {
			cell = cell.Parent()
			below[cell] = true
		}
	}
	for cell := range w.found {
		mark(cell)
	}
	for cell := range w.routes {
		mark(cell)
	}
	var visit func(cell grid.Cell)
	visit = func(cell grid.Cell) {
		_, found := w.found[cell]
		switch {
		case found || !cell.Area().Overlaps(w.area):
		case below[cell]:
			lower, upper := cell.Children()
			visit(lower)
			visit(upper)
		default:
			all = append(all, cell)
		}
	}
	for cell := range w.area.Cells(grid.FoundingLabel) {
		visit(cell)
	}
	return all
}

func (w *walk) hasGaps() bool { return len(w.gaps()) > 0 }

// list asks a member of the catalog for the regions in the rectangle. Its answer replaces the routes that led nowhere.
func (w *walk) list(ctx context.Context) {
	w.listed = true
	q := w.request
	q.Listed, q.Players, q.Surface = true, false, false
	r := w.ranges
	var answer nodemsg.RangeAnswer
	if r.Regions.Catalog() != nil {
		answer, _, w.lost = r.askPeer(ctx, q, target{peer: r.Self.Peer})
	} else {
		var at nodemsg.Region
		if at, w.lost = r.Directory.CatalogMembers(ctx); w.lost != nil {
			return
		}
		w.lost = actor.ErrNotHere
		tried := make(map[string]bool)
		for next := r.Detector.First(at, tried); next != "" && w.lost != nil && len(tried) < maxTries; next = r.Detector.First(at, tried) {
			tried[next] = true
			var questions int
			answer, questions, w.lost = r.askPeer(ctx, q, target{peer: next})
			w.result.Questions += questions
			w.result.Rounds += questions
		}
	}
	if w.lost != nil {
		return
	}
	for _, info := range answer.Routes {
		for cell := range w.routes {
			if info.Cell.Covers(cell) && cell != info.Cell {
				delete(w.routes, cell) // they were merged
			}
		}
		delete(w.routes, info.Cell)
		w.learn(info)
	}
}

// finish puts the result together.
func (w *walk) finish(ctx context.Context) {
	for _, cell := range w.gaps() {
		info, ok := w.routes[cell]
		why := "its members do not lead it, and do not know who does"
		switch {
		case ctx.Err() != nil:
			why = "the time was over"
		case len(w.found) >= maxRegions || w.result.Questions >= maxQuestions:
			why = "there are too many regions"
		case !ok && w.listed && w.lost == nil:
			w.result.Unfounded = append(w.result.Unfounded, cell)
			continue
		case !ok:
			why = "the catalog does not answer: it may have no region yet"
		case w.why[info.Leader] != nil:
			why = fmt.Sprintf("its leader %s does not answer: %v", info.Leader, w.why[info.Leader])
		}
		w.result.Missing = append(w.result.Missing, Missing{cell, why})
	}
	for _, g := range w.found {
		if g.State == nodemsg.StateClosed && w.why[g.Region.Leader] != nil {
			g.Region.Leader = "" // it does not answer: nobody leads the region
		}
		w.result.Regions = append(w.result.Regions, g)
	}
	slices.SortFunc(w.result.Regions, func(a, b nodemsg.RangeRegion) int {
		x, y := a.Region.Cell.Area(), b.Region.Cell.Area()
		return cmp.Or(cmp.Compare(x.MinZ, y.MinZ), cmp.Compare(x.MinX, y.MinX), cmp.Compare(a.Region.ID, b.Region.ID))
	})
}
