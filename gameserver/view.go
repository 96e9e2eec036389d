package gameserver

import (
	"bytes"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
)

// viewer is whoever looks at chunks: a session, or a connection of an original client. The methods are
// called with the feed's lock held: they must not block, nor call the feed.
type viewer interface {
	// whole brings a chunk into view with everybody who is in it, or brings it again, as it is now. Who
	// came and went meanwhile he knows then from the news.
	whole(v *view, again bool)
	// room tells whether the viewer can take another whole chunk. If not, the feed is told when it can (serveAgain).
	room(f *feed, v *view) bool
	// news tells what happened in a chunk in view.
	news(n *bulletin)
	// stepwise says that the viewer learns of moves from news, and not from the beat. It never changes.
	stepwise() bool
	// result tells what became of an edit. It gives the outbox in which the answer waits for post.deliver, nil if it is
	// on its way already.
	result(r wire.EditResult) *outbox
	// notice tells the player something in words; several feeds may say the same.
	notice(text string)
}

// sight is what a viewer has of a chunk.
type sight uint8

const (
	nothing  sight = iota // waits for the whole chunk; is told no news
	outdated              // waits for the whole chunk anew; is told news
	current               // is told news

	held sight = 4 // beside nothing or outdated: the chunk waits until the viewer has taken earlier ones
)

// view is the mirror of one chunk that somebody here looks at. Its feed's lock guards it.
type view struct {
	at       grid.ChunkPos
	order    uint64 // among all chunks that players here have begun to look at: lower ones come first
	viewers  map[viewer]sight
	stepwise int                      // viewers who learn of moves from news
	known    bool                     // the region has told its state
	shown    bool                     // it has done so over the present link
	base     []byte                   // hash of the terrain that the edits lie on; empty when never edited
	edits    []wire.BlockAt           // known, but not yet in land
	ahead    map[chunk.Index]struct{} // blocks that an answer has put into the land, and that news have not told yet
	land     *chunk.Chunk             // terrain and edits; nil until both are here, and while it is folded
	folded   bool                     // the land is in latest only, which is of the newest version: see fold
	used     bool                     // somebody has asked for a block since the last sweep
	edited   bool                     // news have changed the land since it was built
	former   *chunk.Chunk             // the land before the region's newest state came; nil once land is here again
	ground   [32]byte                 // hash of the terrain that land was made of
	foreign  *chunk.Chunk             // the terrain of hash base, where this node generates another one; nil until it is here
	wanting  bool                     // somebody fetches it; nothing is built meanwhile
	bodies   occupants
	moved    []*occupant // spare
	version  uint64      // of the land; grows with every change
	tick     uint64      // at which the chunk was last served
	latest   snapshot    // of the newest version that was encoded
	queued   bool        // a builder has it, or will

	slab        []byte // CHUNK_DATA for original clients, of slabVersion
	slabVersion uint64 // 0 means none
}

// snapshot is a chunk as of one version. Its bytes never change.
type snapshot struct {
	version uint64 // 0 means none; the land's versions begin at 1
	packed  []byte
	text    []byte // wire.ChunkData with them in JSON, once somebody has asked for it
	binary  []byte // and in CBOR
}

// message is the chunk as sessions get it. The feed's lock is held.
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

// bulletin is the news of one chunk, with its encoded forms for sessions, made once for all.
type bulletin struct {
	wire.ChunkNews
	tick  uint64
	told  *wire.TickNews  // what sessions in CBOR get of it, beside the motion of the beat; nil for nothing
	piece []byte          // in JSON
	pack  []byte          // told
	came  []wire.Body     // those of Enter who were not in the chunk before
	left  []wire.Body     // who Leave names, as they were last seen
	deed  wire.FromServer // of Says, which then is all there is; nil for words
	stamp vclock.Stamp    // of Says, which then is all there is; without an author if they have none
	feed  *feed
	view  *view      // original clients get the whole chunk after each change
	lines *moveLines // Moves, for original clients; nil until one of them sees the chunk
}

// empty tells whether there is nothing to tell.
func (b *bulletin) empty() bool {
	return len(b.Enter)+len(b.Leave)+len(b.Moves)+len(b.Blocks)+len(b.Says) == 0
}

// hasUnserved tells whether a viewer waits for the whole chunk.
func (v *view) hasUnserved() bool {
	for _, sees := range v.viewers {
		if sees == nothing || sees == outdated {
			return true
		}
	}
	return false
}

// unsettled tells whether a builder has something to do for the view.
func (v *view) unsettled() bool {
	return v.known && len(v.viewers) > 0 && (!v.laid() && !v.wanting || v.laid() && v.hasUnserved())
}

// laid tells whether terrain and edits are here.
func (v *view) laid() bool { return v.land != nil || v.folded }

// open gives the land, which must be laid.
func (v *view) open() *chunk.Chunk {
	v.used = true
	if v.folded {
		v.land, v.folded = unpackChunk(v.latest.packed), false
	}
	return v.land
}

// fold keeps only the packed form of land that nobody has asked for since the last sweep: a twentieth of the bytes.
func (v *view) fold() {
	if v.land != nil && !v.used && v.latest.version == v.version {
		v.land, v.folded = nil, true
	}
	v.used = false
}

// everybody gives the bodies in the chunk.
func (v *view) everybody() []wire.Body {
	bodies := make([]wire.Body, 0, len(v.bodies))
	for i := range v.bodies {
		bodies = append(bodies, v.bodies[i].Body)
	}
	return bodies
}

// reset takes in the chunk's whole state, as a region sends it in answer to a watch. What comes back is the
// difference for viewers who knew an older one (the region was away). The land is built anew, unless nobody has ever changed it.
func (v *view) reset(state *wire.ChunkState) (difference wire.ChunkNews, came, left []wire.Body) {
	difference.Chunk = v.at
	bodies := make(occupants, 0, len(state.Bodies))
	for _, b := range state.Bodies {
		if bodies.of(b.Player) != nil {
			continue // a region names nobody twice
		}
		bodies.put(b)
		before := v.bodies.of(b.Player)
		if before == nil {
			came = append(came, b)
			difference.Enter = append(difference.Enter, b)
			continue
		}
		bodies.of(b.Player).actor = before.actor
		if before.Said = b.Said; before.Body != b { // what he said meanwhile makes him no other
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

// pristine tells whether nobody has ever changed the land, as far as it is known here.
func (v *view) pristine() bool { return !v.edited && len(v.base)+len(v.edits)+len(v.ahead) == 0 }

// take brings the mirror up to date with the news, and gives who came, who left, and who moved; moved is good until the
// next take.
func (v *view) take(n wire.ChunkNews) (came, left []wire.Body, moved []*occupant) {
	// Enter before Leave, as wire.Piece orders them; the region names a player in one of them only.
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
		if v.laid() && [32]byte(n.Base) != v.ground { // it was never edited, so there is nothing to keep of it
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

// build lays the edits over the terrain. It reports whether viewers who saw the chunk before the region's
// newest state came have to see it anew.
func (v *view) build(terrain *chunk.Chunk) (changed bool) {
	for _, b := range v.edits {
		terrain.Set(b.At, b.Block)
	}
	changed = v.former == nil || len(v.ahead) > 0 || v.former.Hash() != terrain.Hash()
	v.land, v.former, v.edits, v.ahead, v.edited = terrain, nil, nil, nil, false
	v.version++
	return changed
}
