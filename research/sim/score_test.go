package sim

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"
)

// logged runs psense on moves from a file, in which player 3 leaves and returns, with lost messages, and returns the
// files.
func logged(t testing.TB) (moves *Recorded, deliveries string, r *Result) {
	t.Helper()
	const n, rounds = 30, 60
	var file bytes.Buffer
	if err := WriteMoves(&file, NewHotspot(Field{Players: n, Width: 300, Depth: 300}, HotspotOptions{Hotspots: 3}, 5), rounds); err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(file.String()) {
		if f := strings.Split(line, ","); len(f) < 2 || f[1] != "3" || len(f[0]) < 2 || f[0] > "39" { // skip rounds 10 to 39
			kept.WriteString(line)
		}
	}
	moves, err := ReadMoves(strings.NewReader(kept.String()))
	if err != nil {
		t.Fatal(err)
	}
	var updates strings.Builder
	log := NewCSVLog(&updates, io.Discard, moves)
	r, err = Run(Config{
		Seed: 1, Rounds: rounds, Movement: moves, Ranges: PaperRanges, Age: PSenseAge, Log: log,
		Machine: func(id overlay.ID, rng *rand.Rand) overlay.Machine {
			return psense.New(psense.Paper(PaperRanges.Vision), id, rng)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	return moves, updates.String(), r
}

// Scoring the output of a run gives the result of the run.
func TestScoreOfAFileIsTheRuns(t *testing.T) {
	moves, deliveries, want := logged(t)
	got, err := ScoreDeliveries(moves, strings.NewReader(deliveries), PaperRanges, PSenseAge)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rounds) != len(want.Rounds) {
		t.Fatalf("%d rounds, want %d", len(got.Rounds), len(want.Rounds))
	}
	for i, w := range want.Rounds {
		g := got.Rounds[i]
		if math.Abs(g.PQ1-w.PQ1) > 1e-12 || g.Most != w.Most || g.Tenth != w.Tenth || g.Neighbors != w.Neighbors || g.Known != w.Known {
			t.Errorf("round %d is %+v, want %+v", i+1, g, w)
		}
	}
	if want.PQ(1) < 1.05 {
		t.Errorf("PQ is %v: the test shows nothing", want.PQ(1))
	}
}

func TestScoreRefusesWhatCannotBe(t *testing.T) {
	moves := Record(NewRandom(Field{Players: 3, Width: 9, Depth: 9}, 1), 5)
	for text, ok := range map[string]bool{
		"round,receiver,origin,origin_round\n1,0,1,0\n": true,
		"1,0,1,0\n4,0,1,2\n":                            true,
		"1,0,1,0\n9,0,1,8\n":                            true, // after the last round
		"":                                              true,
		"1,0,1,1\n":                                     false, // delivered before it was usable
		"1,0,7,0\n":                                     false,
		"2,0,1,0\n1,0,1,0\n":                            false,
		"-1,0,1,-2\n":                                   false,
		"1,0,1\n":                                       false,
		"a,0,1,0\n":                                     false,
	} {
		r, err := ScoreDeliveries(moves, strings.NewReader(text), PaperRanges, PSenseAge)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if ok && len(r.Rounds) != 5 {
			t.Errorf("%q: %d rounds", text, len(r.Rounds))
		}
	}
}

func FuzzScoreDeliveries(f *testing.F) {
	f.Add("round,receiver,origin,origin_round\n1,0,1,0\n3,2,1,1\n")
	moves := Record(NewRandom(Field{Players: 3, Width: 9, Depth: 9}, 1), 5)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ScoreDeliveries(moves, strings.NewReader(text), PaperRanges, PSenseAge)
		if err == nil && (len(r.Rounds) != 5 || !(r.PQ(1) >= 1)) {
			t.Fatalf("%q: %d rounds, PQ %v", text, len(r.Rounds), r.PQ(1))
		}
	})
}
