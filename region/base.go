package region

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file handles worlds whose nodes generate different terrain (docs/ARCHITECTURE.md): nodes with another CPU architecture or
// another version. The log pins, by hash, the terrain that the edits of a chunk apply to. A member whose generator produces other
// terrain fetches the pinned chunk from a node that has it and stores it. The chunk thus outlives the nodes that can generate it.

const (
	// baseTable holds the bases that this node cannot generate: hash, 32 bytes → chunk in the chunk codec, deflated.
	baseTable = "bases"

	// maxSoundBases bounds the cache of pinned bases that this node is known to generate or store.
	maxSoundBases = 1 << 14
	// baseRetry is the pause before a base that no node provided is requested again.
	baseRetry = 30 * time.Second
	// baseRest is how long the checker rests after a check, as a multiple of the time that the check took.
	baseRest = 4
)

// ErrNoBase is returned if no reachable node has the terrain that a chunk's edits apply to.
var ErrNoBase = errors.New("no reachable node has the terrain that this chunk's edits apply to")

// bases is the state of the checker of pinned bases. It belongs to the goroutine of keepBases, except inbox and sound, which any
// goroutine may use.
type bases struct {
	inbox *mailbox.Mailbox[nodemsg.BaseOf]
	sound *lru.Cache[nodemsg.BaseOf, struct{}] // this node generates or stores them
	later []nodemsg.BaseOf                     // no node has provided them yet
}

func newBases() bases {
	sound, err := lru.New[nodemsg.BaseOf, struct{}](maxSoundBases)
	if err != nil {
		panic(err) // cannot happen: the size is a positive constant
	}
	return bases{inbox: mailbox.New[nodemsg.BaseOf](maxSoundBases), sound: sound}
}

// BaseOf returns the terrain with that hash for a chunk of which this node generates other terrain. It reads the stored copy, or
// fetches one from another node and stores it. The error is ErrNoBase if no reachable node has it, or an error of the storage.
func (h *Host) BaseOf(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error) {
	want := nodemsg.BaseOf{Chunk: pos, Hash: hash}
	packed, err := h.fetchingBases.Do(ctx, h.tasks, fmt.Sprintf("%v %x", pos, hash), func(ctx context.Context) ([]byte, error) { return h.findBase(ctx, want) })
	if err != nil {
		return nil, fmt.Errorf("base of chunk %v: %w", pos, err)
	}
	return openBase(packed, hash, h.Height)
}

// openBase decompresses a base and verifies its hash.
func openBase(packed []byte, hash [32]byte, height int32) (*chunk.Chunk, error) {
	data, err := wire.UnpackChunk(packed)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != hash {
		return nil, errors.New("hash does not match")
	}
	c, err := chunk.Decode(data)
	if err != nil {
		return nil, err
	}
	if int32(c.Height()) != height {
		return nil, fmt.Errorf("it is %d blocks high", c.Height())
	}
	return c, nil
}

// keptBase returns a base that is stored here, or nil.
func (h *Host) keptBase(hash [32]byte) []byte {
	packed, err := h.Storage.Get(baseTable, hash[:])
	if err == nil && packed != nil {
		_, err = openBase(packed, hash, h.Height)
	}
	if err != nil {
		h.Logger.Warn("stored base is unusable; fetching it again", "hash", fmt.Sprintf("%x", hash[:8]), "error", err)
		return nil
	}
	return packed
}

func (h *Host) findBase(ctx context.Context, want nodemsg.BaseOf) ([]byte, error) {
	if packed := h.keptBase(want.Hash); packed != nil {
		return packed, nil
	}
	for _, peer := range h.baseHolders(ctx, want.Chunk) {
		got, err := h.pieces.Fetch(ctx, peer, nodemsg.Fetch{Base: &want})
		if err == nil {
			_, err = openBase(got.Data, want.Hash, h.Height)
		}
		if err != nil {
			h.Logger.Debug("base not fetched", "peer", peer, "chunk", want.Chunk.String(), "error", err)
			continue
		}
		if err := h.Storage.Commit([]kv.Write{{Table: baseTable, Key: want.Hash[:], Value: got.Data}}); err != nil {
			return nil, fmt.Errorf("keep base: %w", err)
		}
		h.metrics.bases.Inc()
		h.Logger.Info("base fetched: this node generates different terrain", "chunk", want.Chunk.String(), "peer", peer)
		return got.Data, nil
	}
	return nil, ErrNoBase
}

