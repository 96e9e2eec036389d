package services

import (
	"net/http"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file has what services read. openapi.json describes the answers.

const (
	// maxBlocks and maxChunks bound what a request reads of the land, maxChanges of its history.
	maxBlocks, maxChunks = 1 << 16, 16
	maxChanges           = 500
	// usualChanges is how many changes are listed that were not asked for by number.
	usualChanges = 100
)

func (s *Server) getService(c *call) (any, error) { return c.service, nil }

type worldAnswer struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Height  int32         `json:"height"`
	Border  *place.Border `json:"border,omitempty"`
	TimeMS  int64         `json:"time_ms"`
	Minutes float64       `json:"minutes"` // of the day in the world, since midnight
	Players uint64        `json:"players"`
	Nodes   int           `json:"nodes"`
}

func (s *Server) getWorld(c *call) (any, error) {
	now := s.Wall().UnixMilli()
	_, players := s.roster.get(c.Context(), s.Names)
	return worldAnswer{
		ID: s.World.ID(), Name: s.World.Name, Height: s.World.Height(), Border: c.border,
		TimeMS: now, Minutes: s.World.TimeOfDay(now), Players: players, Nodes: s.Nodes(),
	}, nil
}

type playersAnswer struct {
	Players uint64   `json:"players"`
	Names   []string `json:"names"`
}

func (s *Server) getPlayers(c *call) (any, error) {
	names, players := s.roster.get(c.Context(), s.Names)
	return playersAnswer{players, append([]string{}, names...)}, nil
}

type areaAnswer struct {
	Regions []areaRegion `json:"regions"`
	Players []areaPlayer `json:"players"`
	Missing []missing    `json:"missing"`
}

type areaRegion struct {
	Cell    string `json:"cell"`
	Leader  string `json:"leader,omitempty"`
	Open    bool   `json:"open"`
	Players int    `json:"players"`
}

type areaPlayer struct {
	ID    player.ID `json:"id"`
	Name  string    `json:"name"`
	Guest bool      `json:"guest"`
	At    grid.Pos  `json:"at"`
}

// missing is a part of an area of which nothing is known.
type missing struct {
	Cell string `json:"cell"`
	Why  string `json:"why"`
}

func missingOf(all []rollback.Missing) []missing {
	cells := []missing{}
	for _, m := range all {
		cells = append(cells, missing{m.Cell.String(), m.Why})
	}
	return cells
}

func (s *Server) getArea(c *call) (any, error) {
	box, err := s.box(c)
	if err != nil {
		return nil, err
	}
	if s.Ranges == nil {
		return nil, errBusy
	}
	end, err := s.reading(c.Context(), true)
	if err != nil {
		return nil, err
	}
	defer end()
	found, err := s.Ranges(c.Context(), region.RangeQuery{Area: box.Area(), Players: true})
	if err != nil {
		return nil, err
	}
	answer := areaAnswer{Regions: []areaRegion{}, Players: []areaPlayer{}, Missing: missingOf(found.Missing)}
	for _, r := range found.Regions {
		answer.Regions = append(answer.Regions, areaRegion{
			Cell: r.Region.Cell.String(), Leader: r.Region.Leader, Open: r.State == nodemsg.StateOpen, Players: r.Players,
		})
		for _, p := range r.Inside {
			if box.Contains(grid.Pos{X: p.At.X, Y: box.Min.Y, Z: p.At.Z}) {
				answer.Players = append(answer.Players, areaPlayer{ID: p.Player, Name: p.Name, Guest: p.Guest, At: p.At})
			}
		}
	}
	return answer, nil
}

type blocksAnswer struct {
	Box     grid.Box `json:"box"`
	Palette []string `json:"palette"`
	// Blocks are numbers in the palette: by height, then by Z, then by X.
	Blocks []int `json:"blocks"`
}

