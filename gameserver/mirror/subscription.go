package mirror

import (
	"fmt"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Subscription is the gateway's subscription to the land of one founding cell. That is one region, or several since it
// was divided; each has a feed. Subscribers need not know: what they request goes to the feed of the chunk.
type Subscription struct {
	m    *Mirror
	cell grid.Cell

	mu struct {
		sync.Mutex
		feeds     map[grid.Cell]*feed // their cells do not overlap; all chunks, bodies and pending edits are in one of them
		chunks    map[grid.ChunkPos]*Chunk
		bodies    map[player.ID]*body // this gateway's players who are here
		predicted map[*Chunk]struct{} // chunks with a predicted body that may be moving
		lastFrame time.Duration       // when the last frame was
		diverged  bool                // a body here may have diverged from its prediction, or follow one
		pending   pendingEdits
		closed    bool    // removed from the mirror: get another
		started   []*feed // whose run is to be called; see unlock
	}
}

// feed keeps a subscription linked with one region.
type feed struct {
	sub      *Subscription
	wake     wake.Signal // set while there may be something to send
	flushNow wake.Signal // set while something to send must not be delayed: an edit, a question, or a round's moves
	sender   sender
	answered []Subscriber // those with results to flush; receive's

	// The subscription's lock guards the rest.

	cell         grid.Cell // of the region, as far as known
	out          outgoing
	tick         uint64 // of the newest update
	confirmation confirmation
	unanswered   *time.Timer // calls showUnconfirmed
	link         *liveLink   // the newest; nil before the first
	answers      *time.Timer // calls checkAnswers; nil before the first edit
	watched      bool        // it will do so
	leader       string      // the node that the newest link is with; empty before the first
	cutOff       string      // the leader that could not be reached, though others can; empty if there is none
	stable       bool        // linked, for long enough to count
	notified     bool        // players were notified that the region cannot be reached
	unusedSince  time.Time   // since when the feed is unused; zero while it is used
	ended        bool        // unused, or another feed has taken over its region
	stop         func()      // ends run; nil before it has begun
}

func newSubscription(m *Mirror, cell grid.Cell) *Subscription {
	sub := &Subscription{m: m, cell: cell}
	sub.mu.feeds = make(map[grid.Cell]*feed)
	sub.mu.chunks = make(map[grid.ChunkPos]*Chunk)
	sub.mu.bodies = make(map[player.ID]*body)
	sub.mu.predicted = make(map[*Chunk]struct{})
	return sub
}

// Covers reports whether a chunk is in the subscription's land.
func (sub *Subscription) Covers(pos grid.ChunkPos) bool { return sub.cell.Contains(pos) }

// unlock releases the lock, and lets the feeds run that were started under it.
func (sub *Subscription) unlock() {
	started := sub.mu.started
	sub.mu.started = nil
	sub.mu.Unlock()
	for _, f := range started {
		sub.m.Run(f.run)
	}
}

// feedAt returns the feed of a chunk; nil if there is none. The lock is held, as below.
func (sub *Subscription) feedAt(pos grid.ChunkPos) *feed {
	for length := sub.cell.Label.Len(); length <= grid.MaxLabel; length++ {
		if f := sub.mu.feeds[grid.CellAt(pos, length)]; f != nil {
			return f
		}
	}
	return nil
}

// feed returns the feed of a chunk in the subscription's land. If there is none it starts one, of the largest cell that
// overlaps no other's; the caller must call unlock.
func (sub *Subscription) feed(pos grid.ChunkPos) *feed {
	if f := sub.feedAt(pos); f != nil {
		f.unusedSince = time.Time{}
		return f
	}
	cell := sub.cell
	for sub.anyFeedIn(cell) {
		cell = grid.CellAt(pos, cell.Label.Len()+1)
	}
	f := &feed{sub: sub, cell: cell, wake: wake.NewSignal(), flushNow: wake.NewSignal()}
	f.confirmation, f.unanswered = newConfirmation(time.Now()), time.AfterFunc(NoticeAfter, f.showUnconfirmed)
	f.sender.feed = f
	f.out.moves = make(map[player.ID]int)
	sub.mu.feeds[cell] = f
	sub.mu.started = append(sub.mu.started, f)
	return f
}

func (sub *Subscription) anyFeedIn(cell grid.Cell) bool {
	for inner := range sub.mu.feeds {
		if cell.Covers(inner) {
			return true
		}
	}
	return false
}

// used returns the chunks that need a feed. Some may be repeated.
func (sub *Subscription) used() iter.Seq[grid.ChunkPos] {
	return func(yield func(grid.ChunkPos) bool) {
		for pos := range sub.mu.chunks {
			if !yield(pos) {
				return
			}
		}
		for _, b := range sub.mu.bodies {
			if !yield(b.at) {
				return
			}
		}
		for _, e := range sub.mu.pending {
			if !yield(e.Pos.Chunk()) {
				return
			}
		}
	}
}

// usedPlace returns a chunk of the feed's region that is used. The lock is held.
func (f *feed) usedPlace() (pos grid.ChunkPos, used bool) {
	for pos := range f.sub.used() {
		if f.cell.Contains(pos) {
			return pos, true
		}
	}
	return grid.ChunkPos{}, false
}

// setRegion records the region that the feed was linked with, and reports whether its cell is new. A smaller cell than
// before means that the region was divided: what is used of the rest gets feeds of its own. A larger one means that
// regions were merged: the other feeds in it end, and this one takes over. Chunks, bodies and pending edits stay where
// they are: the next link of a feed begins with those in its cell. Chat that waits goes on with the feed of its chunk.
func (f *feed) setRegion(info nodemsg.Region) (moved bool, err error) {
	sub := f.sub
	sub.mu.Lock()
	defer sub.unlock()
	switch cell := info.Cell; {
	case f.ended:
		return false, errUnneeded
	case !sub.cell.Covers(cell) || !cell.Covers(f.cell) && !f.cell.Covers(cell):
		return false, fmt.Errorf("linked with region %v instead of %v", cell, f.cell)
	case cell != f.cell:
		moved = true
		f.setCell(cell)
	}
	f.leader = info.Leader
	return moved, nil
}

// setCell is setRegion's for a cell that is new.
func (f *feed) setCell(cell grid.Cell) {
	sub := f.sub
	delete(sub.mu.feeds, f.cell)
	events := f.out.message.Chat
	f.out.message.Chat = nil
	others := maps.Clone(sub.mu.feeds)
	for inner, other := range others {
		if cell.Covers(inner) {
			f.notified = f.notified || other.notified
			f.confirmation.join(&other.confirmation)
			other.end()
			events = append(events, other.out.message.Chat...)
		}
	}
	f.cell = cell
	sub.mu.feeds[cell] = f
	for pos := range sub.used() {
		sub.feed(pos)
	}
	for _, u := range events {
		sub.feed(u.Chunk).out.chat(u)
	}
	for _, other := range sub.mu.started {
		other.notified = f.notified // their players were, and are to be notified when the land is back
		other.confirmation.join(&f.confirmation)
	}
}

// end ends the feed. The lock is held.
func (f *feed) end() {
	f.ended = true
	f.unlink()
	delete(f.sub.mu.feeds, f.cell)
	if f.stop != nil {
		f.stop()
	}
}

// unlink drops what the next link begins with anyway. The lock is held.
func (f *feed) unlink() {
	f.stable = false
	f.endConfirming()
	f.out.reset(time.Now())
	for _, c := range f.sub.mu.chunks {
		if f.cell.Contains(c.at) {
			c.shown = false
		}
	}
	if f.answers != nil {
		f.answers.Stop()
	}
}

// dropUnused ends the feed if it has been unused for a while, and with the last feed closes the subscription.
func (f *feed) dropUnused() (ended bool) {
	sub := f.sub
	sub.m.mu.Lock()
	defer sub.m.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if f.ended {
		return true
	}
	if _, used := f.usedPlace(); used {
		f.unusedSince = time.Time{}
		return false
	}
	if f.unusedSince.IsZero() {
		f.unusedSince = time.Now()
	}
	if time.Since(f.unusedSince) < Linger {
		return false
	}
	f.end()
	if len(sub.mu.feeds) == 0 {
		sub.mu.closed = true
		delete(sub.m.mu.subs, sub.cell)
	}
	return true
}

// Receives reports whether what happens in a chunk is received: its land has sent it over the current link.
func (sub *Subscription) Receives(pos grid.ChunkPos) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	c := sub.mu.chunks[pos]
	return c != nil && c.shown
}

