package surroundings

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func newGenerator(t *testing.T) *terrain.Generator {
	g, err := terrain.New(terrain.Params{Seed: 7, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func point(t sessionmsg.MapTile, x, z int) (height int, block chunk.Block) {
	at := t.Points[(z*points+x)*sessionmsg.MapPointSize:]
	return int(binary.LittleEndian.Uint16(at)), chunk.Block(binary.LittleEndian.Uint16(at[2:]))
}

// A tile shows the untouched land, and what was built there instead.
func TestTile(t *testing.T) {
	g := newGenerator(t)
	built := grid.ChunkPos{X: -14, Z: 9} // in the tile (-2, 1), its chunk (2, 1)
	s := New(func(_ context.Context, q region.RangeQuery) (found region.RangeResult, err error) {
		if want := (grid.Area{MinX: -16, MinZ: 8, MaxX: -8, MaxZ: 16}); q.Area != want || !q.Surface || q.Players {
			t.Errorf("query %+v", q)
		}
		found.Regions = []nodemsg.RangeRegion{{Surface: []nodemsg.ChunkSurface{
			{Chunk: built, Points: []nodemsg.SurfacePoint{{Index: 8*5 + 3, Height: 77, Block: chunk.Brick}}},
			{Chunk: grid.ChunkPos{X: 1000}, Points: []nodemsg.SurfacePoint{{Index: 1}}}, // not requested
		}}}
		return found, nil
	}, nil, g)
	tile := s.Tile(t.Context(), -2, 1)
	if !tile.Complete || tile.X != -2 || tile.Z != 1 || len(tile.Points) != points*points*sessionmsg.MapPointSize {
		t.Fatalf("tile (%d, %d), complete: %v, %d bytes", tile.X, tile.Z, tile.Complete, len(tile.Points))
	}
	if height, block := point(tile, 2*8+3, 1*8+5); height != 77 || block != chunk.Brick {
		t.Errorf("what was built is %v at %d", block.Name(), height)
	}
	c := g.Chunk(grid.ChunkPos{X: -16, Z: 8})
	for x := range 8 {
		for z := range 8 {
			height, block := point(tile, x, z)
			if got := c.Get(chunk.IndexOf(4*x, height, 4*z)); got != block && got != chunk.Air && !got.Plant() { // a cave may begin there
				t.Errorf("(%d, %d): %v at %d, the land has %v", x, z, block.Name(), height, got.Name())
			}
		}
	}
}

// What is asked again soon costs no query, and what fails is incomplete.
func TestAnswersAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var queries, running, most int
		var fails error
		s := New(func(_ context.Context, q region.RangeQuery) (found region.RangeResult, err error) {
			mu.Lock()
			queries++
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(100 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			found.Regions = []nodemsg.RangeRegion{{Inside: []nodemsg.RangePlayer{
				{Player: player.ID{1}, Name: "ada", At: grid.Pos{X: q.Area.MinX * grid.ChunkSize, Y: 40}},
			}}}
			return found, fails
		}, nil, newGenerator(t))
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				cell := int32(i % 10)
				if list := s.Nearby(t.Context(), grid.ChunkPos{X: 16*cell + int32(i/20), Z: 3}); len(list.Players) != 1 || !list.Complete ||
					list.Players[0].X != (16*cell-16)*grid.ChunkSize {
					t.Errorf("%+v", list)
				}
			})
		}
		wg.Wait()
		if most > atOnce || queries > 10*atOnce {
			t.Errorf("%d queries, %d at once", queries, most)
		}
		queries = 0
		s.Nearby(t.Context(), grid.ChunkPos{})
		if queries != 0 {
			t.Error("the answer was not shared")
		}
		<-time.After(playersFor)
		fails = errors.New("the world ends here")
		if list := s.Nearby(t.Context(), grid.ChunkPos{}); list.Complete || queries != 2 { // then without the cells around
			t.Errorf("%+v after %d queries", list, queries)
		}
	})
}

// The list of everybody is shared, in order, and bounded.
func TestPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := New(nil, func(context.Context) ([]string, uint64) {
			asked++
			names := []string{"zoe"}
			for range 3 * sessionmsg.MaxNearby {
				names = append(names, "ada")
			}
			return names, 2000
		}, newGenerator(t))
		for range 5 {
			list := s.People(t.Context())
			if len(list.Names) != sessionmsg.MaxNearby || list.Names[0] != "ada" || list.Players != 2000 {
				t.Errorf("%d names, %d players", len(list.Names), list.Players)
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		<-time.After(peopleFor + time.Second)
		if s.People(t.Context()); asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}
