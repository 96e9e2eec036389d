package moderation

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file holds the commands about who changed what, and about rollbacks.

// History answers who changed which blocks of the world; a *rollback.Keeper. Any goroutine may use it.
type History interface {
	Query(ctx context.Context, q rollback.Query) (rollback.Result, error)
	Progress(ctx context.Context, r history.Rollback) (rollback.Progress, error)
	Search(ctx context.Context, r history.Rollback) ([]rollback.Progress, []rollback.Missing, error)
}

const (
	// inspected is how many changes of a block are shown.
	inspected = 5
	// shownPlaces is of how many places a rollback is proposed, if the changes are too far apart for one.
	shownPlaces = 5
	// followEvery is how often a player is shown how far their rollback is, followFor for how long.
	followEvery = 2 * time.Second
	followFor   = 10 * time.Minute
	// listedRollbacks is how many rollbacks are listed, the newest.
	listedRollbacks = 10
)

// inspect shows who has changed a block.
func (s *Permissions) inspect(args []string, g Gateway) error {
	if len(args) > 1 {
		return s.inspectBox(args, g)
	}
	if len(args) != 1 {
		return policy.ErrUsage
	}
	box, err := policy.ParseCorners(args[0], args[0])
	if err != nil {
		return err
	}
	s.background(g, func(ctx context.Context) (answer []notice.Notice) {
		found, err := g.History.Query(ctx, rollback.Query{Filter: history.Filter{Box: box}, Newest: true, Most: inspected})
		switch {
		case err != nil:
			answer = append(answer, sentence(err))
		case len(found.Missing) > 0:
			answer = append(answer, notice.New("region_silent", "The region there does not answer: try again later."))
		case len(found.Records) == 0:
			answer = append(answer, notice.New("never_changed", "Nobody has changed the block at {place}, in the history that is kept.", box.Min))
		}
		for _, r := range found.Records {
			var name string
			s.enforcer.Read(func(p *policy.State) { name = p.AuthorName(r.Player, r.Guest) })
			ago := s.enforcer.wall().Sub(time.UnixMilli(r.Time))
			answer = append(answer, notice.New("changed_by", "{place}: {ago:ago}, {name}: {before:block} → {after:block}", box.Min, ago, name, history.BlockName(r.Old), history.BlockName(r.New)))
		}
		return answer
	})
	return nil
}

// propose shows what a rollback would do.
func (s *Permissions) propose(args []string, g Gateway) error {
	asked, err := parseRollback(args)
	if err != nil {
		return err
	}
	box, everywhere, err := s.areaOf(asked, g.Pose().Block())
	if err != nil {
		return err
	}
	since := s.enforcer.wall().Add(-asked.ago).UnixMilli()
	var proposed history.Rollback
	s.enforcer.Read(func(state *policy.State) {
		proposed, err = state.ProposeRollback(asked.players, since, box)
		proposed = state.ProposedTo(s.who.ClaimID(), asked.players, proposed)
	})
	if err != nil {
		return err
	}
	s.background(g, func(ctx context.Context) []notice.Notice {
		if everywhere {
			return s.previewEverywhere(ctx, g, asked.players, since, proposed)
		}
		progress, err := g.History.Progress(ctx, proposed)
		if err != nil {
			return []notice.Notice{sentence(err)}
		}
		progress.Extent = box
		command := s.sendPreview(asked.players, since, progress)
		preview := notice.New("preview", "{blocks} {blocks:block|blocks} in {regions} {regions:region|regions} would be changed back.", progress.Left, progress.Regions)
		return compact(preview, silent(progress.Missing), command)
	})
	return nil
}

// previewEverywhere shows and returns what a rollback would do where the players have changed blocks.
func (s *Permissions) previewEverywhere(ctx context.Context, g Gateway, players string, since int64, proposed history.Rollback) (answer []notice.Notice) {
	places, missing, err := g.History.Search(ctx, proposed)
	switch {
	case err != nil:
		return []notice.Notice{sentence(err)}
	case len(places) == 0:
		return compact(notice.New("preview_of_nothing", "0 blocks would be changed back."), silent(missing))
	}
	first := places[0]
	command := s.sendPreview(players, since, first)
	answer = compact(notice.New("preview_between", "{blocks} {blocks:block|blocks} between {from} and {to} would be changed back.", first.Left, first.Extent.Min, first.Extent.Max), silent(missing), command)
	for _, p := range places[1:min(len(places), shownPlaces)] {
		answer = append(answer, notice.New("preview_elsewhere", "Too far away for the same rollback: {changes} {changes:change|changes} between {from} and {to}. To undo them, too: /{command}",
			p.Left, p.Extent.Min, p.Extent.Max, policy.RevertText(players, since, p.Extent)))
	}
	if more := len(places) - shownPlaces; more > 0 {
		answer = append(answer, notice.New("more_places", "There are changes in {places} {places:place|places} more: ask again when these are undone.", more))
	}
	return answer
}

