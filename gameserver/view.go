package gameserver

import (
	"bytes"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
)

// viewer watches chunks: a session, or a connection of an original client. The methods are called with the subscription's lock
// held: they must not block, nor call the subscription.
type viewer interface {
	// whole sends a chunk with everybody who is in it, or sends it again in its current state. Again means that entering and
	// leaving since then were published as deltas.
	whole(v *view, again bool)
	// room reports whether the subscriber can take another whole chunk. If not, it calls serveAgain when it can.
	room(f *feed, v *view) bool
	// news sends the delta of a chunk in view.
	news(n *bulletin)
	// stepwise reports whether the subscriber gets moves from deltas instead of the frame loop. It never changes.
	stepwise() bool
	// result sends the result of an edit. It returns the outbox in which the message waits for post.deliver, nil if it is on its
	// way already.
	result(r wire.EditResult) *outbox
	// notice sends the player a text; several subscriptions may send the same.
	notice(text string)
}

// sight is what a subscriber has of a chunk.
type sight uint8

const (
	nothing  sight = iota // waits for the whole chunk; gets no deltas
	outdated              // waits for the whole chunk again; gets deltas
	current               // gets deltas

	held sight = 4 // with nothing or outdated: the chunk waits until the subscriber has taken earlier ones
)

// view is the mirror of one chunk that has subscribers here. The lock of its subscription guards it.
type view struct {
	at       grid.ChunkPos
	order    uint64 // among all chunks that players here have begun to watch: lower ones come first
	viewers  map[viewer]sight
	stepwise int                      // subscribers that get moves from deltas
	known    bool                     // the region has sent its state
	shown    bool                     // it has done so over the current link
	base     []byte                   // hash of the terrain that the edits were made on; empty when never edited
	edits    []wire.BlockAt           // known, but not yet in land
	ahead    map[chunk.Index]struct{} // blocks set by a result, before their delta has arrived
	land     *chunk.Chunk             // terrain and edits; nil until both are here, and while it is folded
	folded   bool                     // the land is in latest only, which is of the newest version: see fold
	used     bool                     // a block was read since the last sweep
	edited   bool                     // deltas have changed the land since it was built
	former   *chunk.Chunk             // the land before the region's newest state arrived; nil once land is set again
	ground   [32]byte                 // hash of the terrain in land
	foreign  *chunk.Chunk             // the terrain of hash base, where this node generates another one; nil until it is here
	wanting  bool                     // it is being fetched; nothing is built meanwhile
	bodies   occupants
	moved    []*occupant // scratch
	version  uint64      // of the land; grows with every change
	tick     uint64      // at which the chunk was last sent
	latest   snapshot    // of the newest version that was encoded
	queued   bool        // a builder has it, or will

	slab        []byte // CHUNK_DATA for original clients, of slabVersion
	slabVersion uint64 // 0 means none
}

// snapshot is a chunk as of one version. Its bytes never change.
type snapshot struct {
	version uint64 // 0 means none; the land's versions begin at 1
	packed  []byte
	text    []byte // wire.ChunkData with them in JSON, once requested
	binary  []byte // and in CBOR
}

// message returns the chunk encoded for sessions. The subscription's lock is held.
func (s *snapshot) message(at grid.ChunkPos, binary bool) []byte {
	form := &s.text
	if binary {
		form = &s.binary
	}
	if *form == nil {
		*form = encodedIn(binary, wire.ChunkData{Chunk: at, Data: s.packed})
	}
	return *form
}

// bulletin is the delta of one chunk, with its encoded forms, made once for all sessions.
type bulletin struct {
	wire.ChunkNews
	tick  uint64
	told  *wire.TickNews  // for CBOR sessions, without the motion of the frame; nil for nothing
	piece []byte          // in JSON
	pack  []byte          // told, encoded
	came  []wire.Body     // those of Enter who were not in the chunk before
	left  []wire.Body     // those of Leave, as they were last seen
	deed  wire.FromServer // of Says, which then is all there is; nil for chat
	stamp vclock.Stamp    // of Says, which then is all there is; without an author if they have none
	feed  *feed
	view  *view      // original clients get the whole chunk after each change
	lines *moveLines // Moves, for original clients; nil until one of them watches the chunk
}

// empty reports whether there is nothing to send.
func (b *bulletin) empty() bool {
	return len(b.Enter)+len(b.Leave)+len(b.Moves)+len(b.Blocks)+len(b.Says) == 0
}

// hasUnserved reports whether a subscriber waits for the whole chunk.
func (v *view) hasUnserved() bool {
	for _, sees := range v.viewers {
		if sees == nothing || sees == outdated {
			return true
		}
	}
	return false
}

