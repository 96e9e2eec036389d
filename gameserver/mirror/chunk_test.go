package mirror

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Each new link begins with the state of all chunks. Land that was never changed is not rebuilt.
func TestUnchangedLandStaysOverANewLink(t *testing.T) {
	base := make([]byte, 32)
	edit := []nodemsg.BlockAt{{At: 7, Block: chunk.Brick}}
	for name, c := range map[string]struct {
		before land
		state  nodemsg.ChunkState
		stays  bool
	}{
		"never changed":                  {stays: true},
		"changed meanwhile":              {state: nodemsg.ChunkState{Base: base, Edits: edit}},
		"changed by who tells no base":   {state: nodemsg.ChunkState{Edits: edit}},
		"changed before":                 {before: land{base: base}, state: nodemsg.ChunkState{Base: base, Edits: edit}},
		"changed before, and lost":       {before: land{base: base}},
		"an answer was before the news":  {before: land{ahead: map[chunk.Index]struct{}{7: {}}}},
		"changed by news without a base": {before: land{edited: true}},
		"changed, and not yet built":     {before: land{edits: edit}},
		"pinned meanwhile":               {state: nodemsg.ChunkState{Base: base}},
	} {
		l := c.before
		l.blocks = &chunk.Chunk{}
		l.reset(c.state.Base, c.state.Edits)
		if l.known() != c.stays || (l.previous == nil) != c.stays {
			t.Errorf("%s: the land stays: %v, want %v", name, l.known(), c.stays)
		}
	}
}
