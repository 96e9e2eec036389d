package moderation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file holds the commands about who changed what, and about rollbacks.

// History answers who changed which blocks of the world; a *rollback.Keeper. Any goroutine may use it.
type History interface {
	Query(ctx context.Context, q rollback.Query) (rollback.Result, error)
	Progress(ctx context.Context, r history.Rollback) (rollback.Progress, error)
}

const (
	// inspected is how many changes of a block are shown.
	inspected = 5
	// defaultRadius is how far around the player a rollback reaches if nothing else is said, in blocks; maxRadius is the greatest.
	defaultRadius, maxRadius = 50, 1500
	// followEvery is how often a player is shown how far their rollback is, followFor for how long.
	followEvery = 2 * time.Second
	followFor   = 10 * time.Minute
	// listedRollbacks is how many rollbacks are listed, the newest.
	listedRollbacks = 10
)

// inspect shows who has changed a block.
func (s *Standing) inspect(args []string, g Gateway) (why string) {
	if len(args) != 1 {
		return wrongUsage
	}
	box, err := policy.ParseCorners(args[0], args[0])
	if err != nil {
		return err.Error()
	}
	s.background(g, func(ctx context.Context) {
		found, err := g.History.Query(ctx, rollback.Query{Filter: history.Filter{Box: box}, Newest: true, Most: inspected})
		switch {
		case err != nil:
			s.notice(sentence(err.Error()))
		case len(found.Missing) > 0:
			s.notice("The region there does not answer: try again later.")
		case len(found.Records) == 0:
			s.notice(fmt.Sprintf("Nobody has changed the block at %v, in the history that is kept.", box.Min))
		}
		for _, r := range found.Records {
			var name string
			s.enforcer.Read(func(p *policy.State) { name = p.AuthorName(r.Player, r.Guest) })
			at := time.UnixMilli(r.Time)
			s.notice(fmt.Sprintf("%v: %s, %s: %s → %s", box.Min, humanize.RelTime(at, s.enforcer.wall(), "ago", "from now"), name, history.BlockName(r.Old), history.BlockName(r.New)))
		}
	})
	return ""
}

// propose shows what a rollback would do: PLAYER TIME [RADIUS | CORNER CORNER].
func (s *Standing) propose(args []string, g Gateway) (why string) {
	if len(args) < 2 || len(args) > 4 {
		return wrongUsage
	}
	ago, err := policy.ParseDuration(args[1])
	if err != nil {
		return err.Error()
	}
	box, err := boxAround(g.Pose().Block(), args[2:])
	if err != nil {
		return err.Error()
	}
	var p policy.Proposal
	s.enforcer.Read(func(state *policy.State) {
		p, err = state.ProposeRollback(args[0], s.enforcer.wall().Add(-ago).UnixMilli(), box)
	})
	if err != nil {
		return err.Error()
	}
	s.background(g, func(ctx context.Context) {
		progress, err := g.History.Progress(ctx, p.Rollback)
		if err != nil {
			s.notice(sentence(err.Error()))
			return
		}
		preview := sessionmsg.RollbackPreview{Command: p.Command, Of: args[0], Blocks: progress.Left, Min: box.Min, Max: box.Max}
		for _, c := range progress.Columns[:min(len(progress.Columns), sessionmsg.MaxPreviewChunks)] {
			preview.Columns = append(preview.Columns, sessionmsg.PreviewChunk{X: c.Chunk.X, Z: c.Chunk.Z, Bits: c.Bits[:]})
		}
		s.send(preview)
		text := fmt.Sprintf("%s in %s would be changed back.", english.Plural(progress.Left, "block", ""), english.Plural(progress.Regions, "region", ""))
		if len(progress.Missing) > 0 {
			text += fmt.Sprintf(" %s did not answer.", english.Plural(len(progress.Missing), "region", ""))
		}
		if progress.Left > 0 {
			text += " To order this rollback: /" + p.Command
		}
		s.notice(text)
	})
	return ""
}

// boxAround returns the box of a rollback: within a radius of a block, or between two corners.
func boxAround(at grid.Pos, args []string) (grid.Box, error) {
	if len(args) == 2 {
		return policy.ParseCorners(args[0], args[1])
	}
	radius := defaultRadius
	if len(args) == 1 {
		var err error
		if radius, err = strconv.Atoi(strings.TrimPrefix(args[0], "radius:")); err != nil || radius < 1 || radius > maxRadius {
			return grid.Box{}, fmt.Errorf("%q is not a radius: choose 1 to %d blocks, or two corners as X,Y,Z", args[0], maxRadius)
		}
	}
	r := int32(radius)
	return grid.BoxOf(grid.Pos{X: at.X - r, Y: max(0, at.Y-r), Z: at.Z - r}, grid.Pos{X: at.X + r, Y: at.Y + r, Z: at.Z + r}), nil
}

// rollbackLines lists the newest rollbacks.
func (s *Standing) rollbackLines() (lines []string) {
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

// follow shows the player how far the rollback is that a command has begun, as the answer to the command says, until it is complete, or they begin
// another one.
func (s *Standing) follow(ctx context.Context, answer string, g Gateway) {
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
