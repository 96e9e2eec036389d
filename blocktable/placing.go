package blocktable

import (
	"cmp"
	"math"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
)

// Placing is how a player places a block. Directions are east, west, south and north.
type Placing struct {
	Looks string // the direction in which the player looks
	Wall  string // that of the block whose side was clicked; empty if it was clicked from above or from below
	Upper bool   // in the upper half
}

// state returns the name of a block's state that is placed so, by the names of the states here; that of the block if it
// has none.
func (p Placing) state(block string) string {
	towards := ""
	switch {
	case (block == "torch" || block == "sign") && p.Wall != "":
		return block + "_on_the_" + p.Wall
	case strings.HasSuffix(block, "_stairs_upper_east"): // which players of Classic choose
		return strings.TrimSuffix(block, "east") + p.Looks
	case strings.HasSuffix(block, "_slab") && p.Upper:
		return block + "_upper"
	case block == "ladder":
		towards = cmp.Or(p.Wall, p.Looks)
	case strings.HasSuffix(block, "trapdoor"):
		towards = cmp.Or(p.Wall, p.Looks)
	case strings.HasSuffix(block, "_stairs"), strings.HasSuffix(block, "door"), strings.HasSuffix(block, "_gate"), block == "sign":
		towards = p.Looks
	}
	if p.Upper && (strings.HasSuffix(block, "trapdoor") || strings.HasSuffix(block, "_stairs")) {
		return block + "_upper_" + towards
	}
	if towards == "" || towards == "east" { // the first state
		return block
	}
	return block + "_" + towards
}

// PlacedBy returns how a block is placed by a player with a yaw, who has clicked another one: the face with a normal
// (x, y, z), at a height above its bottom.
func PlacedBy(yaw float64, normal [3]int32, height float64) Placing {
	clockwise := [...]string{"south", "west", "north", "east"} // from yaw 0 on
	how := Placing{Looks: clockwise[int(math.Round(yaw/(math.Pi/2)))&3], Upper: normal[1] < 0}
	opposite := map[[3]int32]string{{1, 0, 0}: "west", {-1, 0, 0}: "east", {0, 0, 1}: "north", {0, 0, -1}: "south"}
	if how.Wall = opposite[normal]; how.Wall != "" {
		how.Upper = height > .5
	}
	return how
}

// Block returns the state in which a block is placed; the block itself if it has none.
func (p Placing) Block(b chunk.Block) chunk.Block {
	if turned, is := byName[p.state(b.Name())]; is {
		return turned
	}
	return b
}

// Named returns the block with a name, and reports whether there is one.
func Named(name string) (b chunk.Block, known bool) {
	b, known = byName[name]
	return b, known
}

// byName has the known blocks, by their names.
var byName = func() map[string]chunk.Block {
	all := make(map[string]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		all[b.Name()] = b
	}
	return all
}()
