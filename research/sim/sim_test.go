package sim

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
)

// everybody is a machine that sends to all others, which is the optimum.
type everybody struct {
	id overlay.ID
	n  int
}

type said struct{ overlay.Update }

func (*said) Kind() overlay.Kind { return overlay.KindReport }

func (m *everybody) ID() overlay.ID             { return m.id }
func (m *everybody) Introduce([]overlay.Update) {}

func (m *everybody) Step(in *overlay.Input, out *overlay.Output) {
	for _, msg := range in.Inbox {
		out.Learned = append(out.Learned, msg.Payload.(*said).Update)
	}
	for i := range m.n {
		if to := overlay.ID(i); to != m.id {
			out.Send(overlay.Message{From: m.id, To: to, Bytes: 10, Payload: &said{in.Self(m.id)}})
		}
	}
}

func everybodyOf(n int) func(overlay.ID, *rand.Rand) overlay.Machine {
	return func(id overlay.ID, _ *rand.Rand) overlay.Machine { return &everybody{id, n} }
}

func TestAllToAllIsPerfect(t *testing.T) {
	const n = 20
	var deliveries, traffic bytes.Buffer
	log := NewCSVLog(&deliveries, &traffic, nil)
	got, err := Run(Config{
		Seed: 1, Rounds: 3, Ranges: PaperRanges, Age: PSenseAge, Log: log, Machine: everybodyOf(n),
		Movement: NewRandom(Field{Players: n, Width: 300, Depth: 300}, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	if pq := got.PQ(1); pq != 1 {
		t.Errorf("PQ is %v, want 1", pq)
	}
	if m := got.Rounds[0]; m.Out != 10*(n-1) || m.In != 10*(n-1) || m.Known != 1 {
		t.Errorf("round 1 measured %+v", m)
	}
	if s := deliveries.String(); !strings.Contains(s, "\n1,0,1,0\n") || strings.Count(s, "\n") != 1+3*n*(n-1) {
		t.Errorf("deliveries are\n%.200s", s)
	}
	if s := traffic.String(); !strings.Contains(s, "\n0,0,190,0\n") || !strings.Contains(s, "\n1,19,190,190\n") {
		t.Errorf("traffic is\n%.200s", s)
	}
}

func TestPositionQualityIsThePapers(t *testing.T) {
	// §4.2: "given PositionAge(p,q) = 3, IR = 2, VR = 5 and dist(p, q) = 3, then PQ(p, q) = 2.08"
	if got := (Ranges{2, 5}).PositionQuality(3, 3); math.Abs(got-2.08) > .005 {
		t.Errorf("PQ(p, q) is %v", got)
	}
}

func TestMovesReadAsWritten(t *testing.T) {
	field := Field{Players: 7, Width: 100, Depth: 50}
	var file bytes.Buffer
	if err := WriteMoves(&file, NewHotspot(field, HotspotOptions{}, 3), 30); err != nil {
		t.Fatal(err)
	}
	g, err := ReadMoves(&file)
	if err != nil {
		t.Fatal(err)
	}
	again := NewHotspot(field, HotspotOptions{}, 3)
	want, got := make([]Body, 7), make([]Body, 7)
	for round := range 31 {
		again.Move(round, want)
		g.Move(round, got)
		for i := range want {
			if want[i].At.Dist(got[i].At) > .001 || want[i].Velocity.Dist(got[i].Velocity) > .001 || !got[i].Here {
				t.Fatalf("round %d: player %d is %+v, want %+v", round, i, got[i], want[i])
			}
			if at := want[i].At; at.X < 0 || at.X > 100 || at.Z < 0 || at.Z > 50 {
				t.Fatalf("round %d: player %d left the field: %v", round, i, at)
			}
		}
	}
}

func TestMovesOfStrangers(t *testing.T) {
	for _, text := range []string{"", "round,player,x,y,vx,vy\n", "0,1,2\n", "0,1,NaN,0,0,0\n", "0,1,1e300,0,0,0\n", "0,1,0,0,0,0\n2,1,0,0,0,0\n", "a,1,0,0,0,0\n"} {
		if _, err := ReadMoves(strings.NewReader(text)); err == nil {
			t.Errorf("moves %q are taken", text)
		}
	}
	g, err := ReadMoves(strings.NewReader("10,5,1,2,3,4\n10,9,1,2,3,4\n11,9,2,2,3,4\n"))
	if err != nil || g.First != 10 || g.Players() != 2 || g.Rounds() != 1 {
		t.Fatalf("moves are %+v, %v", g, err)
	}
	bodies := make([]Body, 2)
	g.Move(1, bodies)
	if bodies[0].Here || bodies[1].At.X != 2 {
		t.Errorf("round 1 is %+v", bodies)
	}
}

func FuzzReadMoves(f *testing.F) {
	f.Add("round,player,x,y,vx,vy\n1,0,1,2,3,4\n1,7,-1,2.5,0,0\n2,7,1e3,2,0,-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ReadMoves(strings.NewReader(text))
		if err != nil {
			return
		}
		var file bytes.Buffer
		if err := WriteMoves(&file, g, g.Rounds()); err != nil {
			t.Fatal(err)
		}
		again, err := ReadMoves(&file)
		if err != nil || again.Players() != g.Players() || again.Rounds() != g.Rounds() {
			t.Fatalf("%q is read as %d players for %d rounds, and not again: %v", text, g.Players(), g.Rounds(), err)
		}
	})
}
