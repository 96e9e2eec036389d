package interest

import "testing"

// BenchmarkFrameSpread measures a frame for sessions that are far from one another: 100 walkers in about 80 chunks,
// each updated 20 times a second, and ten sessions, one with a large view.
func BenchmarkFrameSpread(b *testing.B) {
	c := newLandscape(b, 1, 14, 170, defaultBudget)
	c.join(0, 4, nil)
	for i := 1; i < 10; i++ {
		c.join(i*17, 1, nil)
	}
	for range 200 {
		c.walk()
		c.frame()
		c.read()
	}
	buckets, avatars := 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		c.walk()
		b.StartTimer()
		c.frame()
		b.StopTimer()
		c.read()
		buckets += len(c.ix.buckets)
		avatars += len(c.ix.avatars)
	}
	b.ReportMetric(float64(buckets)/float64(b.N), "buckets")
	b.ReportMetric(float64(avatars)/float64(b.N), "avatars")
}
