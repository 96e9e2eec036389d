package gameserver

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
)

// This file is for chunks whose edits lie on another terrain than this node generates (DESIGN §4): that terrain is
// fetched. Until it is here the chunk is not shown to whoever has not seen it, and edits in it are refused as not loaded.

// baseRetry is the pause before a base that was not found is asked for again.
const baseRetry = 5 * time.Second

// want notes that the terrain has to be fetched that the view's edits lie on. The feed's lock is held.
func (f *feed) want(v *view, generated [32]byte) {
	f.g.metrics.mismatches.Inc()
	f.g.Logger.Warn("generated terrain differs from what the edits were made on: fetching that",
		"chunk", v.at.String(), "pinned", hex.EncodeToString(v.base), "generated", hex.EncodeToString(generated[:]))
	v.foreign, v.wanting = nil, true
}

// fetchBase asks for a base until it is here, or nobody wants it any more.
func (f *feed) fetchBase(ctx context.Context, v *view, hash [32]byte) {
	for f.wants(v, hash) {
		base, err := f.g.Bases.BaseOf(ctx, v.at, hash)
		if err == nil {
			f.found(v, hash, base)
			return
		}
		if ctx.Err() != nil {
			return
		}
		f.g.Logger.Warn("chunk not shown: its terrain was not found", "chunk", v.at.String(), "error", err, "retry_in", baseRetry)
		select {
		case <-ctx.Done():
			return
		case <-time.After(baseRetry):
		}
	}
}

// wants tells whether the view is still watched, and its edits lie on that terrain.
func (f *feed) wants(v *view, hash [32]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.views[v.at] == v && v.wanting && string(v.base) == string(hash[:])
}

func (f *feed) found(v *view, hash [32]byte, base *chunk.Chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.wanting && string(v.base) == string(hash[:]) {
		v.foreign, v.wanting = base, false
		f.queue(v)
	}
}
