package grid

import (
	"fmt"
	"strconv"
	"strings"
)

// Box is a cuboid of blocks. Both corners are part of it.
type Box struct {
	Min Pos `json:"min"`
	Max Pos `json:"max"`
}

// BoxOf returns the smallest box with two corners, in any order.
func BoxOf(a, b Pos) Box {
	return Box{
		Min: Pos{X: min(a.X, b.X), Y: min(a.Y, b.Y), Z: min(a.Z, b.Z)},
		Max: Pos{X: max(a.X, b.X), Y: max(a.Y, b.Y), Z: max(a.Z, b.Z)},
	}
}

// ParseBox returns the box of an area in blocks, "X1,Z1:X2,Z2" or "X1,Y1,Z1:X2,Y2,Z2": two opposite corners, both
// included. Without heights it reaches from the bottom to the top of any world.
func ParseBox(text string) (Box, error) {
	var a, b Pos
	bad := fmt.Errorf("area %q: want X1,Z1:X2,Z2 or X1,Y1,Z1:X2,Y2,Z2 in blocks, such as -64,-64:64,64", clip(text))
	from, to, ok := strings.Cut(text, ":")
	if !ok {
		return Box{}, bad
	}
	for i, corner := range [2]string{from, to} {
		at := [2]*Pos{&a, &b}[i]
		numbers := []*int32{&at.X, &at.Y, &at.Z}
		parts := strings.Split(corner, ",")
		if len(parts) == 2 {
			numbers = []*int32{&at.X, &at.Z}
			at.Y = int32(i) * MaxHeight
		}
		if len(parts) != len(numbers) {
			return Box{}, bad
		}
		for j, part := range parts {
			v, err := strconv.ParseInt(part, 10, 32)
			if err != nil {
				return Box{}, bad
			}
			*numbers[j] = int32(v)
		}
	}
	return BoxOf(a, b), nil
}

// MaxHeight is above every world, in blocks.
const MaxHeight = 1024

// Contains reports whether the block is in the box.
func (b Box) Contains(p Pos) bool {
	return b.Min.X <= p.X && p.X <= b.Max.X && b.Min.Y <= p.Y && p.Y <= b.Max.Y && b.Min.Z <= p.Z && p.Z <= b.Max.Z
}

// Overlaps reports whether the boxes have a block in common.
func (b Box) Overlaps(c Box) bool {
	return b.Min.X <= c.Max.X && c.Min.X <= b.Max.X && b.Min.Z <= c.Max.Z && c.Min.Z <= b.Max.Z && b.Min.Y <= c.Max.Y && c.Min.Y <= b.Max.Y
}

// Union returns the smallest box that has both.
func (b Box) Union(c Box) Box {
	return Box{
		Min: Pos{X: min(b.Min.X, c.Min.X), Y: min(b.Min.Y, c.Min.Y), Z: min(b.Min.Z, c.Min.Z)},
		Max: Pos{X: max(b.Max.X, c.Max.X), Y: max(b.Max.Y, c.Max.Y), Z: max(b.Max.Z, c.Max.Z)},
	}
}

// Sides returns the width (X), height and length (Z).
func (b Box) Sides() (x, y, z int64) {
	return int64(b.Max.X) - int64(b.Min.X) + 1, int64(b.Max.Y) - int64(b.Min.Y) + 1, int64(b.Max.Z) - int64(b.Min.Z) + 1
}

// Area returns the chunks that the box touches.
func (b Box) Area() Area {
	low, high := b.Min.Chunk(), b.Max.Chunk()
	return Area{MinX: low.X, MinZ: low.Z, MaxX: high.X + 1, MaxZ: high.Z + 1}
}
