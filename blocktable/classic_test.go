package blocktable

import (
	"slices"
	"strings"
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
		if got := ToClassic(b, ClassicCustom); got != want {
			t.Errorf("%s is shown as %d, want %d", b.Name(), got, want)
		}
	}
	for b := chunk.Air; b.Known(); b++ {
		custom, plain := ToClassic(b, ClassicCustom), ToClassic(b, ClassicPlain)
		if custom >= classicCustomBlocks || plain >= classicPlainBlocks {
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
	if got := ToClassic(60000, ClassicCustom); got != 1 {
		t.Errorf("an unknown block is shown as %d", got)
	}
}

// What a player places is as solid as what they see, and, if they see one of our blocks, that block or one that looks
// the same.
func TestWayBackFromClassic(t *testing.T) {
	for id := range byte(classicCustomBlocks) {
		b, known := FromClassic(id)
		if !known || !b.Known() || b == chunk.Air && id != 0 {
			t.Errorf("block %d becomes %v", id, b)
		}
		if b.Solid() == slices.Contains(passable, id) {
			t.Errorf("block %d becomes %s, of other solidity", id, b.Name())
		}
	}
	for b := chunk.Air; b.Known(); b++ {
		for _, level := range []ClassicLevel{ClassicCustom, ClassicPlain} {
			image := ToClassic(b, level)
			if back, _ := FromClassic(image); ToClassic(back, ClassicCustom) != image && ToClassic(back, ClassicPlain) != image {
				t.Errorf("%s is shown as %d, which becomes %s", b.Name(), image, back.Name())
			}
		}
	}
	if _, known := FromClassic(byte(classicCustomBlocks + len(classicShapes))); known {
		t.Error("there are more blocks")
	}
}

// Shaped blocks have numbers of their own, textures that the game has, and the boxes of the world, as far as one box is
// enough; stairs and fences have another one.
func TestClassicShapes(t *testing.T) {
	shapes := make(map[byte]ClassicShape)
	for _, s := range ClassicShapes() {
		if other, taken := shapes[s.ID]; taken || s.ID < classicCustomBlocks || s.Textures == [3]byte{} {
			t.Errorf("%s is %+v, as %s", s.Block.Name(), s, other.Block.Name())
		}
		shapes[s.ID] = s
		if back, known := FromClassic(s.ID); !known || back != s.Block {
			t.Errorf("%s becomes %s", s.Block.Name(), back.Name())
		}
		if s.Block.Material() == s.Block.Base() && ToClassic(s.Block, ClassicCustom) == s.ID {
			t.Errorf("%s is drawn as %v", s.Block.Name(), s.Box)
		}
	}
	steps, under := chunk.Box{High: [3]uint8{16, 12, 16}}, chunk.Box{Low: [3]uint8{0, 4, 0}, High: [3]uint8{16, 16, 16}}
	post := chunk.Box{Low: [3]uint8{4, 0, 4}, High: [3]uint8{12, 16, 12}}
	for b := chunk.Air; b.Known(); b++ {
		s, shaped := shapes[ToClassic(b, ClassicShaped)]
		want := s.Box
		switch name := b.Name(); {
		case strings.Contains(name, "_stairs"):
			want = steps
			if strings.Contains(name, "_upper") {
				want = under
			}
		case strings.HasSuffix(name, "_fence"):
			want = post
		case strings.Contains(name, "_gate"):
			want.Low[1], want.High[1] = 5, 16
		case len(b.Boxes()) == 1 && b.Shaped() && b != chunk.GlassPane:
			want = b.Boxes()[0]
		default:
			if shaped {
				t.Errorf("%s is shaped", name)
			}
			continue
		}
		if !shaped || s.Box != want || s.Block.Base() != b.Base() || s.Block.Solid() != b.Solid() {
			t.Errorf("%s is %+v, want the box %v", b.Name(), s, want)
		}
	}
	for b, want := range map[chunk.Block]chunk.Box{
		chunk.PlankFenceGate + 1: {Low: [3]uint8{7, 5, 0}, High: [3]uint8{9, 16, 16}},
		chunk.PlankFenceGate + 4: {Low: [3]uint8{7, 5, 0}, High: [3]uint8{15, 16, 2}}, // one wing
	} {
		if got := shapes[ToClassic(b, ClassicShaped)].Box; got != want {
			t.Errorf("%s is drawn as %v, want %v", b.Name(), got, want)
		}
	}
	if len(shapes) > 256-classicCustomBlocks {
		t.Errorf("%d shapes", len(shapes))
	}
}

// What is in the inventory is seen as what it was chosen as, each of our blocks once, in our order; doors and stairs in
// one state.
func TestClassicInventory(t *testing.T) {
	for level, c := range map[ClassicLevel]struct{ in, out []byte }{
		ClassicPlain:  {[]byte{1, 2, 9, 27, 44}, []byte{0, 7, 8, 10, 11, 19, 26, 40, 46}},
		ClassicCustom: {[]byte{1, 35, 36, 44, 50, 51, 54, 59, 62}, []byte{27, 53, 55, 58, 61, 64, ToClassic(chunk.Door, ClassicShaped)}},
		ClassicShaped: {
			[]byte{1, ToClassic(chunk.StoneStairs, ClassicShaped), ToClassic(chunk.PlankFence, ClassicShaped), ToClassic(chunk.Door, ClassicShaped), ToClassic(chunk.CobbleSlab+1, ClassicShaped), ToClassic(chunk.Torch, ClassicShaped)},
			[]byte{44, 50, 51, 54, ToClassic(chunk.Door+2, ClassicShaped), ToClassic(chunk.Torch+1, ClassicShaped), ToClassic(chunk.Ladder+1, ClassicShaped)},
		},
	} {
		ids := ClassicInventory(level)
		var last chunk.Block
		for _, id := range ids {
			b, known := FromClassic(id)
			if !known || b <= last || ToClassic(b, level) != id || int(id) >= ClassicBlocks(level) {
				t.Errorf("level %d: %d is %s, after %s", level, id, b.Name(), last.Name())
			}
			last = b
		}
		for _, id := range c.in {
			if !slices.Contains(ids, id) {
				t.Errorf("level %d: %d is hidden", level, id)
			}
		}
		for _, id := range c.out {
			if slices.Contains(ids, id) {
				t.Errorf("level %d: %d is not hidden", level, id)
			}
		}
	}
}
