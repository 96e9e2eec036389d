package nodemsg

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages of range queries: who leads the regions in a rectangle, and what is in them.

// Limits of a range query.
const (
	// MaxRangeCells is the most founding cells in a rectangle.
	MaxRangeCells = 256
	// MaxRangeRegions is the most regions in one answer, MaxRangeRoutes the most routes.
	MaxRangeRegions = 32
	MaxRangeRoutes  = 100
	// MaxRangePlayers is the most players in one answer.
	MaxRangePlayers = 300
	// MaxRangeSurface is the most chunks in a rectangle of which the surface is requested.
	MaxRangeSurface = 64
	// SurfaceStep is the width, in blocks, of a square that is one point of a surface, and SurfacePoints the number of
	// points of a chunk.
	SurfaceStep   = 4
	SurfacePoints = (grid.ChunkSize / SurfaceStep) * (grid.ChunkSize / SurfaceStep)
)

// RangeRequest asks a node for the regions in a rectangle that it leads, and for the routes that it knows to the others
// there. No region is founded or woken for it.
type RangeRequest struct {
	Area Rectangle `cbor:"1,keyasint"`
	// After continues an answer that was not complete: only regions with higher ids.
	After uint64 `cbor:"2,keyasint,omitempty"`
	// Regions also requests these regions, if they are closed here, whoever led them.
	Regions []uint64 `cbor:"3,keyasint,omitempty"`
	Players bool     `cbor:"4,keyasint,omitempty"` // request the players
	Surface bool     `cbor:"5,keyasint,omitempty"` // request what edits have changed of the surface
	// Listed asks a member of the catalog for the regions that the catalog lists in the rectangle instead. The answer
	// has routes only.
	Listed bool `cbor:"6,keyasint,omitempty"`
}

// Rectangle is a grid.Area.
type Rectangle struct {
	_                      struct{} `cbor:",toarray"`
	MinX, MinZ, MaxX, MaxZ int32
}

// RectangleOf returns the area for a message.
func RectangleOf(a grid.Area) Rectangle {
	return Rectangle{MinX: a.MinX, MinZ: a.MinZ, MaxX: a.MaxX, MaxZ: a.MaxZ}
}

// Area returns the chunks of the rectangle.
func (r Rectangle) Area() grid.Area {
	return grid.Area{MinX: r.MinX, MinZ: r.MinZ, MaxX: r.MaxX, MaxZ: r.MaxZ}
}

// RangeAnswer answers a RangeRequest.
type RangeAnswer struct {
	Regions []RangeRegion `cbor:"1,keyasint,omitempty"` // by ascending id
	Routes  []Region      `cbor:"2,keyasint,omitempty"`
	// More means that there are more regions than these, or, if regions were not requested, more routes.
	More bool `cbor:"3,keyasint,omitempty"`
}

// RangeRegion is a region in a rectangle.
type RangeRegion struct {
	Region  Region      `cbor:"1,keyasint"`
	State   RegionState `cbor:"2,keyasint"`           // StateOpen, StateClosed or StateQuarantined
	Players int         `cbor:"3,keyasint,omitempty"` // number of players in the whole region
	Edits   int         `cbor:"4,keyasint,omitempty"` // number of edited blocks in the whole region; 0 if it is closed
	// Inside are those players who are in the rectangle, and Surface the changed points of its chunks, if they were
	// requested. Clipped means that there are more than these.
	Inside  []RangePlayer  `cbor:"5,keyasint,omitempty"`
	Surface []ChunkSurface `cbor:"6,keyasint,omitempty"`
	Clipped bool           `cbor:"7,keyasint,omitempty"`
	// Applied is the log index up to which the region's edits are counted here: while it stays the same, the surface
	// does. 0 if it is not known: of a closed region.
	Applied uint64 `cbor:"8,keyasint,omitempty"`
}

// RangePlayer is a player in a rectangle, and the block that they are in.
type RangePlayer struct {
	Player player.ID `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint"`
	Guest  bool      `cbor:"3,keyasint,omitempty"`
	At     grid.Pos  `cbor:"4,keyasint"`
}

