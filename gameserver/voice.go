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
	// voiceEntries bounds a player's clock: in a larger crowd it holds those whom he heard last, and the rest is found by chains
	// (docs/causality.md). 32 entries take 740 bytes, below wire.MaxStamp.
	voiceEntries = 32
	// voiceLinger is how long a player stays relevant who is out of sight.
	voiceLinger = 10 * time.Second
	// voiceHeard is how many lines a player may have heard since he spoke last; of more, the last ones count.
	voiceHeard = 64
)

// voice is a player's clock: what he says and does is numbered, and carries what he had heard. Lines that are shown to him are only noted
// until he speaks, since most players listen. Its session's reader owns it, but for what the lock guards.
type voice struct {
	self  vclock.ID
	owner *vclock.Owner
	seen  map[vclock.ID]time.Duration // when players of the clock were last in sight, by the gateway's clock

	mu struct {
		sync.Mutex
		heard []overheard // the newest last
	}
}

// overheard is a line that was shown to the player.
type overheard struct {
	stamp vclock.Stamp
	at    time.Duration
}

// recordSlack is how many events a player may have done after his last record was made: a gateway that was killed saved
// him in the network up to publishEvery before.
const recordSlack = 1024

// doneBy is a number above those of all events that a player has done before, by what is remembered of him: he begins to count
// there. It is the milliseconds since 1970, since nobody does so much that he reaches them, as with edits (docs/adr/0006);
// but if his last gateway's clock was ahead of this one's, it is what that gateway has saved.
func (g *Gateway) doneBy(record wire.PlayerRecord) uint64 {
	now, counted := uint64(g.wall().UnixMilli()), record.Counted()
	if now > counted {
		return now
	}
	return counted + recordSlack
}

// newVoice begins to count after so many events.
func newVoice(id player.ID, done uint64) *voice {
	v := &voice{self: wire.AuthorOf(id), seen: make(map[vclock.ID]time.Duration)}
	v.owner = vclock.NewOwner(v.self, done)
	v.owner.Limit(voiceEntries)
	return v
}

// hear notes a line that was shown to the player. Any goroutine.
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

// speak gives what the player's next line carries. Sees tells whom he has in view.
func (v *voice) speak(now time.Duration, sees func(vclock.ID) bool) vclock.Stamp {
	v.mu.Lock()
	heard := v.mu.heard
	v.mu.heard = nil
	v.mu.Unlock()
	for _, h := range heard { // who is heard is in sight
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

// counts takes a number for an event that the player does now. It is no use any more when he is another gateway's: the number might
// be taken there, too. Then it reports false.
func (s *session) counts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.parted {
		return false
	}
	s.mu.done = s.voice.owner.Done() + 1
	return true
}

// utter tells everybody who sees the player what he says or does, after all that he has heard. It reports false if that cannot be
// told now.
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

// sees tells whether the player stands in a chunk that the session has in view.
func (s *session) sees(id vclock.ID) bool {
	at, there := s.g.stage.stands(playerOf(id))
	return there && s.feeds[at] != nil
}

// stands gives the chunk in which a player's avatar is.
func (s *stage) stands(id player.ID) (at grid.ChunkPos, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.actors[id]
	if a == nil || a.plot == nil {
		return at, false
	}
	return a.plot.at, true
}
