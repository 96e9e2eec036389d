package rollback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/world"
)

// This file finds what a rollback would change if nobody says where: the catalog lists the regions of the world, and
// their leaders search their history.

// searched bounds the regions of a world in which this is done: closed ones are opened for it.
const searched = 4096

// Search looks for the changes that a rollback would undo in all regions of the world, whatever its Box. It returns the
// places where they are, most changes first: one rollback can undo those in the Extent of a place. The error is that of
// a search that is not possible; what else fails is in missing, also if it is all that was asked.
func (k *Keeper) Search(ctx context.Context, r history.Rollback) (places []Progress, missing []Missing, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	regions, err := k.Founded(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list the regions of the world: %w", err)
	}
	if len(regions) > searched {
		return nil, nil, notice.New("many_regions", "the world has {count} regions, and at most {most} are searched: name an area", len(regions), searched)
	}
	domains := make(map[grid.Domain]bool)
	for _, info := range regions {
		if info.ID != world.CatalogID {
			domains[info.Cell.Domain] = true
		}
	}
	ordered := slices.SortedFunc(maps.Keys(domains), func(a, b grid.Domain) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Z, b.Z)) })
	places, missing = searchAll(ordered, func(domain grid.Domain) (Progress, error) {
		r := r
		r.Box = columnsOf(grid.Cell{Domain: domain}.Area())
		return k.Progress(ctx, r)
	})
	return places, missing, nil
}

// searchAll searches domains, some at a time: one that fails, or does not answer until the time is up, keeps nobody
// from what the others have.
func searchAll(domains []grid.Domain, search func(grid.Domain) (Progress, error)) (places []Progress, missing []Missing) {
	found, errs := make([]Progress, len(domains)), make([]error, len(domains))
	var wg errgroup.Group
	wg.SetLimit(parallel)
	for i, domain := range domains {
		wg.Go(func() error {
			found[i], errs[i] = search(domain)
			return nil
		})
	}
	wg.Wait() //nolint:errcheck // always nil
	for i, p := range found {
		if errs[i] != nil {
			missing = append(missing, Missing{Cell: grid.Cell{Domain: domains[i]}, Why: wire.ErrorText(errs[i])})
		}
		missing = append(missing, p.Missing...)
		if p.Left > 0 {
			places = addPlace(places, p)
		}
	}
	slices.SortFunc(places, func(a, b Progress) int { return cmp.Compare(b.Left, a.Left) })
	return places, missing
}

// addPlace adds a place, to another one if a rollback can undo the changes of both.
func addPlace(places []Progress, p Progress) []Progress {
	for i := range places {
		if x, _, z := places[i].Extent.Union(p.Extent).Sides(); max(x, z) <= policy.MaxRollbackSide {
			places[i].add(p)
			return places
		}
	}
	return append(places, p)
}