// baseHolders lists the nodes that may have a chunk's base: the region's members first, then other nodes near its key.
func (h *Host) baseHolders(ctx context.Context, pos grid.ChunkPos) []string {
	var peers []string
	seen := map[string]bool{h.Self.Peer: true}
	add := func(peer string) {
		if peer != "" && !seen[peer] {
			seen[peer] = true
			peers = append(peers, peer)
		}
	}
	if info, err := h.Directory.Locate(ctx, pos); err == nil {
		add(info.Leader)
		for _, m := range info.Members {
			add(m.Peer)
		}
	}
	for _, peer := range h.Records.NearestKnown(h.Directory.key(grid.CellAt(pos, grid.FoundingLabel)), candidates) {
		add(peer)
	}
	return peers
}

// serveBase answers another node's request with the base that is stored here or that this node generates.
func (h *Host) serveBase(ctx context.Context, want nodemsg.BaseOf) nodemsg.Fetched {
	if packed := h.keptBase(want.Hash); packed != nil {
		return nodemsg.Fetched{Data: packed}
	}
	if h.Ground == nil {
		return nodemsg.Fetched{Error: ErrNoBase.Error()}
	}
	select {
	case h.hashing <- struct{}{}:
	case <-ctx.Done():
		return nodemsg.Fetched{Error: transport.Clip(ctx.Err())}
	}
	data, err := h.Ground(want.Chunk).MarshalBinary()
	<-h.hashing
	if err == nil && sha256.Sum256(data) != want.Hash {
		err = ErrNoBase
	}
	var packed []byte
	if err == nil {
		packed, err = wire.PackChunk(data)
	}
	if err != nil {
		return nodemsg.Fetched{Error: transport.Clip(err)}
	}
	return nodemsg.Fetched{Data: packed}
}

func basesOf(pins []world.Pin) []nodemsg.BaseOf {
	all := make([]nodemsg.BaseOf, len(pins))
	for i, p := range pins {
		all[i] = nodemsg.BaseOf{Chunk: p.Chunk, Hash: p.Base}
	}
	return all
}

// pinned queues the bases that a region's log names to be checked.
func (h *Host) pinned(all []nodemsg.BaseOf) {
	for _, b := range all {
		if !h.bases.inbox.Put(b) {
			return // full, or ending; the next load of the region queues them again
		}
	}
}

// keepBases checks the bases of the regions on this node, using a small share of a core, and fetches those that this node does
// not generate. It returns when ctx ends.
func (h *Host) keepBases(ctx context.Context) {
	retry := time.NewTicker(baseRetry)
	defer retry.Stop()
	var all []nodemsg.BaseOf
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.bases.inbox.Wake():
			all, _ = h.bases.inbox.Drain()
		case <-retry.C:
			all, h.bases.later = h.bases.later, nil
		}
		for _, want := range all {
			if h.bases.sound.Contains(want) {
				continue
			}
			began := time.Now()
			h.checkBase(ctx, want)
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(baseRest*time.Since(began), time.Second)):
			}
		}
	}
}

// checkBase ensures that this node generates or stores a base.
func (h *Host) checkBase(ctx context.Context, want nodemsg.BaseOf) {
	if h.Base(want.Chunk) != want.Hash {
		if _, err := h.BaseOf(ctx, want.Chunk, want.Hash); err != nil {
			if ctx.Err() == nil {
				h.metrics.missingBases.Inc()
				h.Logger.Error("terrain that a chunk's edits apply to is missing on this node", "chunk", want.Chunk.String(), "error", err)
			}
			h.bases.later = append(h.bases.later, want)
			return
		}
	}
	h.bases.sound.Add(want, struct{}{})
}
