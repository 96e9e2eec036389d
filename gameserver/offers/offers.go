// Package offers keeps what a session has offered to its client, which may have it already
// (docs/adr/0052-chunks-by-hash.md).
package offers

import (
	"sync"

	"github.com/voxelpopuli/voxeld/grid"
)

// Chunks are the chunks in view of which a client was sent only the hash. Its lock is a leaf.
type Chunks struct {
	On bool // the client understands hashes; set before first use

	mu sync.Mutex
	// By chunk, whether the client has requested its data, and has not been sent it yet. A chunk is here once its hash
	// was sent, until it leaves the view or its data is sent.
	requested map[grid.ChunkPos]bool
}

// Offer records that the hash of a chunk is sent, and reports false if its data must be sent instead.
func (o *Chunks) Offer(at grid.ChunkPos) bool {
	if !o.On {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requested[at] {
		delete(o.requested, at)
		return false
	}
	if o.requested == nil {
		o.requested = make(map[grid.ChunkPos]bool)
	}
	o.requested[at] = false
	return true
}

// Request records a request for a chunk's data. It reports false if there is none to send: the client's session has no
// hash of it, or the data was requested before.
func (o *Chunks) Request(at grid.ChunkPos) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if requested, offered := o.requested[at]; requested || !offered {
		return false
	}
	o.requested[at] = true
	return true
}

// Remove removes a chunk that has left the view.
func (o *Chunks) Remove(at grid.ChunkPos) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.requested, at)
}
