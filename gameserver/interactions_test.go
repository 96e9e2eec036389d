package gameserver

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var causalSeeds = flag.Uint64("causal.seeds", 6, "runs of TestEventsAreCausal, each over another bad network")

// randomInteraction makes a player hit another one, give them something, or send chat. All events differ: nobody hits
// the same player twice, and no two gifts are alike.
func (v *cluster) randomInteraction(rng *rand.Rand) func(i, n int) string {
	hits := make([]int, len(v.people))
	return func(i, n int) string {
		me := v.names[i]
		switch kind := rng.IntN(3); {
		case kind == 1 && hits[i] < len(v.people)-1:
			hits[i]++
			to := v.names[(i+hits[i])%len(v.people)]
			if v.try(i, sessionmsg.Hit{Player: guestID(to).String()}) {
				return me + " hits " + to
			}
		case kind == 2:
			to := v.names[(i+1+rng.IntN(len(v.people)-1))%len(v.people)]
			gift := sessionmsg.Gift{Player: guestID(to).String(), Block: uint16(chunk.Stone) + uint16(n/nodemsg.MaxGift), Count: uint8(n%nodemsg.MaxGift) + 1}
			if v.try(i, gift) {
				return fmt.Sprint(me, " gives ", to, " ", gift.Count, " of ", gift.Block)
			}
		}
		return v.chat(i, n)
	}
}

// try makes a player do something. It is not possible while the target is out of sight: they have left a region, and
// the message that they have entered another one is still in transit.
func (v *cluster) try(i int, m sessionmsg.FromClient) bool {
	c := v.people[i]
	before := len(c.mu.denied)
	c.send(m)
	synctest.Wait()
	for _, d := range c.mu.denied[before:] {
		if d.Error != sessionmsg.DeniedUnknownPlayer {
			v.t.Errorf("%s was denied %+v", v.names[i], d)
		}
	}
	return len(c.mu.denied) == before
}

// eventful runs a village over a bad network: every message from a region to a gateway takes up to 0.7 s.
func eventful(t *testing.T, seed uint64, gateways, people, events int, change ...func(*Options)) (v *cluster, pairs, wrong int) {
	v = newCluster(t, gateways, people, change...)
	rng := rand.New(rand.NewPCG(seed, 1))
	v.lands.slowBy(seed, 700*time.Millisecond)
	pairs, wrong = v.check(v.gossip(rng, events, v.randomInteraction(rng)))
	return v, pairs, wrong
}

// Three to five gateways, nine players who chat, hit and give, each message of a region with a delay of its own, so
// that messages on one link overtake those on another: all events are shown to all in causal order.
func TestEventsAreCausal(t *testing.T) {
	const events = 90
	all, bad := 0, 0
	for seed := range *causalSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gateways := 3 + int(seed%3)
				v, pairs, wrong := eventful(t, seed, gateways, 9, events)
				all, bad = all+pairs, bad+wrong
				if wrong > 0 || pairs < 9*events*20 {
					t.Errorf("%d of %d ordered pairs were shown the wrong way round", wrong, pairs)
				}
				if causal, late := v.order("causal"), v.order("late"); causal != float64(gateways*events) || late > 0 {
					t.Errorf("%v events in order, %v late, want %d and none", causal, late, gateways*events)
				}
				for i, r := range v.gateways {
					if missed := counted(v.t, r.g, "voxeld_chat_timeouts_total"); missed > 0 {
						t.Errorf("gateway %d gave up %v times", i, missed)
					}
				}
			})
		})
	}
	t.Logf("%d of %d ordered pairs (%.4g %%) shown in causal order, %d seeds", all-bad, all, 100*float64(all-bad)/float64(all), *causalSeeds)
}

// The same without ordering: events are shown on arrival. If this finds no violation, the test above cannot either.
func TestEventsAsTheyComeAreNotCausal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pairs, wrong := eventful(t, 0, 3, 9, 90, func(o *Options) { o.unorderedChat = true })
		if wrong < 50 {
			t.Errorf("%d of %d ordered pairs the wrong way round: the network is not bad enough to show anything", wrong, pairs)
		}
		t.Logf("as they come %d of %d ordered pairs are shown the wrong way round", wrong, pairs)
	})
}

