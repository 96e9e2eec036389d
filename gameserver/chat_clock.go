package gameserver

import (
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// chatClockEntries bounds a player's clock: in a larger crowd it holds the players seen last, and the rest is found by chains
	// (docs/causality.md). 32 entries take 740 bytes, below wire.MaxStamp.
	chatClockEntries = 32
	// relevantFor is how long a player who is out of sight stays relevant.
	relevantFor = 10 * time.Second
	// maxSeenEvents is how many events shown to a player are recorded until they send one; of more, the last ones count.
	maxSeenEvents = 64
)

// chatClock is a player's clock: their events are numbered, and carry what they had seen before. Events shown to the player are
// only recorded until they send one, since most players only read. Its session's reader owns it, except for what the lock guards.
type chatClock struct {
	self        vclock.ID
	owner       *vclock.Owner
	lastInSight map[vclock.ID]time.Duration // when players of the clock were last in sight, by the gateway's clock

	mu struct {
		sync.Mutex
		seenEvents []seenEvent // the newest last
	}
}

// seenEvent is an event that was shown to the player.
type seenEvent struct {
	stamp   vclock.Stamp
	shownAt time.Duration
}

// recordSlack is how many events a player may have sent after their last record was made: a gateway that was killed saved them in
// the network up to publishEvery before.
const recordSlack = 1024

// eventsBefore returns a number above those of all earlier events of a player, from their record: counting starts there. It is
// the milliseconds since 1970, since no player sends so many events as to reach them, as with edits (docs/adr/0006); but if the
// previous gateway's clock was ahead of this one's, it is what that gateway has saved.
func (g *Gateway) eventsBefore(record nodemsg.PlayerRecord) uint64 {
	now, counted := uint64(g.wall().UnixMilli()), record.Counted()
	if now > counted {
		return now
	}
	return counted + recordSlack
}

// newChatClock returns a clock that counts on from done events.
func newChatClock(id player.ID, done uint64) *chatClock {
	clock := &chatClock{self: nodemsg.ChatAuthor(id), lastInSight: make(map[vclock.ID]time.Duration)}
	clock.owner = vclock.NewOwner(clock.self, done)
	clock.owner.Limit(chatClockEntries)
	return clock
}

// noteSeen records an event that was shown to the player. Any goroutine.
func (clock *chatClock) noteSeen(stamp vclock.Stamp, now time.Duration) {
	if stamp.Author == "" || stamp.Author == clock.self {
		return
	}
	clock.mu.Lock()
	defer clock.mu.Unlock()
	if len(clock.mu.seenEvents) == maxSeenEvents {
		clock.mu.seenEvents = slices.Delete(clock.mu.seenEvents, 0, 1)
	}
	clock.mu.seenEvents = append(clock.mu.seenEvents, seenEvent{stamp, now})
}

// nextStamp returns the stamp of the player's next event. Sees reports whom they have in view.
func (clock *chatClock) nextStamp(now time.Duration, sees func(vclock.ID) bool) vclock.Stamp {
	clock.mu.Lock()
	events := clock.mu.seenEvents
	clock.mu.seenEvents = nil
	clock.mu.Unlock()
	for _, h := range events { // authors of events are in sight
		clock.lastInSight[h.stamp.Author] = h.shownAt
	}
	asked := make(map[vclock.ID]bool)
	relevant := func(id vclock.ID) bool {
		if !asked[id] {
			if asked[id] = true; sees(id) {
				clock.lastInSight[id] = now
			}
		}
		last, known := clock.lastInSight[id]
		return known && now-last <= relevantFor
	}
	for _, h := range events {
		clock.owner.Hear(h.stamp, relevant)
	}
	for id, last := range clock.lastInSight {
		if now-last > relevantFor {
			delete(clock.lastInSight, id)
		}
	}
	return clock.owner.Act()
}

// reserveNumber reserves a number for an event of the player. It reports false when the player has moved to another gateway,
// which might assign the same number.
func (s *session) reserveNumber() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.detached {
		return false
	}
	s.mu.done = s.clock.owner.Done() + 1
	return true
}

// sendEvent sends an event of the player to everybody who sees them, after all that was shown to them. It reports false if that
// is not possible now.
func (s *session) sendEvent(text string, interaction *nodemsg.Interaction) bool {
	if !s.reserveNumber() {
		return false
	}
	stamp, err := s.clock.nextStamp(s.g.now(), s.hasInView).Append(nil)
	if err != nil {
		panic(err) // no Owner's clock is too large
	}
	return s.bodySub.sendChat(nodemsg.ChatEvent{
		Player: s.body.Player, Name: s.body.Name, Chunk: world.ChunkOf(s.currentPose()), Text: text, Wall: s.g.wall().UnixMilli(), Stamp: stamp,
		Interaction: interaction,
	})
}

// hasInView reports whether the player is in a chunk that the session has in view.
func (s *session) hasInView(id vclock.ID) bool {
	at, there := s.g.interest.chunkOf(playerOf(id))
	return there && s.subs[at] != nil
}

// chunkOf returns the chunk in which a player's avatar is.
func (ix *interestIndex) chunkOf(id player.ID) (at grid.ChunkPos, there bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	a := ix.mu.actors[id]
	if a == nil || a.bucket == nil {
		return at, false
	}
	return a.bucket.at, true
}
