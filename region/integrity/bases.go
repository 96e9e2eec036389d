package integrity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file handles worlds whose nodes generate different terrain (docs/ARCHITECTURE.md): nodes with another CPU
// architecture or another version. The log pins, by hash, the terrain that the edits of a chunk apply to. A member
// whose generator produces other terrain fetches the pinned chunk from a node that has it and stores it. The chunk thus
// outlives the nodes that can generate it.

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

// Bases checks pinned bases, and keeps those that this node does not generate.
type Bases struct {
	Node
	BasesOptions

	mailbox  *actor.Mailbox[nodemsg.BaseOf]
	sound    *lru.Cache[nodemsg.BaseOf, struct{}] // this node generates or stores them
	later    map[nodemsg.BaseOf]struct{}          // no node has provided them yet; belongs to Run; at most maxSoundBases
	fetching background.Shared[[]byte]
	hashing  chan struct{} // bounds how many chunks are generated at once
}

// BasesOptions are what Bases need besides.
type BasesOptions struct {
	Base func(grid.ChunkPos) [32]byte // returns the hash of a chunk's terrain; may take milliseconds; any goroutine
	// Ground generates a chunk for nodes that generate different terrain. If nil, such nodes get none from here. Any
	// goroutine.
	Ground  func(grid.ChunkPos) *chunk.Chunk
	Records directory.Records
	Pieces  transport.Pieces
}

// NewBases returns the bases of a node.
func NewBases(n Node, o BasesOptions) *Bases {
	sound, err := lru.New[nodemsg.BaseOf, struct{}](maxSoundBases)
	if err != nil {
		panic(err) // cannot happen: the size is a positive constant
	}
	return &Bases{
		Node: n, BasesOptions: o, mailbox: actor.NewMailbox[nodemsg.BaseOf](maxSoundBases), sound: sound, later: make(map[nodemsg.BaseOf]struct{}),
		hashing: make(chan struct{}, 2),
	}
}

