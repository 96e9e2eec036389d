package histogram

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// values are spread evenly over the orders of magnitude, from less than a microsecond to a day, in seconds.
var values = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
	return math.Exp2(rapid.Float64Range(-21, 16).Draw(t, "log2"))
}), 1, 200)

func of(all []float64) (h Histogram) {
	for _, v := range all {
		h.Add(v)
	}
	return h
}

func near(got, want float64) bool { return math.Abs(got-want) <= .01*want+2*resolution }

func TestQuantileIsNearTheSortedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := values.Draw(t, "values")
		q := rapid.SampledFrom([]float64{.001, .5, .9, .99, 1}).Draw(t, "q")
		h := of(all)
		slices.Sort(all)
		want := all[max(int(q*float64(len(all))+.5), 1)-1]
		if got := h.Quantile(q); !near(got, want) {
			t.Fatalf("quantile %g of %v is %v, want %v", q, all, got, want)
		}
		if h.Max() != all[len(all)-1] || h.Count() != uint64(len(all)) {
			t.Fatalf("%d values up to %v, want %d up to %v", h.Count(), h.Max(), len(all), all[len(all)-1])
		}
	})
}

func TestSinceIsWhatWasCountedInBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := values.Draw(t, "before"), values.Draw(t, "after")
		h := of(before)
		earlier := h.Clone()
		for _, v := range after {
			h.Add(v)
		}
		got, want := h.Since(earlier), of(after)
		if got.Count() != want.Count() || math.Abs(got.Mean()-want.Mean()) > 1e-6*h.Mean()*float64(h.Count()) ||
			!near(got.Quantile(.5), want.Quantile(.5)) || !near(got.Max(), want.Max()) {
			t.Fatalf("since: %d values, mean %v, median %v, maximum %v; want %d, %v, %v, %v", got.Count(), got.Mean(), got.Quantile(.5), got.Max(),
				want.Count(), want.Mean(), want.Quantile(.5), want.Max())
		}
	})
}

func TestEmptyAndOutOfRange(t *testing.T) {
	var h Histogram
	if !math.IsNaN(h.Quantile(.5)) || !math.IsNaN(h.Mean()) || h.Since(h.Clone()).Count() != 0 {
		t.Error("an empty histogram has values")
	}
	h.Add(-1) // a clock that ran backwards
	if h.Quantile(1) != 0 {
		t.Errorf("a negative value counts as %v, want 0", h.Quantile(1))
	}
	h.Add(1e20)
	if h.Count() != 2 {
		t.Errorf("%d values, want 2", h.Count())
	}
}
