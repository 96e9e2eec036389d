package crowd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSpreadQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s, before Spread
	var all []float64
	for i := range 20_000 {
		v := math.Exp(rng.NormFloat64()*2 - 5)
		if i == 5_000 {
			before, all = s, nil
		}
		s.Add(v)
		all = append(all, v)
	}
	slices.Sort(all)
	since := s.Since(before)
	if int(since.Count()) != len(all) {
		t.Fatalf("%d values, want %d", since.Count(), len(all))
	}
	for _, q := range []float64{.01, .5, .9, .99, .999} {
		want, got := all[int(q*float64(len(all)))], since.Quantile(q)
		if math.Abs(got/want-1) > .04 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if v := (&Spread{}).Quantile(.5); !math.IsNaN(v) {
		t.Errorf("nothing has the median %v", v)
	}
}
