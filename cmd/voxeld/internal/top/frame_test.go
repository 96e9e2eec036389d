package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

// The view fits into any terminal, also without metrics and with many regions.
func TestFrameFits(t *testing.T) {
	s := sample{at: time.Unix(0, 0), status: admin.Status{
		World: "A world with quite a long name", WorldID: "0123456789abcdef", NotReady: "no other node of the world is connected yet", Unusable: map[string]int{"damaged": 2},
		NodeRegions: map[string]int{"healthy": 1200, "no_quorum": 3, "under_replicated": 40}, WorldRegions: map[string]int{"healthy": 9000},
	}}
	for i := range 100 {
		s.regions = append(s.regions, admin.Region{ID: fmt.Sprint(i), Cell: fmt.Sprintf("%d,%d/0101010101", i, -i), Bodies: i, Leader: "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"})
	}
	later := s
	later.at = s.at.Add(time.Second)
	for _, size := range [][2]int{{80, 23}, {40, 10}, {200, 60}, {1, 1}, {0, 0}} {
		lines := frame(interval{s, later}, size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > max(size[0], 1) {
				t.Errorf("%v: %d columns: %s", size, n, line)
			}
		}
	}
}

// After a restart of the node the rates are those since its start: its counters began at 0 again.
func TestRatesAfterARestart(t *testing.T) {
	read := func(at, started, cpu, ticks int) sample {
		m, err := metrics.Read(strings.NewReader(fmt.Sprintf("# TYPE voxeld_start_time_seconds gauge\nvoxeld_start_time_seconds %d\n"+
			"# TYPE c counter\nc %d\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} %d\nh_sum 1\nh_count %d\n", started, cpu, ticks, ticks)))
		if err != nil {
			t.Fatal(err)
		}
		return sample{at: time.Unix(int64(at), 0), metrics: m}
	}
	old, restarted, later := read(100, 50, 1000, 5000), read(110, 106, 8, 20), read(111, 106, 9, 30)
	for name, c := range map[string]struct {
		before, after          sample
		seconds, rate, counted float64
	}{"restart": {old, restarted, 4, 2, 20}, "after it": {restarted, later, 1, 1, 10}} {
		i := since(c.before, c.after)
		if i.seconds() != c.seconds || i.rate("c") != c.rate || i.durations("h").Count != c.counted {
			t.Errorf("%s: %v s, rate %v, counted %v; want %+v", name, i.seconds(), i.rate("c"), i.durations("h").Count, c)
		}
	}
}

// Splits are shown with their reasons, once there are any.
func TestDivisions(t *testing.T) {
	read := func(text string) interval {
		m, err := metrics.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return interval{after: sample{metrics: m}}
	}
	if got := divisions(read("# TYPE x counter\nx 1\n")); got != "" {
		t.Errorf("without splits: %q", got)
	}
	got := divisions(read(`# TYPE voxeld_region_splits_total counter
voxeld_region_splits_total{trigger="players",result="done"} 5
voxeld_region_splits_total{trigger="players",result="failed"} 2
voxeld_region_splits_total{trigger="manual",result="done"} 1
# TYPE voxeld_region_merges_total counter
voxeld_region_merges_total{trigger="quiet",result="done"} 3
`))
	if want := "split since the start: players 5, manual 1; merged: 3; failed: 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