// ChunkSurface is what edits have changed of a chunk's surface.
type ChunkSurface struct {
	Chunk  grid.ChunkPos  `cbor:"1,keyasint"`
	Points []SurfacePoint `cbor:"2,keyasint"` // by ascending index
}

// SurfacePoint is the highest block of a square of SurfaceStep×SurfaceStep blocks, plants and other things without a
// body left out. Index is that of the square: along X first, then along Z.
type SurfacePoint struct {
	_      struct{} `cbor:",toarray"`
	Index  uint8
	Height uint16
	Block  chunk.Block
}

// Valid returns an error if the rectangle is empty, too large or out of the world.
func (r Rectangle) Valid() error {
	if r.MinX >= r.MaxX || r.MinZ >= r.MaxZ {
		return wire.Refuse(wire.FailBadValue, "the rectangle is empty")
	}
	corner := grid.ChunkPos{X: r.MaxX - 1, Z: r.MaxZ - 1}
	if err := firstError(checkChunk(grid.ChunkPos{X: r.MinX, Z: r.MinZ}), checkChunk(corner)); err != nil {
		return err
	}
	if n := FoundingCells(r.Area()); n > MaxRangeCells {
		return wire.Refuse(wire.FailTooLong, "the rectangle touches %d cells; at most %d are allowed", n, MaxRangeCells)
	}
	return nil
}

// FoundingCells returns the number of founding cells that the area touches.
func FoundingCells(a grid.Area) int64 {
	cell := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel).Area()
	width, depth := cell.MaxX-cell.MinX, cell.MaxZ-cell.MinZ
	floor := func(v, by int32) int64 { return int64(v-((v%by)+by)%by) / int64(by) }
	return (floor(a.MaxX-1, width) - floor(a.MinX, width) + 1) * (floor(a.MaxZ-1, depth) - floor(a.MinZ, depth) + 1)
}

// Valid returns an error if the rectangle or a region id is invalid, or if the rectangle is too large for what is
// requested.
func (r RangeRequest) Valid() error {
	if size := (int64(r.Area.MaxX) - int64(r.Area.MinX)) * (int64(r.Area.MaxZ) - int64(r.Area.MinZ)); r.Surface && size > MaxRangeSurface {
		return wire.Refuse(wire.FailTooLong, "the surface of %d chunks; at most %d are allowed", size, MaxRangeSurface)
	}
	return firstError(r.Area.Valid(), checkList(r.Regions, MaxRangeRegions, checkRegionID))
}

// Valid returns an error if the answer is invalid.
func (a RangeAnswer) Valid() error {
	return firstError(checkList(a.Regions, MaxRangeRegions, RangeRegion.Valid), checkList(a.Routes, MaxRangeRoutes, Region.Valid))
}

// Valid returns an error if the region is invalid.
func (r RangeRegion) Valid() error {
	if r.State > StateFailed || r.Players < 0 || r.Edits < 0 {
		return wire.Refuse(wire.FailBadValue, "a region with state %d, %d players and %d edits", r.State, r.Players, r.Edits)
	}
	return firstError(r.Region.Valid(), checkList(r.Inside, MaxRangePlayers, RangePlayer.Valid), checkList(r.Surface, MaxRangeSurface, ChunkSurface.Valid))
}

// Valid returns an error if the name or the position is invalid.
func (p RangePlayer) Valid() error {
	return firstError(checkPlayer(p.Player, p.Name, p.Guest), checkChunk(p.At.Chunk()))
}

// Valid returns an error if the chunk or a point is invalid.
func (s ChunkSurface) Valid() error {
	if err := checkChunk(s.Chunk); err != nil {
		return err
	}
	last := -1
	return checkList(s.Points, SurfacePoints, func(p SurfacePoint) error {
		if int(p.Index) <= last || p.Index >= SurfacePoints || int(p.Height) >= wire.MaxSections*32 {
			return wire.Refuse(wire.FailBadValue, "surface point %d at height %d", p.Index, p.Height)
		}
		last = int(p.Index)
		return nil
	})
}
