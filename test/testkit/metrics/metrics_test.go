package metrics

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestHistogramQuantileIsNeverBelowTheTruth(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "h", Buckets: []float64{1, 2, 4}})
	read := func() Histogram {
		var m dto.Metric
		if err := h.Write(&m); err != nil {
			t.Fatal(err)
		}
		return Metrics{"h": {Metric: []*dto.Metric{&m}}}.Histogram("h")
	}
	if q := read().Quantile(.5); !math.IsNaN(q) {
		t.Errorf("the median of nothing is %v", q)
	}
	for range 100 {
		h.Observe(3)
	}
	before := read()
	for range 98 {
		h.Observe(.5)
	}
	h.Observe(1.5)
	h.Observe(9)
	since := read().Since(before)
	for q, want := range map[float64]float64{.5: 1, .98: 1, .99: 2, .995: math.Inf(1)} {
		if got := since.Quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if since.Count != 100 {
		t.Errorf("%v counts since, want 100", since.Count)
	}
}
