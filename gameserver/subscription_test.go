package gameserver

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func TestChunkComesWholeThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.join("ann", 1), r.join("bob", 2)
		wholes := ann.mu.wholes
		place := grid.Pos{X: 3, Y: 25, Z: 3}
		seq := ann.put(place, chunk.Brick)
		pass(100 * time.Millisecond)
		if ack := ann.answer(seq); ack.Error != "" || ack.Block != uint16(chunk.Brick) {
			t.Errorf("answer %+v", ack)
		}
		for _, c := range []*client{ann, bob} {
			if got := c.block(place); got != chunk.Brick {
				t.Errorf("block is %v, want brick", got)
			}
		}
		if ann.mu.wholes != wholes {
			t.Error("a change brought whole chunks anew")
		}
		ann.sees(r.lands, 1)
		bob.sees(r.lands, 2)
		late := r.join("eve", 1)
		late.sees(r.lands, 1)
		if got := len(late.mu.avatars); got != 3 {
			t.Errorf("the newcomer sees %d avatars, want 3 with herself", got)
		}
	})
}

// Chunks arrive from near to far.
func TestNearestChunksComeFirst(t *testing.T) {
	for name, spawn := range map[string]grid.Pos{"within one region": {X: 264, Y: 25, Z: 264}, "where four meet": {Y: 25}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, func(o *Options) { o.Admission.MaxView, o.World.Spawn, o.builders = 4, spawn, 1 })
				ann := r.join("ann", 4)
				pass(time.Second)
				if len(ann.mu.order) != 81 {
					t.Fatalf("%d chunks came, want 81", len(ann.mu.order))
				}
				far := int64(0)
				for i, pos := range ann.mu.order {
					d := squaredDistance(pos, spawn.Chunk())
					if d < far {
						t.Errorf("chunk %v came as number %d, after farther ones", pos, i)
					}
					far = max(far, d)
				}
			})
		})
	}
}

func TestLinkLossKeepsEditsAndPictures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.join("ann", 1), r.join("bob", 1)

		// Committed, and the link breaks before the result is sent.
		r.lands.deaf(true)
		events := grid.Pos{X: 3, Y: 25, Z: 3}
		first := ann.put(events, chunk.Brick)
		pass(100 * time.Millisecond)
		if r.lands.truth(events.Chunk()).Get(chunk.At(events)) != chunk.Brick {
			t.Fatal("the region has not committed the edit")
		}
		if len(ann.mu.acks) != 0 {
			t.Fatal("acknowledged although the region said nothing")
		}
		r.lands.deaf(false)
		r.lands.down(true)
		// Requested while nobody leads the region.
		unheard := grid.Pos{X: -3, Y: 25, Z: 3}
		second := ann.put(unheard, chunk.Glass)
		pass(mirror.NoticeAfter + time.Second)
		if len(ann.mu.acks) != 0 {
			t.Fatal("acknowledged without a commit")
		}
		if len(ann.mu.notices) == 0 {
			t.Error("no notice was sent that the land cannot be reached")
		}
		// Meanwhile another gateway's player builds, and bob turns to other chunks and back.
		third := grid.Pos{X: 3, Y: 26, Z: 3}
		r.lands.commit(nodemsg.Intent{Player: guestID("zoe"), Seq: 1, Pos: third, Block: chunk.Log})
		r.lands.down(false)
		pass(10 * time.Second)
		for _, seq := range []uint64{first, second} {
			if ack := ann.answer(seq); ack.Error != "" {
				t.Errorf("edit is refused: %+v", ack)
			}
		}
		for e, times := range r.lands.at(grid.ChunkPos{}).land.applied {
			if times != 1 {
				t.Errorf("edit %v was applied %d times", e, times)
			}
		}
		if n := len(ann.mu.notices); n != 2 || !strings.Contains(ann.mu.notices[n-1], "again") {
			t.Errorf("the player got %q", ann.mu.notices)
		}
		for _, c := range []*client{ann, bob} {
			c.sees(r.lands, 1)
			if c.block(third) != chunk.Log || c.block(events) != chunk.Brick || c.block(unheard) != chunk.Glass {
				t.Error("what was built while the link was down is not to be seen")
			}
		}
	})
}

func TestAvatarsSurviveLinkLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		bob := r.join("bob", 1)
		if len(ann.mu.avatars) != 2 {
			t.Fatalf("ann sees %d avatars, want 2", len(ann.mu.avatars))
		}
		r.lands.down(true)
		pass(time.Second)
		bob.conn.Close()
		pass(time.Second)
		r.lands.commit(nodemsg.Intent{Player: guestID("zoe"), Seq: 1, Pos: grid.Pos{X: 9, Y: 25, Z: 9}, Block: chunk.Log})
		r.lands.down(false)
		pass(10 * time.Second)
		if _, ghost := ann.mu.avatars[guestID("bob").String()]; ghost || len(ann.mu.avatars) != 1 {
			t.Errorf("ann sees %d avatars, want herself alone", len(ann.mu.avatars))
		}
	})
}

// An edit that a player sends again, over the same session or the next one, is answered once, to the last sender; a
// second edit of the same number is not mistaken for it.
func TestEditAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		place := grid.Pos{X: 3, Y: 25, Z: 3}
		ann := r.join("ann", 1)
		r.join("bob", 1) // keeps the land in the mirror
		r.lands.down(true)
		seq := ann.put(place, chunk.Brick)
		ann.send(sessionmsg.Edit{Seq: seq, X: 4, Y: 25, Z: 3, Block: uint16(chunk.Glass)})
		pass(time.Second)
		if ack := ann.answer(seq); ack.Error != wire.RefusedStale || ack.Block != 0 {
			t.Errorf("another edit of the same number is answered %+v, want stale over air", ack)
		}
		again := r.join("ann", 1)
		again.send(sessionmsg.Edit{Seq: seq, X: place.X, Y: place.Y, Z: place.Z, Block: uint16(chunk.Brick)})
		pass(time.Second)
		r.lands.down(false)
		pass(10 * time.Second)
		if ack := again.answer(seq); ack.Error != "" || ack.Block != uint16(chunk.Brick) {
			t.Errorf("answer %+v", ack)
		}
		if got := r.lands.at(place.Chunk()).land.applied[edit{guestID("ann"), seq}]; got != 1 {
			t.Errorf("applied %d times", got)
		}
	})
}

func TestEditsWaitInBoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.lands.down(true)
		got := &recorderSub{}
		sub := r.g.mirror.Watch(grid.ChunkPos{}, got)
		for i := range mirror.MaxPending + 3 {
			sub.Edit(nodemsg.Intent{Player: guestID("ann"), Seq: uint64(i + 1), Pos: grid.Pos{Y: 1}, Block: chunk.Brick}, got)
		}
		if len(got.results) != 3 || got.results[0].Refused != wire.RefusedUnavailable {
			t.Fatalf("%d results: %+v", len(got.results), got.results)
		}
		r.lands.down(false)
		pass(10 * time.Second)
		if len(got.results) != mirror.MaxPending+3 {
			t.Errorf("%d results, want one for each of %d edits", len(got.results), mirror.MaxPending+3)
		}
		sub.Unwatch(grid.ChunkPos{}, got)
	})
}

func TestWatchFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.join("ann", 2), r.join("bob", 1)
		for i := range 12 {
			ann.send(sessionmsg.View{View: 1 + i%2}) // one chunk more than the view is kept: look from farther away
			if i%3 == 2 {
				ann.walkAround()
			}
			bob.put(grid.Pos{X: 3, Y: 25, Z: int32(3 + i%4)}, chunk.Brick+chunk.Block(i%2))
			pass([]time.Duration{0, 10 * time.Millisecond, 4 * time.Second}[i%3])
		}
		pass(10 * time.Second)
		ann.sees(r.lands, 2)
		bob.sees(r.lands, 1)
		if ann.mu.corrections > 0 {
			t.Error("the stroll was too fast")
		}
		watching := r.lands.watching()
		if len(watching) < 25 || len(watching) > 49 {
			t.Errorf("%d chunks are watched, want the 25 in view and some around them", len(watching))
		}
		for _, pos := range watching {
			if _, known := r.g.mirror.At(pos).Block(pos.Origin()); !known {
				t.Errorf("the region shows chunk %v, which nobody views", pos)
			}
		}
	})
}

func TestSubscriptionLingersAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		origin := grid.ChunkPos{}
		if r.lands.followed(origin) != 1 {
			t.Fatalf("%d links, want 1", r.lands.followed(origin))
		}
		ann.conn.Close()
		pass(mirror.Linger - time.Second)
		if r.lands.followed(origin) != 1 {
			t.Error("the subscription did not linger")
		}
		bob := r.join("bob", 1)
		pass(3 * mirror.Linger)
		if r.lands.followed(origin) != 1 {
			t.Error("a subscription that is needed again was closed")
		}
		bob.conn.Close()
		pass(2 * mirror.Linger)
		if n := r.lands.followed(origin); n != 0 || r.g.mirror.At(origin) != nil {
			t.Errorf("%d links that nobody needs; subscribed: %v", n, r.g.mirror.At(origin) != nil)
		}
		eve := r.join("eve", 1)
		eve.sees(r.lands, 1)
	})
}

