package gameserver

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
		before mirrorChunk
		state  nodemsg.ChunkState
		stays  bool
	}{
		"never changed":                  {stays: true},
		"changed meanwhile":              {state: nodemsg.ChunkState{Base: base, Edits: edit}},
		"changed by who tells no base":   {state: nodemsg.ChunkState{Edits: edit}},
		"changed before":                 {before: mirrorChunk{base: base}, state: nodemsg.ChunkState{Base: base, Edits: edit}},
		"changed before, and lost":       {before: mirrorChunk{base: base}},
		"an answer was before the news":  {before: mirrorChunk{ahead: map[chunk.Index]struct{}{7: {}}}},
		"changed by news without a base": {before: mirrorChunk{edited: true}},
		"changed, and not yet built":     {before: mirrorChunk{edits: edit}},
		"pinned meanwhile":               {state: nodemsg.ChunkState{Base: base}},
	} {
		mc := c.before
		mc.land = &chunk.Chunk{}
		mc.applyState(&c.state)
		if mc.hasLand() != c.stays || (mc.previousLand == nil) != c.stays {
			t.Errorf("%s: the land stays: %v, want %v", name, mc.hasLand(), c.stays)
		}
	}
}
