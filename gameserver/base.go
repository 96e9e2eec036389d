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

// needBase marks the chunk as waiting for the terrain that its edits were made on. The subscription's lock is held.
func (sub *subscription) needBase(mc *mirrorChunk, generated [32]byte) {
	sub.g.metrics.mismatches.Inc()
	sub.g.Logger.Warn("generated terrain differs from the base of the edits: fetching the base",
		"chunk", mc.at.String(), "pinned", hex.EncodeToString(mc.base), "generated", hex.EncodeToString(generated[:]))
	mc.foreign, mc.fetching = nil, true
}

// fetchBase requests a base until it has arrived or is no longer needed.
func (sub *subscription) fetchBase(ctx context.Context, mc *mirrorChunk, hash [32]byte) {
	for sub.needsBase(mc, hash) {
		base, err := sub.g.Bases.BaseOf(ctx, mc.at, hash)
		if err == nil {
			sub.setBase(mc, hash, base)
			return
		}
		if ctx.Err() != nil {
			return
		}
		sub.g.Logger.Warn("chunk not sent: base terrain not found", "chunk", mc.at.String(), "error", err, "retry_in", baseRetry)
		select {
		case <-ctx.Done():
			return
		case <-time.After(baseRetry):
		}
	}
}

// needsBase reports whether the chunk still has subscribers and still needs the terrain with that hash.
func (sub *subscription) needsBase(mc *mirrorChunk, hash [32]byte) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.mu.chunks[mc.at] == mc && mc.fetching && string(mc.base) == string(hash[:])
}

func (sub *subscription) setBase(mc *mirrorChunk, hash [32]byte, base *chunk.Chunk) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if mc.fetching && string(mc.base) == string(hash[:]) {
		mc.foreign, mc.fetching = base, false
		sub.queue(mc)
	}
}
