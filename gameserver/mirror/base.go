package mirror

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
)

// This file handles chunks whose edits were made on other terrain than this node generates: it fetches that terrain. Until it has
// arrived, the chunk is not sent to new subscribers, and edits in it are refused as not loaded.

// BaseRetry is the pause between attempts to fetch a base that was not found.
const BaseRetry = 5 * time.Second

// needBase marks the chunk as waiting for the terrain that its edits were made on. The subscription's lock is held.
func (b *builder) needBase(c *Chunk, generated [32]byte) {
	b.metrics.mismatches.Inc()
	b.Logger.Warn("generated terrain differs from the base of the edits: fetching the base",
		"chunk", c.at.String(), "pinned", hex.EncodeToString(c.land.base), "generated", hex.EncodeToString(generated[:]))
	c.land.foreign, c.land.fetching = nil, true
}

// fetchBase requests a base until it has arrived or is no longer needed.
func (b *builder) fetchBase(ctx context.Context, c *Chunk, hash [32]byte) {
	for c.needsBase(hash) {
		base, err := b.Bases.BaseOf(ctx, c.at, hash)
		if err == nil {
			b.setBase(c, hash, base)
			return
		}
		if ctx.Err() != nil {
			return
		}
		b.Logger.Warn("chunk not sent: base terrain not found", "chunk", c.at.String(), "error", err, "retry_in", BaseRetry)
		select {
		case <-ctx.Done():
			return
		case <-time.After(BaseRetry):
		}
	}
}

// needsBase reports whether the chunk still has subscribers and still needs the terrain with that hash.
func (c *Chunk) needsBase(hash [32]byte) bool {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	return c.watched() && c.land.fetching && string(c.land.base) == string(hash[:])
}

func (b *builder) setBase(c *Chunk, hash [32]byte, base *chunk.Chunk) {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	if c.land.fetching && string(c.land.base) == string(hash[:]) {
		c.land.foreign, c.land.fetching = base, false
		b.queue(c)
	}
}
