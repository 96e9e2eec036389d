package rollback

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// maxSurfaces bounds the chunks of which the surface is cached, at a few hundred bytes each.
	maxSurfaces = 8192
	// surfaceFor is how long a chunk of a closed region is not looked at again.
	surfaceFor = 15 * time.Second
	// maxCollected is how many edits of a region are copied at once, in the goroutine of the region. At least one
	// chunk's are.
	maxCollected = 1 << 15
	// generateRate and generateBurst are how many chunks this node generates for surfaces in a second, and at once. One
	// takes about 2 ms.
	generateRate, generateBurst = 40, 128
)

// surfaces computes what edits have changed of the surfaces of chunks, and caches it. Any goroutine may use it.
type surfaces struct {
	ground func(grid.ChunkPos) *chunk.Chunk
	known  *lru.Cache[surfaceKey, surface]
	limit  *rate.Limiter
	seed   maphash.Seed
	one    sync.Mutex // one chunk is generated at a time
}

type surfaceKey struct {
	region uint64
	chunk  grid.ChunkPos
}

type surface struct {
	edits   uint64 // hash of the chunk's edits
	points  []nodemsg.SurfacePoint
	at      time.Time
	applied uint64 // the log index of the region then; 0 if it was closed
}

// editedChunk is a chunk with its edits. If edits is nil, its surface is cached.
type editedChunk struct {
	pos   grid.ChunkPos
	edits []nodemsg.BlockAt
}

func newSurfaces(ground func(grid.ChunkPos) *chunk.Chunk) *surfaces {
	known, err := lru.New[surfaceKey, surface](maxSurfaces)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	return &surfaces{
		ground: ground, known: known, limit: rate.NewLimiter(generateRate, generateBurst),
		seed: maphash.MakeSeed(),
	}
}

// collect copies the edits of a region's chunks in the area, unless nothing was applied since. It runs in the region's
// goroutine.
func (s *surfaces) collect(id, applied uint64, land *world.Land, area grid.Area) (edited []editedChunk, clipped bool) {
	if s.ground == nil {
		return nil, true
	}
	copied := 0
	for pos := range chunksOf(area) {
		if !land.Pinned(pos) {
			continue
		}
		if known, ok := s.known.Peek(surfaceKey{id, pos}); ok && known.applied == applied {
			edited = append(edited, editedChunk{pos: pos})
			continue
		}
		if copied > maxCollected {
			clipped = true
			continue
		}
		edits := land.Chunk(pos).Edits
		copied += len(edits)
		edited = append(edited, editedChunk{pos, edits})
	}
	return edited, clipped
}

// stored is collect and of for a closed region, from what is stored.
func (s *surfaces) stored(ctx context.Context, storage kvReader, info nodemsg.Region, height int32, area grid.Area) (all []nodemsg.ChunkSurface, clipped bool) {
	if s.ground == nil {
		return nil, true
	}
	var edited []editedChunk
	for pos := range chunksOf(area) {
		if !info.Cell.Contains(pos) {
			continue
		}
		if known, ok := s.known.Peek(surfaceKey{info.ID, pos}); ok && known.applied == 0 && time.Since(known.at) < surfaceFor {
			edited = append(edited, editedChunk{pos: pos})
			continue
		}
		land := world.NewLand(info.ID, info.Cell, height)
		for _, prefix := range land.PartPrefixes(world.Part{Chunk: pos}) {
			if err := storage.Scan(world.LandTable, prefix, land.Load); err != nil {
				clipped = true
			}
		}
		if land.Pinned(pos) {
			edits := land.Chunk(pos).Edits
			edited = append(edited, editedChunk{pos, edits})
		}
		if ctx.Err() != nil {
			return nil, true
		}
	}
	all, more := s.of(ctx, info.ID, 0, edited)
	return all, clipped || more
}

// kvReader reads rows; a directory.Storage.
type kvReader interface {
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
}

