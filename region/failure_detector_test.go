package region

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A silent node is asked repeatedly, and does not count as alive for long.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := failureDetector{every: minAskEvery}
		if !v.due("A", v.every) || v.due("A", v.every) {
			t.Error("an unknown node must be asked once")
		}
		v.note("A", time.Now(), member("A"), true)
		<-time.After(2*v.every + superviseEvery)
		if _, lives := v.lives("A"); !lives {
			t.Error("it has answered lately, and does not count as living")
		}
		if !v.due("A", v.every) {
			t.Error("it is not asked again")
		}
		<-time.After(time.Millisecond)
		if _, lives := v.lives("A"); lives {
			t.Error("it counts as living for ever")
		}
	})
}

// A node that sends questions is alive and is not asked, as long as it has described itself lately.
func TestAskingNodeIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := failureDetector{every: minAskEvery}
		v.noteQuestion("A")
		if _, lives := v.lives("A"); lives {
			t.Error("a node without a known address counts as alive")
		}
		v.due("A", v.every)
		v.note("A", time.Now(), member("A"), true)
		for told := time.Now(); ; {
			<-time.After(v.every)
			v.noteQuestion("A")
			if _, lives := v.lives("A"); !lives {
				t.Fatal("it has asked just now, and does not count as living")
			}
			if due := v.due("A", v.every); due {
				if since := time.Since(told); since < describedFor {
					t.Errorf("asked after %v although it is heard of", since)
				}
				break
			}
			if time.Since(told) > describedFor {
				t.Fatal("never asked again what it is")
			}
		}
	})
}

// A node that leaves, or did not answer, counts as alive only after it answers again.
func TestQuestionsDoNotRevive(t *testing.T) {
	for name, ends := range map[string]func(*failureDetector){
		"leaves":          func(v *failureDetector) { v.leave("A") },
		"does not answer": func(v *failureDetector) { v.note("A", time.Now(), member("A"), false) },
	} {
		t.Run(name, func(t *testing.T) {
			v := failureDetector{every: minAskEvery}
			v.note("A", time.Now(), member("A"), true)
			ends(&v)
			v.noteQuestion("A")
			if _, lives := v.lives("A"); lives {
				t.Error("its question makes it live")
			}
			v.note("A", time.Now(), member("A"), true)
			if _, lives := v.lives("A"); !lives {
				t.Error("it answers, and does not count as living")
			}
		})
	}
}

// Outdated results are ignored: an answer from before the node announced that it leaves, and a failed question after which a
// later one was answered.
func TestLateAnswersCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := failureDetector{every: minAskEvery}
		asked := time.Now()
		<-time.After(time.Millisecond)
		v.leave("A")
		v.note("A", asked, member("A"), true)
		if !v.leaves("A") {
			t.Error("an older answer takes the mark of a node away that leaves")
		}
		<-time.After(time.Millisecond)
		v.note("A", time.Now(), member("A"), true)
		v.note("A", asked, member("A"), false)
		if _, lives := v.lives("A"); !lives || v.leaves("A") {
			t.Error("it has answered, and an older question counts more")
		}
	})
}

// A node that did not answer, and then sends a question, is asked in the next round.
func TestAskingNodeIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := failureDetector{every: maxAskEvery}
		v.due("A", v.every)
		v.note("A", time.Now(), member("A"), false)
		if v.due("A", v.every) {
			t.Error("asked again at once")
		}
		if v.noteQuestion("A"); !v.due("A", v.every) {
			t.Error("it speaks, and is not asked")
		}
		v.note("A", time.Now(), member("A"), false)
		<-time.After(minAskEvery)
		if !v.due("A", v.every) {
			t.Error("asked as seldom as one who lives")
		}
	})
}

// A node that shares no group with this one is asked less often and counts as alive for longer, unless it is needed.
func TestStrangersAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v failureDetector
		v.setGrace(time.Minute)
		peers := make(watched)
		peers.add("A", v.strangerEvery)
		asked := 0
		describe := func(context.Context, string) (nodemsg.Member, error) {
			asked++
			return member("A"), nil
		}
		minute := func() int {
			asked = 0
			for range int(time.Minute / superviseEvery) {
				<-time.After(superviseEvery)
				v.refresh(t.Context(), peers, describe)
				if _, lives := v.lives("A"); !lives {
					t.Fatal("it answers, and does not count as living")
				}
			}
			return asked
		}
		if n := minute(); n < 3 || n > 4 {
			t.Errorf("a stranger was asked %d times a minute", n)
		}
		peers.add("A", v.every)
		if n := minute(); n < 7 || n > 8 {
			t.Errorf("a member was asked %d times a minute", n)
		}
		peers.add("A", v.strangerEvery)
		if peers["A"] != v.every {
			t.Error("who is a member is asked as seldom as a stranger")
		}
	})
}
