package moderation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire"
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
func (s *Permissions) inspect(args []string, g Gateway) (why string) {
	if len(args) > 1 {
		return s.inspectBox(args, g)
	}
	if len(args) != 1 {
		return wrongUsage
	}
	box, err := policy.ParseCorners(args[0], args[0])
	if err != nil {
		return wire.ErrorText(err)
	}
	s.background(g, func(ctx context.Context) (answer []string) {
		found, err := g.History.Query(ctx, rollback.Query{Filter: history.Filter{Box: box}, Newest: true, Most: inspected})
		switch {
		case err != nil:
			answer = append(answer, sentence(wire.ErrorText(err)))
		case len(found.Missing) > 0:
			answer = append(answer, "The region there does not answer: try again later.")
		case len(found.Records) == 0:
			answer = append(answer, fmt.Sprintf("Nobody has changed the block at %v, in the history that is kept.", box.Min))
		}
		for _, r := range found.Records {
			var name string
			s.enforcer.Read(func(p *policy.State) { name = p.AuthorName(r.Player, r.Guest) })
			at := time.UnixMilli(r.Time)
			answer = append(answer, fmt.Sprintf("%v: %s, %s: %s → %s", box.Min, humanize.RelTime(at, s.enforcer.wall(), "ago", "from now"), name, history.BlockName(r.Old), history.BlockName(r.New)))
		}
		return answer
	})
	return ""
}

// propose shows what a rollback would do.
func (s *Permissions) propose(args []string, g Gateway) (why string) {
	asked, err := parseRollback(args)
	if err != nil {
		return wire.ErrorText(err)
	}
	box, everywhere, err := s.areaOf(asked, g.Pose().Block())
	if err != nil {
		return wire.ErrorText(err)
	}
	since := s.enforcer.wall().Add(-asked.ago).UnixMilli()
	var proposed history.Rollback
	s.enforcer.Read(func(state *policy.State) {
		proposed, err = state.ProposeRollback(asked.players, since, box)
		proposed = state.ProposedTo(s.who.ClaimID(), asked.players, proposed)
	})
	if err != nil {
		return wire.ErrorText(err)
	}
	s.background(g, func(ctx context.Context) []string {
		if everywhere {
			return s.previewEverywhere(ctx, g, asked.players, since, proposed)
		}
		progress, err := g.History.Progress(ctx, proposed)
		if err != nil {
			return []string{sentence(wire.ErrorText(err))}
		}
		progress.Extent = box
		command := s.sendPreview(asked.players, since, progress)
		text := fmt.Sprintf("%s in %s would be changed back.", english.Plural(progress.Left, "block", ""), english.Plural(progress.Regions, "region", ""))
		return []string{text + silent(progress.Missing) + command}
	})
	return ""
}

// previewEverywhere shows and returns what a rollback would do where the players have changed blocks.
func (s *Permissions) previewEverywhere(ctx context.Context, g Gateway, players string, since int64, proposed history.Rollback) (answer []string) {
	places, missing, err := g.History.Search(ctx, proposed)
	switch {
	case err != nil:
		return []string{sentence(wire.ErrorText(err))}
	case len(places) == 0:
		return []string{"0 blocks would be changed back." + silent(missing)}
	}
	first := places[0]
	command := s.sendPreview(players, since, first)
	answer = append(answer, fmt.Sprintf("%s between %v and %v would be changed back.", english.Plural(first.Left, "block", ""), first.Extent.Min, first.Extent.Max)+silent(missing)+command)
	for _, p := range places[1:min(len(places), shownPlaces)] {
		answer = append(answer, fmt.Sprintf("Too far away for the same rollback: %s between %v and %v. To undo them, too: /%s",
			english.Plural(p.Left, "change", ""), p.Extent.Min, p.Extent.Max, policy.RevertText(players, since, p.Extent)))
	}
	if more := len(places) - shownPlaces; more > 0 {
		answer = append(answer, fmt.Sprintf("There are changes in %s more: ask again when these are undone.", english.Plural(more, "place", "")))
	}
	return answer
}

// silent returns a sentence about parts of the world that have not answered, after a space; empty if all have.
func silent(missing []rollback.Missing) string {
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf(" %s did not answer.", english.Plural(len(missing), "region", ""))
}

// sendPreview sends what a rollback would do in the Extent, and returns a sentence about the command that orders it, if
// it would do anything.
func (s *Permissions) sendPreview(players string, since int64, p rollback.Progress) string {
	preview := sessionmsg.RollbackPreview{Command: policy.RevertText(players, since, p.Extent), Of: players, Blocks: p.Left, Min: p.Extent.Min, Max: p.Extent.Max}
	for _, c := range p.Columns[:min(len(p.Columns), sessionmsg.MaxPreviewChunks)] {
		preview.Columns = append(preview.Columns, sessionmsg.PreviewChunk{X: c.Chunk.X, Z: c.Chunk.Z, Bits: c.Bits[:]})
	}
	s.send(preview)
	if p.Left == 0 {
		return ""
	}
	return " To order this rollback: /" + preview.Command
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
		return box, false, errors.New("to undo the changes of everybody, name an area: radius:50, or two corners as X,Y,Z")
	case s.verdict.Load().Role.AtLeast(policy.Moderator):
		return box, true, nil
	}
	claim := s.enforcer.claims.Load().At(at)
	if claim == nil || claim.Owner != s.who.ClaimID() {
		return box, false, errors.New("stand in a claim of yours, or choose two corners in it: outside of their own claims only moderators undo changes")
	}
	return claim.Box, false, nil
}

// rollbackLines lists the newest rollbacks.
func (s *Permissions) rollbackLines() (lines []string) {
	s.enforcer.Read(func(p *policy.State) {
		all := p.Rollbacks()
		for i := range all[max(0, len(all)-listedRollbacks):] {
			lines = append(lines, all[max(0, len(all)-listedRollbacks)+i].String())
		}
	})
	if len(lines) == 0 {
		lines = append(lines, "No rollbacks were ordered.")
	}
	return lines
}

// follow shows the player how far the rollback is that a command has begun, as the answer to the command says, until it
// is complete, or they begin another one.
func (s *Permissions) follow(ctx context.Context, answer string, g Gateway) {
	var id int
	if _, err := fmt.Sscanf(answer, "Rollback %d has begun.", &id); err != nil {
		return
	}
	turn := s.followed.Add(1)
	shown := ""
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
			s.notice(fmt.Sprintf("Rollback %d is complete: %s changed back.", id, english.Plural(progress.Changed, "block", "")))
			return
		}
		now := fmt.Sprintf("Rollback %d: %d of %s.", id, progress.Changed, english.Plural(progress.Changed+progress.Left, "block", ""))
		if now != shown {
			s.notice(now)
		}
		shown = now
	}
}
