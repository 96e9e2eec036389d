package actor

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

// This file keeps what a region knows of a gateway: which chunks it watches, and what waits to be sent to it.

const (
	// linkBacklog is how many frames (ticks) a gateway may fall behind before its link is cut. It then follows the
	// region again, starting from whole chunks.
	linkBacklog = 200
	// linkCredit is how many messages of one gateway may wait for the region's next tick. Further sends block, so that
	// a late region slows its gateways down instead of accumulating their messages.
	linkCredit = 16
)

// contents are a region's land and the players on it.
type contents struct {
	land  *world.Land
	crowd *crowd.Crowd
}

// subscriber is a gateway that follows a region, which is the other end of its Subscription.
type subscriber struct {
	peer          string // its node
	reading       bool   // it accepts a read-only subscription where the disk refuses writes and no leader is known
	number        uint64 // identifies it to the crowd
	out           *Mailbox[nodemsg.FromRegion]
	pendingSince  time.Time // it is pending since then; zero if it is not
	readOnlyUntil time.Time // it is subscribed read-only, and until then
	watch         map[grid.ChunkPos]struct{}
	unsent        []grid.ChunkPos            // watched, and still to be sent as a whole, in order
	shown         map[grid.ChunkPos]struct{} // sent as a whole in this tick
	results       []nodemsg.EditResult
	asked         uint64 // the newest question whether the land is the newest: nodemsg.ToRegion.Confirm
	asking        bool   // the region asks the other members because of it
	confirmed     uint64 // the questions up to this one are answered behind all changes; 0 if none is
	asOf          int64  // with confirmed: see nodemsg.FromRegion
}

// newSubscriber returns a subscriber, the gateway of a node, to be attached to a hub.
func newSubscriber(peer string) *subscriber {
	return &subscriber{
		peer:  peer,
		out:   NewMailbox[nodemsg.FromRegion](linkBacklog),
		watch: make(map[grid.ChunkPos]struct{}),
		shown: make(map[grid.ChunkPos]struct{}),
	}
}

// owner identifies the subscriber to the crowd.
func (s *subscriber) owner() crowd.Owner { return crowd.Owner{Link: s.number, Peer: s.peer} }

// pending reports whether the subscriber waits until the leader is known, or has confirmed that it leads.
func (s *subscriber) pending() bool { return !s.pendingSince.IsZero() }

// readOnly reports whether the subscription is read-only because nobody leads the region.
func (s *subscriber) readOnly() bool { return !s.readOnlyUntil.IsZero() }

// Ask records a question whether the land is the newest. It reports whether the region is to ask the other members: not
// if it does already.
func (s *subscriber) Ask(question uint64) (begin bool) {
	s.asked = max(s.asked, question)
	begin, s.asking = !s.asking, true
	return begin
}

// answer has the questions up to this one answered, behind all changes so far. A time that is not zero is since when no
// majority answers. It reports whether there is a later question, for which the region is to ask again.
func (s *subscriber) answer(question uint64, asOf time.Time) (again bool) {
	if s.confirmed, s.asOf = question, 0; !asOf.IsZero() {
		s.asOf = asOf.UnixMilli()
	}
	s.asking = s.asked > question
	return s.asking
}

// addResult has the result of an edit sent to the subscriber.
func (s *subscriber) addResult(r nodemsg.EditResult) { s.results = append(s.results, r) }

// nextResults removes and returns as many results as fit into one frame.
func (s *subscriber) nextResults() []nodemsg.EditResult {
	n := min(len(s.results), wire.MaxBodies)
	taken := s.results[:n:n]
	s.results = s.results[n:]
	if len(s.results) == 0 {
		s.results = nil
	}
	return taken
}

// skipsChanges reports whether the subscriber needs none of this tick's changes of the chunk, because the whole chunk
// has just been sent or will be.
func (s *subscriber) skipsChanges(pos grid.ChunkPos) bool {
	_, shown := s.shown[pos]
	return shown || slices.Contains(s.unsent, pos)
}
