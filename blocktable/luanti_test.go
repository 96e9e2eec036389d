package blocktable

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// Every block has a node of its own in Luanti, apart from the three that the game keeps.
func TestEveryBlockHasANodeInLuanti(t *testing.T) {
	seen := make(map[uint16]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		id := ToLuanti(b)
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s are both node %d", b.Name(), other.Name(), id)
		}
		seen[id] = b
		if b != chunk.Air && id >= luantiFirstKept && id < luantiFirstKept+luantiKept {
			t.Errorf("%s is node %d, which the game keeps", b.Name(), id)
		}
	}
	if got := ToLuanti(60000); got != ToLuanti(chunk.Stone) {
		t.Errorf("an unknown block is node %d", got)
	}
}
