package gameserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// recorded is the history of a world, newest first.
type recorded struct {
	moderation.History
	changes []nodemsg.HistoryRecord
	missing []rollback.Missing
	err     error
	asked   int
}

func (r *recorded) Query(_ context.Context, q rollback.Query) (found rollback.Result, err error) {
	r.asked++
	for _, c := range r.changes {
		if !q.Matches(c.At.Chunk(), history.Record{Time: c.Time, At: chunk.At(c.At)}) {
			continue
		}
		if len(found.Records) == q.Most {
			found.More = true
			break
		}
		found.Records = append(found.Records, c)
	}
	found.Missing = r.missing
	return found, r.err
}

// ask sends a command, and returns the History that answers it, if one does.
func (c *client) ask(command string) (answer *sessionmsg.History) {
	c.look(func() { c.mu.histories, c.mu.notices = nil, nil })
	c.send(sessionmsg.Command{Text: command})
	pass(2 * time.Second)
	c.look(func() {
		if len(c.mu.histories) > 0 {
			answer = &c.mu.histories[0]
		}
	})
	return answer
}

// The history of a box comes newest first, in pages that neither repeat nor leave out a change, although many have the
// same time. What was natural is the terrain's block.
func TestHistoryOfABox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, past := newPeople(), &recorded{}
		world.changed = func() {}
		world.register(t, "zoe")
		const total = 2*sessionmsg.MaxHistory + 300
		var zoe player.ID
		world.Read(func(p *policy.State) { zoe, _ = p.OwnerOf("zoe") })
		for i := range total {
			c := nodemsg.HistoryRecord{Time: 1e12 - int64(i/700)*100, Player: player.GuestID("ann"), Guest: "ann", At: grid.Pos{X: int32(i % 90), Y: int32(i % 30), Z: -int32(i % 70)}, Old: history.Natural, New: chunk.Block(1 + i%3)}
			if i%2 == 0 {
				c.Player, c.Guest, c.Old = zoe, "", chunk.Brick
			}
			past.changes = append(past.changes, c)
		}
		r := newHarness(t, func(o *Options) { o.People, o.History = world, past })
		ann := r.join("ann", 1)

		var until int64
		var got []int64
		skip := 0
		for page := range 3 {
			a := ann.ask(fmt.Sprintf("inspect 0,0,-90 89,31,5 %d %d", until, skip))
			if a == nil {
				t.Fatalf("page %d does not come: %q", page, ann.mu.notices)
			}
			n := len(a.Changes) / sessionmsg.HistoryFields
			if want := min(sessionmsg.MaxHistory, total-len(got)/sessionmsg.HistoryFields); n != want || a.More != (page < 2) || a.Missing || a.Until != until || a.Skip != skip {
				t.Fatalf("page %d has %d changes, more %t, missing %t, until %d, skip %d; want %d", page, n, a.More, a.Missing, a.Until, a.Skip, want)
			}
			got = append(got, named(a)...)
			oldest := a.Changes[len(a.Changes)-sessionmsg.HistoryFields]
			if oldest != until {
				until, skip = oldest, 0
			}
			for i := 0; i < len(a.Changes); i += sessionmsg.HistoryFields {
				if a.Changes[i] == oldest {
					skip++
				}
			}
		}
		for i, c := range past.changes {
			name, old := int64(0), c.Old
			if c.Guest != "" {
				name, old = 1, ground().Chunk(c.At.Chunk()).Get(chunk.At(c.At))
			}
			want := []int64{c.Time, name, int64(c.At.X), int64(c.At.Y), int64(c.At.Z), int64(old), int64(c.New)}
			if change := got[i*sessionmsg.HistoryFields:][:sessionmsg.HistoryFields]; !reflect.DeepEqual(change, want) {
				t.Fatalf("change %d is %v, want %v", i, change, want)
			}
		}
	})
}

// named returns the changes of a page with 0 for zoe and 1 for the guest ann.
func named(a *sessionmsg.History) []int64 {
	number := map[string]int64{"zoe": 0, "ann (guest)": 1}
	all := append([]int64(nil), a.Changes...)
	for i := 1; i < len(all); i += sessionmsg.HistoryFields {
		all[i] = number[a.Names[all[i]]]
	}
	return all
}

// A history is for those who may use /inspect, for small boxes, at the rate of commands, and says when a part is
// missing.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, past := newPeople(), &recorded{}
		r := newHarness(t, func(o *Options) { o.People, o.History = world, past })
		ann := r.join("ann", 1)
		for command, notice := range map[string]string{
			"inspect 0,0,0 96,1,1":        "The area is too large: at most 96 blocks to each side.",
			"inspect 0,0,0 1,1,1 -1":      `"-1" is not a time: write the milliseconds since 1970, or 0.`,
			"inspect 0,0,0 1,1,1 now":     `"now" is not a time: write the milliseconds since 1970, or 0.`,
			"inspect 0,0,0 1,1,1 0 10001": `Skip 0 to 10000 changes, not "10001".`,
			"inspect 0,0,0 1,1":           `"1,1" is not a position: write X,Y,Z.`,
			"inspect 0,0,0 1,1,1 0 0 0":   "Usage: /inspect X,Y,Z [X,Y,Z [UNTIL [SKIP]]].",
		} {
			if a := ann.ask(command); a != nil || len(ann.mu.notices) != 1 || ann.mu.notices[0] != notice {
				t.Errorf("/%s is answered with %v and %q", command, a, ann.mu.notices)
			}
		}
		if past.asked != 0 {
			t.Errorf("%d questions were asked for wrong commands", past.asked)
		}
		if a := ann.ask("inspect 0,0,0 95,9,95"); a == nil || a.Missing || a.More || len(a.Changes) != 0 {
			t.Errorf("land without changes: %+v", a)
		}
		past.missing = []rollback.Missing{{Why: "it is down"}}
		if a := ann.ask("inspect 0,0,0 1,1,1"); a == nil || !a.Missing {
			t.Errorf("a region is down: %+v", a)
		}
		past.missing, past.err = nil, errors.New("ask later")
		if a := ann.ask("inspect 0,0,0 1,1,1"); a == nil || !a.Missing || len(ann.mu.notices) != 1 || ann.mu.notices[0] != "Ask later." {
			t.Errorf("the question fails: %+v, %q", a, ann.mu.notices)
		}

		pass(time.Minute)
		past.asked = 0
		for range commandsAtOnce + 5 {
			ann.send(sessionmsg.Command{Text: "inspect 0,0,0 1,1,1"})
			pass(10 * time.Millisecond)
		}
		if past.asked > commandsAtOnce {
			t.Errorf("%d questions at once", past.asked)
		}
		pass(time.Minute)
		past.asked = 0
		world.operate(t, "set guests visitor")
		pass(time.Second)
		if a := ann.ask("inspect 0,0,0 1,1,1"); a != nil || past.asked != 0 {
			t.Errorf("a visitor sees the history: %+v", a)
		}
	})
}
