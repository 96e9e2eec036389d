package directory

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A silent node is asked repeatedly, and does not count as alive for long.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Second})
		if !d.due("A", d.Every) || d.due("A", d.Every) {
			t.Error("an unknown node must be asked once")
		}
		d.note("A", time.Now(), member("A"), true)
		<-time.After(2*d.Every + RoundEvery)
		if _, lives := d.Alive("A"); !lives {
			t.Error("it has answered lately, and does not count as living")
		}
		if !d.due("A", d.Every) {
			t.Error("it is not asked again")
		}
		<-time.After(time.Millisecond)
		if _, lives := d.Alive("A"); lives {
			t.Error("it counts as living for ever")
		}
	})
}

// A node that sends questions is alive and is not asked, as long as it has described itself lately.
func TestAskingNodeIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Second})
		d.NoteQuestion("A")
		if _, lives := d.Alive("A"); lives {
			t.Error("a node without a known address counts as alive")
		}
		d.due("A", d.Every)
		d.note("A", time.Now(), member("A"), true)
		for asked := time.Now(); ; {
			<-time.After(d.Every)
			d.NoteQuestion("A")
			if _, lives := d.Alive("A"); !lives {
				t.Fatal("it has asked just now, and does not count as living")
			}
			if due := d.due("A", d.Every); due {
				if since := time.Since(asked); since < describedFor {
					t.Errorf("asked after %v although it is heard of", since)
				}
				break
			}
			if time.Since(asked) > describedFor {
				t.Fatal("never asked again what it is")
			}
		}
	})
}

// What a node said of itself stays known while it is silent, or its disk hangs.
func TestDescriptionsStayKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Second})
		if _, known := d.Known("A"); known {
			t.Error("a node that never answered is known")
		}
		d.note("A", time.Now(), member("A"), true)
		for name, ends := range map[string]func(){
			"hangs":     func() { d.noteAbout("A", About{Hung: true}) },
			"is silent": func() { d.note("A", time.Now(), member("A"), false) },
		} {
			<-time.After(time.Millisecond)
			ends()
			if _, lives := d.Alive("A"); lives {
				t.Errorf("it %s, and counts as living", name)
			}
			if m, known := d.Known("A"); !known || m.Peer != "A" {
				t.Errorf("it %s, and is not known: %+v", name, m)
			}
		}
	})
}

// A node that leaves, or did not answer, counts as alive only after it answers again.
func TestQuestionsDoNotRevive(t *testing.T) {
	for name, ends := range map[string]func(*Detector){
		"leaves":          func(d *Detector) { d.MarkLeaving("A") },
		"does not answer": func(d *Detector) { d.note("A", time.Now(), member("A"), false) },
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDetector(DetectorOptions{Grace: time.Second})
			d.note("A", time.Now(), member("A"), true)
			ends(d)
			d.NoteQuestion("A")
			if _, lives := d.Alive("A"); lives {
				t.Error("its question makes it live")
			}
			d.note("A", time.Now(), member("A"), true)
			if _, lives := d.Alive("A"); !lives {
				t.Error("it answers, and does not count as living")
			}
		})
	}
}

// Outdated results are ignored: an answer from before the node announced that it leaves, and a failed question after
// which a later one was answered.
func TestLateAnswersCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Second})
		asked := time.Now()
		<-time.After(time.Millisecond)
		d.MarkLeaving("A")
		d.note("A", asked, member("A"), true)
		if !d.Leaving("A") {
			t.Error("an older answer takes the mark of a node away that leaves")
		}
		<-time.After(time.Millisecond)
		d.note("A", time.Now(), member("A"), true)
		d.note("A", asked, member("A"), false)
		if _, lives := d.Alive("A"); !lives || d.Leaving("A") {
			t.Error("it has answered, and an older question counts more")
		}
	})
}

// A node that did not answer, and then sends a question, is asked in the next round.
func TestAskingNodeIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Hour})
		d.due("A", d.Every)
		d.note("A", time.Now(), member("A"), false)
		if d.due("A", d.Every) {
			t.Error("asked again at once")
		}
		if d.NoteQuestion("A"); !d.due("A", d.Every) {
			t.Error("it speaks, and is not asked")
		}
		d.note("A", time.Now(), member("A"), false)
		<-time.After(minAskEvery)
		if !d.due("A", d.Every) {
			t.Error("asked as seldom as one who lives")
		}
	})
}

// A node that shares no group with this one is asked less often and counts as alive for longer, unless it is needed.
func TestStrangersAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		d := NewDetector(DetectorOptions{Grace: time.Minute, Describe: func(context.Context, string) (nodemsg.Answer, error) {
			asked++
			a := member("A")
			return nodemsg.Answer{Member: &a}, nil
		}, Connected: nobody})
		peers := make(Watched)
		peers.Add("A", d.StrangerEvery)
		minute := func() int {
			asked = 0
			for range int(time.Minute / RoundEvery) {
				<-time.After(RoundEvery)
				d.Refresh(t.Context(), peers)
				if _, lives := d.Alive("A"); !lives {
					t.Fatal("it answers, and does not count as living")
				}
			}
			return asked
		}
		if n := minute(); n < 3 || n > 4 {
			t.Errorf("a stranger was asked %d times a minute", n)
		}
		peers.Add("A", d.Every)
		if n := minute(); n < 7 || n > 8 {
			t.Errorf("a member was asked %d times a minute", n)
		}
		peers.Add("A", d.StrangerEvery)
		if peers["A"] != d.Every {
			t.Error("who is a member is asked as seldom as a stranger")
		}
	})
}

