package mirror

import (
	"bytes"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Chunk is the mirror of one chunk that has subscribers here. The lock of its subscription guards it: subscribers may
// use it while they are called.
type Chunk struct {
	at          grid.ChunkPos
	sub         *Subscription
	order       uint64 // among all chunks that players here have begun to watch: lower ones come first
	subscribers map[Subscriber]subscriberState
	// waiting are the subscribers that wait for the whole chunk, each with the question (feed.ask) that must be
	// answered before they are sent it; 0: none. Where a crowd arrives they are few of many.
	waiting   map[Subscriber]uint64
	everyMove int    // subscribers that get moves from deltas
	hasState  bool   // the region has sent its state
	shown     bool   // it has done so over the current link
	queued    bool   // a builder has it, or will
	tick      uint64 // at which the chunk was last sent
	occupants interest.Occupants
	moved     []*interest.Occupant // scratch
	land      land
	signs     map[chunk.Index]string // the texts of those that are not blank
}

// land is the blocks of a chunk: generated terrain, and the edits of it.
type land struct {
	base     []byte                   // hash of the terrain that the edits were made on; empty when never edited
	edits    []nodemsg.BlockAt        // known, but not yet in blocks
	ahead    map[chunk.Index]struct{} // blocks set by a result, before their delta has arrived
	blocks   *chunk.Chunk             // terrain and edits; nil until both are here, and while they are folded
	folded   bool                     // the blocks are in latest only, which is of the newest version: see fold
	used     bool                     // a block was read since the last sweep
	edited   bool                     // deltas have changed the blocks since they were built
	previous *chunk.Chunk             // what subscribers see since the region's newest state arrived; nil once the blocks are built again
	ground   [32]byte                 // hash of the terrain in blocks
	foreign  *chunk.Chunk             // the terrain of hash base, where this node generates another one; nil until it is here
	fetching bool                     // it is being fetched; nothing is built meanwhile
	version  uint64                   // grows with every change
	latest   snapshot                 // of the newest version that was encoded

	forms forms // while subscribers are sent it; nil otherwise: an original client's form is ten times as large as the chunk
}

// snapshot is a chunk as of one version. Its bytes never change.
type snapshot struct {
	version uint64 // 0 means none; the land's versions begin at 1
	packed  []byte
	forms   forms
}

// At returns the chunk's position.
func (c *Chunk) At() grid.ChunkPos { return c.at }

// Tick returns the region's tick at which the chunk was last sent.
func (c *Chunk) Tick() uint64 { return c.tick }

// Occupants returns the players in the chunk.
func (c *Chunk) Occupants() interest.Occupants { return c.occupants }

// PackedForm returns a codec's encoding of the chunk's packed land, and encodes it first if necessary. See Delta.Form.
func (c *Chunk) PackedForm(codec any, encode func(packed []byte) any) any {
	s := &c.land.latest
	return s.forms.get(codec, func() any { return encode(s.packed) })
}

// BlocksForm is the same for a codec that needs the blocks that subscribers see. It returns nil if there are none. Only
// Subscriber.SendChunk and SendDelta may call it: all that are called for the same reason get the same form.
func (c *Chunk) BlocksForm(codec any, encode func(*chunk.Chunk) any) any {
	l := &c.land
	if !l.known() && l.previous == nil {
		return nil
	}
	return l.forms.get(codec, func() any { return encode(l.visible()) })
}

// watched reports whether the chunk is still in the mirror.
func (c *Chunk) watched() bool { return c.sub.mu.chunks[c.at] == c }

// holds reports whether a player is in the chunk.
func (c *Chunk) holds(id player.ID) bool { return c.occupants.Of(id) != nil }

// hasUnserved reports whether a subscriber waits for the whole chunk.
func (c *Chunk) hasUnserved() bool {
	for by := range c.waiting {
		if c.subscribers[by]&deferredChunk == 0 {
			return true
		}
	}
	return false
}

// due reports whether a subscriber that waits for the whole chunk until a question is answered can be sent it: after
// they began to wait, a majority has confirmed that the region's state is the newest, or they have waited for that for
// long enough.
func (c *Chunk) due(by Subscriber, question uint64) bool {
	if c.subscribers[by]&deferredChunk != 0 {
		return false
	}
	return question == 0 || c.sub.feedAt(c.at).confirmation.allows(question, c.shown)
}

// hasDue reports whether a subscriber can be sent the whole chunk.
func (c *Chunk) hasDue() bool {
	for by, question := range c.waiting {
		if c.due(by, question) {
			return true
		}
	}
	return false
}

// await makes a subscriber wait for the whole chunk, and for the answer to a question; 0: none.
func (c *Chunk) await(by Subscriber, has subscriberState, question uint64) {
	c.subscribers[by] = has
	if c.waiting == nil {
		c.waiting = make(map[Subscriber]uint64)
	}
	c.waiting[by] = question
}

// settle forgets that a subscriber waits.
func (c *Chunk) settle(by Subscriber) {
	if delete(c.waiting, by); len(c.waiting) == 0 {
		c.waiting = nil
	}
}

// needsBuilder reports whether a builder has something to do for the chunk.
func (c *Chunk) needsBuilder() bool {
	return c.hasState && len(c.subscribers) > 0 && (!c.land.known() && !c.land.fetching || c.land.known() && c.hasDue())
}

// delta returns an empty delta of the chunk.
func (c *Chunk) delta() *Delta {
	return &Delta{ChunkDelta: nodemsg.ChunkDelta{Chunk: c.at}, Tick: c.sub.feedAt(c.at).tick, Of: c}
}

// publish sends the delta to the subscribers that have the chunk, or had it before it has to be sent anew.
func (c *Chunk) publish(d *Delta) {
	if d.empty() || d.ForTick == nil && c.everyMove == 0 && len(d.Signs) == 0 {
		return
	}
	for by, has := range c.subscribers {
		if has&^deferredChunk != awaitsChunk {
			by.SendDelta(d)
		}
	}
	c.land.forms = nil
}

// publishMoves sends moves to subscribers that do not get them from the frame loop.
func (c *Chunk) publishMoves() {
	d := c.delta()
	for _, o := range c.moved {
		d.Moves = append(d.Moves, nodemsg.BodyMove{Player: o.Player, Pose: o.Pose})
	}
	c.publish(d)
}

// applyState applies the chunk's whole state, as a region sends it in answer to a watch. It returns the difference for
// subscribers that have an older state (the region was away). The land is rebuilt, unless it was never changed.
func (c *Chunk) applyState(state *nodemsg.ChunkState) (difference nodemsg.ChunkDelta, change interest.Change) {
	difference.Chunk = c.at
	change = c.occupants.Replace(state.Bodies, &difference)
	c.hasState, c.shown = true, true
	c.land.reset(state.Base, state.Edits)
	difference.Signs = c.rewrite(state.Signs)
	return difference, change
}

// apply applies a delta, and returns who entered, left and moved, which is valid until the next call.
func (c *Chunk) apply(n *nodemsg.ChunkDelta) interest.Change {
	change := c.occupants.Apply(n, c.moved[:0])
	c.moved = change.Moved
	c.land.apply(n.Base, n.Blocks)
	for _, b := range n.Blocks {
		delete(c.signs, b.At)
	}
	c.write(n.Signs)
	return change
}

// write adds texts of signs.
func (c *Chunk) write(signs []nodemsg.SignAt) {
	if len(signs) > 0 && c.signs == nil {
		c.signs = make(map[chunk.Index]string)
	}
	for _, s := range signs {
		c.signs[s.At] = s.Text
	}
}

// rewrite replaces the texts of all signs. It returns those that differ: the empty ones are gone.
func (c *Chunk) rewrite(signs []nodemsg.SignAt) (different []nodemsg.SignAt) {
	before := c.signs
	c.signs = nil
	c.write(signs)
	for _, s := range signs {
		if before[s.At] != s.Text {
			different = append(different, s)
		}
	}
	for at := range before {
		if c.signs[at] == "" {
			different = append(different, nodemsg.SignAt{At: at})
		}
	}
	return different
}

// Signs returns the texts of the chunk's signs, in the order of their places.
func (c *Chunk) Signs() []nodemsg.SignAt {
	all := make([]nodemsg.SignAt, 0, len(c.signs))
	for _, at := range slices.Sorted(maps.Keys(c.signs)) {
		all = append(all, nodemsg.SignAt{At: at, Text: c.signs[at]})
	}
	return all
}

// known reports whether terrain and edits are here.
func (l *land) known() bool { return l.blocks != nil || l.folded }

// load returns the blocks, which must be known.
func (l *land) load() *chunk.Chunk {
	l.used = true
	if l.folded {
		l.blocks, l.folded = unpackChunk(l.latest.packed), false
	}
	return l.blocks
}

// fold keeps only the packed form of land that was not read since the last sweep: a twentieth of the bytes.
func (l *land) fold() {
	if l.blocks != nil && !l.used && l.latest.version == l.version {
		l.blocks, l.folded = nil, true
	}
	l.used = false
}

// pristine reports whether the land was never changed, as far as known here.
func (l *land) pristine() bool { return !l.edited && len(l.base)+len(l.edits)+len(l.ahead) == 0 }

// visible returns the blocks that subscribers see; nil if there are none. While the land is rebuilt, these are the
// previous ones, with the changes that have come since.
func (l *land) visible() *chunk.Chunk {
	if l.known() {
		return l.load()
	}
	return l.previous
}

// reset replaces base and edits by those of a region's whole state.
func (l *land) reset(base []byte, edits []nodemsg.BlockAt) {
	if !bytes.Equal(l.base, base) {
		l.foreign, l.fetching = nil, false
	}
	anew := l.known() && (!l.pristine() || len(base)+len(edits) > 0)
	l.base, l.edits = base, edits
	if anew {
		l.previous, l.blocks = l.load(), nil
	}
}

// apply applies a delta's blocks, and the base if the chunk was edited for the first time.
func (l *land) apply(base []byte, blocks []nodemsg.BlockAt) {
	if len(base) > 0 && len(l.base) == 0 {
		l.base = base
		if l.known() && [32]byte(base) != l.ground { // it was never edited, so nothing of it must be kept
			l.previous, l.blocks = l.load(), nil
		}
	}
	for _, b := range blocks {
		delete(l.ahead, b.At)
	}
	if len(blocks) == 0 {
		return
	}
	if visible := l.visible(); visible != nil {
		for _, b := range blocks {
			visible.Set(b.At, b.Block)
		}
	}
	l.version++
	if !l.known() {
		l.edits = append(l.edits, blocks...)
		return
	}
	l.edited = true
}

// setAhead sets a block whose delta has not arrived yet.
func (l *land) setAhead(at chunk.Index, b chunk.Block) {
	visible := l.visible()
	if visible == nil || visible.Get(at) == b {
		return
	}
	visible.Set(at, b)
	l.version++
	if l.ahead == nil {
		l.ahead = make(map[chunk.Index]struct{})
	}
	l.ahead[at] = struct{}{}
}

// build applies the edits to the terrain. It reports whether subscribers that have an older state must be sent the
// chunk again.
func (l *land) build(terrain *chunk.Chunk) (changed bool) {
	for _, b := range l.edits {
		terrain.Set(b.At, b.Block)
	}
	changed = l.previous == nil || len(l.ahead) > 0 || l.previous.Hash() != terrain.Hash()
	l.blocks, l.previous, l.edits, l.ahead, l.edited = terrain, nil, nil, nil, false
	l.version++
	return changed
}

// Delta is what has changed in a chunk. It is valid during SendDelta.
type Delta struct {
	nodemsg.ChunkDelta
	Tick    uint64
	ForTick *sessionmsg.TickDelta // for subscribers that get moves from the frame loop; nil for nothing
	Change  interest.Change       // who has entered, left and moved
	Of      *Chunk

	// Of Chat, which then is all there is.
	Interaction sessionmsg.FromServer // nil for chat
	Stamp       vclock.Stamp          // without an author if the event has none

	forms forms
}

// Form returns the delta as a codec has encoded it, and encodes it first if necessary: once for all subscribers. The
// codec is any value that is comparable and unique to the encoding.
func (d *Delta) Form(codec any, encode func() any) any { return d.forms.get(codec, encode) }

// empty reports whether there is nothing to send.
func (d *Delta) empty() bool {
	return len(d.Enter)+len(d.Leave)+len(d.Moves)+len(d.Blocks)+len(d.Signs)+len(d.Chat) == 0
}

// forms keeps what codecs have made of something that many subscribers are sent, so that each codec encodes it once.
type forms []form

type form struct{ codec, encoded any }

// get returns what a codec has made, and makes it first if necessary.
func (f *forms) get(codec any, encode func() any) any {
	for _, known := range *f {
		if known.codec == codec {
			return known.encoded
		}
	}
	encoded := encode()
	*f = append(*f, form{codec, encoded})
	return encoded
}

// Subscriber watches chunks, on behalf of one connection of a client. Unless a method's comment says otherwise, it is
// called with the subscription's lock held: it must not block, nor call the subscription.
type Subscriber interface {
	// SendChunk sends a chunk with everybody who is in it, or sends it again in its current state. Again means that
	// entering and leaving since then were published as deltas.
	SendChunk(c *Chunk, again bool)
	// HasRoom reports whether the subscriber can take another whole chunk. If not, it calls Chunk.Retry when it can, if
	// it still watches.
	HasRoom(c *Chunk) bool
	// SendDelta sends the delta of a chunk in view.
	SendDelta(d *Delta)
	// WantsEveryMove reports whether the subscriber gets moves from deltas instead of the frame loop. It never changes.
	WantsEveryMove() bool
	// Predictable reports whether the region may be sent predictions of the subscriber's player instead of every move.
	// It never changes.
	Predictable() bool
	// SendResult sends the result of an edit. It reports whether the result waits for Flush.
	SendResult(r nodemsg.EditResult) (waits bool)
	// Flush sends what waits. It is called without a lock.
	Flush()
	// SendNotice sends the player a notice; several subscriptions may send the same.
	SendNotice(sessionmsg.Notice)
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

// unpackChunk is the inverse of buffers.pack.
func unpackChunk(packed []byte) *chunk.Chunk {
	plain, err := wire.UnpackChunk(packed)
	if err != nil {
		panic(err) // this gateway packed it
	}
	land, err := chunk.Decode(plain)
	if err != nil {
		panic(err) // this gateway packed it
	}
	return land
}
