package areacast

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/overlay"
)

// crowded returns a machine at the origin that has just received updates of players on rings at distances of 20 (IR),
// 120 (VR) and 400 (Inf).
func crowded(opt Options, ir, vr, inf int) (m *Machine, repeat func(round uint32) *overlay.Input) {
	m = New(0, opt, rand.New(rand.NewPCG(1, 1)))
	return m, func(round uint32) *overlay.Input {
		g := &overlay.Gossip{}
		for i := range ir + vr + inf {
			dist := 400.
			switch {
			case i < ir:
				dist = 20
			case i < ir+vr:
				dist = 120
			}
			g.Updates = append(g.Updates, overlay.AgedUpdate{Update: overlay.Update{Origin: overlay.ID(i + 1), Round: round, At: overlay.Point{X: dist}}})
		}
		return &overlay.Input{Round: round, Inbox: []overlay.Message{{From: 1, Payload: g}}}
	}
}

// receiversOf counts the receivers in each ring.
func receiversOf(out *overlay.Output, ir, vr int) (received [3]int) {
	for _, msg := range out.Messages {
		switch i := int(msg.To) - 1; {
		case i < ir:
			received[0]++
		case i < ir+vr:
			received[1]++
		default:
			received[2]++
		}
	}
	return received
}

func TestAreacastSpillsIntoWiderViews(t *testing.T) {
	for _, c := range []struct {
		name          string
		members, want [3]int
		fanout        [3]int
		noSpill       bool
	}{
		{name: "enough in each", members: [3]int{20, 20, 20}, fanout: [3]int{8, 1, 1}, want: [3]int{8, 1, 1}},
		{name: "few in interaction range", members: [3]int{1, 20, 20}, fanout: [3]int{10, 0, 0}, want: [3]int{1, 9, 0}},
		{name: "few in both ranges", members: [3]int{1, 2, 20}, fanout: [3]int{8, 1, 1}, want: [3]int{1, 2, 7}},
		{name: "few at all", members: [3]int{1, 2, 3}, fanout: [3]int{8, 1, 1}, want: [3]int{1, 2, 3}},
		{name: "nothing spills inwards", members: [3]int{20, 20, 1}, fanout: [3]int{2, 3, 5}, want: [3]int{2, 3, 1}},
		{name: "no spill", members: [3]int{1, 20, 20}, fanout: [3]int{8, 1, 1}, noSpill: true, want: [3]int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := Paper()
			opt.FanoutIR, opt.FanoutVR, opt.FanoutInf, opt.NoSpill = c.fanout[0], c.fanout[1], c.fanout[2], c.noSpill
			m, input := crowded(opt, c.members[0], c.members[1], c.members[2])
			var out overlay.Output
			m.Step(input(1), &out)
			if got := receiversOf(&out, c.members[0], c.members[1]); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if ir, vr, inf := len(m.views[viewIR]), len(m.views[viewVR]), len(m.views[viewInf]); [3]int{ir, vr, inf} != c.members {
				t.Errorf("views of %d, %d and %d, want %v", ir, vr, inf, c.members)
			}
		})
	}
}

// §2.2: "Only if the new update is the most up-to-date update received from this player so far, it will be added".
func TestAreacastDeliversOnlyWhatIsNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(0, Paper(), rand.New(rand.NewPCG(1, 1)))
		base := rapid.SampledFrom([]uint32{0, 1 << 31, 1<<32 - 5}).Draw(t, "base")
		newest, any := uint32(0), false
		for round := range uint32(10) {
			in := &overlay.Input{Round: round}
			var want []uint32
			for range rapid.IntRange(0, 5).Draw(t, "updates") {
				after := rapid.Uint32Range(0, 20).Draw(t, "round")
				age := rapid.Uint8Range(0, 4).Draw(t, "age")
				u := overlay.Update{Origin: 9, Round: base + after}
				in.Inbox = append(in.Inbox, overlay.Message{From: 1, Payload: &overlay.Gossip{Updates: []overlay.AgedUpdate{{Update: u, Age: age}}}})
				if age < 3 && (!any || after > newest) {
					newest, any = after, true
					want = append(want, u.Round)
				}
			}
			var out overlay.Output
			m.Step(in, &out)
			if len(out.Learned) != len(want) {
				t.Fatalf("learned %+v, want the rounds %v", out.Learned, want)
			}
			for i, u := range out.Learned {
				if u.Round != want[i] {
					t.Fatalf("learned %+v, want the rounds %v", out.Learned, want)
				}
			}
		}
	})
}

