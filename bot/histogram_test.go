package bot

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var durations = rapid.Custom(func(t *rapid.T) time.Duration {
	// Evenly over the orders of magnitude, from nanoseconds to hours.
	return time.Duration(math.Exp2(rapid.Float64Range(0, 43).Draw(t, "log2 ns")))
})

// A quantile is never below the true one, and at most 1/64 and a microsecond above it.
func TestQuantileIsNearTheSortedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(durations, 1, 300).Draw(t, "values")
		q := rapid.SampledFrom([]float64{0.001, 0.5, 0.9, 0.99, 1}).Draw(t, "q")
		var h histogram
		for _, v := range values {
			h.record(v)
		}
		slices.Sort(values)
		rank := int(math.Ceil(q * float64(len(values))))
		want := values[max(rank, 1)-1]
		got := h.quantile(q)
		low, high := want.Truncate(time.Microsecond), want+want/64+time.Microsecond
		if got < low || got > high {
			t.Fatalf("quantile %g of %v is %v, want %v to %v", q, values, got, low, high)
		}
		if h.quantile(1) != values[len(values)-1] && h.quantile(1) < values[len(values)-1].Truncate(time.Microsecond) {
			t.Fatalf("quantile 1 is %v, below the maximum %v", h.quantile(1), values[len(values)-1])
		}
	})
}

// since returns exactly what was recorded after the earlier state.
func TestSinceIsWhatWasRecordedInBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, later histogram
		for _, v := range rapid.SliceOfN(durations, 0, 50).Draw(t, "before") {
			all.record(v)
		}
		earlier := all
		for _, v := range rapid.SliceOfN(durations, 0, 50).Draw(t, "after") {
			all.record(v)
			later.record(v)
		}
		got, want := all.since(&earlier), later.latency()
		if got.Count != want.Count || math.Abs(float64(got.Mean-want.Mean)) > 1e-6 {
			t.Fatalf("since: %+v, want %+v", got, want)
		}
		for _, p := range [][2]Millis{{got.P50, want.P50}, {got.P99, want.P99}, {got.Max, want.Max}} {
			if math.Abs(float64(p[0]-p[1])) > float64(p[1])/50+0.001 {
				t.Fatalf("since: %+v, want %+v", got, want)
			}
		}
	})
}

func TestQuantileOfNothing(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing is %v, want 0", got)
	}
	h.record(-time.Second) // a clock that ran backwards
	if got := h.quantile(1); got != 0 {
		t.Errorf("quantile after a negative duration is %v, want 0", got)
	}
}

func TestBucketsAreInOrder(t *testing.T) {
	for i := 1; i < histSize; i++ {
		if upper(i) <= upper(i-1) {
			t.Fatalf("bucket %d ends at %v, bucket %d at %v", i-1, upper(i-1), i, upper(i))
		}
		if got := bucket(upper(i)); got != i {
			t.Fatalf("bucket of %v is %d, want %d", upper(i), got, i)
		}
		if got := bucket(upper(i-1) + time.Microsecond); got != i {
			t.Fatalf("bucket of %v is %d, want %d", upper(i-1)+time.Microsecond, got, i)
		}
	}
}
