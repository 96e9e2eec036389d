package mirror

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A feed that finds a smaller region keeps what lies in it; the rest gets a feed that goes on with the chat and the
// notice of the first. One that finds a larger region takes over; what the other does afterwards has no effect.
func TestFeedsFollowTheCells(t *testing.T) {
	founding := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	lower, upper := founding.Children()
	low, high := grid.ChunkPos{X: 1}, grid.ChunkPos{X: 15}
	sub := newSubscription(newTestMirror(), founding)
	lows, highs := &recorderSub{}, &recorderSub{}
	sub.watch(low, lows)
	sub.watch(high, highs)
	for i, at := range []grid.ChunkPos{low, high} {
		sub.Edit(nodemsg.Intent{Player: player.GuestID("ann"), Seq: uint64(i), Pos: at.Origin(), Block: chunk.Brick}, lows)
		sub.SendChat(nodemsg.ChatEvent{Chunk: at})
	}
	link := func(f *feed, cell grid.Cell) nodemsg.ToRegion {
		t.Helper()
		if _, err := f.setRegion(nodemsg.Region{Cell: cell, Leader: "peer"}); err != nil {
			t.Fatal(err)
		}
		f.resume(soundLink())
		for pos, c := range sub.mu.chunks {
			c.shown = c.shown || cell.Contains(pos)
		}
		return f.takeOut()
	}
	first := onlyFeed(sub)
	first.notifyUnreached()
	if out := link(first, upper); !slices.Equal(out.Watch, []grid.ChunkPos{high}) || len(out.Edits) != 1 || len(out.Chat) != 1 || out.Chat[0].Chunk != high {
		t.Errorf("the first feed sends %+v", out)
	}
	first.notifyReached()
	if len(lows.notices) != 1 || !reflect.DeepEqual(highs.notices, []sessionmsg.Notice{sessionmsg.LandAway, sessionmsg.LandBack}) {
		t.Errorf("notices %v in the lower half and %v in the upper", lows.notices, highs.notices)
	}
	second := sub.feedAt(low)
	if out := link(second, lower); !slices.Equal(out.Watch, []grid.ChunkPos{low}) || len(out.Edits) != 1 || len(out.Chat) != 1 || out.Chat[0].Chunk != low {
		t.Errorf("the second feed sends %+v", out)
	}
	second.notifyReached()
	if !reflect.DeepEqual(lows.notices, []sessionmsg.Notice{sessionmsg.LandAway, sessionmsg.LandBack}) || len(highs.notices) != 2 {
		t.Errorf("notices %v in the lower half and %v in the upper", lows.notices, highs.notices)
	}

	if out := link(second, founding); len(out.Watch) != 2 || len(out.Edits) != 2 {
		t.Errorf("after the merge the second feed sends %+v", out)
	}
	first.pause()
	if sub.feedAt(high) != second || !sub.mu.chunks[high].shown {
		t.Error("the feed that has ended has hidden a chunk")
	}
	answer := nodemsg.FromRegion{Results: []nodemsg.EditResult{{Player: player.GuestID("ann"), Seq: 1}}}
	if err := first.apply(answer); err == nil || len(lows.results) != 0 {
		t.Error("the feed that has ended has applied an update")
	}
	if out := first.takeOut(); !out.Empty() {
		t.Errorf("the feed that has ended sends %+v", out)
	}
	if _, err := first.setRegion(nodemsg.Region{Cell: upper}); err == nil {
		t.Error("the feed that has ended has taken land")
	}
	elsewhere := grid.CellAt(grid.ChunkPos{X: 16}, grid.FoundingLabel)
	for _, cell := range []grid.Cell{elsewhere, founding.Parent()} {
		if _, err := second.setRegion(nodemsg.Region{Cell: cell}); err == nil {
			t.Errorf("a link with %v is accepted", cell)
		}
	}
}

