package chat

import (
	"fmt"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestClock(t *testing.T) {
	id := func(name string) vclock.ID { return nodemsg.ChatAuthor(player.GuestID(name)) }
	const start = 1_700_000_000_000
	ann, bob := NewClock(player.GuestID("ann"), start), NewClock(player.GuestID("bob"), start)
	everybody, nobody := func(vclock.ID) bool { return true }, func(vclock.ID) bool { return false }
	question := ann.NextStamp(0, everybody)
	if question.Own() != 1_700_000_000_001 {
		t.Errorf("the first line has number %d", question.Own())
	}
	if early := bob.NextStamp(0, everybody); early.Clock.Len() != 1 {
		t.Errorf("bob has seen no event, and their clock has %v", early)
	}
	bob.NoteSeen(question, time.Second)
	bob.NoteSeen(bob.owner.Act(), time.Second) // the player's own
	answer := bob.NextStamp(relevantFor+time.Second, nobody)
	if vclock.Compare(question, answer) != vclock.Before || answer.Clock.Len() != 2 {
		t.Errorf("the answer %v does not follow the question %v", answer, question)
	}
	cid := NewClock(player.GuestID("cid"), start)
	cid.NoteSeen(answer, 0)
	if far := cid.NextStamp(relevantFor+time.Second, nobody); far.Clock.Component(id("bob")) != 0 || len(cid.lastInSight) != 0 {
		t.Errorf("cid keeps bob, who has been out of sight for %v: %v", relevantFor+time.Second, far)
	}
	// A crowd: the clock stays within what fits a stamp, and the last players remain.
	var last vclock.Stamp
	for i := range 2 * maxSeenEvents {
		last = NewClock(player.GuestID(fmt.Sprint("p", i)), start).NextStamp(0, everybody)
		ann.NoteSeen(last, 0)
	}
	long := ann.NextStamp(0, everybody)
	data, err := long.Append(nil)
	if err != nil || len(data) > wire.MaxStamp || long.Clock.Len() != clockEntries || long.Clock.Component(last.Author) == 0 {
		t.Errorf("%d entries in %d bytes, error %v", long.Clock.Len(), len(data), err)
	}
}

func TestCountFrom(t *testing.T) {
	now := uint64(time.Now().UnixMilli())
	for name, c := range map[string]struct {
		record  nodemsg.PlayerRecord
		least   uint64
		aboveBy uint64
	}{
		"unknown":             {nodemsg.PlayerRecord{}, now, 10_000},
		"saved a minute ago":  {nodemsg.PlayerRecord{SavedAt: int64(now) - 60_000}, now, 10_000},
		"saved in the future": {nodemsg.PlayerRecord{SavedAt: int64(now) + 3_600_000}, now + 3_600_000 + 1, recordSlack},
		"counted beyond":      {nodemsg.PlayerRecord{SavedAt: 5, Done: now + 3_600_000}, now + 3_600_000 + 1, recordSlack},
	} {
		if got := CountFrom(c.record, time.Now()); got < c.least || got > c.least+c.aboveBy {
			t.Errorf("%s: begins after %d, want %d to %d", name, got, c.least, c.least+c.aboveBy)
		}
	}
}