// A subscription that cannot reach its region closes when unused, too.
func TestUnreachableSubscriptionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.lands.down(true)
		ann := r.join("ann", 1)
		ann.conn.Close()
		pass(2 * mirror.Linger)
		if r.g.mirror.At(grid.ChunkPos{}) != nil {
			t.Error("a subscription that nobody needs")
		}
	})
}

func TestChatWaitsForTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.join("ann", 1), r.join("bob", 1)
		r.lands.down(true)
		pass(time.Second)
		ann.send(sessionmsg.Chat{Text: "hello?"})
		pass(time.Second)
		r.lands.down(false)
		pass(10 * time.Second)
		if fmt.Sprint(bob.mu.said) != "[ann: hello?]" {
			t.Errorf("bob received %q", bob.mu.said)
		}
	})
}

// A second connection under a player's name takes over the body; the end of the first does not remove it.
func TestBodyBelongsToLastOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		older, newer := &recorderSub{}, &recorderSub{}
		at := func(x float64) motion.Pose { return motion.Pose{X: x, Y: 25, Z: 1} }
		sub := r.g.mirror.Enter(nodemsg.Body{Player: guestID("ann"), Name: "ann", Pose: at(1)}, older)
		sub.Move(guestID("ann"), at(2), older, false)
		r.g.mirror.Enter(nodemsg.Body{Player: guestID("ann"), Name: "ann", Pose: at(3)}, newer) // in one message with the move
		sub.Move(guestID("ann"), at(9), older, false)
		sub.Leave(guestID("ann"), older)
		pass(time.Second)
		if got := r.lands.bodies(grid.ChunkPos{}); len(got) != 1 || got[0].Pose != at(3) {
			t.Errorf("bodies %+v, want ann at 3", got)
		}
		sub.Leave(guestID("ann"), newer)
		r.g.mirror.Enter(nodemsg.Body{Player: guestID("ann"), Name: "ann", Pose: at(4)}, newer)
		sub.Leave(guestID("ann"), newer)
		pass(time.Second)
		if got := r.lands.bodies(grid.ChunkPos{}); len(got) != 0 {
			t.Errorf("bodies %+v, want none", got)
		}
	})
}

func TestHostileLeaderIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		r.lands.sendFrame(grid.ChunkPos{}, nodemsg.FromRegion{Tick: 1, Chunks: []nodemsg.ChunkDelta{
			{Blocks: []nodemsg.BlockAt{{At: height * 1024, Block: chunk.Brick}}},
		}})
		r.lands.sendFrame(grid.ChunkPos{}, nodemsg.FromRegion{Tick: 2, Chunks: []nodemsg.ChunkDelta{
			{Blocks: []nodemsg.BlockAt{{At: 1 << 23, Block: chunk.Brick}}},
		}})
		pass(10 * time.Second)
		ann.sees(r.lands, 1)
		if r.lands.followed(grid.ChunkPos{}) != 1 {
			t.Error("the region is not followed again")
		}
	})
}

// step is an event in the world of TestPicturesAgree.
type step struct {
	kind  string
	who   int
	x, y  int32
	block int
	after int // ms
}

var stepKind = rapid.SampledFrom([]string{"edit", "edit", "edit", "edit", "elsewhere", "walk", "look", "stroll", "cut", "deaf", "down", "up", "rejoin", "divide", "divide", "merge", "stale"})

var schedule = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		kind: stepKind.Draw(t, "kind"), who: rapid.IntRange(0, 1).Draw(t, "who"),
		x: rapid.Int32Range(3, 4).Draw(t, "x") * rapid.SampledFrom([]int32{-1, 1}).Draw(t, "side"),
		y: rapid.Int32Range(25, 26).Draw(t, "y"), block: rapid.IntRange(0, 2).Draw(t, "block"),
		after: rapid.SampledFrom([]int{0, 0, 1, 20, 300}).Draw(t, "after"),
	}
}), 1, 40)

