package blocktable

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// Every block has a node of its own in Luanti, apart from the three that the game keeps, and back.
func TestEveryBlockHasANodeInLuanti(t *testing.T) {
	seen := make(map[uint16]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		id := ToLuanti(b)
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s are both node %d", b.Name(), other.Name(), id)
		}
		seen[id] = b
		if back, known := FromLuanti(id); !known || back != b {
			t.Errorf("%s is node %d, which becomes %s, %v", b.Name(), id, back.Name(), known)
		}
		if b != chunk.Air && id >= luantiFirstKept && id < luantiFirstKept+luantiKept {
			t.Errorf("%s is node %d, which the game keeps", b.Name(), id)
		}
	}
	if got := ToLuanti(60000); got != ToLuanti(chunk.Stone) {
		t.Errorf("an unknown block is node %d", got)
	}
	for _, id := range []uint16{0, luantiFirstKept, luantiFirstKept + 2, 60000} {
		if b, known := FromLuanti(id); known {
			t.Errorf("node %d becomes %s", id, b.Name())
		}
	}
}
