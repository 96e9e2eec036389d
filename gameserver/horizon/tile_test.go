package horizon

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func newGenerator(t testing.TB) *terrain.Generator {
	g, err := terrain.New(terrain.Params{Seed: 7, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func groundOf(t testing.TB, k Key) []terrain.TopBlock {
	return newGenerator(t).VistaIn(new(terrain.Room), int(k.X)*k.side(), int(k.Z)*k.side(), k.step(), Points)
}

// What rises above the land is built on it, at every level in patches of four blocks; holes and roads change the points
// themselves.
func TestCompose(t *testing.T) {
	for level := range Levels {
		k := Key{level, -1, 0}
		ground := groundOf(t, k)
		side := int32(k.side())
		at := grid.ChunkPos{X: -side / 32, Z: 0}
		tile := compose(k, ground, []nodemsg.ChunkSurface{{Chunk: at, Points: []nodemsg.SurfacePoint{
			{Index: 0, Height: 3, Block: chunk.Cobble},
			{Index: 9, Height: 120, Block: chunk.Brick},
			{Index: 10, Height: 120, Block: chunk.Brick},
			{Index: 12, Height: 110, Block: chunk.Brick},
		}}, {Chunk: grid.ChunkPos{X: 4000}, Points: []nodemsg.SurfacePoint{{Index: 1, Height: 125}}}})
		if tile.Heights[0] != 3 || tile.Blocks[0] != chunk.Cobble {
			t.Errorf("level %d: the first point is %v at %d", level, tile.Blocks[0].Name(), tile.Heights[0])
		}
		want := []Run{{1, 1, 2, 120, chunk.Brick}, {4, 1, 1, 110, chunk.Brick}}
		if !reflect.DeepEqual(tile.Built, want) {
			t.Errorf("level %d: built %v, want %v", level, tile.Built, want)
		}
		for i := 1; i < len(ground); i++ {
			if int(tile.Heights[i]) != ground[i].Y || tile.Blocks[i] != ground[i].Block {
				t.Fatalf("level %d: point %d is not the untouched land", level, i)
			}
		}
	}
}

// Tiles share the points of their edges.
func TestEdgesMatch(t *testing.T) {
	west, east := groundOf(t, Key{1, 0, 0}), groundOf(t, Key{1, 1, 0})
	for z := range Points {
		if west[z*Points+Points-1] != east[z*Points] {
			t.Fatalf("row %d: %v and %v", z, west[z*Points+Points-1], east[z*Points])
		}
	}
}

func TestMostBuilt(t *testing.T) {
	var points []nodemsg.ChunkSurface
	for z := range int32(16) {
		for x := range int32(16) {
			c := nodemsg.ChunkSurface{Chunk: grid.ChunkPos{X: x, Z: z}}
			for i := range 64 {
				c.Points = append(c.Points, nodemsg.SurfacePoint{Index: uint8(i), Height: uint16(100 + i%2 + int(x)), Block: chunk.Brick})
			}
			points = append(points, c)
		}
	}
	tile := compose(Key{Level: 1}, groundOf(t, Key{Level: 1}), points)
	if len(tile.Built) != maxBuilt {
		t.Fatalf("%d runs", len(tile.Built))
	}
	if again, err := decode(1, tile.Encode()); err != nil || !reflect.DeepEqual(again, tile) {
		t.Errorf("decoded otherwise: %v", err)
	}
}

func TestKeys(t *testing.T) {
	for _, name := range []string{"0.0.0", "2.-1048576.5", "1.7.-9"} {
		if k, err := ParseKey(name); err != nil || k.String() != name {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	for _, name := range []string{"", "3.0.0", "-1.0.0", "0.0", "0.00.1", "0.0.0 ", "0.9999999999.1", "2.1048576.0", "0.1.2.3"} {
		if k, err := ParseKey(name); err == nil {
			t.Errorf("%q is %v", name, k)
		}
	}
}

func FuzzCompose(f *testing.F) {
	f.Add(1, int32(3), int32(4), uint8(9), uint16(99), uint16(19))
	ground := groundOf(f, Key{Level: 1})
	f.Fuzz(func(t *testing.T, level int, x, z int32, index uint8, height, block uint16) {
		p := nodemsg.SurfacePoint{Index: index % nodemsg.SurfacePoints, Height: height % 1024, Block: chunk.Block(block)}
		k := Key{Level: ((level % Levels) + Levels) % Levels}
		tile := compose(k, ground, []nodemsg.ChunkSurface{{Chunk: grid.ChunkPos{X: x, Z: z}, Points: []nodemsg.SurfacePoint{p}}})
		if again, err := decode(k.Level, tile.Encode()); err != nil || !bytes.Equal(again.Encode(), tile.Encode()) {
			t.Errorf("decoded otherwise: %v", err)
		}
	})
}

var update = flag.Bool("update", false, "write testdata anew")

// The bytes of a tile do not change: they are its name, and web/test/horizon.test.ts reads the same file.
func TestGoldenTile(t *testing.T) {
	heights, blocks := make([]uint16, Points*Points), make([]chunk.Block, Points*Points)
	for i := range heights {
		x, z := i%Points, i/Points
		heights[i], blocks[i] = uint16(40+x/8+z*z/512), chunk.Grass
		if x > 60 {
			heights[i], blocks[i] = 48, chunk.Water
		}
	}
	tile := Tile{Heights: heights, Blocks: blocks, Built: []Run{{3, 5, 2, 110, chunk.Brick}, {7, 5, 1, 90, chunk.Planks}, {0, 200, 1, 300, chunk.Stone}}}
	const file = "testdata/tile.bin"
	if *update {
		if err := os.WriteFile(file, tile.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, tile.Encode()) {
		t.Errorf("the bytes of the tile have changed: %v", err)
	}
	if again, err := decode(2, want); err != nil || !reflect.DeepEqual(again, tile) {
		t.Errorf("decoded otherwise: %v", err)
	}
}
