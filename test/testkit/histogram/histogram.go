// Package histogram counts durations and distances of a measurement, for quantiles, means and maxima. It is a thin
// cover over HdrHistogram.
//
// A Histogram belongs to one goroutine, or to whoever holds its owner's lock.
package histogram

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	resolution = 1e-6 // values are rounded down to a multiple of it: microseconds for values in seconds
	most       = 1e12 // multiples of resolution; larger values count as this
	digits     = 2    // significant decimal digits: values are exact to 1 %
)

// Histogram is a distribution of values of at least 0. The zero value is empty. A copy shares its counts with the
// original: use Clone.
type Histogram struct {
	counts *hdrhistogram.Histogram // nil while empty
	sum    float64
	max    float64
}

// Add counts a value. A negative one counts as 0.
func (h *Histogram) Add(v float64) {
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, most, digits)
	}
	v = max(v, 0)
	h.counts.RecordValue(int64(min(v/resolution, most))) //nolint:errcheck // it is in range
	h.sum += v
	h.max = max(h.max, v)
}

// Clone returns an independent copy.
func (h Histogram) Clone() Histogram {
	if h.counts != nil {
		h.counts = h.counts.Clone()
	}
	return h
}

// Since returns what was counted after earlier, a clone of a former state of h. Its maximum is exact to 1 %.
func (h Histogram) Since(earlier Histogram) Histogram {
	if h.counts == nil || earlier.counts == nil {
		return h.Clone()
	}
	counts, before := h.counts.Export(), earlier.counts.Export()
	for i, n := range before.Counts {
		counts.Counts[i] -= n
	}
	d := Histogram{counts: hdrhistogram.Import(counts), sum: h.sum - earlier.sum}
	d.max = min(h.max, float64(d.counts.Max())*resolution)
	return d
}

// Count returns how many values were counted.
func (h Histogram) Count() uint64 {
	if h.counts == nil {
		return 0
	}
	return uint64(h.counts.TotalCount())
}

// Mean returns the mean of the values; NaN without any.
func (h Histogram) Mean() float64 { return h.sum / float64(h.Count()) }

// Max returns the largest value; 0 without any.
func (h Histogram) Max() float64 { return h.max }

// Quantile returns the value that a share q of all values, rounded to whole ones, does not exceed; NaN without any.
func (h Histogram) Quantile(q float64) float64 {
	if h.Count() == 0 {
		return math.NaN()
	}
	return min(h.max, float64(h.counts.ValueAtQuantile(100*q))*resolution)
}