// LedElsewhere reports whether another node was found to lead the region of a chunk.
func (sub *Subscription) LedElsewhere(pos grid.ChunkPos) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	f := sub.feedAt(pos)
	return f != nil && f.leader != "" && f.leader != sub.m.Peer
}

// body is a player's body and its owner, the last subscriber to enter it: an older connection of the player that is
// still ending does not remove it.
type body struct {
	nodemsg.Body               // its Velocity matters only in messages to the region
	at           grid.ChunkPos // the newest chunk of the body that the subscription covers
	sub          *Subscription
	owner        Subscriber
	predictor    motion.Predictor
}

// predictionCrowd is the maximum number of players in a chunk for predictions to be sent. The region receives updates
// of a larger crowd in each tick anyway, and players in a crowd must be shown exactly.
const predictionCrowd = 16

// regionHas reports whether the region has exactly the newest pose, and does not extrapolate the player. The
// subscription's lock is held, as below.
func (b *body) regionHas() bool { return b.predictor.LastSent() == b.Pose && !b.predictor.Predicts() }

// predictable reports whether the region is sent predictions for the body.
func (b *body) predictable() bool {
	if !b.owner.Predictable() || b.sub.m.Overlay.Enabled() {
		return false
	}
	c := b.sub.mu.chunks[b.Pose.Chunk()]
	return c == nil || len(c.occupants) <= predictionCrowd
}