// Hash computes a terrain hash beside the caller, which must not wait.
func (b *Bases) Hash(pos grid.ChunkPos, found func(base [32]byte, failed *actor.Fault)) {
	// Starting a goroutine waits only for Run's loop, which never waits for a region.
	b.Tasks.Start(func(ctx context.Context) {
		select {
		case b.hashing <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var base [32]byte
		caught := actor.Catch(func() { base = b.Base(pos) })
		<-b.hashing
		if caught == nil {
			b.sound.Add(nodemsg.BaseOf{Chunk: pos, Hash: base}, struct{}{}) // so that it is not generated again to be checked
		}
		found(base, caught)
	})
}

// BaseOf returns the terrain with that hash for a chunk of which this node generates other terrain. It reads the stored
// copy, or fetches one from another node and stores it. The error is ErrNoBase if no reachable node has it, or an error
// of the storage.
func (b *Bases) BaseOf(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error) {
	want := nodemsg.BaseOf{Chunk: pos, Hash: hash}
	packed, err := b.fetching.Do(ctx, b.Tasks, fmt.Sprintf("%v %x", pos, hash), func(ctx context.Context) ([]byte, error) { return b.findBase(ctx, want) })
	if err != nil {
		return nil, fmt.Errorf("base of chunk %v: %w", pos, err)
	}
	return openBase(packed, hash, b.Height)
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
func (b *Bases) keptBase(hash [32]byte) []byte {
	packed, err := b.Storage.Get(baseTable, hash[:])
	if err == nil && packed != nil {
		_, err = openBase(packed, hash, b.Height)
	}
	if err != nil {
		b.Logger.Warn("stored base is unusable; fetching it again", "hash", fmt.Sprintf("%x", hash[:8]), "error", err)
		return nil
	}
	return packed
}

func (b *Bases) findBase(ctx context.Context, want nodemsg.BaseOf) ([]byte, error) {
	if packed := b.keptBase(want.Hash); packed != nil {
		return packed, nil
	}
	for _, peer := range b.baseHolders(ctx, want.Chunk) {
		got, err := b.Pieces.Fetch(ctx, peer, nodemsg.Fetch{Base: &want})
		if err == nil {
			_, err = openBase(got.Data, want.Hash, b.Height)
		}
		if err != nil {
			b.Logger.Debug("base not fetched", "peer", peer, "chunk", want.Chunk.String(), "error", err)
			continue
		}
		if err := b.Storage.Commit([]kv.Write{{Table: baseTable, Key: want.Hash[:], Value: got.Data}}); err != nil {
			return nil, fmt.Errorf("keep base: %w", err)
		}
		b.Metrics.bases.Inc()
		b.Logger.Info("base fetched: this node generates different terrain", "chunk", want.Chunk.String(), "peer", peer)
		return got.Data, nil
	}
	return nil, ErrNoBase
}

// baseHolders lists the nodes that may have a chunk's base: the region's members first, then other nodes near its key.
func (b *Bases) baseHolders(ctx context.Context, pos grid.ChunkPos) []string {
	var peers []string
	seen := map[string]bool{b.Self.Peer: true}
	add := func(peer string) {
		if peer != "" && !seen[peer] {
			seen[peer] = true
			peers = append(peers, peer)
		}
	}
	if info, err := b.Directory.Locate(ctx, pos); err == nil {
		add(info.Leader)
		for _, m := range info.Members {
			add(m.Peer)
		}
	}
	for _, peer := range b.Records.NearestKnown(b.Directory.Key(grid.CellAt(pos, grid.FoundingLabel)), directory.Candidates) {
		add(peer)
	}
	return peers
}

// Serve answers another node's request with the base that is stored here or that this node generates.
func (b *Bases) Serve(ctx context.Context, want nodemsg.BaseOf) nodemsg.Fetched {
	if packed := b.keptBase(want.Hash); packed != nil {
		return nodemsg.Fetched{Data: packed}
	}
	if b.Ground == nil {
		return nodemsg.Fetched{Error: ErrNoBase.Error()}
	}
	select {
	case b.hashing <- struct{}{}:
	case <-ctx.Done():
		return nodemsg.Fetched{Error: transport.Clip(ctx.Err())}
	}
	data, err := b.Ground(want.Chunk).MarshalBinary()
	<-b.hashing
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

// Pinned queues the bases that a region's log names to be checked.
func (b *Bases) Pinned(all []nodemsg.BaseOf) {
	for _, one := range all {
		if !b.sound.Contains(one) && !b.mailbox.Put(one) {
			return // full, or ending; the next load of the region queues them again
		}
	}
}

// Run checks the bases of the regions on this node, using a small share of a core, and fetches those that this node
// does not generate. It returns when ctx ends.
func (b *Bases) Run(ctx context.Context) {
	retry := time.NewTicker(baseRetry)
	defer retry.Stop()
	var again []nodemsg.BaseOf // those of later that are still to be requested this time
	for {
		all, _ := b.mailbox.Drain()
		queued := len(all) > 0
		if !queued && len(again) > 0 { // one at a time, for what is queued meanwhile comes first
			all, again = again[:1], again[1:]
			retry.Reset(baseRetry)
		}
		for _, want := range all {
			if b.sound.Contains(want) {
				delete(b.later, want)
				continue
			}
			if _, waits := b.later[want]; waits && queued {
				continue
			}
			began := time.Now()
			b.checkBase(ctx, want)
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(baseRest*time.Since(began), time.Second)):
			}
		}
		if len(all) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-b.mailbox.Wake():
		case <-retry.C:
			again = slices.Collect(maps.Keys(b.later))
		}
	}
}

// checkBase ensures that this node generates or stores a base.
func (b *Bases) checkBase(ctx context.Context, want nodemsg.BaseOf) {
	if b.Base(want.Chunk) != want.Hash {
		if _, err := b.BaseOf(ctx, want.Chunk, want.Hash); err != nil {
			if ctx.Err() == nil {
				b.Metrics.missingBases.Inc()
				b.Logger.Error("terrain that a chunk's edits apply to is missing on this node", "chunk", want.Chunk.String(), "error", err)
			}
			if len(b.later) < maxSoundBases { // else the next load of the region queues it again
				b.later[want] = struct{}{}
			}
			return
		}
	}
	delete(b.later, want)
	b.sound.Add(want, struct{}{})
}
