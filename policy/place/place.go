// Package place reads positions and the border of the world as commands write them.
package place

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Border encloses the part of the world that players may enter and build in: the blocks with X in [MinX, MaxX] and Z in
// [MinZ, MaxZ]. A nil Border encloses everything.
type Border struct {
	MinX int32 `json:"min_x"`
	MinZ int32 `json:"min_z"`
	MaxX int32 `json:"max_x"`
	MaxZ int32 `json:"max_z"`
}

// Contains reports whether the block is inside.
func (b *Border) Contains(pos grid.Pos) bool {
	return b == nil || pos.X >= b.MinX && pos.X <= b.MaxX && pos.Z >= b.MinZ && pos.Z <= b.MaxZ
}

// Allows reports whether a player may go from one place to another, in blocks: to one inside, or one no farther outside
// than before, so that those who are outside can come back.
func (b *Border) Allows(fromX, fromZ, toX, toZ float64) bool {
	if b == nil {
		return true
	}
	return beyond(b.MinX, b.MaxX, toX) <= beyond(b.MinX, b.MaxX, fromX) && beyond(b.MinZ, b.MaxZ, toZ) <= beyond(b.MinZ, b.MaxZ, fromZ)
}

// beyond returns how far a coordinate is outside of the blocks from low to high.
func beyond(low, high int32, v float64) float64 { return max(float64(low)-v, 0, v-float64(high)-1) }

// Nearest returns the middle of the block inside that is nearest to a place outside; for a place inside, outside is
// false.
func (b *Border) Nearest(x, z float64) (toX, toZ float64, outside bool) {
	if b == nil || beyond(b.MinX, b.MaxX, x)+beyond(b.MinZ, b.MaxZ, z) == 0 {
		return x, z, false
	}
	into := func(low, high int32, v float64) float64 { return min(max(v, float64(low)+.5), float64(high)+.5) }
	return into(b.MinX, b.MaxX, x), into(b.MinZ, b.MaxZ, z), true
}

// String returns the arguments of the command that sets the border.
func (b *Border) String() string {
	if b == nil {
		return "off"
	}
	return fmt.Sprintf("%d,%d %d,%d", b.MinX, b.MinZ, b.MaxX, b.MaxZ)
}

// maxCoordinate is the largest X or Z of a block in the world.
const maxCoordinate = grid.Limit*grid.ChunkSize - 1

// parseCoordinate returns the X or the Z of a block in the world.
func parseCoordinate(text string) (int32, error) {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v < -maxCoordinate-1 || v > maxCoordinate {
		return 0, notice.New("not_a_coordinate", "\"{text}\" is not a coordinate: write a whole number between {least} and {most}", text, -maxCoordinate-1, maxCoordinate)
	}
	return int32(v), nil
}

// ParsePos returns the position that three arguments name.
func ParsePos(args []string) (pos grid.Pos, err error) {
	for i, to := range []*int32{&pos.X, &pos.Y, &pos.Z} {
		if *to, err = parseCoordinate(args[i]); err != nil {
			return pos, err
		}
	}
	return pos, nil
}

// ParseBorder reads one or two arguments: X1,Z1 X2,Z2, or a radius around the middle of the world, or off.
func ParseBorder(args []string) (*Border, error) {
	switch {
	case len(args) == 1 && args[0] == "off":
		return nil, nil
	case len(args) == 1:
		radius, err := parseCoordinate(args[0])
		if err == nil && radius < 1 {
			err = notice.New("small_radius", "the radius {radius} is less than 1 block", radius)
		}
		return &Border{-radius, -radius, radius, radius}, err
	}
	var corner [2][2]int32
	for i, arg := range args {
		x, z, ok := strings.Cut(arg, ",")
		if !ok {
			return nil, notice.New("not_a_border_corner", "\"{text}\" is not a corner: write X,Z", arg)
		}
		for j, text := range []string{x, z} {
			var err error
			if corner[i][j], err = parseCoordinate(text); err != nil {
				return nil, err
			}
		}
	}
	a, b := corner[0], corner[1]
	return &Border{min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])}, nil
}
