package games

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// Changes of a chunk take a bounded amount of memory, and none is lost.
func TestChangesAreFolded(t *testing.T) {
	c, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := wire.PackChunk(plain)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLand(packed)
	for i := range chunk.Index(3 * foldAfter) {
		l.Set(i, chunk.Brick)
	}
	if len(l.edits) > foldAfter {
		t.Errorf("%d changes are kept", len(l.edits))
	}
	blocks, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunk.Index(3 * foldAfter) {
		if blocks.Get(i) != chunk.Brick {
			t.Fatalf("block %d is %v", i, blocks.Get(i).Name())
		}
	}
}
