package chunk

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
)

func TestIndex(t *testing.T) {
	for _, test := range []struct {
		x, y, z int
		want    Index
	}{{0, 0, 0, 0}, {31, 0, 0, 31}, {0, 0, 1, 32}, {0, 1, 0, 1024}, {3, 40, 5, 40*1024 + 5*32 + 3}} {
		got := IndexOf(test.x, test.y, test.z)
		if x, y, z := got.XYZ(); got != test.want || x != test.x || y != test.y || z != test.z {
			t.Errorf("index of %d,%d,%d is %d, which is %d,%d,%d", test.x, test.y, test.z, got, x, y, z)
		}
	}
}

func TestAtInvertsPos(t *testing.T) {
	if got := At(grid.Pos{X: -1, Y: 2, Z: 33}); got != IndexOf(31, 2, 1) {
		t.Errorf("at -1,2,33: %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		pos := grid.Pos{
			X: rapid.Int32().Draw(t, "x"),
			Y: rapid.Int32Range(0, MaxSections*grid.ChunkSize-1).Draw(t, "y"),
			Z: rapid.Int32().Draw(t, "z"),
		}
		if got := At(pos).Pos(pos.Chunk()); got != pos {
			t.Fatalf("%v is index %d of %v, and that %v", pos, At(pos), pos.Chunk(), got)
		}
	})
}

// air returns a column of air.
func air(sections int) *Chunk {
	c := &Chunk{sections: make([]section, sections)}
	for i := range c.sections {
		c.sections[i] = uniform(Air)
	}
	return c
}

// draw returns a column and its dense model, after some writes that take sections through all widths of indices.
func draw(t *rapid.T) (*Chunk, []Block) {
	sections := rapid.IntRange(1, 3).Draw(t, "sections")
	model := make([]Block, sections*SectionBlocks)
	c := air(sections)
	write := func(i Index, b Block) {
		c.Set(i, b)
		model[i] = b
	}
	for range rapid.IntRange(0, 6).Draw(t, "strokes") {
		from := Index(rapid.IntRange(0, len(model)-1).Draw(t, "from"))
		kinds := rapid.SampledFrom([]uint32{1, 2, 3, 5, 17, 40, 257, 3000}).Draw(t, "kinds")
		first := uint32(rapid.Uint16().Draw(t, "first"))
		step := rapid.SampledFrom([]Index{1, 7, 1024}).Draw(t, "step")
		n := rapid.SampledFrom([]uint32{1, 9, 400, 40_000}).Draw(t, "length")
		for k := uint32(0); k < n && int(from) < len(model); k, from = k+1, from+step {
			write(from, Block(first+k%kinds))
		}
		if rapid.Bool().Draw(t, "repack") {
			c = roundTrip(t, c)
		}
	}
	return c, model
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// roundTrip encodes and decodes a column.
func roundTrip(t failer, c *Chunk) *Chunk {
	t.Helper()
	b, err := c.MarshalBinary()
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	d, err := Decode(b)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return d
}

func TestChunkAgreesWithDenseModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, model := draw(t)
		if got := c.Blocks(); !slices.Equal(got, model) {
			t.Fatal("Blocks differs from the model")
		}
		for i := range model {
			if got := c.Get(Index(i)); got != model[i] {
				t.Fatalf("block %d is %d, want %d", i, got, model[i])
			}
		}
		if got := roundTrip(t, c).Blocks(); !slices.Equal(got, model) {
			t.Fatal("the decoded column differs from the model")
		}
		packed, err := FromBlocks(model)
		if err != nil {
			t.Fatal(err)
		}
		if packed.Hash() != c.Hash() {
			t.Fatal("one column, two encodings")
		}
		if packed.Sections() != c.Sections() || packed.Height() != c.Sections()*32 {
			t.Fatalf("%d sections, height %d", packed.Sections(), packed.Height())
		}
	})
}

func TestCloneSharesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, model := draw(t)
		d := c.Clone()
		i := Index(rapid.IntRange(0, len(model)-1).Draw(t, "at"))
		d.Set(i, model[i]+1)
		if c.Get(i) != model[i] || d.Get(i) != model[i]+1 {
			t.Fatalf("block %d: %d, in the clone %d", i, c.Get(i), d.Get(i))
		}
		d.Set(i, model[i])
		if c.Hash() != d.Hash() {
			t.Fatal("the clone differs")
		}
	})
}

func TestFromBlocksRefusesPartsOfSections(t *testing.T) {
	for _, n := range []int{0, 1, SectionBlocks - 1, SectionBlocks + 1, (MaxSections + 1) * SectionBlocks} {
		if _, err := FromBlocks(make([]Block, n)); err == nil {
			t.Errorf("%d blocks are accepted", n)
		}
	}
	if _, err := FromBlocks(make([]Block, MaxSections*SectionBlocks)); err != nil {
		t.Error(err)
	}
}

func TestGetAndSetDoNotAllocate(t *testing.T) {
	for _, kinds := range []int{1, 2, 4, 16, 256, 300} {
		blocks := make([]Block, SectionBlocks)
		for i := range blocks {
			blocks[i] = Block(i % kinds)
		}
		c, err := FromBlocks(blocks)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { c.Set(77, c.Get(Index(kinds/2))) }); n != 0 {
			t.Errorf("%v allocations with %d kinds of blocks", n, kinds)
		}
	}
}

func terrainLike() []Block {
	blocks := make([]Block, 4*SectionBlocks)
	for i := range blocks {
		x, y, z := Index(i).XYZ()
		switch ground := 50 + (x*z)%9; {
		case y < ground && i%37 == 0:
			blocks[i] = CoalOre
		case y < ground:
			blocks[i] = Stone
		case y == ground:
			blocks[i] = Grass
		}
	}
	return blocks
}

func BenchmarkGet(b *testing.B) {
	c, err := FromBlocks(terrainLike())
	if err != nil {
		b.Fatal(err)
	}
	i := Index(0)
	for b.Loop() {
		c.Get(i)
		i = (i + 4099) % (4 * SectionBlocks)
	}
}

func BenchmarkSet(b *testing.B) {
	c, err := FromBlocks(terrainLike())
	if err != nil {
		b.Fatal(err)
	}
	i := Index(0)
	for b.Loop() {
		c.Set(i, Block(i%6))
		i = (i + 4099) % (4 * SectionBlocks)
	}
}

func BenchmarkFromBlocks(b *testing.B) {
	blocks := terrainLike()
	for b.Loop() {
		if _, err := FromBlocks(blocks); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBlocks(b *testing.B) {
	c, err := FromBlocks(terrainLike())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Blocks()
	}
}
