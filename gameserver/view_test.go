package gameserver

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// Each new link begins with the state of all chunks. Land that was never changed is not rebuilt.
func TestUnchangedLandStaysOverANewLink(t *testing.T) {
	base := make([]byte, 32)
	edit := []wire.BlockAt{{At: 7, Block: chunk.Brick}}
	for name, c := range map[string]struct {
		before view
		state  wire.ChunkState
		stays  bool
	}{
		"never changed":                  {stays: true},
		"changed meanwhile":              {state: wire.ChunkState{Base: base, Edits: edit}},
		"changed by who tells no base":   {state: wire.ChunkState{Edits: edit}},
		"changed before":                 {before: view{base: base}, state: wire.ChunkState{Base: base, Edits: edit}},
		"changed before, and lost":       {before: view{base: base}},
		"an answer was before the news":  {before: view{ahead: map[chunk.Index]struct{}{7: {}}}},
		"changed by news without a base": {before: view{edited: true}},
		"changed, and not yet built":     {before: view{edits: edit}},
		"pinned meanwhile":               {state: wire.ChunkState{Base: base}},
	} {
		v := c.before
		v.land = &chunk.Chunk{}
		v.reset(&c.state)
		if v.laid() != c.stays || (v.former == nil) != c.stays {
			t.Errorf("%s: the land stays: %v, want %v", name, v.laid(), c.stays)
		}
	}
}
