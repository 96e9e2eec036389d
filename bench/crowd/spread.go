package crowd

import "math"

// Spread is a distribution of values of at least 0, exact to about 4 %. The zero value is empty.
type Spread struct {
	n      uint64
	sum    float64
	max    float64
	counts [spreadBuckets]uint64
}

const (
	spreadBuckets = 512
	perOctave     = 18
	smallest      = 1e-6 // values below count as 0
)

// Add counts a value.
func (s *Spread) Add(v float64) {
	s.n++
	s.sum += v
	s.max = max(s.max, v)
	i := 0
	if v > smallest {
		i = min(spreadBuckets-1, 1+int(perOctave*math.Log2(v/smallest)))
	}
	s.counts[i]++
}

// Merge adds the values that o has counted.
func (s *Spread) Merge(o *Spread) {
	s.n += o.n
	s.sum += o.sum
	s.max = max(s.max, o.max)
	for i, n := range o.counts {
		s.counts[i] += n
	}
}

// Count returns how many values were counted.
func (s *Spread) Count() uint64 { return s.n }

// Mean returns the mean of the values; NaN without any.
func (s *Spread) Mean() float64 { return s.sum / float64(s.n) }

// Quantile returns the value below which a share q of all values lies; NaN without any.
func (s *Spread) Quantile(q float64) float64 {
	if s.n == 0 {
		return math.NaN()
	}
	rank, below := q*float64(s.n), uint64(0)
	for i, n := range s.counts {
		if below += n; float64(below) >= rank {
			if i == 0 {
				return 0
			}
			return min(s.max, smallest*math.Exp2((float64(i)-.5)/perOctave))
		}
	}
	return s.max
}

// Since returns what was counted after earlier, a former state of s; its maximum is that of s.
func (s Spread) Since(earlier Spread) Spread {
	s.n -= earlier.n
	s.sum -= earlier.sum
	for i := range s.counts {
		s.counts[i] -= earlier.counts[i]
	}
	return s
}