// A region answers only edits of its own land.
func TestResultOfAnotherRegion(t *testing.T) {
	founding := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	lower, _ := founding.Children()
	sub, whom := newSubscription(newTestMirror(), founding), &recorderSub{}
	high := grid.ChunkPos{X: 15}
	sub.watch(high, whom)
	f := onlyFeed(sub)
	if _, err := f.setRegion(nodemsg.Region{Cell: lower}); err != nil {
		t.Fatal(err)
	}
	sub.Edit(nodemsg.Intent{Player: player.GuestID("ann"), Seq: 1, Pos: high.Origin(), Block: chunk.Brick}, whom)
	answer := nodemsg.FromRegion{Results: []nodemsg.EditResult{{Player: player.GuestID("ann"), Seq: 1}}}
	if err := f.apply(answer); err != nil || len(whom.results) != 0 {
		t.Errorf("results %+v, error %v", whom.results, err)
	}
	if err := sub.feedAt(high).apply(answer); err != nil || len(whom.results) != 1 {
		t.Errorf("results %+v, error %v", whom.results, err)
	}
}

// A player who crosses into another region while their chat still waits for the old one enters with it counted: nobody
// waits for it there.
func TestCrossingCountsWaitingChat(t *testing.T) {
	founding := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	lower, upper := founding.Children()
	sub, whom, ann := newSubscription(newTestMirror(), founding), &recorderSub{}, player.GuestID("ann")
	low, high := motion.Pose{X: 40}, motion.Pose{X: 300}
	sub.enter(nodemsg.Body{Player: ann, Pose: low}, whom)
	sub.watch(low.Chunk(), whom)
	stamp, err := vclock.NewOwner(nodemsg.ChatAuthor(ann), 6).Act().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	old := onlyFeed(sub)
	if _, err := old.setRegion(nodemsg.Region{Cell: lower}); err != nil {
		t.Fatal(err)
	}
	old.resume(soundLink())
	old.takeOut()
	sub.SendChat(nodemsg.ChatEvent{Player: ann, Chunk: low.Chunk(), Stamp: stamp}) // waits until the chunk is shown
	sub.Move(ann, high, whom, false)
	if out := old.takeOut(); !slices.Equal(out.Leave, []player.ID{ann}) || len(out.Chat) != 0 {
		t.Errorf("the old region is sent %+v", out)
	}
	next := sub.feedAt(high.Chunk())
	if _, err := next.setRegion(nodemsg.Region{Cell: upper}); err != nil {
		t.Fatal(err)
	}
	next.resume(soundLink())
	if out := next.takeOut(); len(out.Enter) != 1 || out.Enter[0].Said != 7 || out.Enter[0].Pose != high {
		t.Errorf("the new region is sent %+v", out)
	}
}

// Chat that was sent over a link which has broken is sent again over the next one, unless the region has sent it back,
// or has had the time to: a region that was divided or merged ignores what is still on its way to it.
func TestChatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		founding := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
		whom, ann, at := &recorderSub{}, player.GuestID("ann"), grid.ChunkPos{X: 1}
		sub := newSubscription(newTestMirror(), founding)
		sub.watch(at, whom)
		f := onlyFeed(sub)
		link := func() (texts []string) {
			t.Helper()
			if _, err := f.setRegion(nodemsg.Region{Cell: founding}); err != nil {
				t.Fatal(err)
			}
			f.resume(soundLink())
			sub.mu.chunks[at].shown = true
			for _, u := range f.takeOut().Chat {
				texts = append(texts, u.Text)
			}
			return texts
		}
		link()
		author := vclock.NewOwner(nodemsg.ChatAuthor(ann), 6)
		var said []nodemsg.ChatEvent
		for _, text := range []string{"one", "two"} {
			stamp, err := author.Act().Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, nodemsg.ChatEvent{Player: ann, Chunk: at, Text: text, Stamp: stamp, Wall: time.Now().UnixMilli()})
			sub.SendChat(said[len(said)-1])
		}
		sub.SendChat(nodemsg.ChatEvent{Player: ann, Chunk: at, Text: "of a player without a clock"})
		if out := f.takeOut(); len(out.Chat) != 3 {
			t.Fatalf("%+v is sent", out.Chat)
		}
		frame := nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Chunk: at, Chat: said[:1]}}}
		if err := f.apply(frame); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			f.pause()
			if again := link(); !slices.Equal(again, []string{"two"}) {
				t.Errorf("%q is sent again", again)
			}
		}
		time.Sleep(chatReturns)
		f.pause()
		if again := link(); len(again) != 0 {
			t.Errorf("%q is sent again, too late", again)
		}
	})
}