// unsettled reports whether a builder has something to do for the chunk.
func (v *view) unsettled() bool {
	return v.known && len(v.viewers) > 0 && (!v.laid() && !v.wanting || v.laid() && v.hasUnserved())
}

// laid reports whether terrain and edits are here.
func (v *view) laid() bool { return v.land != nil || v.folded }

// open returns the land, which must be laid.
func (v *view) open() *chunk.Chunk {
	v.used = true
	if v.folded {
		v.land, v.folded = unpackChunk(v.latest.packed), false
	}
	return v.land
}

// fold keeps only the packed form of land that was not read since the last sweep: a twentieth of the bytes.
func (v *view) fold() {
	if v.land != nil && !v.used && v.latest.version == v.version {
		v.land, v.folded = nil, true
	}
	v.used = false
}

// everybody returns the bodies in the chunk.
func (v *view) everybody() []wire.Body {
	bodies := make([]wire.Body, 0, len(v.bodies))
	for i := range v.bodies {
		bodies = append(bodies, v.bodies[i].Body)
	}
	return bodies
}

// reset applies the chunk's whole state, as a region sends it in answer to a watch. It returns the difference for subscribers
// that have an older state (the region was away). The land is rebuilt, unless it was never changed.
func (v *view) reset(state *wire.ChunkState) (difference wire.ChunkNews, came, left []wire.Body) {
	difference.Chunk = v.at
	bodies := make(occupants, 0, len(state.Bodies))
	for _, b := range state.Bodies {
		if bodies.of(b.Player) != nil {
			continue // a region sends each player once
		}
		bodies.put(b)
		before := v.bodies.of(b.Player)
		if before == nil {
			came = append(came, b)
			difference.Enter = append(difference.Enter, b)
			continue
		}
		bodies.of(b.Player).actor = before.actor
		if before.Said = b.Said; before.Body != b { // what they said meanwhile is no change
			difference.Enter = append(difference.Enter, b)
		}
	}
	for i := range v.bodies {
		if b := &v.bodies[i]; bodies.of(b.Player) == nil {
			difference.Leave = append(difference.Leave, b.Player)
			left = append(left, b.Body)
		}
	}
	if !bytes.Equal(v.base, state.Base) {
		v.foreign, v.wanting = nil, false
	}
	anew := v.laid() && (!v.pristine() || len(state.Base)+len(state.Edits) > 0)
	v.known, v.shown, v.base, v.edits, v.bodies = true, true, state.Base, state.Edits, bodies
	if anew {
		v.former, v.land = v.open(), nil
	}
	return difference, came, left
}

// pristine reports whether the land was never changed, as far as known here.
func (v *view) pristine() bool { return !v.edited && len(v.base)+len(v.edits)+len(v.ahead) == 0 }

// take applies a delta, and returns who came, who left, and who moved; moved is valid until the next call.
func (v *view) take(n wire.ChunkNews) (came, left []wire.Body, moved []*occupant) {
	// Enter before Leave, as wire.Piece orders them; the region has a player in one of them only.
	for _, b := range n.Enter {
		if v.bodies.put(b) {
			came = append(came, b)
		}
	}
	for _, id := range n.Leave {
		if b, here := v.bodies.remove(id); here {
			left = append(left, b)
		}
	}
	v.moved = v.bodies.move(n.Moves, v.moved[:0])
	if len(n.Base) > 0 && len(v.base) == 0 {
		v.base = n.Base
		if v.laid() && [32]byte(n.Base) != v.ground { // it was never edited, so nothing of it must be kept
			v.former, v.land = v.open(), nil
		}
	}
	for _, b := range n.Blocks {
		delete(v.ahead, b.At)
	}
	switch {
	case len(n.Blocks) == 0:
	case !v.laid():
		v.edits = append(v.edits, n.Blocks...)
	default:
		for _, b := range n.Blocks {
			v.open().Set(b.At, b.Block)
		}
		v.edited = true
		v.version++
	}
	return came, left, v.moved
}

// build applies the edits to the terrain. It reports whether subscribers that have an older state must be sent the chunk again.
func (v *view) build(terrain *chunk.Chunk) (changed bool) {
	for _, b := range v.edits {
		terrain.Set(b.At, b.Block)
	}
	changed = v.former == nil || len(v.ahead) > 0 || v.former.Hash() != terrain.Hash()
	v.land, v.former, v.edits, v.ahead, v.edited = terrain, nil, nil, nil, false
	v.version++
	return changed
}