func (s *Server) getBlocks(c *call) (any, error) {
	box, err := s.box(c)
	if err != nil {
		return nil, err
	}
	width, height, length := box.Sides()
	if width*length > maxBlocks || width*length*height > maxBlocks || countOf(box) > maxChunks {
		return nil, badRequest("a box may have %d blocks, in %d chunks", maxBlocks, maxChunks)
	}
	end, err := s.reading(c.Context(), false)
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := s.watch(c.Context(), c, chunksOf(box))
	if err != nil {
		return nil, err
	}
	defer v.close()
	if err := v.load(c.Context()); err != nil {
		return nil, err
	}
	answer := blocksAnswer{Box: box, Palette: []string{}, Blocks: make([]int, 0, width*length*height)}
	numbers := make(map[chunk.Block]int)
	for y := box.Min.Y; y <= box.Max.Y; y++ {
		for z := box.Min.Z; z <= box.Max.Z; z++ {
			for x := box.Min.X; x <= box.Max.X; x++ {
				b, err := v.block(grid.Pos{X: x, Y: y, Z: z})
				if err != nil {
					return nil, err
				}
				n, known := numbers[b]
				if !known {
					n = len(numbers)
					numbers[b] = n
					answer.Palette = append(answer.Palette, b.Name())
				}
				answer.Blocks = append(answer.Blocks, n)
			}
		}
	}
	return answer, nil
}

type historyAnswer struct {
	Changes []change  `json:"changes"`
	More    bool      `json:"more"`
	Missing []missing `json:"missing"`
}

// change is a change of a block. Old is "natural" if no player had changed the block before.
type change struct {
	TimeMS int64     `json:"time_ms"`
	ID     player.ID `json:"by"`
	Name   string    `json:"name"`
	At     grid.Pos  `json:"at"`
	Old    string    `json:"old"`
	New    string    `json:"new"`
}

func changesOf(p *policy.State, records []nodemsg.HistoryRecord) []change {
	all := make([]change, 0, len(records))
	for _, r := range records {
		all = append(all, change{r.Time, r.Player, p.AuthorName(r.Player, r.Guest), r.At, history.BlockName(r.Old), history.BlockName(r.New)})
	}
	return all
}

func (s *Server) getHistory(c *call) (any, error) {
	box, err := s.box(c)
	if err != nil {
		return nil, err
	}
	if countOf(box) > maxStreamChunks {
		return nil, badRequest("a box may have %d chunks of 32×32 blocks", maxStreamChunks)
	}
	const latest = 1e14
	q := rollback.Query{Newest: true}
	q.Box = box
	most, err := c.number("limit", usualChanges, maxChanges)
	if err != nil || most == 0 {
		return nil, badRequest("limit: want 1 to %d", maxChanges)
	}
	q.Most = int(most)
	if q.Since, err = c.number("since_ms", 0, latest); err != nil {
		return nil, err
	}
	if q.Until, err = c.number("until_ms", 0, latest); err != nil {
		return nil, err
	}
	if of := c.URL.Query().Get("player"); of != "" {
		s.Policy(func(p *policy.State) { q.Players, err = p.PlayersOf(of) })
		if err != nil {
			return nil, err
		}
	}
	end, err := s.reading(c.Context(), true)
	if err != nil {
		return nil, err
	}
	defer end()
	found, err := s.History.Query(c.Context(), q)
	if err != nil {
		return nil, err
	}
	answer := historyAnswer{More: found.More, Missing: missingOf(found.Missing)}
	s.Policy(func(p *policy.State) { answer.Changes = changesOf(p, found.Records) })
	return answer, nil
}

// blockNames are the blocks by their names.
var blockNames = func() map[string]chunk.Block {
	all := make(map[string]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		all[b.Name()] = b
	}
	return all
}()

func blockNamed(name string) (chunk.Block, error) {
	b, known := blockNames[name]
	if !known {
		return b, badRequest("there is no block %q", name)
	}
	return b, nil
}

func conflict(code, message string) error { return &Error{http.StatusConflict, code, message} }

// checkSeq returns an error unless the number of an edit, and of those after it, are near the time, in microseconds
// since 1970: the land refuses others (docs/adr/0045).
func checkSeq(seq uint64, edits int, now time.Time) error {
	at := uint64(now.UnixMicro()) //nolint:gosec // after 1970
	if ahead := uint64(seqAhead.Microseconds()); seq == 0 || seq > at+ahead-uint64(edits) {
		return badRequest("seq %d: want about the time in microseconds since 1970, which is %d, and higher than in requests before", seq, at)
	}
	return nil
}

// chunksAt returns the chunks of positions, each once.
func chunksAt(positions []grid.Pos) []grid.ChunkPos {
	all := make([]grid.ChunkPos, 0, len(positions))
	for _, pos := range positions {
		all = append(all, pos.Chunk())
	}
	slices.SortFunc(all, grid.ChunkPos.Compare)
	return slices.Compact(all)
}
