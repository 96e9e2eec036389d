package gameserver

import "testing"

// BenchmarkBeatSpread measures a frame of a gateway whose sessions are far from one another: 100 walkers in about 80 chunks, each
// updated 20 times a second, and ten sessions, one with a large view.
func BenchmarkBeatSpread(b *testing.B) {
	c := newLandscape(b, 1, 14, 170)
	c.join(0, 4, nil)
	for i := 1; i < 10; i++ {
		c.join(i*17, 1, nil)
	}
	for range 200 {
		c.walk()
		c.frame()
		c.read()
	}
	buckets, actors := 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		c.walk()
		b.StartTimer()
		c.frame()
		b.StopTimer()
		c.read()
		buckets += len(c.g.interest.mu.buckets)
		actors += len(c.g.interest.mu.actors)
	}
	b.ReportMetric(float64(buckets)/float64(b.N), "plots")
	b.ReportMetric(float64(actors)/float64(b.N), "actors")
}
