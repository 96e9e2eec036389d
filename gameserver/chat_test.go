package gameserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// cluster is some gateways of one world, and players at the corner at which four regions meet: each sees all the
// others, and gets their chat over four links.
type cluster struct {
	t        *testing.T
	lands    *lands
	gateways []*harness
	people   []*client
	names    []string
	pause    time.Duration // between lines of a player
}

// corners are places in the four regions, near enough to spawn to go there at once.
var corners = [][2]float64{{.5, .5}, {-1.5, .5}, {.5, -1.5}, {-1.5, -1.5}}

func newCluster(t *testing.T, gateways, people int, change ...func(*Options)) *cluster {
	v := &cluster{t: t, lands: newLands(), pause: 1100 * time.Millisecond}
	for range gateways {
		r := newHarness(t, append(change, func(o *Options) { o.Regions = v.lands })...)
		r.lands = v.lands
		v.gateways = append(v.gateways, r)
	}
	for i := range people {
		name := fmt.Sprint("p", i)
		c := v.gateways[i%gateways].join(name, 1)
		c.goTo(corners[i%4][0], 25, corners[i%4][1])
		pass(200 * time.Millisecond)
		v.people, v.names = append(v.people, c), append(v.names, name)
	}
	pass(time.Second)
	return v
}

// valueOf reads a counter.
func valueOf(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Error(err)
	}
	return m.Counter.GetValue()
}

// counted returns the value of a gateway's counter or gauge that has the given name, or of the one with the given
// label's value.
func counted(t *testing.T, g *Gateway, name string, label ...string) (n float64) {
	t.Helper()
	families, err := g.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := func(l *dto.LabelPair) bool { return slices.Contains(label, l.GetValue()) }
			if f.GetName() == name && (len(label) == 0 || slices.ContainsFunc(m.GetLabel(), has)) {
				n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return n
}

// order returns how many events gateways have shown in an order.
func (v *cluster) order(order string) (n float64) {
	for _, r := range v.gateways {
		n += counted(v.t, r.g, "voxeld_chat_lines_total", order)
	}
	return n
}

// gossip makes people chat: the first player who is shown the newest line answers it at once, unless they have just
// sent one. It returns which lines each line follows: those that its author had seen when they sent it, and their own
// earlier ones. Utter makes a player send the n-th line, and returns it as it is to be shown.
func (v *cluster) gossip(rng *rand.Rand, lines int, send func(i, n int) string) map[string]map[string]bool {
	follows := make(map[string]map[string]bool)
	own := make([][]string, len(v.people))
	spoke := make([]time.Time, len(v.people))
	newest := ""
	for n := range lines {
		i := v.answerer(rng, spoke, newest)
		if rng.IntN(2) == 0 { // from region to region, with events of theirs in transit in both
			at := corners[rng.IntN(4)]
			v.people[i].goTo(at[0], 25, at[1])
		}
		past := make(map[string]bool)
		for _, before := range append(v.people[i].chatShown(), own[i]...) {
			past[before] = true
			for further := range follows[before] {
				past[further] = true
			}
		}
		newest = send(i, n)
		follows[newest] = past
		own[i] = append(own[i], newest)
		spoke[i] = time.Now()
	}
	pass(3 * time.Second)
	return follows
}

// chat makes a player send a number.
func (v *cluster) chat(i, n int) string {
	v.people[i].send(sessionmsg.Chat{Text: fmt.Sprint(n)})
	return fmt.Sprintf("%s: %d", v.names[i], n)
}

// answerer waits until a player who may send a line has seen the given one.
func (v *cluster) answerer(rng *rand.Rand, spoke []time.Time, line string) int {
	for {
		for _, i := range rng.Perm(len(v.people)) {
			if time.Since(spoke[i]) > v.pause && (line == "" || slices.Contains(v.people[i].chatShown(), line)) {
				return i
			}
		}
		pass(5 * time.Millisecond)
	}
}

// chatShown returns the chat that the client was shown.
func (c *client) chatShown() (said []string) {
	c.look(func() { said = slices.Clone(c.mu.said) })
	return said
}

// check returns how many pairs of lines, of which one follows the other, were shown to somebody, and how many of them
// in the wrong order. Everybody must have got every line once.
func (v *cluster) check(follows map[string]map[string]bool) (pairs, wrong int) {
	for i, c := range v.people {
		said := c.chatShown()
		if len(said) != len(follows) {
			v.t.Errorf("%s was shown %d lines of %d", v.names[i], len(said), len(follows))
		}
		for j, later := range said {
			for _, earlier := range said[:j] {
				switch {
				case follows[later][earlier]:
					pairs++
				case follows[earlier][later]:
					pairs++
					wrong++
				case earlier == later:
					v.t.Errorf("%s was shown %q twice", v.names[i], later)
				}
			}
		}
	}
	return pairs, wrong
}

// Three gateways, nine players, and each message from a region to a gateway takes up to 0.7 s: all see all lines in
// causal order.
func TestChatIsCausal(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newCluster(t, 3, 9)
				rng := rand.New(rand.NewPCG(seed, 1))
				v.lands.slowBy(seed, 700*time.Millisecond)
				pairs, wrong := v.check(v.gossip(rng, 90, v.chat))
				if wrong > 0 || pairs < 9*90*20 {
					t.Errorf("%d of %d ordered pairs were shown the wrong way round", wrong, pairs)
				}
				if causal, late := v.order("causal"), v.order("late"); causal != 3*90 || late > 0 {
					t.Errorf("%v lines in order, %v late, want %d and none", causal, late, 3*90)
				}
				for i, r := range v.gateways {
					if missed := counted(v.t, r.g, "voxeld_chat_timeouts_total"); missed > 0 {
						t.Errorf("gateway %d gave up %v times", i, missed)
					}
				}
			})
		})
	}
}

