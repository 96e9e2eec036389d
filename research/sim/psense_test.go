package sim

import (
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"
)

func runCase(t *testing.T, c PSenseCase, seed uint64) *Result {
	t.Helper()
	r, err := Run(c.Config(seed))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Rounds {
		if limit := c.Options.Cap; limit > 0 && m.MostOut > limit {
			t.Fatalf("round %d: a player sent %d bytes, the cap is %d", i+1, m.MostOut, limit)
		}
	}
	return r
}

// The purpose of the improvements. research/figures/overlays has the long runs.
func TestImprovedPSense(t *testing.T) {
	for _, c := range []struct {
		players, header, rounds int
		most                    float64
	}{{300, overlay.HeaderPlain, 60, 1.005}, {600, overlay.HeaderPlain, 25, 1.01}, {600, overlay.HeaderUDP, 25, 1.01}, {1000, overlay.HeaderPlain, 12, 1.02}} {
		s := PSenseSetting{Header: c.header}
		got := runCase(t, PSenseCase{Players: c.players, Rounds: c.rounds, Options: s.options(improved)}, 1)
		if pq := got.PQ(1); pq > c.most {
			t.Errorf("%d players, %d bytes of header: PQ is %.4f, want at most %v", c.players, c.header, pq, c.most)
		}
	}
}

// Without a leader, and with one contact each, the improved machines connect too, as after the death of the leader.
func TestImprovedPSenseWithoutALeader(t *testing.T) {
	o := PSenseSetting{}.options(improved)
	o.Introductions = false
	got := runCase(t, PSenseCase{Players: 200, Rounds: 120, Options: o}, 1)
	if pq := got.PQ(80); pq > 1.02 {
		t.Errorf("PQ is %.4f when all found each other", pq)
	}
}

// §5.1: with 100 players "the PQ is very close to 1".
func TestPlainPSenseOf100(t *testing.T) {
	for _, variant := range []string{readingQueue, readingSubset} {
		got := runCase(t, PSenseCase{Rounds: 80, Options: PSenseSetting{}.options(variant)}, 1)
		if pq := got.PQ(50); pq > 1.03 {
			t.Errorf("%s: PQ is %.4f", variant, pq)
		}
	}
}

// §5.1: "the client/server architecture has a PQ of around 1.4-1.5".
func TestRelayIsClientServer(t *testing.T) {
	o := psense.Paper(200)
	for _, hotspot := range []bool{false, true} {
		got := runCase(t, PSenseCase{Rounds: 200, Hotspot: hotspot, Relay: true, Options: o}, 1)
		if pq := got.PQ(100); pq < 1.38 || pq > 1.6 {
			t.Errorf("hotspot %v: PQ is %.4f", hotspot, pq)
		}
		for i, m := range got.Rounds[1:] {
			if m.Known < .9 {
				t.Fatalf("round %d: only %.2f are known", i+2, m.Known)
			}
		}
	}
}

func TestRunsRepeat(t *testing.T) {
	for _, variant := range []string{readingQueue, improved, clientServer} {
		c := PSenseCase{Players: 40, Rounds: 20, Options: PSenseSetting{}.options(variant), Relay: variant == clientServer}
		if a, b := runCase(t, c, 7), runCase(t, c, 7); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: the same seed gives another result", variant)
		}
	}
}

// mortal is a leader that is killed in a given round.
type mortal struct {
	overlay.Machine
	dies uint32
}

func (m *mortal) Step(in *overlay.Input, out *overlay.Output) {
	if in.Round < m.dies {
		m.Machine.Step(in, out)
	}
}

// After the leader is killed, movement is still seen: other avatars introduce those who come near.
func TestLeaderIsKilled(t *testing.T) {
	c := PSenseCase{Players: 200, Rounds: 150, Options: PSenseSetting{}.options(improved)}
	cfg := c.Config(1)
	cfg.Servers[0] = &mortal{cfg.Servers[0], 20}
	got, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Rounds[149]; m.ServersOut != 0 {
		t.Fatalf("the dead leader says %d bytes", m.ServersOut)
	}
	if pq := got.PQ(50); pq > 1.005 {
		t.Errorf("without its leader PQ is %.4f", pq)
	}
}
