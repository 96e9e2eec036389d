package blocktable

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// passable are the blocks of Classic that do not stop a body.
var passable = []byte{0, 6, 8, 9, 10, 11, 37, 38, 39, 40, 51, 54}

// Every block has an image that Classic has, as solid as the block.
func TestEveryBlockHasAnImageInClassic(t *testing.T) {
	for b, want := range map[chunk.Block]byte{
		chunk.Wool: 36, chunk.Wool + 5: 21, chunk.ColouredGlass + 12: 29, chunk.StoneSlab: 44, chunk.CobbleSlab: 50, chunk.StoneStairs + 3: 1,
		chunk.PlankFence: 5, chunk.GlassPane: 20, chunk.Torch + 2: 54, chunk.Ladder: 51, chunk.Door: 5, chunk.Door + 4: 51,
	} {
		if got := ToClassic(b, true); got != want {
			t.Errorf("%s is shown as %d, want %d", b.Name(), got, want)
		}
	}
	for b := chunk.Air; b.Known(); b++ {
		custom, plain := ToClassic(b, true), ToClassic(b, false)
		if custom >= ClassicCustomBlocks || plain >= ClassicBlocks {
			t.Errorf("%s: there is no block %d, %d", b.Name(), custom, plain)
		}
		if _, own := classicMaterials[b]; b >= chunk.StoneBricks && !b.Shaped() && !own {
			t.Errorf("%s has no image", b.Name())
		}
		if b != chunk.Air && (custom == 0 || plain == 0) {
			t.Errorf("%s is invisible", b.Name())
		}
		for _, id := range []byte{custom, plain} {
			if b.Solid() == slices.Contains(passable, id) {
				t.Errorf("%s: solid is %v, but not of block %d", b.Name(), b.Solid(), id)
			}
		}
	}
	if got := ToClassic(60000, true); got != 1 {
		t.Errorf("an unknown block is shown as %d", got)
	}
}

// What a player places is as solid as what they see, and, if they see one of our blocks, that block or one that looks the same.
func TestWayBackFromClassic(t *testing.T) {
	for id := range byte(ClassicCustomBlocks) {
		b, known := FromClassic(id)
		if !known || !b.Known() || b == chunk.Air && id != 0 {
			t.Errorf("block %d becomes %v", id, b)
		}
		if b.Solid() == slices.Contains(passable, id) {
			t.Errorf("block %d becomes %s, of other solidity", id, b.Name())
		}
	}
	for b := chunk.Air; b.Known(); b++ {
		for _, custom := range []bool{true, false} {
			image := ToClassic(b, custom)
			if back, _ := FromClassic(image); ToClassic(back, true) != image && ToClassic(back, false) != image {
				t.Errorf("%s is shown as %d, which becomes %s", b.Name(), image, back.Name())
			}
		}
	}
	if _, known := FromClassic(ClassicCustomBlocks); known {
		t.Error("there is a 67th block")
	}
}
