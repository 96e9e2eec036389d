package gameserver

import (
	"sync"

	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sharedIndex is the interest index with its lock: the mirror's Interest. The mirror applies regions' updates to it,
// and the frame loop reads the motion from it once a tick.
type sharedIndex struct {
	mu sync.Mutex
	ix *interest.Index
}

func newSharedIndex(budget int) *sharedIndex {
	return &sharedIndex{ix: interest.New(interest.Options{
		Budget: float64(budget) * region.TickEvery.Seconds(), RememberTicks: departedTicks,
	})}
}

func (s *sharedIndex) setBudget(budget int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.SetBudget(float64(budget) * region.TickEvery.Seconds())
}

// departedTicks is how long chat is waited for of a player who has gone out of sight: they may be on the way to another
// region, which is slower to send it. It is longer than events wait.
const departedTicks = 2 * uint64(chat.Wait/region.TickEvery)

func (s *sharedIndex) Apply(n *nodemsg.ChunkDelta, in interest.Occupants, change interest.Change) *sessionmsg.TickDelta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.Apply(n, in, change)
}

func (s *sharedIndex) Present(at grid.ChunkPos, bodies []nodemsg.Body) []nodemsg.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.Present(at, bodies)
}

func (s *sharedIndex) Entering(at grid.ChunkPos, in interest.Occupants) *sessionmsg.TickDelta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.Entering(at, in)
}

func (s *sharedIndex) ClearChunk(at grid.ChunkPos, in interest.Occupants) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.ClearChunk(at, in)
}

func (s *sharedIndex) find(id player.ID) (name string, pose motion.Pose, at grid.ChunkPos, inView bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.Find(id)
}

func (s *sharedIndex) takeLost() []player.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.TakeLost()
}

func (s *sharedIndex) remove(v *interest.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.Remove(v)
}

// awaitedAuthors returns those players of an event's clock who are in view here, each with the number of their last
// event when they came into sight.
func (s *sharedIndex) awaitedAuthors(event vclock.Stamp) map[vclock.ID]uint64 {
	seen := make(map[vclock.ID]uint64)
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range event.Clock.All() {
		if number, inView := s.ix.FirstAwaited(playerOf(e.ID)); inView {
			seen[e.ID] = number
		}
	}
	return seen
}

// playerOf returns the player of a clock's entry; the zero ID, which no player has, if it cannot be one.
func playerOf(id vclock.ID) (p player.ID) {
	if len(id) == len(p) {
		copy(p[:], id)
	}
	return p
}