// of returns the surfaces of the chunks, from the cache or computed. Clipped reports that some are missing, because too
// much is asked of this node.
func (s *surfaces) of(ctx context.Context, id, applied uint64, edited []editedChunk) (all []nodemsg.ChunkSurface, clipped bool) {
	for _, e := range edited {
		key := surfaceKey{id, e.pos}
		known, ok := s.known.Get(key)
		if e.edits == nil && !ok {
			clipped = true // dropped from the cache since it was looked up
		}
		if e.edits != nil {
			digest := s.digest(e.edits)
			switch {
			case ok && known.edits == digest:
				known.at, known.applied = time.Now(), applied
				s.known.Add(key, known)
			case ctx.Err() != nil || !s.limit.Allow():
				clipped = true // what was known is better than nothing
			default:
				known = surface{edits: digest, points: s.changed(e), at: time.Now(), applied: applied}
				s.known.Add(key, known)
			}
		}
		if len(known.points) > 0 {
			all = append(all, nodemsg.ChunkSurface{Chunk: e.pos, Points: known.points})
		}
	}
	slices.SortFunc(all, func(a, b nodemsg.ChunkSurface) int {
		return cmp.Or(cmp.Compare(a.Chunk.X, b.Chunk.X), cmp.Compare(a.Chunk.Z, b.Chunk.Z))
	})
	return all, clipped
}

func (s *surfaces) digest(edits []nodemsg.BlockAt) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var b [8]byte
	for _, e := range edits {
		binary.BigEndian.PutUint32(b[:], uint32(e.At))
		binary.BigEndian.PutUint16(b[4:], uint16(e.Block))
		h.Write(b[:])
	}
	return h.Sum64()
}

// changed returns the points of the chunk's surface that its edits have changed.
func (s *surfaces) changed(e editedChunk) []nodemsg.SurfacePoint {
	s.one.Lock()
	defer s.one.Unlock()
	c := s.ground(e.pos)
	before := surfaceOf(c)
	for _, edit := range e.edits {
		if int(edit.At) < c.Height()*grid.ChunkSize*grid.ChunkSize {
			c.Set(edit.At, edit.Block)
		}
	}
	after := surfaceOf(c)
	return slices.DeleteFunc(after, func(p nodemsg.SurfacePoint) bool { return p == before[p.Index] })
}

// surfaceOf returns the points of a chunk's surface: the highest block of each square of SurfaceStep blocks, plants
// left out.
func surfaceOf(c *chunk.Chunk) []nodemsg.SurfacePoint {
	const side = grid.ChunkSize / nodemsg.SurfaceStep
	points := make([]nodemsg.SurfacePoint, nodemsg.SurfacePoints)
	for i := range points {
		points[i] = highest(c, i%side*nodemsg.SurfaceStep, i/side*nodemsg.SurfaceStep)
		points[i].Index = uint8(i) //nolint:gosec // below SurfacePoints
	}
	return points
}

func highest(c *chunk.Chunk, minX, minZ int) (p nodemsg.SurfacePoint) {
	for y := c.Height() - 1; y >= 0; y-- {
		for z := minZ; z < minZ+nodemsg.SurfaceStep; z++ {
			for x := minX; x < minX+nodemsg.SurfaceStep; x++ {
				if b := c.Get(chunk.IndexOf(x, y, z)); b != chunk.Air && !b.Plant() {
					p.Height, p.Block = uint16(y), b //nolint:gosec // at most 1,023
					return p
				}
			}
		}
	}
	return p
}

// chunksOf returns the chunks of the area.
func chunksOf(a grid.Area) func(yield func(grid.ChunkPos) bool) {
	return func(yield func(grid.ChunkPos) bool) {
		for x := a.MinX; x < a.MaxX; x++ {
			for z := a.MinZ; z < a.MaxZ; z++ {
				if !yield(grid.ChunkPos{X: x, Z: z}) {
					return
				}
			}
		}
	}
}

func floor(v float64) int32 { return int32(math.Floor(v)) }