// Whatever happens to links and views, in the end every picture equals the regions' land, and every edit has got one
// result; what was confirmed is committed once.
func TestPicturesAgree(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": "25", "rapid.shrinktime": "10s"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue { // -rapid.checks=1000 runs longer
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		steps := schedule.Draw(rt, "steps")
		place := rapid.SampledFrom([]grid.Pos{spawn, middle}).Draw(rt, "place")
		ok := t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, place, steps) })
		})
		if !ok {
			rt.Fatalf("the pictures differ")
		}
	})
}

// Schedules that once failed at the border of two regions. They depend on the order of the two regions' messages, so
// each is run often.
func TestPicturesAgreeAtBorder(t *testing.T) {
	for name, steps := range map[string][]step{
		// What the region that the player left has not sent yet must not remove them from the picture.
		"goes on and comes in anew": {
			{kind: "elsewhere", who: 1, x: -4, y: 26},
			{kind: "walk", who: 0, x: -4, y: 26},
			{kind: "edit", who: 0, x: 4, y: 25, block: 1},
			{kind: "rejoin", who: 0, after: 1},
			{kind: "edit", who: 0, x: 3, y: 25},
		},
		// The region to which she returns never received that she had left, and so sends nothing new.
		"goes and comes back while a region is away": {
			{kind: "walk", who: 0, x: -3, y: 25},
			{kind: "edit", who: 1, x: -3, y: 25, block: 2, after: 1},
			{kind: "deaf"},
			{kind: "down", after: 20},
			{kind: "stroll", who: 0, after: 300},
			{kind: "cut"},
			{kind: "edit", who: 0, x: -3, y: 25},
			{kind: "walk", who: 1, x: -3, y: 25, after: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				synctest.Test(t, func(t *testing.T) { play(t, spawn, steps) })
			}
		})
	}
}

// middle is a corner at which four regions meet after a founding cell was divided twice.
var middle = grid.Pos{X: 256, Y: 25, Z: 256}

func play(t *testing.T, at grid.Pos, steps []step) {
	r := newHarness(t, func(o *Options) { o.World.Spawn = at })
	names := []string{"ann", "bob"}
	players := []*client{r.join(names[0], 1), r.join(names[1], 1)}
	asked := make(map[*client][]uint64)
	left := make(map[*client]bool)
	elsewhere := uint64(0)
	for _, s := range steps {
		c := players[s.who]
		pos := grid.Pos{X: at.X + s.x, Y: s.y, Z: at.Z + 3}
		b := []chunk.Block{chunk.Air, chunk.Brick, chunk.Glass}[s.block]
		switch s.kind {
		case "edit":
			asked[c] = append(asked[c], c.put(pos, b))
		case "elsewhere":
			elsewhere++
			r.lands.commit(nodemsg.Intent{Player: guestID("zoe"), Seq: elsewhere, Pos: pos, Block: b})
		case "walk":
			c.goTo(float64(s.x), 25, .5)
		case "stroll":
			c.walkAround()
		case "look":
			c.send(sessionmsg.View{View: 1 + s.block%2})
		case "cut":
			r.lands.cut()
		case "deaf":
			r.lands.deaf(true)
		case "down":
			r.lands.down(true)
		case "up":
			r.lands.deaf(false)
			r.lands.down(false)
		case "divide":
			r.lands.divide(pos.Chunk())
		case "merge":
			r.lands.merge(pos.Chunk())
		case "stale":
			r.lands.stale(1 + s.block)
		case "rejoin":
			left[c] = true
			seq := c.seq
			players[s.who] = r.join(names[s.who], 1)
			players[s.who].seq = max(players[s.who].seq, seq)
		}
		if s.after > 0 {
			pass(time.Duration(s.after) * time.Millisecond)
		}
	}
	r.lands.deaf(false)
	r.lands.down(true)
	r.lands.down(false)
	pass(viewKept)
	for _, c := range players {
		c.send(sessionmsg.View{View: 1})
	}
	pass(20 * time.Second)
	for i, c := range players {
		c.sees(r.lands, 1)
		if len(c.mu.avatars) != len(players) {
			t.Errorf("%s sees %d avatars, want %d", names[i], len(c.mu.avatars), len(players))
		}
	}
	for c, seqs := range asked {
		for _, seq := range seqs {
			acks := c.mu.acks[seq]
			if len(acks) > 1 || len(acks) == 0 && !left[c] {
				t.Errorf("edit %d has %d answers", seq, len(acks))
			}
			if len(acks) == 1 && acks[0].Error == "" && r.lands.applied(c.mu.welcome.Player, seq) != 1 {
				t.Errorf("edit %d is confirmed and was applied %d times", seq, r.lands.applied(c.mu.welcome.Player, seq))
			}
		}
	}
}
