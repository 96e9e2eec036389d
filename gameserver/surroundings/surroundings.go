// Package surroundings answers players who ask who is near them, who plays in the world, and what the land looks like
// from above. The answers are those of range queries (docs/adr/0034) and of other gateways, which are bounded, and
// shared for some seconds by all who ask.
package surroundings

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// playersFor, peopleFor and tileFor are how long an answer is shared.
	playersFor, peopleFor, tileFor = 2 * time.Second, 4 * time.Second, 15 * time.Second
	// maxLists and maxTiles bound the answers that are kept, the latter at 16 KiB each.
	maxLists, maxTiles = 256, 512
	// atOnce is how many queries of this gateway run at the same time, and queryTime bounds one.
	atOnce    = 4
	queryTime = 3 * time.Second
)

// Terrain generates the untouched land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	OverviewIn(room *terrain.Room, pos grid.ChunkPos, step int) []terrain.TopBlock
}

// Query runs a range query; that of a *region.Host.
type Query func(context.Context, region.RangeQuery) (region.RangeResult, error)

// Names returns the names of the players on this node and on the others, and how many there are. It takes a second at
// most.
type Names func(context.Context) (names []string, players uint64)

// Surroundings answers the questions of all sessions of a gateway. Any goroutine may use it.
type Surroundings struct {
	query   Query
	names   Names
	terrain Terrain
	rooms   sync.Pool
	running chan struct{} // a slot for each query
	lists   answers[grid.Cell, sessionmsg.Nearby]
	people  answers[struct{}, sessionmsg.People]
	tiles   answers[tile, sessionmsg.MapTile]
	grounds *lru.Cache[tile, []byte] // tiles of the untouched land
}

// tile is the place of a tile of the map, in tiles.
type tile struct{ x, z int32 }

// New returns Surroundings.
func New(query Query, names Names, t Terrain) *Surroundings {
	return &Surroundings{
		query: query, names: names, terrain: t, running: make(chan struct{}, atOnce), rooms: sync.Pool{New: func() any { return new(terrain.Room) }},
		lists: newAnswers[grid.Cell, sessionmsg.Nearby](maxLists, playersFor), people: newAnswers[struct{}, sessionmsg.People](1, peopleFor), tiles: newAnswers[tile, sessionmsg.MapTile](maxTiles, tileFor),
		grounds: newCache[tile, []byte](maxTiles),
	}
}

// answers are the answers that are shared.
type answers[K comparable, A any] struct {
	cache   *lru.Cache[K, answer[A]]
	lasting time.Duration
}

type answer[A any] struct {
	it A
	at time.Time
}

func newAnswers[K comparable, A any](size int, lasting time.Duration) answers[K, A] {
	return answers[K, A]{newCache[K, answer[A]](size), lasting}
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is positive
	}
	return c
}

func (a *answers[K, A]) get(key K) (it A, ok bool) {
	known, ok := a.cache.Get(key)
	if !ok || time.Since(known.at) > a.lasting {
		return it, false
	}
	return known.it, true
}

// find returns the answer for the key: one that is shared, or a new one, as soon as a query may run.
func find[K comparable, A any](ctx context.Context, s *Surroundings, shared *answers[K, A], key K, ask func(context.Context) A) (it A, ok bool) {
	if it, ok := shared.get(key); ok {
		return it, true
	}
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	select {
	case <-ctx.Done():
		return it, false
	case s.running <- struct{}{}:
	}
	defer func() { <-s.running }()
	if it, ok := shared.get(key); ok { // another session has asked meanwhile
		return it, true
	}
	it = ask(ctx)
	shared.cache.Add(key, answer[A]{it, time.Now()})
	return it, true
}

// Nearby lists the players in the nine founding cells around a chunk.
func (s *Surroundings) Nearby(ctx context.Context, at grid.ChunkPos) sessionmsg.Nearby {
	cell := grid.CellAt(at, grid.FoundingLabel)
	list, _ := find(ctx, s, &s.lists, cell, func(ctx context.Context) sessionmsg.Nearby { return s.listPlayers(ctx, cell) })
	return list
}

