package crowd

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// HeightMap holds the height of the land: for each column, where feet stand that come from above. Players share it, so
// that each chunk is unpacked once in a run. It is safe for concurrent use.
type HeightMap struct {
	mu struct {
		sync.Mutex
		chunks map[grid.ChunkPos]*chunkHeights
	}
}

// chunkHeights holds the height of each column, at [32*x + z].
type chunkHeights [grid.ChunkSize * grid.ChunkSize]int16

// NewHeightMap returns an empty height map.
func NewHeightMap() *HeightMap {
	a := &HeightMap{}
	a.mu.chunks = make(map[grid.ChunkPos]*chunkHeights)
	return a
}

// add unpacks a chunk, unless the height map has it.
func (a *HeightMap) add(m sessionmsg.ChunkData) error {
	if a.chunk(m.Chunk) != nil {
		return nil
	}
	plain, err := wire.UnpackChunk(m.Data)
	if err != nil {
		return err
	}
	c, err := chunk.Decode(plain)
	if err != nil {
		return fmt.Errorf("decode chunk %v: %w", m.Chunk, err)
	}
	l := new(chunkHeights)
	for x := range grid.ChunkSize {
		for z := range grid.ChunkSize {
			y := c.Height()
			for ; y > 0; y-- {
				if b := c.Get(chunk.IndexOf(x, y-1, z)); b.Solid() || b == chunk.Water {
					break
				}
			}
			l[grid.ChunkSize*x+z] = int16(y)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.chunks[m.Chunk] = l
	return nil
}

func (a *HeightMap) chunk(at grid.ChunkPos) *chunkHeights {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.chunks[at]
}

// bodyHalf is half a body's width, with a small margin.
const bodyHalf = .32

// groundHeight returns the height of feet at (x, z): on the highest column under the body, all of which lie in this
// chunk.
func (l *chunkHeights) groundHeight(x, z float64) float64 {
	top := int16(0)
	for _, dx := range [2]float64{-bodyHalf, bodyHalf} {
		for _, dz := range [2]float64{-bodyHalf, bodyHalf} {
			in := grid.Pos{X: int32(math.Floor(x + dx)), Z: int32(math.Floor(z + dz))}
			cx, cz := int(in.X)&(grid.ChunkSize-1), int(in.Z)&(grid.ChunkSize-1)
			top = max(top, l[grid.ChunkSize*cx+cz])
		}
	}
	return float64(top)
}

// Fetch joins a server as one player with the widest view, waits for the land around them, and leaves. It returns
// the chunk in which they entered. The height map then has every chunk within radius of it.
func (a *HeightMap) Fetch(ctx context.Context, target string, radius int) (spawn grid.ChunkPos, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := sessionclient.Dial(ctx, target, sessionmsg.Join{Name: "surveyor", View: min(max(radius, 1), wire.MaxView), Encoding: sessionmsg.EncodingCBOR})
	if err != nil {
		return spawn, fmt.Errorf("survey: %w", err)
	}
	defer c.Close()                                      //nolint:errcheck // nothing is written any more
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the read reports it
	defer stop()
	add := func(m sessionclient.Message) error {
		if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
			return a.add(data)
		}
		return nil
	}
	welcome, err := c.Enter(add)
	spawn = welcome.Pose.Chunk()
	for err == nil && !a.covers(spawn, min(radius, wire.MaxView)) {
		var m sessionclient.Message
		if m, err = c.Read(); err == nil {
			err = add(m)
		}
	}
	if err != nil {
		return spawn, fmt.Errorf("survey: %w", err)
	}
	return spawn, nil
}

func (a *HeightMap) covers(middle grid.ChunkPos, radius int) bool {
	for x := -radius; x <= radius; x++ {
		for z := -radius; z <= radius; z++ {
			if a.chunk(grid.ChunkPos{X: middle.X + int32(x), Z: middle.Z + int32(z)}) == nil {
				return false
			}
		}
	}
	return true
}
