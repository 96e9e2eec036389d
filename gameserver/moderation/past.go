package moderation

import (
	"context"
	"slices"
	"strconv"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// maxSkip is how many changes can be left out: those before the page that is asked for are read, too.
const maxSkip = 10_000

// inspectBox sends who has changed blocks of a box.
func (s *Permissions) inspectBox(args []string, g Gateway) error {
	page, err := parsePage(args)
	if err != nil {
		return err
	}
	s.background(g, func(ctx context.Context) (answer []notice.Notice) {
		found, err := g.History.Query(ctx, rollback.Query{
			Filter: history.Filter{Box: grid.Box{Min: page.Min, Max: page.Max}, Until: page.Until}, Newest: true, Most: page.Skip + sessionmsg.MaxHistory,
		})
		if err != nil {
			answer = append(answer, sentence(err))
		}
		page.More, page.Missing = found.More, err != nil || len(found.Missing) > 0
		s.addChanges(&page, found.Records[min(page.Skip, len(found.Records)):], g.Terrain)
		s.send(page)
		return answer
	})
	return nil
}

// parsePage returns the History that the arguments ask for, without its changes.
func parsePage(args []string) (page sessionmsg.History, err error) {
	if len(args) > 4 {
		return page, policy.ErrUsage
	}
	box, err := policy.ParseCorners(args[0], args[1])
	if err != nil {
		return page, err
	}
	if x, _, z := box.Sides(); max(x, z) > sessionmsg.MaxHistorySide {
		return page, policy.AreaTooLarge(sessionmsg.MaxHistorySide)
	}
	page.Min, page.Max = box.Min, box.Max
	if len(args) > 2 {
		if page.Until, err = strconv.ParseInt(args[2], 10, 64); err != nil || page.Until < 0 {
			return page, notice.New("not_milliseconds", "\"{text}\" is not a time: write the milliseconds since 1970, or 0", args[2])
		}
	}
	if len(args) > 3 {
		if page.Skip, err = strconv.Atoi(args[3]); err != nil || page.Skip < 0 || page.Skip > maxSkip {
			return page, notice.New("bad_skip", "skip 0 to {most} changes, not \"{text}\"", maxSkip, args[3])
		}
	}
	return page, nil
}

// addChanges adds changes to a page. What was natural becomes the block that the terrain has there.
func (s *Permissions) addChanges(page *sessionmsg.History, changes []nodemsg.HistoryRecord, t Terrain) {
	page.Names, page.Changes = []string{}, make([]int64, 0, len(changes)*sessionmsg.HistoryFields)
	authors := make([]int64, len(changes))
	s.enforcer.Read(func(p *policy.State) {
		for i, c := range changes {
			name := p.AuthorName(c.Player, c.Guest)
			at := slices.Index(page.Names, name)
			if at < 0 {
				at = len(page.Names)
				page.Names = append(page.Names, name)
			}
			authors[i] = int64(at)
		}
	})
	land := untouched{terrain: t, room: new(terrain.Room), chunks: make(map[grid.ChunkPos]*chunk.Chunk)}
	for i, c := range changes {
		if c.Old == history.Natural {
			c.Old = land.at(c.At)
		}
		page.Changes = append(page.Changes, c.Time, authors[i], int64(c.At.X), int64(c.At.Y), int64(c.At.Z), int64(c.Old), int64(c.New))
	}
}

// untouched is land that nobody has changed. Its chunks are generated when they are needed first.
type untouched struct {
	terrain Terrain
	room    *terrain.Room
	chunks  map[grid.ChunkPos]*chunk.Chunk
}

func (u *untouched) at(p grid.Pos) chunk.Block {
	pos := p.Chunk()
	c := u.chunks[pos]
	if c == nil {
		c = u.terrain.ChunkIn(u.room, pos)
		u.chunks[pos] = c
	}
	if int(p.Y) >= c.Sections()*grid.ChunkSize { // a node that lies has changes above the world
		return chunk.Air
	}
	return c.Get(chunk.At(p))
}