func (s *Surroundings) listPlayers(ctx context.Context, cell grid.Cell) (list sessionmsg.Nearby) {
	a := cell.Area()
	width, depth := a.MaxX-a.MinX, a.MaxZ-a.MinZ
	around := grid.Area{MinX: a.MinX - width, MinZ: a.MinZ - depth, MaxX: a.MaxX + width, MaxZ: a.MaxZ + depth}
	found, err := s.query(ctx, region.RangeQuery{Area: around, Players: true, Time: queryTime})
	if err != nil { // at the border of the world
		found, err = s.query(ctx, region.RangeQuery{Area: a, Players: true, Time: queryTime})
	}
	list.Complete = err == nil && len(found.Missing) == 0
	for _, g := range found.Regions {
		list.Complete = list.Complete && !g.Clipped
		for _, p := range g.Inside {
			if len(list.Players) == sessionmsg.MaxNearby {
				list.Complete = false
				break
			}
			list.Players = append(list.Players, sessionmsg.NearbyPlayer{
				Player: p.Player.String(), Name: p.Name, Guest: p.Guest, X: p.At.X, Y: p.At.Y, Z: p.At.Z,
			})
		}
	}
	return list
}

// People lists who plays in the world.
func (s *Surroundings) People(ctx context.Context) sessionmsg.People {
	list, _ := find(ctx, s, &s.people, struct{}{}, func(ctx context.Context) sessionmsg.People {
		names, players := s.names(ctx)
		slices.Sort(names)
		return sessionmsg.People{Names: names[:min(len(names), sessionmsg.MaxNearby)], Players: players}
	})
	return list
}

// side and points are the chunks, and the points, along a side of a tile.
const (
	side        = sessionmsg.MapTileChunks
	chunkPoints = grid.ChunkSize / nodemsg.SurfaceStep
	points      = side * chunkPoints
)

// Tile returns a tile of the map.
func (s *Surroundings) Tile(ctx context.Context, x, z int32) sessionmsg.MapTile {
	at := tile{x, z}
	drawn, ok := find(ctx, s, &s.tiles, at, func(ctx context.Context) sessionmsg.MapTile { return s.draw(ctx, at) })
	if !ok {
		drawn = sessionmsg.MapTile{X: x, Z: z}
	}
	return drawn
}

// draw draws the untouched land, and then what was built on it.
func (s *Surroundings) draw(ctx context.Context, at tile) sessionmsg.MapTile {
	area := grid.Area{MinX: at.x * side, MinZ: at.z * side, MaxX: (at.x + 1) * side, MaxZ: (at.z + 1) * side}
	t := sessionmsg.MapTile{X: at.x, Z: at.z, Points: append([]byte(nil), s.ground(at, area)...)}
	found, err := s.query(ctx, region.RangeQuery{Area: area, Surface: true, Time: queryTime})
	t.Complete = err == nil && len(found.Missing) == 0
	for _, g := range found.Regions {
		t.Complete = t.Complete && !g.Clipped
		for _, c := range g.Surface {
			if !area.Contains(c.Chunk) {
				continue
			}
			for _, p := range c.Points {
				setPoint(t.Points, c.Chunk.X-area.MinX, c.Chunk.Z-area.MinZ, int(p.Index), int(p.Height), uint16(p.Block))
			}
		}
	}
	return t
}

// ground returns the tile of the untouched land, which is only read.
func (s *Surroundings) ground(at tile, area grid.Area) []byte {
	if known, ok := s.grounds.Get(at); ok {
		return known
	}
	room := s.rooms.Get().(*terrain.Room) //nolint:forcetypeassert // nothing else is in it
	defer s.rooms.Put(room)
	drawn := make([]byte, points*points*sessionmsg.MapPointSize)
	for z := area.MinZ; z < area.MaxZ; z++ {
		for x := area.MinX; x < area.MaxX; x++ {
			for i, top := range s.terrain.OverviewIn(room, grid.ChunkPos{X: x, Z: z}, nodemsg.SurfaceStep) {
				setPoint(drawn, x-area.MinX, z-area.MinZ, i, top.Y, uint16(top.Block))
			}
		}
	}
	s.grounds.Add(at, drawn)
	return drawn
}

// setPoint sets a point of the chunk at (x, z) in a tile.
func setPoint(tile []byte, x, z int32, index, height int, block uint16) {
	column, row := int(x)*chunkPoints+index%chunkPoints, int(z)*chunkPoints+index/chunkPoints
	to := tile[(row*points+column)*sessionmsg.MapPointSize:]
	binary.LittleEndian.PutUint16(to, uint16(height))
	binary.LittleEndian.PutUint16(to[2:], block)
}
