package games

import (
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Stairs that are placed at the end of others, going another way, make those a corner, and become one between others.
func TestCorners(t *testing.T) {
	land := make(map[grid.Pos]chunk.Block)
	blocks := Blocks(func(pos grid.Pos) (chunk.Block, bool) { return land[pos], true })
	named := func(name string) chunk.Block {
		b := chunk.StoneStairs
		for b.Known() && b.Name() != name {
			b++
		}
		return b
	}
	place := func(x, z int32, looks string, upper bool, want Change, corners ...Change) {
		t.Helper()
		how := blocktable.Placing{Looks: looks, Upper: upper}
		changes := blocks.Place(grid.Pos{X: x, Y: 9, Z: z}, how.Block(chunk.StoneStairs))
		want.Then = corners
		if !reflect.DeepEqual(changes, []Change{want}) {
			t.Errorf("placed at %d, %d: %v, want %v", x, z, changes, want)
		}
		for _, c := range append(changes, corners...) {
			land[c.Pos] = c.To
		}
	}
	at := func(x, z int32, name string) Change { return Change{Pos: grid.Pos{X: x, Y: 9, Z: z}, To: named(name)} }
	beside := func(x, z int32, name string) Change {
		c := at(x, z, name)
		c.Corner = true
		return c
	}
	place(1, 1, "east", false, at(1, 1, "stone_stairs"))
	place(2, 1, "south", false, at(2, 1, "stone_stairs_south"), beside(1, 1, "stone_stairs_outer_east"))
	place(1, 5, "east", false, at(1, 5, "stone_stairs"))
	place(0, 5, "south", true, at(0, 5, "stone_stairs_upper_south")) // not beside the upper half
	place(0, 5, "south", false, at(0, 5, "stone_stairs_south"), beside(1, 5, "stone_stairs_inner_east"))
	place(2, 3, "north", false, at(2, 3, "stone_stairs_north"))
	place(3, 3, "west", false, at(3, 3, "stone_stairs_outer_west"))
}

// Who sneaks with something in the hand that this world does not have leaves doors as they are.
func TestClickWithAnUnknownBlock(t *testing.T) {
	gate := Blocks(func(grid.Pos) (chunk.Block, bool) { return chunk.PlankFenceGate, true })
	for sneaks, want := range map[bool]int{true: 0, false: 1} {
		if changes := gate.Click(Click{Sneaks: sneaks}); len(changes) != want {
			t.Errorf("sneaking %t: %v", sneaks, changes)
		}
	}
}
