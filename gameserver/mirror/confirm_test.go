package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Whoever begins to watch a chunk is sent it once the region has answered a question of after that, also if the mirror has the chunk
// already. The mirror may be of a leader that was deposed.
func TestNewcomersAreShownWhatWasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
		at, f := grid.ChunkPos{X: 1}, onlyFeed(sub)
		var all []*recorderSub
		watch := func() {
			all = append(all, &recorderSub{})
			sub.watch(at, all[len(all)-1])
		}
		arrives := func(frame nodemsg.FromRegion) {
			t.Helper()
			if err := f.apply(frame); err != nil {
				t.Fatal(err)
			}
			sub.m.BuildQueued()
		}
		shown := func(what string, want ...int) {
			t.Helper()
			sub.m.BuildQueued()
			var got []int
			for _, n := range all {
				got = append(got, n.wholes)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: they were sent %v chunks, want %v", what, got, want)
			}
		}
		asks := func(want uint64) {
			t.Helper()
			if got := f.takeOut().Confirm; got != want {
				t.Fatalf("question %d, want %d", got, want)
			}
		}
		state := []nodemsg.ChunkDelta{{Chunk: at, State: &nodemsg.ChunkState{}}}
		watch()
		f.resume(func() {}, true)
		asks(1)
		arrives(nodemsg.FromRegion{Chunks: state})
		shown("the state without an answer", 0)
		arrives(nodemsg.FromRegion{Confirmed: 1})
		shown("answered", 1)
		watch()
		asks(2)
		watch()
		asks(3)
		shown("the mirror has the chunk", 1, 0, 0)
		arrives(nodemsg.FromRegion{Confirmed: 2})
		shown("the first question is answered", 1, 1, 0)
		f.pause()
		shown("the link has ended", 1, 1, 0)
		f.resume(func() {}, true)
		asks(1)
		arrives(nodemsg.FromRegion{Confirmed: 1})
		shown("the new link has not brought the state", 1, 1, 0)
		arrives(nodemsg.FromRegion{Chunks: state})
		shown("now it has", 1, 1, 1)
		watch()
		asks(2)
		<-time.After(NoticeAfter - time.Millisecond)
		synctest.Wait()
		shown("not for long", 1, 1, 1, 0)
		<-time.After(time.Millisecond)
		synctest.Wait()
		shown("never answered", 1, 1, 1, 1)
		watch()
		asks(3)
		arrives(nodemsg.FromRegion{Confirmed: 3, AsOf: time.Now().Add(-time.Minute).UnixMilli()})
		shown("nobody leads", 1, 1, 1, 1, 1)
		for i, n := range all {
			if told := len(n.notices) == 1 && strings.HasPrefix(n.notices[0], landUnconfirmed); told != (i >= 3) || len(n.notices) > 1 {
				t.Errorf("newcomer %d was told %q", i, n.notices)
			}
		}
		if late := all[4].notices; len(late) == 1 && !strings.Contains(late[0], time.Now().Add(-time.Minute).UTC().Format("15:04:05")) {
			t.Errorf("told the wrong time: %q", late)
		}
	})
}

// An edit that is not answered ends the link, whatever else arrives, and at longer and longer intervals until one is answered.
func TestUnansweredEditEndsTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
		f, ann := onlyFeed(sub), player.GuestID("ann")
		begin := time.Now()
		var broken time.Duration
		link := func() {
			f.pause()
			begin, broken = time.Now(), 0
			f.resume(func() { broken = time.Since(begin) }, false)
		}
		link()
		arrivals := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); {
				<-time.After(50 * time.Millisecond)
				if err := f.apply(nodemsg.FromRegion{Tick: uint64(time.Since(begin))}); err != nil {
					t.Fatal(err)
				}
			}
		}
		arrivals(time.Minute)
		if broken != 0 {
			t.Fatalf("a link without edits ended after %v", broken)
		}
		link()
		sub.Edit(nodemsg.Intent{Player: ann, Seq: 1, Pos: grid.Pos{Y: 1}, Block: chunk.Brick}, &recorderSub{})
		for _, want := range []time.Duration{AnswerTime, 2 * AnswerTime, 4 * AnswerTime, 8 * AnswerTime, LastAnswerTime} {
			if arrivals(15 * time.Second); broken != want {
				t.Errorf("the link ended after %v, want %v", broken, want)
			}
			link()
		}
		if err := f.apply(nodemsg.FromRegion{Results: []nodemsg.EditResult{{Player: ann, Seq: 1}}}); err != nil {
			t.Fatal(err)
		}
		if arrivals(15 * time.Second); broken != 0 {
			t.Errorf("the link ended after %v, though the edit was answered", broken)
		}
		link()
		sub.Edit(nodemsg.Intent{Player: ann, Seq: 2, Pos: grid.Pos{Y: 1}, Block: chunk.Brick}, &recorderSub{})
		if arrivals(15 * time.Second); broken != AnswerTime {
			t.Errorf("the next one ended the link after %v", broken)
		}
	})
}

// A gateway names the leader that it cannot reach, if others can, for as long as players stand on its land and are told that it is away.
func TestCutOffIsNamed(t *testing.T) {
	m := newTestMirror()
	at := grid.ChunkPos{X: 1}
	sub, ann := m.subscription(at), player.GuestID("ann")
	f := onlyFeed(sub)
	sub.mu.Lock()
	sub.mu.bodies[ann] = &body{at: at, sub: sub, owner: &recorderSub{}}
	sub.mu.Unlock()
	named := func(what, want string) {
		t.Helper()
		if got := m.CutOff(); got != want {
			t.Errorf("%s: cut off from %q, want %q", what, got, want)
		}
	}
	cut := fmt.Errorf("follow: %w", region.CutOffError{Leader: "L"})
	f.noteCutOff(cut)
	named("at once", "")
	f.notifyUnreached()
	named("for some time", "L")
	f.noteCutOff(errors.New("nobody leads"))
	named("nobody names a leader", "")
	f.noteCutOff(cut)
	f.resume(func() {}, true)
	named("linked", "")
	f.pause()
	f.noteCutOff(cut)
	named("away again", "L")
	delete(sub.mu.bodies, ann)
	named("without players", "")
}