// sendRest reports to the region that the body rests where it is.
func (b *body) sendRest() {
	b.predictor.CommitRest(b.sub.m.Now())
	b.sendMove(false)
	b.sub.feedAt(b.at).wake.Set()
}

// sendMove puts the newest pose and velocity into the next message.
func (b *body) sendMove(straight bool) {
	sub := b.sub
	out := &sub.feedAt(b.at).out
	if !out.linked {
		return // the next link begins with it
	}
	m := nodemsg.BodyMove{Player: b.Player, Pose: b.Pose, Velocity: b.predictor.CommitMove(straight)}
	sub.mu.diverged = sub.mu.diverged || m.Velocity.Moving()
	if out.move(m) {
		sub.m.metrics.movesSent.Inc()
	}
}

// setPose sets the pose. It reports whether the body has gone from one region to another.
func (b *body) setPose(pose motion.Pose) (crossed bool) {
	b.Pose = pose
	at := pose.Chunk()
	if at == b.at || !b.sub.Covers(at) {
		return false
	}
	from := b.sub.feedAt(b.at)
	if crossed = from != b.sub.feed(at); crossed {
		b.Said = max(b.Said, from.out.said(b.Player)) // what waits there is not to be waited for here
		b.leave()
	}
	if b.at = at; crossed {
		b.enter()
	}
	return crossed
}

// enter puts the body into the next message to its region.
func (b *body) enter() {
	b.Velocity, b.predictor = motion.Velocity{}, motion.NewPredictor(b.Pose, b.sub.m.Now())
	f := b.sub.feed(b.at)
	f.out.enter(b.Body)
	f.wake.Set()
}

// leave removes the body from its region.
func (b *body) leave() {
	f := b.sub.feedAt(b.at)
	f.out.leave(b.Player)
	f.wake.Set()
}
