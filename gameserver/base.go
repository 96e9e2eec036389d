package gameserver

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
)

// This file handles chunks whose edits were made on other terrain than this node generates: it fetches that terrain. Until it has
// arrived, the chunk is not sent to new subscribers, and edits in it are refused as not loaded.

// baseRetry is the pause between attempts to fetch a base that was not found.
const baseRetry = 5 * time.Second

// want marks the chunk as waiting for the terrain that its edits were made on. The subscription's lock is held.
func (f *feed) want(v *view, generated [32]byte) {
	f.g.metrics.mismatches.Inc()
	f.g.Logger.Warn("generated terrain differs from what the edits were made on: fetching that",
		"chunk", v.at.String(), "pinned", hex.EncodeToString(v.base), "generated", hex.EncodeToString(generated[:]))
	v.foreign, v.wanting = nil, true
}

// fetchBase requests a base until it has arrived or is no longer needed.
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

// wants reports whether the chunk still has subscribers and still needs the terrain with that hash.
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
