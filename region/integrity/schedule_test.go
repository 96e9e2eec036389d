package integrity

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestSchedule(t *testing.T) {
	s := newSchedule(time.Hour)
	s.drawn = func() float64 { return .5 }
	now := time.Unix(0, 0)
	regions := func(ids ...uint64) (all []nodemsg.Region) {
		for _, id := range ids {
			all = append(all, nodemsg.Region{ID: id, Cell: grid.Cell{}})
		}
		return all
	}
	if _, due := s.next(now, regions(1, 2), regions(3)); due {
		t.Error("something is due at once")
	}
	now = now.Add(31 * time.Minute)
	first, due := s.next(now, regions(1, 2), regions(3))
	if !due || first.ID != 1 {
		t.Errorf("after half an hour: %d %v", first.ID, due)
	}
	s.done(now, 1, false)
	if second, due := s.next(now, regions(1, 2), regions(3)); !due || second.ID != 2 {
		t.Errorf("then: %d %v", second.ID, due)
	}
	s.done(now, 2, false)
	if next, due := s.next(now.Add(time.Hour), regions(1, 2), regions(3)); due {
		t.Errorf("an hour later, %d is due without its jitter", next.ID)
	}
	if next, due := s.next(now.Add(64*time.Minute), regions(1, 2), regions(3)); !due || next.ID == 3 {
		t.Errorf("64 minutes later: %d %v", next.ID, due)
	}
	if next, due := s.next(now.Add(12*time.Hour), nil, regions(3)); !due || next.ID != 3 {
		t.Errorf("a closed region after twelve hours: %d %v", next.ID, due)
	}
	if len(s.due) != 1 {
		t.Errorf("%d are remembered", len(s.due))
	}
}
