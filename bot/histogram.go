package bot

import (
	"math/bits"
	"time"
)

// Each power of two of microseconds is divided into subBuckets equal parts, so values are exact to 1/64.
const (
	subBits    = 6
	subBuckets = 1 << subBits
	histSize   = (40 - subBits + 1) * subBuckets // up to 2^40 µs, twelve days
)

// histogram counts durations, to the microsecond below 64 µs and to within 1/64 of their value above. Its size is
// fixed.
type histogram struct {
	counts [histSize]uint32
	n      uint64
	sum    time.Duration
	max    time.Duration
}

func (h *histogram) record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(d)]++
	h.n++
	h.sum += d
	h.max = max(h.max, d)
}

// quantile returns the smallest recorded value v, to within 1/64 upwards, such that at least q of all values are at
// most v. It returns 0 if nothing was recorded.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := max(uint64(q*float64(h.n)+0.999999), 1)
	seen := uint64(0)
	for i, c := range h.counts {
		seen += uint64(c)
		if seen >= rank {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// bucket returns the index of the counter for d: linear below 2^subBits µs, then subBuckets for each power of two.
func bucket(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < subBuckets {
		return int(us)
	}
	exp := bits.Len64(us) - 1 - subBits
	return min((exp+1)*subBuckets+int(us>>exp)-subBuckets, histSize-1)
}

// upper returns the largest duration in the bucket, in whole microseconds.
func upper(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i) * time.Microsecond
	}
	exp := i/subBuckets - 1
	us := (uint64(i%subBuckets+subBuckets)+1)<<exp - 1
	return time.Duration(us) * time.Microsecond
}