// compact returns the notices that say something.
func compact(all ...notice.Notice) []notice.Notice {
	return slices.DeleteFunc(all, func(n notice.Notice) bool { return n.Text == "" })
}

// silent returns a notice about parts of the world that have not answered; one that says nothing if all have.
func silent(missing []rollback.Missing) (n notice.Notice) {
	if len(missing) > 0 {
		n = notice.New("regions_silent", "{regions} {regions:region|regions} did not answer.", len(missing))
	}
	return n
}

// sendPreview sends what a rollback would do in the Extent, and returns a notice about the command that orders it, if
// it would do anything.
func (s *Permissions) sendPreview(players string, since int64, p rollback.Progress) (order notice.Notice) {
	preview := sessionmsg.RollbackPreview{Command: policy.RevertText(players, since, p.Extent), Of: players, Blocks: p.Left, Min: p.Extent.Min, Max: p.Extent.Max}
	for _, c := range p.Columns[:min(len(p.Columns), sessionmsg.MaxPreviewChunks)] {
		preview.Columns = append(preview.Columns, sessionmsg.PreviewChunk{X: c.Chunk.X, Z: c.Chunk.Z, Bits: c.Bits[:]})
	}
	s.send(preview)
	if p.Left > 0 {
		order = notice.New("order_rollback", "To order this rollback: /{command}", preview.Command)
	}
	return order
}

// areaOf returns the box of a rollback that a player wants who is at a block; everywhere means that it is to be
// searched for.
func (s *Permissions) areaOf(w wantedRollback, at grid.Pos) (box grid.Box, everywhere bool, err error) {
	r := w.radius
	switch {
	case w.hasBox:
		return w.box, false, nil
	case r > 0:
		return grid.BoxOf(grid.Pos{X: at.X - r, Y: max(0, at.Y-r), Z: at.Z - r}, grid.Pos{X: at.X + r, Y: at.Y + r, Z: at.Z + r}), false, nil
	case w.players == policy.Everyone:
		return box, false, notice.New("name_an_area", "to undo the changes of everybody, name an area: radius:50, or two corners as X,Y,Z")
	case s.verdict.Load().Role.AtLeast(policy.Moderator):
		return box, true, nil
	}
	claim := s.enforcer.claims.Load().At(at)
	if claim == nil || claim.Owner != s.who.ClaimID() {
		return box, false, notice.New("stand_in_your_claim", "stand in a claim of yours, or choose two corners in it: outside of their own claims only moderators undo changes")
	}
	return claim.Box, false, nil
}

// rollbackLines lists the newest rollbacks.
func (s *Permissions) rollbackLines() (lines []notice.Notice) {
	s.enforcer.Read(func(p *policy.State) {
		all := p.Rollbacks()
		for i := range all[max(0, len(all)-listedRollbacks):] {
			lines = append(lines, all[max(0, len(all)-listedRollbacks)+i].Line())
		}
	})
	if len(lines) == 0 {
		lines = append(lines, notice.New("no_rollbacks", "No rollbacks were ordered."))
	}
	return lines
}

// follow shows the player how far the rollback is that has begun, until it is complete, or they begin another one.
func (s *Permissions) follow(ctx context.Context, begun notice.Notice, g Gateway) {
	id, err := strconv.Atoi(begun.Args["id"])
	if err != nil {
		return
	}
	turn := s.followed.Add(1)
	shown := -1
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for until := s.enforcer.wall().Add(followFor); s.enforcer.wall().Before(until) && s.followed.Load() == turn; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var ordered policy.Rollback
		var found bool
		s.enforcer.Read(func(p *policy.State) { ordered, found = p.Rollback(id) })
		switch {
		case !found || ordered.Aborted:
			return
		case ordered.Paused:
			continue
		}
		progress, err := g.History.Progress(ctx, ordered.Rollback)
		if err != nil {
			continue
		}
		if progress.Complete() {
			s.notice(notice.New("rollback_complete", "Rollback {id} is complete: {blocks} {blocks:block|blocks} changed back.", id, progress.Changed))
			return
		}
		if progress.Changed != shown {
			s.notice(notice.New("rollback_progress", "Rollback {id}: {changed} of {all} {all:block|blocks}.", id, progress.Changed, progress.Changed+progress.Left))
		}
		shown = progress.Changed
	}
}