// Regions that do not pass clocks on: everything is shown on arrival. The violations show what the clocks are for.
func TestChatOfOlderNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 3, 9)
		v.lands.mute()
		rng := rand.New(rand.NewPCG(0, 1))
		v.lands.slowBy(0, 700*time.Millisecond)
		pairs, wrong := v.check(v.gossip(rng, 90, v.chat))
		if wrong == 0 || v.order("none") != 3*90 {
			t.Errorf("%d of %d pairs the wrong way round, %v lines without a clock", wrong, pairs, v.order("none"))
		}
		t.Logf("without clocks %d of %d ordered pairs are shown the wrong way round", wrong, pairs)
	})
}

// The line that was sent first is shown first, although its region is slower.
func TestConcurrentChatGoesByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newCluster(t, 3, 3)
		slow := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
		v.lands.slow(func(c *testLink) time.Duration {
			if c.region.cell == slow {
				return 40 * time.Millisecond
			}
			return 0
		})
		v.people[0].send(sessionmsg.Chat{Text: "first"})
		pass(10 * time.Millisecond)
		v.people[1].send(sessionmsg.Chat{Text: "second"})
		pass(time.Second)
		for i, c := range v.people {
			if fmt.Sprint(c.mu.said) != "[p0: first p1: second]" {
				t.Errorf("%s was shown %q", v.names[i], c.mu.said)
			}
		}
	})
}

// Nobody waits for what new players, or those whom a new player meets, sent before. A lost event delays what follows
// it, once.
func TestChatWaitsForNothingThatIsNotToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const soon = 200 * time.Millisecond
		v := newCluster(t, 2, 2)
		ann := v.people[0]
		for range 3 {
			ann.send(sessionmsg.Chat{Text: "before"})
			pass(soon)
		}
		r := newHarness(t, func(o *Options) { o.Regions = v.lands })
		r.lands = v.lands
		cid := r.join("cid", 1)
		pass(time.Second)
		ann.send(sessionmsg.Chat{Text: "welcome"})
		pass(soon)
		cid.send(sessionmsg.Chat{Text: "thanks"})
		pass(soon)
		if fmt.Sprint(cid.mu.said) != "[p0: welcome cid: thanks]" {
			t.Errorf("cid was shown %q", cid.mu.said)
		}
		if said := v.people[1].mu.said; len(said) != 5 || said[4] != "cid: thanks" {
			t.Errorf("p1 was shown %q", said)
		}
		// An event of ann's that reaches nobody, and one that does.
		s := v.gateways[0].g.sessions.Of(guestID("p0"))
		s.clock.NextStamp(s.g.now(), func(vclock.ID) bool { return false })
		for i, want := range []int{3, 4} {
			ann.send(sessionmsg.Chat{Text: "after"})
			pass([]time.Duration{chat.Wait + soon, soon}[i])
			if len(cid.mu.said) != want {
				t.Errorf("cid was shown %q", cid.mu.said)
			}
		}
		if missed := counted(v.t, r.g, "voxeld_chat_timeouts_total"); missed != 1 {
			t.Errorf("%v players given up, want 1", missed)
		}
	})
}
