package mirror

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// newcomers are subscribers that begin to watch a chunk one after another.
type newcomers struct {
	t   *testing.T
	sub *Subscription
	f   *feed
	at  grid.ChunkPos
	all []*recorderSub
}

func newNewcomers(t *testing.T) *newcomers {
	sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
	return &newcomers{t: t, sub: sub, f: onlyFeed(sub), at: grid.ChunkPos{X: 1}}
}

// linkedNewcomers has one subscriber, a link that has brought the state of the chunk, and an answer to its question.
func linkedNewcomers(t *testing.T) *newcomers {
	n := newNewcomers(t)
	n.watch()
	n.f.resume(soundLink())
	n.arrives(n.brings())
	n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
	return n
}

func (n *newcomers) watch() {
	n.all = append(n.all, &recorderSub{})
	n.sub.watch(n.at, n.all[len(n.all)-1])
}

// asked returns the question that is sent to the region.
func (n *newcomers) asked() uint64 {
	n.t.Helper()
	question := n.f.takeOut().Confirm
	if question == 0 {
		n.t.Error("nothing is asked")
	}
	return question
}

func (n *newcomers) arrives(frame nodemsg.FromRegion) {
	n.t.Helper()
	if err := n.f.apply(frame); err != nil {
		n.t.Fatal(err)
	}
}

// brings is a frame with the state of the chunk.
func (n *newcomers) brings() nodemsg.FromRegion {
	return nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{{Chunk: n.at, State: &nodemsg.ChunkState{}}}}
}

// shown compares how often each was sent the chunk.
func (n *newcomers) shown(what string, want ...int) {
	n.t.Helper()
	synctest.Wait()
	n.sub.m.BuildQueued()
	var got []int
	for _, by := range n.all {
		got = append(got, by.wholes)
	}
	if !slices.Equal(got, want) {
		n.t.Errorf("%s: they were sent %v chunks, want %v", what, got, want)
	}
}

// warned compares of when the newest one was told that the land is; zero if they were told nothing.
func (n *newcomers) warned(what string, asOf time.Time) {
	n.t.Helper()
	notices := fmt.Sprint(n.all[len(n.all)-1].notices)
	if warned := strings.Contains(notices, "confirmed"); warned == asOf.IsZero() || warned && !strings.Contains(notices, asOf.UTC().Format("15:04:05")) {
		n.t.Errorf("%s: told %v, want %v", what, notices, asOf)
	}
}

// Whoever begins to watch a chunk is sent it once the region has answered a question of after that, also if the mirror
// has the chunk already. The mirror may be of a leader that was deposed.
func TestNewcomersAreShownWhatWasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers(t)
		n.watch()
		n.f.resume(soundLink())
		first := n.asked()
		n.arrives(n.brings())
		n.shown("the state without an answer", 0)
		n.arrives(nodemsg.FromRegion{Confirmed: first})
		n.shown("answered", 1)
		n.watch()
		second := n.asked()
		n.watch()
		n.asked()
		n.shown("the mirror has the chunk", 1, 0, 0)
		n.arrives(nodemsg.FromRegion{Confirmed: second})
		n.shown("the first question is answered", 1, 1, 0)
		n.f.pause()
		n.shown("the link has ended", 1, 1, 0)
		n.f.resume(soundLink())
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.shown("the new link has not brought the state", 1, 1, 0)
		n.arrives(n.brings())
		n.shown("now it has", 1, 1, 1)
		n.warned("confirmed", time.Time{})
		<-time.After(time.Minute)
		confirmed := time.Now().Add(-time.Minute)
		n.watch()
		n.asked()
		<-time.After(NoticeAfter - time.Millisecond)
		n.shown("not for long", 1, 1, 1, 0)
		<-time.After(time.Millisecond)
		n.shown("never answered", 1, 1, 1, 1)
		n.warned("never answered", confirmed)
		n.watch()
		n.shown("a question of after that", 1, 1, 1, 1, 0)
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked(), AsOf: time.Now().Add(-time.Hour).UnixMilli()})
		n.shown("nobody leads", 1, 1, 1, 1, 1)
		n.warned("nobody leads", time.Now().Add(-time.Hour))
		n.arrives(nodemsg.FromRegion{Confirmed: math.MaxInt64})
		n.watch()
		n.shown("an answer without a question", 1, 1, 1, 1, 1, 0)
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.shown("answered again", 1, 1, 1, 1, 1, 1)
		n.warned("answered again", time.Time{})
	})
}

// A link that ends confirms nothing: land is as old as the last answer of a majority.
func TestTheEndOfALinkConfirmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := linkedNewcomers(t)
		confirmed := time.Now()
		<-time.After(time.Minute)
		n.f.pause()
		<-time.After(time.Minute)
		n.f.notifyUnreached()
		n.watch()
		n.shown("after a while without a link", 1, 1)
		n.warned("after a while without a link", confirmed)
		n.watch()
		n.shown("who comes later", 1, 1, 1)
		n.warned("who comes later", confirmed)
	})
}