// "if its knowledge about q is older than three rounds": an update that came in one hop keeps its origin in a view for
// two rounds more.
func TestAreacastRemovesSilentPlayers(t *testing.T) {
	m, input := crowded(Paper(), 2, 0, 0)
	var out overlay.Output
	m.Step(input(10), &out)
	for round := uint32(11); round <= 14; round++ {
		out.Reset()
		m.Step(&overlay.Input{Round: round}, &out)
		want := 0
		if round <= 12 {
			want = 2
		}
		if ir := len(m.views[viewIR]); ir != want || len(out.Messages) != want {
			t.Errorf("round %d: %d in view, %d receivers, want %d", round, ir, len(out.Messages), want)
		}
	}
}

func TestAreacastForwardsAsFarAsItMay(t *testing.T) {
	for _, maxAge := range []int{1, 2, 3} {
		opt := Paper()
		opt.MaxPositionAge = maxAge
		m, input := crowded(opt, 1, 0, 0)
		var out overlay.Output
		m.Step(input(1), &out) // a received update has one hop
		forwards := 0
		for round := uint32(2); ; round++ {
			g := out.Messages[0].Payload.(*overlay.Gossip)
			if len(g.Updates) == 1 {
				break
			}
			forwards++
			if age := int(g.Updates[1].Age); age != forwards {
				t.Errorf("forward %d has age %d", forwards, age)
			}
			out.Reset()
			m.Step(&overlay.Input{Round: round}, &out)
		}
		if forwards != maxAge-1 {
			t.Errorf("with at most %d hops, %d forwards", maxAge, forwards)
		}
	}
}

// The stalest are served first: under a cap that suffices for a tenth of the players in sight, everybody is served in
// turn, players in interaction range most often.
func TestAreacastServesEverybodyInTurn(t *testing.T) {
	const ir, vr, rounds = 10, 90, 300
	opt := Improved(10 * (overlay.HeaderUDP + 120))
	opt.FanoutInf = 0
	m, input := crowded(opt, ir, vr, 0)
	var received [ir + vr]int
	for round := range uint32(rounds) {
		var out overlay.Output
		m.Step(input(round), &out)
		for _, msg := range out.Messages {
			received[msg.To-1]++
		}
	}
	near, far := 0, 0
	for i, n := range received {
		if n < rounds/50 {
			t.Errorf("player %d received %d gossips in %d rounds", i+1, n, rounds)
		}
		if i < ir {
			near += n
		} else {
			far += n
		}
	}
	if n, f := float64(near)/ir, float64(far)/vr; n < 1.2*f {
		t.Errorf("players in interaction range received %.1f gossips, others %.1f", n, f)
	}
}

func TestAreacastRatesFallWithDistance(t *testing.T) {
	const rounds = 60
	opt := Paper()
	opt.FanoutIR, opt.FanoutVR, opt.FanoutInf = 50, 50, 0
	opt.Improved.EdgeInterval = 5
	m := New(0, opt, rand.New(rand.NewPCG(1, 1)))
	received := map[overlay.ID]int{}
	for round := range uint32(rounds) {
		g := &overlay.Gossip{}
		for i, dist := range []float64{10, 50, 125, 199} {
			g.Updates = append(g.Updates, overlay.AgedUpdate{Update: overlay.Update{Origin: overlay.ID(i + 1), Round: round, At: overlay.Point{X: dist}}})
		}
		var out overlay.Output
		m.Step(&overlay.Input{Round: round, Inbox: []overlay.Message{{Payload: g}}}, &out)
		for _, msg := range out.Messages {
			received[msg.To]++
		}
	}
	for id, want := range map[overlay.ID]int{1: rounds, 2: rounds, 3: rounds / 3, 4: rounds / 5} {
		if received[id] != want {
			t.Errorf("player %d received %d gossips in %d rounds, want %d", id, received[id], rounds, want)
		}
	}
}
