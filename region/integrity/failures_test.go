package integrity

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/fault"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Failure records quarantine a region after the right number of failures.
func TestFailureRecord(t *testing.T) {
	type said struct{ here, everywhere bool }
	at := time.Unix(0, 0)
	own := func(after time.Duration, kind fault.Kind, led bool) failure {
		return failure{at.Add(after), "A", kind, led}
	}
	other := func(after time.Duration, kind fault.Kind) failure {
		return failure{at.Add(after), "B", kind, true}
	}
	for name, c := range map[string]struct {
		strikes []failure
		want    []said
	}{
		"once":                             {[]failure{own(0, fault.Panicked, true)}, []said{{}}},
		"twice as leader":                  {[]failure{own(0, fault.Panicked, true), own(time.Minute, fault.Panicked, true)}, []said{{}, {true, false}}},
		"twice as follower":                {[]failure{own(0, fault.Panicked, false), own(time.Minute, fault.Broken, false)}, []said{{}, {true, false}}},
		"elsewhere, then here":             {[]failure{other(0, fault.Panicked), own(time.Minute, fault.Slow, true)}, []said{{}, {true, true}}},
		"elsewhere, then behind":           {[]failure{other(0, fault.Panicked), own(time.Minute, fault.Panicked, false)}, []said{{}, {}}},
		"twice elsewhere, says one member": {[]failure{other(0, fault.Panicked), other(time.Minute, fault.Panicked)}, []said{{}, {}}},
		"long ago":                         {[]failure{own(0, fault.Panicked, true), own(11*time.Minute, fault.Panicked, true)}, []said{{}, {}}},
		"a full disk": {
			[]failure{own(0, fault.Refused, true), own(1, fault.Refused, true), own(2, fault.Refused, true), own(3, fault.Refused, true), own(4, fault.Refused, true), own(5, fault.Refused, true)},
			[]said{{}, {}, {}, {}, {}, {true, false}},
		},
	} {
		var r failureRecord
		for i, s := range c.strikes {
			here, everywhere := r.add(s, "A")
			if got := (said{here, everywhere}); got != c.want[i] {
				t.Errorf("%s: strike %d: %+v, want %+v", name, i, got, c.want[i])
			}
		}
	}
	var r failureRecord
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		r.add(own(0, fault.Refused, false), "A")
		if pause := r.until.Sub(at); pause != want*time.Second {
			t.Errorf("after failure %d: a pause of %v", i, pause)
		}
	}
}

// However many failures a node reports, few are kept, and they still count; those of other nodes are not lost.
func TestFailuresAreBounded(t *testing.T) {
	var r failureRecord
	at := time.Unix(0, 0)
	r.add(failure{at, "A", fault.Panicked, false}, "A")
	for i := range 100_000 {
		r.add(failure{at.Add(time.Duration(i)), "B", fault.Kind(i % 256), i%2 == 0}, "A")
	}
	if n := len(r.failures); n > 1+4*maxAlike {
		t.Errorf("%d failures are kept", n)
	}
	if here, everywhere := r.add(failure{at.Add(time.Minute), "A", fault.Panicked, true}, "A"); !here || !everywhere {
		t.Errorf("two failures here, one of them as the leader, and others of another leader: %v, %v", here, everywhere)
	}
}

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
