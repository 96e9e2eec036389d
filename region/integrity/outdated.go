package integrity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Outdated returns why the region must not be recovered from the copy here, according to the catalog; empty if it may
// be. If the copy is from before the region was split, its land is that of its children now; if it is from before they
// were merged, it has none. The error is that the catalog does not answer.
func (r *Refounder) Outdated(ctx context.Context, info nodemsg.Region, own replica.Position) (why string, err error) {
	if info.ID == world.CatalogID {
		return "", nil
	}
	listed, err := r.Directory.ByID(ctx, info.ID)
	switch {
	case errors.Is(err, directory.ErrNotFounded) && info.Cell.Label.Len() > grid.FoundingLabel:
		return fmt.Sprintf("the catalog does not list it: either it was merged, and voxeld deletes the copy; or %v was lost, too: recover that first",
			info.Cell.Parent()), nil
	case errors.Is(err, directory.ErrNotFounded) && own.Applied < own.Last:
		return "", nil // its log may have edits that are no rows yet
	case errors.Is(err, directory.ErrNotFounded):
		if empty, err := world.EmptyIn(r.Storage.Keys, info.ID); err != nil || !empty {
			return "", err
		}
		return "the catalog does not list it, and nothing was built there: it was given up, and is founded anew when somebody comes", nil
	case err != nil:
		return "", fmt.Errorf("whether it was split since is not known: recover the catalog first: %w", err)
	}
	structure, err := world.StructureIn(r.Storage.Get, info.ID)
	switch there := max(listed.Split, listed.Merged); {
	case err != nil, max(structure.Split, structure.Merged) >= there:
		return "", err
	case listed.Split != 0:
		return r.splitSince(ctx, listed, own), nil
	case own.Last >= there:
		return "", nil // that is in the log
	}
	return "its parts were merged since, and the copy here does not have their land: put it back from a backup with --from FILE, " +
		"or found it anew with --anew", nil
}

// splitSince is Outdated for a region that was split since. Its land here is used only if no part of it is left
// elsewhere.
func (r *Refounder) splitSince(ctx context.Context, listed nodemsg.Region, own replica.Position) string {
	children := world.ChildrenOf(listed)
	want := make(map[string][]uint64)
	for i, child := range children {
		if now, err := r.Directory.ByID(ctx, child.ID); err == nil {
			children[i] = now
		}
		for _, m := range children[i].Members {
			want[m.Peer] = append(want[m.Peer], child.ID)
		}
	}
	s := PollStatuses(ctx, r.AskStatuses, want, true)
	var missing, moved []string
	for _, child := range children {
		there := false
		for _, m := range child.Members {
			status, _ := s.Of(m.Peer, child.ID)
			there = there || status.Applied > 0
			if !slices.ContainsFunc(own.Members.Members, func(now replica.Member) bool { return now.Peer == m.Peer }) {
				moved = append(moved, m.Peer)
			}
		}
		if !there {
			missing = append(missing, child.Cell.String())
		}
	}
	anew := fmt.Sprintf("voxeld region recover %v --anew recovers it without land", listed.Cell)
	switch {
	case len(missing) == 0:
		return fmt.Sprintf("it was split since, and its parts %v and %v have its land: %s", children[0].Cell, children[1].Cell, anew)
	case len(missing) == 2 && len(moved) == 0:
		return "" // the parts are lost, too
	}
	return fmt.Sprintf("it was split since, and no copy of %s answers: start the nodes that have one, or recover that first, possibly with "+
		"--from FILE or --anew. Then %s", strings.Join(missing, " and "), anew)
}