func nobody() []string { return nil }

func member(peer string) nodemsg.Member { return nodemsg.Member{Peer: peer, Game: "127.0.0.1:4002"} }

// A node that did not answer a request is tried last for some time.
func TestSuspectsAreTriedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Minute})
		info := nodemsg.Region{Leader: "A", Members: []nodemsg.Member{member("A"), member("B")}}
		order := func() (all []string) {
			tried := make(map[string]bool)
			for next := d.First(info, tried); next != ""; next = d.First(info, tried) {
				tried[next] = true
				all = append(all, next)
			}
			return all
		}
		if d.Suspect("A"); !slices.Equal(order(), []string{"B", "A"}) || !d.Suspected("A") {
			t.Errorf("tried %v", order())
		}
		if d.Trust("A"); !slices.Equal(order(), []string{"A", "B"}) {
			t.Errorf("after it answered: %v", order())
		}
		d.Suspect("A")
		<-time.After(unresponsiveFor + 1)
		if !slices.Equal(order(), []string{"A", "B"}) {
			t.Errorf("later: %v", order())
		}
	})
}

// The leaving flag of a node is cleared when it answers again, or after leavingTimeout.
func TestLeavingPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Minute})
		d.MarkLeaving("A")
		d.Forget() // it was never asked about
		if _, lives := d.Alive("A"); lives || !d.Leaving("A") {
			t.Error("it is not marked")
		}
		d.note("A", time.Now(), member("A"), false)
		if !d.Leaving("A") {
			t.Error("a refusal takes the mark away")
		}
		d.note("A", time.Now(), member("A"), true)
		if _, lives := d.Alive("A"); !lives || d.Leaving("A") {
			t.Error("the mark stays although it answers again")
		}
		d.MarkLeaving("A")
		<-time.After(leavingTimeout)
		if d.Leaving("A") {
			t.Error("the mark stays for ever")
		}
	})
}

// A connected node that describes itself as an older version is named until it is upgraded or revoked.
func TestOlder(t *testing.T) {
	said := map[string]int{"A": 4, "B": 5}
	revoked := ""
	describe := func(_ context.Context, peer string) (nodemsg.Answer, error) {
		m := member(peer)
		return nodemsg.Answer{Member: &m, Version: said[peer]}, nil
	}
	d := NewDetector(DetectorOptions{Grace: time.Minute, Describe: describe, Connected: func() []string { return []string{"A", "B", "silent"} }})
	d.Excluded = func(peer string) bool { return peer == revoked }
	check := func() {
		t.Helper()
		for peer := range said {
			if _, err := d.Check(t.Context(), peer); err != nil {
				t.Fatal(err)
			}
		}
	}
	older := func(when string, version int, want ...string) {
		t.Helper()
		if got := d.Older(version); !slices.Equal(got, want) {
			t.Errorf("%s older than %d: %v, want %v", when, version, got, want)
		}
	}
	older("before they were asked,", 5)
	check()
	older("asked,", 4)
	older("asked,", 5, "A")
	revoked = "A"
	older("when A is revoked,", 5)
	revoked, said["A"] = "", 5
	check()
	older("when A is upgraded,", 5)
}

// A node that starts takes the time of one that has run for days.
func TestTimesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDetector(DetectorOptions{Grace: time.Minute, Describe: func(_ context.Context, peer string) (nodemsg.Answer, error) {
			m := member(peer)
			return nodemsg.Answer{Member: &m, Time: time.Now().Add(time.Hour).UnixMilli(), TimeAge: 2 * 24 * 3600}, nil
		}, Connected: nobody})
		d.Clock = wallclock.New(time.Time{})
		if _, err := d.Check(t.Context(), "A"); err != nil {
			t.Fatal(err)
		}
		about, _ := d.About("A")
		if about.Time == nil {
			t.Fatal("nothing is known of its time")
		}
		if got := d.Clock.Consider([]wallclock.Reading{*about.Time}); (got - time.Hour).Abs() > time.Second {
			t.Errorf("the clock is corrected by %v, want an hour", got)
		}
		if d.Clock.Settled() || (d.Clock.MachineAhead()+time.Hour).Abs() > time.Second {
			t.Errorf("settled: %v, the machine's clock is %v ahead", d.Clock.Settled(), d.Clock.MachineAhead())
		}
	})
}

// A node that an operator gives up is gone at once, until it is heard from.
func TestForgotten(t *testing.T) {
	describe := func(_ context.Context, peer string) (nodemsg.Answer, error) {
		m := member(peer)
		return nodemsg.Answer{Member: &m}, nil
	}
	d := NewDetector(DetectorOptions{Grace: time.Hour, Describe: describe, Connected: func() []string { return nil }})
	lost := func(when string, want bool) {
		t.Helper()
		if _, lives := d.Alive("A"); d.Lost("A") != want || d.Gone("A") != want || want && lives {
			t.Errorf("%s: lost %t, gone %t, alive %t", when, d.Lost("A"), d.Gone("A"), lives)
		}
	}
	lost("at first", false)
	d.MarkForgotten("A")
	lost("given up", true)
	if _, err := d.Check(t.Context(), "A"); err != nil {
		t.Fatal(err)
	}
	lost("back", false)
	d.MarkForgotten("A")
	d.NoteQuestion("A")
	lost("it asks something", false)
}
