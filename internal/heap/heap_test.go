package heap

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 400}, {10 << 20, 400}, {48 << 20, 400}, {96 << 20, 200}, {192 << 20, 100}, {8 << 30, 100},
	} {
		if got := percent(c.live); got != c.want {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

func TestMetricExists(t *testing.T) {
	sample := []metrics.Sample{{Name: live}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		t.Fatalf("%s is of kind %v", live, sample[0].Value.Kind())
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx); err != nil {
		t.Fatal(err)
	}
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("%d %% afterwards", now)
	}
}
