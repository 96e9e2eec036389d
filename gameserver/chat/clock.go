package chat

import (
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// clockEntries bounds a player's clock: in a larger crowd it holds the players seen last, and the rest is found by
	// chains (vclock.History). 32 entries take 740 bytes, below wire.MaxStamp.
	clockEntries = 32
	// relevantFor is how long a player who is out of sight stays relevant.
	relevantFor = 10 * time.Second
	// maxSeenEvents is how many events shown to a player are recorded until they send one; of more, the last ones
	// count.
	maxSeenEvents = 64
)

// Clock is a player's clock: their events are numbered, and carry what they had seen before. Events shown to the player
// are only recorded until they send one, since most players only read. One goroutine owns it, except for what the lock
// guards.
type Clock struct {
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

// recordSlack is how many events a player may have sent after their last record was made: a gateway that was killed
// saved them in the network up to players.PublishEvery before.
const recordSlack = 1024

// CountFrom returns a number above those of all earlier events of a player, from their record and the node's wall
// clock: counting starts there. It is the milliseconds since 1970, since no player sends so many events as to reach
// them, as with edits (docs/adr/0006); but if the previous gateway's clock was ahead of this one's, it is what that
// gateway has saved.
func CountFrom(record nodemsg.PlayerRecord, now time.Time) uint64 {
	wall, counted := uint64(now.UnixMilli()), record.Counted()
	if wall > counted {
		return wall
	}
	return counted + recordSlack
}

// NewClock returns the clock of a player that counts on from done events.
func NewClock(id player.ID, done uint64) *Clock {
	clock := &Clock{self: nodemsg.ChatAuthor(id), lastInSight: make(map[vclock.ID]time.Duration)}
	clock.owner = vclock.NewOwner(clock.self, done)
	clock.owner.Limit(clockEntries)
	return clock
}

// NoteSeen records an event that was shown to the player. Any goroutine.
func (clock *Clock) NoteSeen(stamp vclock.Stamp, now time.Duration) {
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

// NextStamp returns the stamp of the player's next event. Sees reports whom they have in view.
func (clock *Clock) NextStamp(now time.Duration, sees func(vclock.ID) bool) vclock.Stamp {
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
		clock.owner.Merge(h.stamp, relevant)
	}
	for id, last := range clock.lastInSight {
		if now-last > relevantFor {
			delete(clock.lastInSight, id)
		}
	}
	return clock.owner.Act()
}

// Done returns the number of the player's last event.
func (clock *Clock) Done() uint64 { return clock.owner.Done() }
