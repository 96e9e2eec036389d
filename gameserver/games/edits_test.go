package games

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Edits are numbered one after the other, and near the time also when a client has played for days.
func TestNumbersFollowTheTime(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	var e Edits
	e.Begin(uint64(begun.UnixMicro()), begun)
	last := uint64(begun.UnixMicro()) - 1
	for played := time.Duration(0); played < 50*time.Hour; played += 7 * time.Minute {
		now := begun.Add(played)
		for range 3 {
			number, err := e.Add(Change{}, now)
			if away := now.Sub(time.UnixMicro(int64(number))); err != nil || number <= last || away.Abs() > 2*sequenceEvery {
				t.Fatalf("after %v the number is %d after %d, %v away, %v", played, number, last, away, err)
			}
			last = number
			if sent, is := e.Next().(sessionmsg.Edit); !is || sent.Seq != number {
				t.Fatalf("edit %d is sent as %+v", number, sent)
			}
			if _, waits := e.Answer(sessionmsg.Ack{Seq: number}, now); !waits || len(e.pending) > 0 {
				t.Fatalf("edit %d waits: %v, and %d others", number, waits, len(e.pending))
			}
		}
	}
}

// A client that is not answered can only ask for so much.
func TestPendingEditsAreBounded(t *testing.T) {
	var e Edits
	e.Begin(100, time.Now())
	for range maxPending {
		if _, err := e.AddAll([]Change{{}}, e.begun); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := e.AddAll([]Change{{}}, e.begun); err == nil || m != nil {
		t.Errorf("one more is %v", m)
	}
	e.Begin(7, e.begun)
	if m, err := e.AddAll([]Change{{}, {}}, e.begun); err != nil || m.(sessionmsg.Edit).Seq != 7 {
		t.Errorf("the first edit of another session is %v, %v", m, err)
	}
}

// What follows an edit is sent when that is answered, and not if it is refused.
func TestWhatFollowsAnEdit(t *testing.T) {
	stairs := Change{To: chunk.StoneStairs, Then: []Change{{To: chunk.StoneStairs + 1}, {To: chunk.StoneStairs + 2}}}
	for refused, want := range map[string]int{"": 2, wire.RefusedClaimed: 0} {
		var e Edits
		e.Begin(100, time.Now())
		if m, err := e.AddAll([]Change{stairs}, e.begun); err != nil || m.(sessionmsg.Edit).Block != uint16(stairs.To) || e.Next() != nil {
			t.Fatalf("%v, %v", m, err)
		}
		if c, waits := e.Answer(sessionmsg.Ack{Seq: 100, Error: refused}, e.begun); !waits || c.To != stairs.To {
			t.Errorf("%v, %t", c, waits)
		}
		for i := range want {
			if m, is := e.Next().(sessionmsg.Edit); !is || m.Block != uint16(stairs.Then[i].To) {
				t.Errorf("%d is %+v", i, m)
			}
		}
		if m := e.Next(); m != nil || len(e.pending) != want {
			t.Errorf("refused %q: %+v follows, %d wait", refused, m, len(e.pending))
		}
	}
}

// Edits that a session was not sent belong to it: the one that replaces it is sent its own.
func TestSessionsHaveTheirOwnEdits(t *testing.T) {
	var e Edits
	e.Begin(100, time.Now())
	if _, err := e.AddAll([]Change{{}, {}}, e.begun); err != nil {
		t.Fatal(err)
	}
	e.Begin(7, e.begun)
	if m := e.Next(); m != nil {
		t.Errorf("the session is sent %+v", m)
	}
	if m, err := e.AddAll([]Change{{}}, e.begun); err != nil || m.(sessionmsg.Edit).Seq != 7 {
		t.Errorf("its first edit is %v, %v", m, err)
	}
}
