package gameserver

import (
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// voiceEntries bounds a player's clock: in a larger crowd it holds the players seen last, and the rest is found by chains
	// (docs/causality.md). 32 entries take 740 bytes, below wire.MaxStamp.
	voiceEntries = 32
	// voiceLinger is how long a player who is out of sight stays relevant.
	voiceLinger = 10 * time.Second
	// voiceHeard is how many events shown to a player are recorded until they send one; of more, the last ones count.
	voiceHeard = 64
)

// voice is a player's clock: their events are numbered, and carry what they had seen before. Events shown to the player are only
// recorded until they send one, since most players only read. Its session's reader owns it, except for what the lock guards.
type voice struct {
	self  vclock.ID
	owner *vclock.Owner
	seen  map[vclock.ID]time.Duration // when players of the clock were last in sight, by the gateway's clock

	mu struct {
		sync.Mutex
		heard []overheard // the newest last
	}
}

// overheard is an event that was shown to the player.
type overheard struct {
	stamp vclock.Stamp
	at    time.Duration
}

// recordSlack is how many events a player may have sent after their last record was made: a gateway that was killed saved them in
// the network up to publishEvery before.
const recordSlack = 1024

// doneBy returns a number above those of all earlier events of a player, from their record: counting starts there. It is the
// milliseconds since 1970, since no player sends so many events as to reach them, as with edits (docs/adr/0006); but if the
// previous gateway's clock was ahead of this one's, it is what that gateway has saved.
func (g *Gateway) doneBy(record wire.PlayerRecord) uint64 {
	now, counted := uint64(g.wall().UnixMilli()), record.Counted()
	if now > counted {
		return now
	}
	return counted + recordSlack
}

// newVoice returns a clock that counts on from done events.
func newVoice(id player.ID, done uint64) *voice {
	v := &voice{self: wire.AuthorOf(id), seen: make(map[vclock.ID]time.Duration)}
	v.owner = vclock.NewOwner(v.self, done)
	v.owner.Limit(voiceEntries)
	return v
}

// hear records an event that was shown to the player. Any goroutine.
func (v *voice) hear(stamp vclock.Stamp, now time.Duration) {
	if stamp.Author == "" || stamp.Author == v.self {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.mu.heard) == voiceHeard {
		v.mu.heard = slices.Delete(v.mu.heard, 0, 1)
	}
	v.mu.heard = append(v.mu.heard, overheard{stamp, now})
}

// speak returns the stamp of the player's next event. Sees reports whom they have in view.
func (v *voice) speak(now time.Duration, sees func(vclock.ID) bool) vclock.Stamp {
	v.mu.Lock()
	heard := v.mu.heard
	v.mu.heard = nil
	v.mu.Unlock()
	for _, h := range heard { // authors of events are in sight
		v.seen[h.stamp.Author] = h.at
	}
	asked := make(map[vclock.ID]bool)
	relevant := func(id vclock.ID) bool {
		if !asked[id] {
			if asked[id] = true; sees(id) {
				v.seen[id] = now
			}
		}
		last, known := v.seen[id]
		return known && now-last <= voiceLinger
	}
	for _, h := range heard {
		v.owner.Hear(h.stamp, relevant)
	}
	for id, last := range v.seen {
		if now-last > voiceLinger {
			delete(v.seen, id)
		}
	}
	return v.owner.Act()
}

// counts reserves a number for an event of the player. It reports false when the player has moved to another gateway, which might
// assign the same number.
func (s *session) counts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.parted {
		return false
	}
	s.mu.done = s.voice.owner.Done() + 1
	return true
}

// utter sends an event of the player to everybody who sees them, after all that was shown to them. It reports false if that is
// not possible now.
func (s *session) utter(text string, deed *wire.Deed) bool {
	if !s.counts() {
		return false
	}
	stamp, err := s.voice.speak(s.g.now(), s.sees).Append(nil)
	if err != nil {
		panic(err) // no Owner's clock is too large
	}
	return s.here.say(wire.Utterance{
		Player: s.body.Player, Name: s.body.Name, Chunk: world.ChunkOf(s.where()), Text: text, Wall: s.g.wall().UnixMilli(), Stamp: stamp,
		Deed: deed,
	})
}

// sees reports whether the player is in a chunk that the session has in view.
func (s *session) sees(id vclock.ID) bool {
	at, there := s.g.stage.stands(playerOf(id))
	return there && s.feeds[at] != nil
}

// stands returns the chunk in which a player's avatar is.
func (s *stage) stands(id player.ID) (at grid.ChunkPos, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.actors[id]
	if a == nil || a.plot == nil {
		return at, false
	}
	return a.plot.at, true
}