// On a new link land is confirmed, also before players are notified that it can be reached again.
func TestANewLinkIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := linkedNewcomers(t)
		n.shown("linked", 1)
		n.f.pause()
		<-time.After(time.Minute)
		n.f.notifyUnreached()
		n.f.resume(soundLink())
		n.arrives(n.brings())
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.watch()
		n.shown("asked", 1, 0)
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.shown("answered", 1, 1)
		n.warned("answered", time.Time{})
	})
}

// A chunk whose state arrives when an answer was waited for long enough is shown then.
func TestLateStateIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers(t)
		n.watch()
		n.f.resume(soundLink())
		n.asked()
		begun := time.Now()
		<-time.After(time.Minute)
		n.shown("no state", 0)
		n.arrives(n.brings())
		<-time.After(NoticeAfter)
		n.shown("its state is here", 1)
		n.warned("its state is here", begun)
	})
}

// A region that answers an earlier question again and again does not postpone that the land is shown as it is here.
func TestRepeatedAnswersPostponeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers(t)
		n.watch()
		n.f.resume(soundLink())
		n.arrives(n.brings())
		first := n.asked()
		n.arrives(nodemsg.FromRegion{Confirmed: first})
		n.watch()
		n.asked()
		for range NoticeAfter / time.Second {
			n.arrives(nodemsg.FromRegion{Confirmed: first})
			n.shown("the first question is answered again", 1, 0)
			<-time.After(time.Second)
		}
		n.shown("the second one is not", 1, 1)
		n.warned("the second one is not", time.Now().Add(-time.Second))
	})
}

// Who was warned, and watches nothing any more, takes no memory, also if the land was divided since.
func TestWarnedSubscribersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers(t)
		lower, _ := n.sub.cell.Children()
		n.watch()
		n.f.resume(soundLink())
		n.arrives(n.brings())
		<-time.After(NoticeAfter)
		n.shown("no answer", 1)
		other := grid.ChunkPos{X: 2}
		n.sub.watch(other, n.all[0])
		warned := func(what string, want int) {
			t.Helper()
			if got := len(n.f.confirmation.warned); got != want {
				t.Errorf("%s: %d are kept, want %d", what, got, want)
			}
		}
		n.sub.Unwatch(n.at, n.all[0])
		warned("another chunk is watched", 1)
		n.f.pause()
		if _, err := n.f.setRegion(nodemsg.Region{Cell: lower}); err != nil {
			t.Fatal(err)
		}
		n.sub.Unwatch(other, n.all[0])
		warned("nothing is watched", 0)
	})
}

// A feed that takes over land of another one knows when that was confirmed, and its questions are not those of the
// other.
func TestQuestionsAfterADivision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers(t)
		lower, upper := n.sub.cell.Children()
		n.watch()
		n.f.resume(soundLink())
		n.arrives(n.brings())
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.shown("answered", 1)
		confirmed := time.Now()
		<-time.After(time.Second)
		for range 3 {
			n.watch()
			n.asked()
		}
		n.f.pause()
		if _, err := n.f.setRegion(nodemsg.Region{Cell: upper}); err != nil {
			t.Fatal(err)
		}
		n.f = n.sub.feedAt(n.at)
		n.shown("divided", 1, 0, 0, 0)
		<-time.After(NoticeAfter)
		n.shown("never linked", 1, 1, 1, 1)
		n.warned("never linked", confirmed)
		if _, err := n.f.setRegion(nodemsg.Region{Cell: lower}); err != nil {
			t.Fatal(err)
		}
		n.watch()
		n.f.resume(soundLink())
		n.arrives(n.brings())
		n.shown("linked before it was shown", 1, 1, 1, 1, 0)
		n.arrives(nodemsg.FromRegion{Confirmed: n.asked()})
		n.shown("answered again", 1, 1, 1, 1, 1)
	})
}

