package split

import (
	"context"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file has regions opened that were founded, and that no member has opened since: nobody would give them up.

// maxPages bounds the pages of the catalog that are looked through in one round: 1,024 regions.
const maxPages = 32

// openUnopened looks through a part of the catalog, if this node leads it, and has regions opened that never were. From
// then on their leaders are responsible for them.
func (l *Vacater) openUnopened(ctx context.Context, _ []nodemsg.Region) {
	for range maxPages {
		c := l.Regions.Catalog()
		if c == nil || !c.Raft().Status().Self || ctx.Err() != nil {
			return
		}
		page, err := c.Page(ctx, l.listed)
		if err != nil {
			l.Logger.Debug("regions that were never opened not looked for", "error", err)
			return
		}
		if l.listed = 0; len(page) == 0 {
			return
		}
		l.listed = page[len(page)-1].ID
		l.openOf(ctx, page)
	}
}

// openOf has those regions opened of which all members say that they have never had a copy.
func (l *Vacater) openOf(ctx context.Context, page []nodemsg.Region) {
	want := make(map[string][]uint64)
	for _, info := range page {
		if mayBeUnopened(info) {
			for _, m := range info.Members {
				want[m.Peer] = append(want[m.Peer], info.ID)
			}
		}
	}
	said := integrity.PollStatuses(ctx, l.AskStatuses, want, true)
	for _, info := range page {
		unopened := mayBeUnopened(info)
		for _, m := range info.Members {
			s, answered := said.Of(m.Peer, info.ID)
			unopened = unopened && answered && s.State == nodemsg.StateNone && !s.Forgotten
		}
		if !unopened || ctx.Err() != nil {
			continue
		}
		if err := l.OpenAt(ctx, info.Members[0].Peer, info); err != nil {
			l.Logger.Debug("region that was never opened not opened", "region", info.ID, "cell", info.Cell.String(), "error", err)
		}
	}
}

// mayBeUnopened reports whether a region is listed as it was founded.
func mayBeUnopened(info nodemsg.Region) bool {
	return info.Cell.Label.Len() == grid.FoundingLabel && info.Epoch == actor.FirstEpoch && info.Split == 0 && info.Merged == 0
}
