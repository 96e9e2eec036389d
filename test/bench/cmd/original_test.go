package main

import (
	"errors"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

// ticked returns metrics of a daemon whose loops have ticked that often.
func ticked(region, gateway uint64) metrics.Metrics {
	histogram := func(n uint64) *dto.MetricFamily {
		upper := 1.
		return &dto.MetricFamily{Metric: []*dto.Metric{{
			Histogram: &dto.Histogram{SampleCount: &n, Bucket: []*dto.Bucket{{UpperBound: &upper, CumulativeCount: &n}}},
		}}}
	}
	return metrics.Metrics{"voxeld_region_tick_seconds": histogram(region), "voxeld_gateway_tick_seconds": histogram(gateway)}
}

func TestOriginalMissed(t *testing.T) {
	for _, c := range []struct {
		name                  string
		players               int
		time, region, gateway uint64 // in 10 s, of one sample
		lost                  map[string]int
		failed                error
		want                  string // prefix
	}{
		{name: "held", players: 50, time: 200, region: 195, gateway: 196},
		{name: "ended early", failed: errors.New("too much memory"), want: "too much memory"},
		{name: "lost", players: 48, time: 200, region: 200, gateway: 200, lost: map[string]int{"b": 1, "a": 1}, want: "2 of 50 players lost (a)"},
		{name: "all lost", lost: map[string]int{"b": 49, "a": 1}, want: "50 of 50 players lost (b)"},
		{name: "few TIME packets", players: 50, time: 190, region: 200, gateway: 200, want: "19.0 TIME/s"},
		{name: "slow region", players: 50, time: 200, region: 190, gateway: 200, want: "19.0 region"},
		{name: "slow gateway", players: 50, time: 200, region: 200, gateway: 158, want: "15.8 gateway"},
	} {
		row := crowdRow{wanted: 50, failed: c.failed, Reading: measure.Reading{
			Players: c.players, Seconds: 10, Seen: crowd.Counts{Samples: 1, Frames: c.time, Failed: c.lost},
			Before: []metrics.Metrics{ticked(1000, 2000)}, After: []metrics.Metrics{ticked(1000+c.region, 2000+c.gateway)},
		}}
		if got := originalMissed(row); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
