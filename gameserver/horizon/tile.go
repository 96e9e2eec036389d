package horizon

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Key names a tile: its level, and its place in tiles of that level.
type Key struct {
	Level int
	X, Z  int32
}

const (
	// Levels is the number of levels.
	Levels = 3
	// BaseSide is the width of a tile of level 0 in blocks. Each further level is twice as wide.
	BaseSide = 256
	// Points is the number of points along a side of a tile, both edges included, so that neighbours share them.
	Points = 65
	// maxTile is the most blocks from the centre of the world at which a tile may begin.
	maxTile = 1 << 30
	// maxBuilt bounds the runs of what was built on a tile. More than these are left out, the lowest first.
	maxBuilt = 4096
	// builtOver is how far above the untouched land, in blocks, something is drawn as built on it, and not as the land
	// itself.
	builtOver = 3
	// version is the first byte of an encoded tile.
	version = 1
)

// step returns the distance between two points of a tile in blocks.
func (k Key) step() int { return nodemsg.SurfaceStep << k.Level }

// side returns the width of a tile in blocks.
func (k Key) side() int { return BaseSide << k.Level }

// Valid reports whether there is such a tile.
func (k Key) Valid() bool {
	if k.Level < 0 || k.Level >= Levels {
		return false
	}
	limit := int32(maxTile / k.side()) //nolint:gosec // at most 2^22
	return k.X >= -limit && k.X < limit && k.Z >= -limit && k.Z < limit
}

// String returns the name of the tile in addresses.
func (k Key) String() string { return fmt.Sprintf("%d.%d.%d", k.Level, k.X, k.Z) }

// ParseKey parses a name.
func ParseKey(name string) (k Key, err error) {
	if _, err := fmt.Sscanf(name, "%d.%d.%d", &k.Level, &k.X, &k.Z); err != nil || k.String() != name || !k.Valid() {
		return Key{}, fmt.Errorf("no tile is called %q", wire.Clip([]byte(name)))
	}
	return k, nil
}

// squares lists the tiles of level 0 that the tile covers, with those behind its eastern and southern edges, whose
// first points it has.
func (k Key) squares() (all []Key) {
	n := int32(1) << k.Level
	for z := k.Z * n; z <= (k.Z+1)*n; z++ {
		for x := k.X * n; x <= (k.X+1)*n; x++ {
			all = append(all, Key{X: x, Z: z})
		}
	}
	return all
}

// area returns the chunks of a tile.
func (k Key) area() grid.Area {
	n := int32(k.side() / grid.ChunkSize) //nolint:gosec // at most 32
	return grid.Area{MinX: k.X * n, MinZ: k.Z * n, MaxX: (k.X + 1) * n, MaxZ: (k.Z + 1) * n}
}

// Tile is a part of the land as it looks from afar.
type Tile struct {
	Heights []uint16 // of the points, row by row along X
	Blocks  []chunk.Block
	Built   []Run // by place: rows along Z, then along X
}

// Run is a row of patches of SurfaceStep × SurfaceStep blocks, along X, on which something of the same height was
// built.
type Run struct {
	X, Z   int // of the first patch, in patches from the corner of the tile
	Length int
	Height uint16 // of the highest block
	Block  chunk.Block
}

// compose returns the tile: the untouched land, with the changed points of chunks.
func compose(k Key, ground []terrain.TopBlock, changed []nodemsg.ChunkSurface) Tile {
	t := Tile{Heights: make([]uint16, Points*Points), Blocks: make([]chunk.Block, Points*Points)}
	for i, top := range ground {
		t.Heights[i], t.Blocks[i] = uint16(top.Y), top.Block //nolint:gosec // at most 1,023
	}
	const patches = grid.ChunkSize / nodemsg.SurfaceStep
	stride := 1 << k.Level // patches from one point to the next
	var built []Run
	for _, c := range changed {
		for _, p := range c.Points {
			x := (int(c.Chunk.X)-int(k.area().MinX))*patches + int(p.Index)%patches
			z := (int(c.Chunk.Z)-int(k.area().MinZ))*patches + int(p.Index)/patches
			px, pz := x/stride, z/stride
			if x < 0 || z < 0 || px >= Points || pz >= Points {
				continue
			}
			at := pz*Points + px
			switch onTile := x < (Points-1)*stride && z < (Points-1)*stride; {
			case int(p.Height) >= ground[at].Y+builtOver:
				if onTile {
					built = append(built, Run{x, z, 1, p.Height, p.Block})
				}
			case x%stride == 0 && z%stride == 0:
				t.Heights[at], t.Blocks[at] = p.Height, p.Block
			}
		}
	}
	t.Built = joinRuns(built)
	return t
}

// joinRuns joins patches to runs, and keeps the highest ones.
func joinRuns(all []Run) (runs []Run) {
	order := func(a, b Run) int { return cmp.Or(cmp.Compare(a.Z, b.Z), cmp.Compare(a.X, b.X)) }
	slices.SortFunc(all, order)
	for _, r := range all {
		if last := len(runs) - 1; last >= 0 {
			if l := &runs[last]; l.Z == r.Z && l.X+l.Length == r.X && l.Height == r.Height && l.Block == r.Block {
				l.Length++
				continue
			}
		}
		runs = append(runs, r)
	}
	if len(runs) > maxBuilt {
		slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(b.Height, a.Height), order(a, b)) })
		runs = runs[:maxBuilt]
		slices.SortFunc(runs, order)
	}
	return runs
}

// Encode returns the bytes of the tile, which are the same on every node. After the version, all numbers are varints:
//
//	Points×Points heights, each as its zigzag-encoded difference from what its western, northern and north-western neighbours predict
//	Points×Points blocks
//	the number of runs, and for each: rows since the last run; x, from the end of the last run of the same row; length; height; block
func (t Tile) Encode() []byte {
	b := []byte{version}
	for i, h := range t.Heights {
		d := int64(h) - predict(t.Heights, i)
		b = binary.AppendVarint(b, d)
	}
	for _, block := range t.Blocks {
		b = binary.AppendUvarint(b, uint64(block))
	}
	b = binary.AppendUvarint(b, uint64(len(t.Built)))
	x, z := 0, 0
	for _, r := range t.Built {
		if r.Z != z {
			x = 0
		}
		for _, v := range [...]int{r.Z - z, r.X - x, r.Length, int(r.Height), int(r.Block)} {
			b = binary.AppendUvarint(b, uint64(v)) //nolint:gosec // none is negative
		}
		x, z = r.X+r.Length, r.Z
	}
	return b
}

// predict returns the height of point i as a plane through the points before it has it.
func predict(heights []uint16, i int) int64 {
	x, z := i%Points, i/Points
	switch {
	case x == 0 && z == 0:
		return 0
	case z == 0:
		return int64(heights[i-1])
	case x == 0:
		return int64(heights[i-Points])
	default:
		return int64(heights[i-1]) + int64(heights[i-Points]) - int64(heights[i-Points-1])
	}
}