// Everybody who sees the acting player is sent the interaction, in order with chat; nobody else is.
func TestInteractionsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 3, 3)
		far := v.gateways[0].join("far", 1)
		for _, x := range []float64{19.5, 38.5, 57.5, 76.5, 95.5, 114.5} {
			far.goTo(x, 25, .5)
			pass(time.Second)
		}
		bob := guestID("p1").String()
		v.people[0].send(sessionmsg.Chat{Text: "ready?"})
		v.people[0].send(sessionmsg.Hit{Player: bob})
		v.people[0].send(sessionmsg.Gift{Player: bob, Block: uint16(chunk.Planks), Count: 3})
		pass(time.Second)
		for i, c := range v.people {
			if got := fmt.Sprint(c.chatShown()); got != "[p0: ready? p0 hits p1 p0 gives p1 3 of 16]" {
				t.Errorf("%s was shown %s", v.names[i], got)
			}
		}
		if got := far.chatShown(); len(got) > 0 {
			t.Errorf("far away %q is shown", got)
		}
	})
}

func TestInteractionsAreDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 2, 2)
		ann, id := v.people[0], func(name string) string { return guestID(name).String() }
		gift := func(name string, b chunk.Block) sessionmsg.FromClient {
			return sessionmsg.Gift{Player: id(name), Block: uint16(b), Count: 1}
		}
		check := func(m sessionmsg.FromClient, want string) {
			t.Helper()
			pass(3 * time.Second) // within the rate limits
			before := len(ann.mu.denied)
			metric := valueOf(t, v.gateways[0].g.metrics.denials.WithLabelValues(want))
			ann.send(m)
			pass(time.Second)
			denied := ann.mu.denied[before:]
			if want == "" && len(denied) > 0 || want != "" && (len(denied) != 1 || denied[0].Error != want) {
				t.Errorf("%+v: %+v, want %q", m, denied, want)
			}
			if now := valueOf(t, v.gateways[0].g.metrics.denials.WithLabelValues(want)); want != "" && now != metric+1 {
				t.Errorf("%+v: %v refusals of the kind are counted", m, now-metric)
			}
		}
		check(sessionmsg.Hit{Player: id("p1")}, "")
		check(sessionmsg.Hit{Player: id("p0")}, sessionmsg.DeniedSelf)
		check(sessionmsg.Hit{Player: id("nobody")}, sessionmsg.DeniedUnknownPlayer)
		check(gift("p1", chunk.Planks), "")
		check(gift("p1", chunk.Bedrock), sessionmsg.DeniedNotPlaceable)
		check(gift("p1", chunk.Air), sessionmsg.DeniedNotPlaceable)
		check(gift("p1", 60000), sessionmsg.DeniedUnknownBlock)

		// p1 is at -1.5, 25, 0.5: three blocks to the west of ann. A wall is built between them, and then a window at
		// the height of the eyes.
		for y := int32(24); y <= 27; y++ {
			for z := int32(-2); z <= 2; z++ {
				pass(100 * time.Millisecond)
				ann.put(grid.Pos{X: -1, Y: y, Z: z}, chunk.Stone)
			}
		}
		v.people[1].goTo(-1.5, 25, .5)
		v.people[1].goTo(-2.5, 25, .5)
		check(sessionmsg.Hit{Player: id("p1")}, sessionmsg.DeniedBehindBlock)
		check(gift("p1", chunk.Planks), sessionmsg.DeniedBehindBlock)
		ann.put(grid.Pos{X: -1, Y: 26, Z: 0}, chunk.Air)
		check(sessionmsg.Hit{Player: id("p1")}, "")

		v.people[1].goTo(-8.9, 25, .5) // 9.1 from the eyes to the body's nearest point: its face
		check(sessionmsg.Hit{Player: id("p1")}, sessionmsg.DeniedOutOfReach)
		v.people[1].goTo(-8, 25, .5)
		check(sessionmsg.Hit{Player: id("p1")}, "")

		pass(5 * time.Second)
		before := len(ann.mu.denied)
		for range hitsAtOnce + 3 {
			ann.send(sessionmsg.Hit{Player: id("p1")})
		}
		pass(time.Second)
		if denied := ann.mu.denied[before:]; len(denied) < 2 || slices.ContainsFunc(denied, func(d sessionmsg.Denied) bool { return d.Error != sessionmsg.DeniedRate }) {
			t.Errorf("of %d hits at once were denied %+v", hitsAtOnce+3, denied)
		}
		v.people[1].conn.Close()
		pass(time.Second)
		check(sessionmsg.Hit{Player: id("p1")}, sessionmsg.DeniedUnknownPlayer)
	})
}

