package integrity

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A copy is replaced a few times a day, however long the node runs.
func TestReplacedADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFacts("A", NewMetrics(prometheus.NewRegistry()))
		info := nodemsg.Region{ID: 7, Members: []nodemsg.Member{{Peer: "A"}, {Peer: "B"}}}
		damaged := func() copies.Action {
			f.note(info, copies.Unreadable, errors.New("a test says so"))
			return f.Decide(7).Action
		}
		replaced := func() {
			f.Clear(7)
			f.with(7, func(c *copyFacts) { c.replaced = append(c.replaced, time.Now()) })
		}
		for range 10 * copies.MostReplaced {
			if d := damaged(); d != copies.Replace {
				t.Fatalf("%v", d)
			}
			replaced()
			<-time.After(copies.ReplacedWithin / copies.MostReplaced)
		}
		for range copies.MostReplaced {
			replaced()
		}
		<-time.After(copies.ReplacedWithin - time.Second)
		if d := damaged(); d != copies.Ask {
			t.Errorf("replaced too often within a day: %v", d)
		}
		<-time.After(time.Second)
		if d := damaged(); d != copies.Replace {
			t.Errorf("after a day: %v", d)
		}
	})
}

// What was found first counts, and one caller at a time decides.
func TestFacts(t *testing.T) {
	f := NewFacts("A", NewMetrics(prometheus.NewRegistry()))
	info := nodemsg.Region{ID: 7, Members: []nodemsg.Member{{Peer: "A"}}}
	if f.Err(7) != nil || f.Closed(7) || len(f.Unsound()) != 0 {
		t.Error("nothing is known, and the copy is closed")
	}
	cause := errors.New("a row is damaged")
	if !f.note(info, copies.Unreadable, cause) || f.note(info, copies.Earlier, errForgotten) || f.Stored(7) != copies.Unreadable {
		t.Errorf("stored: %v", f.Stored(7))
	}
	if err := f.Err(7); !Refused(err, copies.MembersUnknown) || !errors.Is(err, cause) || !f.Closed(7) {
		t.Errorf("whether there are other members is not known: %v", err)
	}
	release, claimed := f.claim(7)
	if _, again := f.claim(7); !claimed || again {
		t.Errorf("claimed: %v, %v", claimed, again)
	}
	release()
	if _, again := f.claim(7); !again {
		t.Error("it stays claimed")
	}
	if all := f.Unsound(); len(all) != 1 || all[0].Do == "" || all[0].What != cause.Error() {
		t.Errorf("unsound: %+v", all)
	}
	if f.Clear(7); f.Err(7) != nil {
		t.Errorf("cleared: %v", f.Err(7))
	}
}
