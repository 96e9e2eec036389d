package admin

import (
	"testing"
	"time"
)

// Backups are overdue after one and a half intervals, counted from the last good one, or from the node's start if there
// is none.
func TestBackupsOverdue(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		backups Backups
		after   time.Duration // the start
		want    bool
	}{
		"no schedule":           {Backups{}, 1000 * time.Hour, false},
		"none yet":              {Backups{Every: time.Hour}, 90 * time.Minute, false},
		"none, for too long":    {Backups{Every: time.Hour}, 91 * time.Minute, true},
		"one":                   {Backups{Every: time.Hour, Last: start.Add(time.Hour)}, 150 * time.Minute, false},
		"one, too long ago":     {Backups{Every: time.Hour, Last: start.Add(time.Hour)}, 151 * time.Minute, true},
		"one of an earlier run": {Backups{Every: time.Hour, Last: start.Add(-time.Hour)}, time.Hour, true},
	} {
		if got := test.backups.Overdue(start, start.Add(test.after)); got != test.want {
			t.Errorf("%s: overdue: %t", name, got)
		}
	}
}
