package gameserver

import (
	"bytes"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// subscriber watches chunks: a session, or a connection of an original client. The methods are called with the subscription's
// lock held: they must not block, nor call the subscription.
type subscriber interface {
	// sendChunk sends a chunk with everybody who is in it, or sends it again in its current state. Again means that entering and
	// leaving since then were published as deltas.
	sendChunk(mc *mirrorChunk, again bool)
	// hasRoom reports whether the subscriber can take another whole chunk. If not, it calls retryChunk when it can.
	hasRoom(sub *subscription, mc *mirrorChunk) bool
	// sendDelta sends the delta of a chunk in view.
	sendDelta(n *chunkDelta)
	// wantsEveryMove reports whether the subscriber gets moves from deltas instead of the frame loop. It never changes.
	wantsEveryMove() bool
	// sendResult sends the result of an edit. It returns the outbox in which the message waits for frameWriter.deliver, nil if it
	// is on its way already.
	sendResult(r nodemsg.EditResult) *outbox
	// sendNotice sends the player a text; several subscriptions may send the same.
	sendNotice(text string)
}

// subscriberState is what a subscriber has of a chunk.
type subscriberState uint8

const (
	awaitsChunk   subscriberState = iota // waits for the whole chunk; gets no deltas
	awaitsRefresh                        // waits for the whole chunk again; gets deltas
	upToDate                             // gets deltas

	// With awaitsChunk or awaitsRefresh: the chunk waits until the subscriber has taken earlier ones.
	deferredChunk subscriberState = 4
)

// mirrorChunk is the mirror of one chunk that has subscribers here. The lock of its subscription guards it.
type mirrorChunk struct {
	at           grid.ChunkPos
	order        uint64 // among all chunks that players here have begun to watch: lower ones come first
	subscribers  map[subscriber]subscriberState
	everyMove    int                      // subscribers that get moves from deltas
	hasState     bool                     // the region has sent its state
	shown        bool                     // it has done so over the current link
	base         []byte                   // hash of the terrain that the edits were made on; empty when never edited
	edits        []nodemsg.BlockAt        // known, but not yet in land
	ahead        map[chunk.Index]struct{} // blocks set by a result, before their delta has arrived
	land         *chunk.Chunk             // terrain and edits; nil until both are here, and while it is folded
	folded       bool                     // the land is in latest only, which is of the newest version: see fold
	used         bool                     // a block was read since the last sweep
	edited       bool                     // deltas have changed the land since it was built
	previousLand *chunk.Chunk             // the land before the region's newest state arrived; nil once land is set again
	ground       [32]byte                 // hash of the terrain in land
	foreign      *chunk.Chunk             // the terrain of hash base, where this node generates another one; nil until it is here
	fetching     bool                     // it is being fetched; nothing is built meanwhile
	bodies       interest.Occupants
	moved        []*interest.Occupant // scratch
	version      uint64               // of the land; grows with every change
	tick         uint64               // at which the chunk was last sent
	latest       snapshot             // of the newest version that was encoded
	queued       bool                 // a builder has it, or will

	slab        []byte // CHUNK_DATA for original clients, of slabVersion
	slabVersion uint64 // 0 means none
}

// snapshot is a chunk as of one version. Its bytes never change.
type snapshot struct {
	version uint64 // 0 means none; the land's versions begin at 1
	packed  []byte
	text    []byte // sessionmsg.ChunkData with them in JSON, once requested
	binary  []byte // and in CBOR
}

// message returns the chunk encoded for sessions. The subscription's lock is held.
func (s *snapshot) message(at grid.ChunkPos, binary bool) []byte {
	form := &s.text
	if binary {
		form = &s.binary
	}
	if *form == nil {
		*form = encodedIn(binary, sessionmsg.ChunkData{Chunk: at, Data: s.packed})
	}
	return *form
}

// chunkDelta is the delta of one chunk, with its encoded forms, made once for all sessions.
type chunkDelta struct {
	nodemsg.ChunkDelta
	tick        uint64
	tickNews    *sessionmsg.TickDelta // for CBOR sessions, without the motion of the frame; nil for nothing
	piece       []byte                // in JSON
	tickPiece   []byte                // tickNews, encoded
	change      interest.Change       // who has entered, left and moved
	interaction sessionmsg.FromServer // of Says, which then is all there is; nil for chat
	stamp       vclock.Stamp          // of Says, which then is all there is; without an author if they have none
	sub         *subscription
	chunk       *mirrorChunk // original clients get the whole chunk after each change
	lines       *moveLines   // Moves, for original clients; nil until one of them watches the chunk
}

// empty reports whether there is nothing to send.
func (delta *chunkDelta) empty() bool {
	return len(delta.Enter)+len(delta.Leave)+len(delta.Moves)+len(delta.Blocks)+len(delta.Chat) == 0
}

// hasUnserved reports whether a subscriber waits for the whole chunk.
func (mc *mirrorChunk) hasUnserved() bool {
	for _, sees := range mc.subscribers {
		if sees == awaitsChunk || sees == awaitsRefresh {
			return true
		}
	}
	return false
}

// needsBuilder reports whether a builder has something to do for the chunk.
func (mc *mirrorChunk) needsBuilder() bool {
	return mc.hasState && len(mc.subscribers) > 0 && (!mc.hasLand() && !mc.fetching || mc.hasLand() && mc.hasUnserved())
}

// hasLand reports whether terrain and edits are here.
func (mc *mirrorChunk) hasLand() bool { return mc.land != nil || mc.folded }

// loadLand returns the land, which must be laid.
func (mc *mirrorChunk) loadLand() *chunk.Chunk {
	mc.used = true
	if mc.folded {
		mc.land, mc.folded = unpackChunk(mc.latest.packed), false
	}
	return mc.land
}

// fold keeps only the packed form of land that was not read since the last sweep: a twentieth of the bytes.
func (mc *mirrorChunk) fold() {
	if mc.land != nil && !mc.used && mc.latest.version == mc.version {
		mc.land, mc.folded = nil, true
	}
	mc.used = false
}

// applyState applies the chunk's whole state, as a region sends it in answer to a watch. It returns the difference for
// subscribers that have an older state (the region was away). The land is rebuilt, unless it was never changed.
func (mc *mirrorChunk) applyState(state *nodemsg.ChunkState) (difference nodemsg.ChunkDelta, change interest.Change) {
	difference.Chunk = mc.at
	change = mc.bodies.Replace(state.Bodies, &difference)
	if !bytes.Equal(mc.base, state.Base) {
		mc.foreign, mc.fetching = nil, false
	}
	anew := mc.hasLand() && (!mc.pristine() || len(state.Base)+len(state.Edits) > 0)
	mc.hasState, mc.shown, mc.base, mc.edits = true, true, state.Base, state.Edits
	if anew {
		mc.previousLand, mc.land = mc.loadLand(), nil
	}
	return difference, change
}

// pristine reports whether the land was never changed, as far as known here.
func (mc *mirrorChunk) pristine() bool {
	return !mc.edited && len(mc.base)+len(mc.edits)+len(mc.ahead) == 0
}

// apply applies a delta, and returns who entered, left and moved, which is valid until the next call.
func (mc *mirrorChunk) apply(n nodemsg.ChunkDelta) interest.Change {
	change := mc.bodies.Apply(&n, mc.moved[:0])
	mc.moved = change.Moved
	if len(n.Base) > 0 && len(mc.base) == 0 {
		mc.base = n.Base
		if mc.hasLand() && [32]byte(n.Base) != mc.ground { // it was never edited, so nothing of it must be kept
			mc.previousLand, mc.land = mc.loadLand(), nil
		}
	}
	for _, b := range n.Blocks {
		delete(mc.ahead, b.At)
	}
	switch {
	case len(n.Blocks) == 0:
	case !mc.hasLand():
		mc.edits = append(mc.edits, n.Blocks...)
	default:
		for _, b := range n.Blocks {
			mc.loadLand().Set(b.At, b.Block)
		}
		mc.edited = true
		mc.version++
	}
	return change
}

// build applies the edits to the terrain. It reports whether subscribers that have an older state must be sent the chunk again.
func (mc *mirrorChunk) build(terrain *chunk.Chunk) (changed bool) {
	for _, b := range mc.edits {
		terrain.Set(b.At, b.Block)
	}
	changed = mc.previousLand == nil || len(mc.ahead) > 0 || mc.previousLand.Hash() != terrain.Hash()
	mc.land, mc.previousLand, mc.edits, mc.ahead, mc.edited = terrain, nil, nil, nil, false
	mc.version++
	return changed
}