// Whatever happens to links, questions and answers, whoever begins to watch is allowed the chunk after the answer to a
// question of after that, or warned, and soon; and what they are told is not later than the last answer of a majority.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	type newcomer struct {
		question uint64
		began    time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		c := newConfirmation(now)
		var next uint64
		var all []newcomer
		sent := make(map[uint64]time.Time) // over this link
		answered := now                    // when the region has last answered a newer question, or a link began or ended
		var newest uint64                  // question that the region has answered over this link
		var confirmed, upTo time.Time      // when a majority has confirmed the land; the newest question that it has answered over this link
		link := func() { clear(sent); upTo, answered, newest = time.Time{}, now, 0 }
		ask := func() newcomer {
			next++
			question, send := c.ask(now, next)
			if send {
				sent[question] = now
			}
			return newcomer{question, now}
		}
		check := func() {
			for _, n := range all {
				switch {
				case !c.allows(n.question, true):
					if now.Sub(n.began) >= NoticeAfter && now.Sub(answered) >= NoticeAfter {
						t.Fatal("not shown for too long")
					}
				case c.asOf.IsZero():
					if n.began.After(upTo) {
						t.Fatal("shown by the answer to an earlier question")
					}
				case !confirmed.IsZero() && c.asOf.After(confirmed), c.asOf.After(now):
					t.Fatal("told a time that is too late")
				}
			}
			all = slices.DeleteFunc(all, func(n newcomer) bool { return c.allows(n.question, true) }) // they are shown the land
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				now = now.Add(time.Millisecond)
				c.expire(now, next)
				check()
			},
			"watch": func(*rapid.T) { all = append(all, ask()) },
			"link": func(t *rapid.T) {
				c.end(now)
				next++
				c.begin(now, next)
				link()
				sent[next] = now
			},
			"break": func(*rapid.T) { c.end(now); link() },
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 6000).Draw(t, "ms")) * time.Millisecond)
			},
			"answer": func(t *rapid.T) {
				if len(sent) == 0 {
					t.Skip()
				}
				question := rapid.SampledFrom(slices.Sorted(maps.Keys(sent))).Draw(t, "question")
				yes := rapid.Bool().Draw(t, "confirmed")
				switch {
				case question < newest: // it was overtaken: nothing changes
					asOf := time.Time{}
					if !yes {
						asOf = now.Add(-time.Hour)
					}
					c.answer(now, question, asOf)
					return
				case question > newest:
					newest, answered = question, now
				}
				if yes {
					confirmed, upTo = now, sent[question]
					c.answer(now, question, time.Time{})
				} else {
					c.answer(now, question, now.Add(-time.Hour))
					confirmed = time.Time{} // the region knows better
				}
			},
		})
	})
}

// An edit that is not answered ends the link, whatever else arrives, once the region is led elsewhere, and after
// LastAnswerTime at any rate.
func TestUnansweredEditEndsTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub := newSubscription(newTestMirror(), grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel))
		f, ann := onlyFeed(sub), player.GuestID("ann")
		begin := time.Now()
		var ended time.Duration
		elected := time.Hour // when another leader is, after the link began
		link := func() {
			f.pause()
			began := time.Now()
			begin, ended = began, 0
			f.resume(&liveLink{
				end: func() { ended = time.Since(began) },
				ledElsewhere: func() bool {
					<-time.After(100 * time.Millisecond)
					return time.Since(began) >= elected
				},
			})
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
		if ended != 0 {
			t.Fatalf("a link without edits ended after %v", ended)
		}
		link()
		sub.Edit(nodemsg.Intent{Player: ann, Seq: 1, Pos: grid.Pos{Y: 1}, Block: chunk.Brick}, &recorderSub{})
		for _, c := range []struct{ elected, least, most time.Duration }{
			{0, AnswerTime, AnswerTime + askPause},
			{2 * time.Second, 2 * time.Second, 2*time.Second + 2*askPause},
			{5 * time.Second, 5 * time.Second, 5*time.Second + 2*askPause},
			{time.Hour, LastAnswerTime, LastAnswerTime + 2*askPause},
		} {
			elected = c.elected
			link()
			if arrivals(15 * time.Second); ended < c.least || ended > c.most {
				t.Errorf("led elsewhere after %v: the link ended after %v", c.elected, ended)
			}
		}
		link()
		arrivals(LastAnswerTime / 2)
		if err := f.apply(nodemsg.FromRegion{Results: []nodemsg.EditResult{{Player: ann, Seq: 1}}}); err != nil {
			t.Fatal(err)
		}
		elected = 0
		if arrivals(15 * time.Second); ended != 0 {
			t.Errorf("the link ended after %v, though the edit was answered", ended)
		}
		link()
		sub.Edit(nodemsg.Intent{Player: ann, Seq: 2, Pos: grid.Pos{Y: 1}, Block: chunk.Brick}, &recorderSub{})
		if arrivals(15 * time.Second); ended < AnswerTime || ended > AnswerTime+askPause {
			t.Errorf("the next one ended the link after %v", ended)
		}
	})
}

// A gateway names the leader that it cannot reach, if others can, for as long as players stand on its land and are told
// that it is away.
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
	f.resume(soundLink())
	named("linked", "")
	f.pause()
	f.noteCutOff(cut)
	named("away again", "L")
	delete(sub.mu.bodies, ann)
	named("without players", "")
}

// soundLink returns a link with the leader of the region.
func soundLink() *liveLink {
	return &liveLink{end: func() {}, ledElsewhere: func() bool { return false }}
}