// A node of a later version may send interactions that this one does not support: they are shown as text.
func TestInteractionsOfLaterNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 1, 2)
		s := v.gateways[0].g.sessions.Of(guestID("p0"))
		s.sendEvent("waves to p1", &nodemsg.Interaction{Kind: 200, To: guestID("p1"), ToName: "p1"})
		pass(time.Second)
		if got := fmt.Sprint(v.people[1].chatShown()); got != "[p0: waves to p1]" {
			t.Errorf("shown is %s", got)
		}
	})
}

// The events of a player who moves to a gateway whose clock is behind are numbered on from what the previous one has
// saved, and never taken for repeated ones: none is late, and answers follow what they answer. Then the player comes
// back, twice.
func TestEventsAreCountedOnAcrossGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := playerstest.NewMemory()
		v := newCluster(t, 3, 3, func(o *Options) { o.Players = network }) // p1 and p2 only read, each on a gateway of their own
		v.gateways[0].g.clockOffset = time.Hour
		ann, at, said := v.people[0], 0, 0
		ann.conn.Close() // so far her events were numbered by the right clock
		pass(time.Second)
		last := uint64(0)
		for n, to := range []int{0, 1, 2, 0, 2, 2} {
			at = to
			ann = v.gateways[at].join("p0", 1)
			for range 3 {
				said++
				ann.send(sessionmsg.Chat{Text: fmt.Sprint(said)})
				pass(1200 * time.Millisecond)
			}
			ann.send(sessionmsg.Hit{Player: guestID("p1").String()})
			said++
			pass(1500 * time.Millisecond)
			done := v.gateways[at].g.sessions.Of(guestID("p0")).presence().Done
			if done < last+4 {
				t.Errorf("visit %d: after %d events her count is %d", n, last, done)
			}
			last = done
			for i, c := range v.people[1:] {
				if got := len(c.chatShown()); got != said {
					t.Errorf("visit %d: %s was shown %d events of %d", n, v.names[i+1], got, said)
				}
			}
			ann.conn.Close()
			pass(time.Second)
			record, err := network.Player(t.Context(), guestID("p0"))
			if err != nil || record.Counted() < done {
				t.Errorf("visit %d: the record counts %d events of %d: %+v (%v)", n, record.Counted(), done, record, err)
			}
		}
		if late := v.order("late") + v.order("repeated"); late > 0 {
			t.Errorf("%v events of hers were taken for earlier ones", late)
		}
	})
}

// Where clocks agree, records are unchanged: older nodes accept them.
func TestDoneIsLeftOutWhereClocksAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 2, 2)
		v.people[0].send(sessionmsg.Chat{Text: "hi"})
		pass(2 * time.Second)
		v.people[0].conn.Close()
		pass(time.Second)
		if r, err := v.gateways[0].network.Player(t.Context(), guestID("p0")); err != nil || r.Done != 0 || r.SavedAt == 0 {
			t.Errorf("the record is %+v (%v)", r, err)
		}
	})
}

// An event sent after a player was handed over is not shown: their next gateway may assign its number to something
// else.
func TestNoEventsAfterHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 2, 2)
		s := v.gateways[0].g.sessions.Of(guestID("p0"))
		here := s.place.detach()
		last := s.presence()
		if err := s.setHome(motion.Pose{}); err == nil {
			t.Error("the home is set, and forgotten")
		}
		v.people[0].send(sessionmsg.Chat{Text: "too late"})
		v.people[0].send(sessionmsg.Hit{Player: guestID("p1").String()})
		pass(2 * time.Second)
		if !here || last.Done == 0 || s.presence().Done != last.Done {
			t.Errorf("handed over after %d events, and then there were %d", last.Done, s.presence().Done)
		}
		if got := v.people[1].chatShown(); len(got) > 0 {
			t.Errorf("shown is %q", got)
		}
		if d := v.people[0].mu.denied; len(d) != 1 || d[0].Error != sessionmsg.DeniedUnavailable || len(v.people[0].mu.notices) != 1 {
			t.Errorf("tickNews is %+v, %q", d, v.people[0].mu.notices)
		}
	})
}
