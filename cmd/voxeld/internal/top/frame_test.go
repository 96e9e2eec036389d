package top

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// The view fits into any terminal, also without metrics and with many regions.
func TestFrameFits(t *testing.T) {
	s := sample{at: time.Unix(0, 0), status: admin.Status{
		World: "A world with quite a long name", WorldID: "0123456789abcdef", NotReady: "no other node of the world is connected yet", Damaged: 2,
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
